"""Four settings for each learned method, judged on the intact grid alone; no outage is looked at.

    python benchmarks/tuning.py                  # measures what results/tuning.json lacks
    python benchmarks/tuning.py --only mmnp      # one method

Every method has the same number of tries, the same training rows, and a training of the same
length, `NUM_STEPS` steps of a surrogate, which is shorter than the product's. The error is the mean
over all outputs on 1,000 fresh rows of the intact grid; a context, where one is used, is of 400
solved cases of the intact grid. The smallest error is the setting that the method's configuration
has as its default.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gridshift.adapt.baselines.deepopf_ft import DeepOpfFtConfig, adapt_deepopf_ft, start_deepopf_ft
from gridshift.adapt.baselines.fine_tune import FINE_TUNE, GradientConfig, adapt_fine_tune
from gridshift.adapt.baselines.mmnp import MmnpConfig, adapt_mmnp, start_mmnp
from gridshift.adapt.baselines.modular_gp import (
    ModularGpConfig,
    adapt_modular_gp,
    start_modular_gp,
)
from gridshift.adapt.baselines.pi_ttt import StepsConfig, adapt_pi_ttt
from gridshift.adapt.baselines.ttf_ensemble import TTF, adapt_ttf_ensemble, start_ttf_ensemble
from gridshift.adapt.cache import cached_surrogate
from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.methods import METHODS
from gridshift.adapt.surrogate_config import SurrogateConfig
from gridshift.adapt.training_rows import draw_rows, validation_rows
from gridshift.grid.network import Network
from gridshift.grid.readers import read_grid

RESULTS = Path(__file__).parent / "results" / "tuning.json"
GRID, NUM_CONTEXT, NUM_STEPS = "case30", 400, 2_000
LEARNING_RATES = (6.29e-4, 1e-3, 2e-3, 4e-3)
Try = tuple[dict[str, Any], Callable[[], Predictor]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only")
    only = parser.parse_args().only
    torch.set_num_threads(1)
    found = json.loads(RESULTS.read_text())["tries"] if RESULTS.exists() else []
    done = {(row["method"], json.dumps(row["setting"])) for row in found}
    network, config = read_grid(GRID), _shorter(SurrogateConfig())
    test = validation_rows(network, config)
    for method, tries in _methods(network, config).items():
        for setting, fit in tries if only in (None, method) else ():
            if (method, json.dumps(setting)) in done:
                continue
            began = time.perf_counter()
            predictor = fit()
            fit_s = time.perf_counter() - began
            mae = float(np.abs(predictor.predict(test.x) - test.y).mean())
            found.append({"method": method, "setting": setting, "mae": mae, "fit_s": fit_s})
            print(f"{method:14} {setting} {mae:.3e} {fit_s:.0f} s", flush=True)
            _write(found)


def _write(found: list[dict[str, Any]]) -> None:
    best: dict[str, dict[str, Any]] = {}
    for row in sorted(found, key=lambda row: row["mae"]):
        best.setdefault(row["method"], row)
    about = {"grid": GRID, "num_steps": NUM_STEPS, "num_context": NUM_CONTEXT, "seed": 0}
    chosen = {method: row["setting"] for method, row in best.items()}
    RESULTS.write_text(json.dumps(about | {"chosen": chosen, "tries": found}, indent=1) + "\n")


def _shorter(config: SurrogateConfig, **training: Any) -> SurrogateConfig:
    return replace(config, training=replace(config.training, num_steps=NUM_STEPS, **training))


def _methods(network: Network, config: SurrogateConfig) -> dict[str, Iterator[Try]]:
    """The tries of each method, made one after the other."""
    context = Context.of(draw_rows(network, config, NUM_CONTEXT, role="context"))
    zscore = replace(config, transform="zscore")

    def with_own(adapt: Any, start: Any, settings: Any) -> Iterator[Try]:
        """Tries of a method with a model of its own: settings and what it is configured by."""
        for setting, own in settings:
            yield setting, lambda own=own: adapt(start(network, config, own=own), context)

    def at_rates(fit: Callable[..., Predictor], configs: Any) -> Iterator[Try]:
        """Tries that differ in the learning rate."""
        for rate, own in zip(LEARNING_RATES, configs, strict=True):
            yield {"learning_rate": rate}, lambda own=own: fit(own)

    def by_moments(name: str) -> Iterator[Try]:
        method = METHODS[name]
        return at_rates(
            lambda chosen: method.fit(method.start(network, chosen), context),
            (_shorter(config, learning_rate=rate) for rate in LEARNING_RATES),
        )

    modular = [
        {"num_fourier": num, "response": response}
        for num, response in ((100, True), (200, True), (400, True), (200, False))
    ]
    rates = [{"learning_rate": rate} for rate in LEARNING_RATES]

    def steps() -> Iterator[Try]:
        for step in (0.125, 0.25, 0.5, 1.0):
            yield (
                {"step": step},
                lambda step=step: adapt_pi_ttt(
                    cached_surrogate(network, config), context, config=StepsConfig(step=step)
                ),
            )

    return {
        "modular-gp": with_own(
            adapt_modular_gp, start_modular_gp, ((s, ModularGpConfig(**s)) for s in modular)
        ),
        "deepopf-ft": with_own(
            adapt_deepopf_ft, start_deepopf_ft, ((s, DeepOpfFtConfig(**s)) for s in rates)
        ),
        "mmnp": with_own(adapt_mmnp, start_mmnp, ((s, MmnpConfig(**s)) for s in rates)),
        "icw": by_moments("icw"),
        "zscore": by_moments("zscore"),
        "fine-tune": at_rates(
            lambda own: adapt_fine_tune(cached_surrogate(network, zscore), context, config=own),
            _rates(FINE_TUNE),
        ),
        "pi-ttt": steps(),
        "ttf-ensemble": at_rates(
            lambda own: adapt_ttf_ensemble(
                start_ttf_ensemble(network, config), context, config=own
            ),
            _rates(TTF),
        ),
    }


def _rates(config: GradientConfig) -> Iterator[GradientConfig]:
    for rate in LEARNING_RATES:
        yield replace(config, schedule=replace(config.schedule, learning_rate=rate))


if __name__ == "__main__":
    main()
