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
from gridshift.adapt.baselines.mmnp import adapt_mmnp, start_mmnp
from gridshift.adapt.baselines.modular_gp import (
    ModularGpConfig,
    adapt_modular_gp,
    start_modular_gp,
)
from gridshift.adapt.baselines.neural_process import MmnpConfig
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

    def modular_gp() -> Iterator[Try]:
        for num, response in ((100, True), (200, True), (400, True), (200, False)):
            own = ModularGpConfig(num_fourier=num, response=response)
            setting = {"num_fourier": num, "response": response}
            yield (
                setting,
                lambda own=own: adapt_modular_gp(
                    start_modular_gp(network, config, own=own), context
                ),
            )

    def deepopf_ft() -> Iterator[Try]:
        for rate in LEARNING_RATES:
            own = DeepOpfFtConfig(learning_rate=rate)
            yield (
                {"learning_rate": rate},
                lambda own=own: adapt_deepopf_ft(
                    start_deepopf_ft(network, config, own=own), context
                ),
            )

    def mmnp() -> Iterator[Try]:
        for rate in LEARNING_RATES:
            own = MmnpConfig(learning_rate=rate)
            yield (
                {"learning_rate": rate},
                lambda own=own: adapt_mmnp(start_mmnp(network, config, own=own), context),
            )

    def by_moments(name: str) -> Iterator[Try]:
        method = METHODS[name]
        for rate in LEARNING_RATES:
            chosen = _shorter(config, learning_rate=rate)
            yield (
                {"learning_rate": rate},
                lambda chosen=chosen: method.fit(method.start(network, chosen), context),
            )

    def fine_tune() -> Iterator[Try]:
        for own in _rates(FINE_TUNE):
            yield (
                {"learning_rate": own.schedule.learning_rate},
                lambda own=own: adapt_fine_tune(
                    cached_surrogate(network, zscore), context, config=own
                ),
            )

    def ttf_ensemble() -> Iterator[Try]:
        for own in _rates(TTF):
            yield (
                {"learning_rate": own.schedule.learning_rate},
                lambda own=own: adapt_ttf_ensemble(
                    start_ttf_ensemble(network, config), context, config=own
                ),
            )

    def pi_ttt() -> Iterator[Try]:
        for step in (0.125, 0.25, 0.5, 1.0):
            yield (
                {"step": step},
                lambda step=step: adapt_pi_ttt(
                    cached_surrogate(network, config), context, config=StepsConfig(step=step)
                ),
            )

    return {
        "modular-gp": modular_gp(), "deepopf-ft": deepopf_ft(), "mmnp": mmnp(),
        "icw": by_moments("icw"), "zscore": by_moments("zscore"), "fine-tune": fine_tune(),
        "pi-ttt": pi_ttt(), "ttf-ensemble": ttf_ensemble(),
    }  # fmt: skip


def _rates(config: GradientConfig) -> Iterator[GradientConfig]:
    for rate in LEARNING_RATES:
        yield replace(config, schedule=replace(config.schedule, learning_rate=rate))


if __name__ == "__main__":
    main()
