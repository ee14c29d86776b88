"""What a study starts from: grid, scenarios and method, checked before anything is done."""

from typing import TYPE_CHECKING

from gridshift.arguments import how_many
from gridshift.arrays import Complex
from gridshift.errors import GridshiftError, NotConvergedError, ScenarioError
from gridshift.grid.contingency import assess
from gridshift.grid.equations import require_reachable
from gridshift.grid.intact_rows import IntactRows, kept_bytes
from gridshift.grid.network import Network
from gridshift.grid.scenarios import LoadScenarios, Scenarios, named_rng, scenarios
from gridshift.grid.statistics import SCENARIO_BYTES, statistics_bytes
from gridshift.memory import require_memory
from gridshift.study.limits import check_ratings, read_ratings
from gridshift.study.pieces import num_together
from gridshift.study.screening import ScreenConfig
from gridshift.study.setting import BLOCK, Setting
from gridshift.study.spread import SpreadOfLoads
from gridshift.trial.exact import EXACT

if TYPE_CHECKING:
    from gridshift.adapt.base import Base
    from gridshift.adapt.methods import Method


def set_up(config: ScreenConfig, network: Network) -> Setting:
    """The setting of a study on this grid; a base is not in it yet.

    Raises:
        GridshiftError: what is asked for can't be done on this grid or this machine.
    """
    method = method_of(config)
    require_possible(network, config)
    if config.study is None:
        spread = SpreadOfLoads(spread=config.spread, regime=config.regime)
        loads = spread_loads(network, spread, config)
    else:
        from gridshift.study.study_file import read_study_file

        file = read_study_file(config.study).changed(config)
        config = file.limited(config)
        drawn, spread = file.draw(network), file.uncertainty.spread_of_loads
        spread = None if drawn.network is not network and drawn.generators else spread
        network, loads = drawn.network, drawn.loads
        if config.distributed_slack is not None and file.uncertainty.balance is not None:
            raise ScenarioError(
                f"{config.study} says in generation.balance who shares changes of demand, and a "
                "distributed slack shares them too; leave one of them out"
            )
        for name in (config.method, *(one.partition(":")[0] for one in config.beside)):
            if name != EXACT:
                drawn.require_exact(name)
    setting = Setting(
        config=config, network=network, voltage=intact_voltage(network), loads=loads,
        spread=spread, intact_rows=IntactRows(network), method=method,
    )  # fmt: skip
    _ = setting.shares  # what can't be shared is told now
    if config.ratings is not None:
        check_ratings(network, read_ratings(config.ratings), config.ratings)
    setting.limited(network)
    if spread is None and (method is not None or config.beside):
        _require_rows(loads, config)
    return setting


def spread_loads(
    network: Network, spread: SpreadOfLoads, config: ScreenConfig
) -> LoadScenarios | Scenarios:
    """The scenarios of a study whose loads have a spread: drawn when they are asked for."""
    rng = named_rng(network.name, "scenarios", seed=config.seed)
    return scenarios(network, rng, config.num_scenarios, spread=spread.spread, regime=spread.regime)


def _require_rows(loads: object, config: ScreenConfig) -> None:
    """Pass if the study's scenarios are enough to take contexts and hold-outs from."""
    assert isinstance(loads, LoadScenarios)
    needed = config.num_context + config.num_holdout
    if loads.num_rows < needed:
        raise ScenarioError(
            f"context and hold-out are taken from the {loads.num_rows:,} scenarios of the study "
            f"file and need {needed:,}; ask for smaller ones (--context, --holdout) or for more "
            "scenarios"
        )


def require_possible(network: Network, config: ScreenConfig) -> None:
    """Pass if the numbers asked for suit this grid and this machine, before anything is trained.

    Raises:
        GridshiftError: a tolerance that double precision doesn't reach.
        MemoryNeededError: contexts, hold-outs and blocks of predictions of all workers, or what is
            kept of the scenarios, don't fit.
    """
    from gridshift.adapt.datasets import require_rows

    if config.certify is not None:
        require_reachable(network, config.certify)
    workers, number = config.num_workers, config.num_scenarios
    learned = ("context", config.num_context), ("hold-out", config.num_holdout)
    for what, rows in learned if config.method != EXACT or config.beside else ():
        require_rows(network, rows, f"{what} scenarios", times=workers)
    if config.method != EXACT:
        require_rows(network, min(number, BLOCK), "predicted scenarios", times=workers)
    needed = 8 * number + worker_bytes(network, config)
    require_memory(
        needed, f"{how_many(number, 'scenario')} on {how_many(workers, 'worker')}", count=number
    )


def worker_bytes(network: Network, config: ScreenConfig) -> int:
    """Memory that all workers take for what they count of their scenarios."""
    number, exact = config.num_scenarios, config.method == EXACT
    kept = SCENARIO_BYTES + 16 * exact  # mismatch, and its copy
    outages = config.num_workers * (num_together(number) if exact else 1)
    counts = 1 if exact else 2  # a surrogate's statistics without set-points come on top
    # twice: what is counted, and the table that it is put together to
    counted = outages * counts * (2 * kept * number + statistics_bytes(network))
    return counted + kept_bytes(network, number)  # beside a surrogate for outages that split


def method_of(config: ScreenConfig) -> "Method | None":
    """The method of a configuration; None solves every scenario.

    Raises:
        GridshiftError: there is none of this name.
        ContextError: it can't work with such a context.
    """
    return None if config.method == EXACT else known_method(config.method, config.num_context)


def known_method(name: str, num_context: int) -> "Method":
    """The method of this name, if it can work with such a context."""
    from gridshift.adapt.methods import METHODS

    if name not in METHODS:
        names = dict.fromkeys((*METHODS, EXACT))
        raise GridshiftError(f"no method '{name}'; choose one of {', '.join(names)}")
    METHODS[name].check_num_context(num_context)
    return METHODS[name]


def base_of(setting: Setting, method: "Method", given: "Base | None" = None) -> "Base":
    """What a method starts from: what is given, if it suits, or what is trained or in the cache.

    Raises:
        SurrogateMismatchError: what is given is of another grid or does not suit the method.
    """
    from gridshift.trial.base import base_for

    config = setting.config
    if given is None:
        given = base_for(
            method, setting.network, num_context=config.num_context, spread=config.spread,
            seed=config.seed,
        )  # fmt: skip
    given.check(setting.network)
    method.check_base(given)
    return given


def intact_voltage(network: Network) -> Complex:
    """(B,) nominal solution of the intact grid.

    Raises:
        NotConvergedError: it has none.
    """
    found = assess(network, ())
    if not found.usable:
        raise NotConvergedError(
            f"{network.name} cannot be screened: {found.reason}; check it with "
            f"'gridshift solve {network.name}'"
        )
    return found.voltage
