"""The row that a study keeps of one outage."""

import time
from dataclasses import Field, dataclass, field, fields
from typing import Any

import numpy as np

from gridshift.arrays import Real
from gridshift.grid.network import Network
from gridshift.grid.powerflow import RowStatus
from gridshift.grid.statistics import Distribution
from gridshift.study.risk import LOST_SUPPLY
from gridshift.trial.metrics import QUANTITIES, summarise

NAN = float("nan")
CERTIFIED = ("predicted", "repaired", "solved", "marked", "worst_mismatch")
"""Keys of `OutageRow.certified`."""
FAILED = "failed"
"""Status of an outage that has a nominal solution but could not be studied; `reason` says why."""


def _nothing() -> Real:
    return np.empty(0)


def _unknown() -> dict[str, float]:
    return dict.fromkeys(Distribution._fields, NAN)


@dataclass(frozen=True, kw_only=True, eq=False)
class OutageRow:
    """What became of one outage. Powers in MW, errors and voltages per unit, times in seconds."""

    outage: str
    status: str
    """A text of `RowStatus` for the outage at nominal demand, or 'failed'."""
    reason: str = ""
    severity: float
    unsolved: float = float("nan")
    """Share of scenarios without a solution: of all ('newton'), else of context and hold-out."""
    cut_off: list[str] = field(default_factory=list)
    mw_cut_off: float = 0.0
    """Nominal demand at the buses cut off, whatever is generated there."""
    mw_generation_cut_off: float = 0.0
    """Scheduled generation there."""
    num_scenarios: int = 0
    """Scenarios behind the limit statistics."""
    num_context: int = 0
    num_solves: int = 0
    """Solves paid for context and hold-out, failed ones included; all scenarios for 'newton'."""

    exact: bool = False
    """Whether all of its scenarios were solved, whatever the method of the study."""
    stopped: str = ""
    """Why there are no more scenarios, if their number was left open: 'precision', 'harmless' or
    'all'."""

    violation_probability: float = float("nan")
    """Probability that a limit is exceeded or that there is no solution: the share of scenarios."""
    violation_low: float = float("nan")
    """Bounds of its 95 % interval, after Wilson; with a surrogate wider by its error on the
    hold-out, see `surrogate_error`."""
    violation_high: float = float("nan")
    standard_error: float = float("nan")
    """Half the width of the interval over the normal distribution's 1.96."""
    severity_standard_error: float = float("nan")

    excess: float = float("nan")
    """Expected sum of limit violations, `Risk.excess`."""
    voltage_excess: float = float("nan")
    overload_excess: float = float("nan")
    any_voltage: float = float("nan")
    any_overload: float = float("nan")
    shift: float = float("nan")
    """Mean over buses of the distance of the mean complex voltage from the intact grid's nominal
    one: mostly of angle."""
    worst_bus: str = ""
    """Bus with the largest expected violation; empty if there is none."""
    worst_bus_probability: float = float("nan")
    worst_branch: str = ""
    """Branch with the largest expected overload; empty if there is none."""
    worst_branch_probability: float = float("nan")
    worst_bus_share: float = float("nan")
    """Share of scenarios in which no bus has a worse voltage than `worst_bus`."""
    worst_branch_share: float = float("nan")
    """Share of scenarios in which no branch has a higher loading than `worst_branch`."""
    under_bus: str = ""
    """Bus that is most often below its lower limit, and how often; empty if none ever is."""
    under_probability: float = float("nan")
    over_bus: str = ""
    over_probability: float = float("nan")
    any_emergency: float = float("nan")
    """Share of scenarios in which a loading exceeds an emergency rating; NaN without such."""
    emergency_branch: str = ""
    """Branch that is most often beyond its emergency rating, and how often; empty if none is."""
    emergency_probability: float = float("nan")

    any_at_limit: float = float("nan")
    """Share of scenarios in which a generator is at a reactive limit; NaN where limits are not
    kept, as in the next."""
    limit_bus: str = ""
    """Bus whose generators are most often at a limit, and how often; empty if none ever are."""
    limit_probability: float = float("nan")

    any_moved: float = float("nan")
    """Share of scenarios in which a control (tap changer, shunt, phase shifter) moves; NaN where
    controls stay, as in the next."""
    moved_control: str = ""
    """Control that moves in most scenarios, and in how many; empty if none ever does."""
    moved_probability: float = float("nan")
    end_control: str = ""
    """Control that is most often at its first or its last position, and how often."""
    end_probability: float = float("nan")
    unsettled: float = float("nan")
    """Share of scenarios in which controls move without end; they have no solution."""

    added_severity: float = float("nan")
    """Severity less that of the intact grid in the same scenarios."""
    added_probability: float = float("nan")
    """`violation_probability` less that of the intact grid."""
    added_bus: str = ""
    """Bus whose expected violation grows most against the intact grid; empty if none does."""
    added_bus_probability: float = float("nan")
    """By how much its probability to be outside limits grows."""
    added_branch: str = ""
    added_branch_probability: float = float("nan")

    worst_voltage: dict[str, float] = field(default_factory=_unknown)
    """Of each scenario's worst voltage, as distance from the middle of its band in half widths, so
    that 1 is at a limit: mean, quantiles p95 and p99, max, and tail, the mean of the worst 5 %."""
    worst_loading: dict[str, float] = field(default_factory=_unknown)
    """The same of each scenario's highest loading."""
    scenario_excess: dict[str, float] = field(default_factory=_unknown)
    """The same of each scenario's sum of limit violations."""

    mae: dict[str, float] = field(default_factory=lambda: dict.fromkeys(QUANTITIES, float("nan")))
    """Errors on the hold-out."""
    mismatch: dict[str, float] = field(default_factory=lambda: summarise(np.empty(0)))
    """Worst-bus power mismatch of the hold-out's predictions."""
    holdout_excess: float = float("nan")
    """`Risk.excess` of the hold-out's exact solutions."""
    holdout_excess_predicted: float = float("nan")
    """The same from the predictions of the same rows."""

    certified: dict[str, float] = field(default_factory=lambda: dict.fromkeys(CERTIFIED, NAN))
    """Scenarios predicted, repaired, solved and marked, and the largest mismatch of those counted,
    p.u.; NaN where none were corrected."""

    equal_to: str = ""
    """Outage that was solved in its place, as it leaves an equal grid; empty if it was itself."""
    name: str = ""
    """What a list of outages calls it; the next are from there, or follow from it."""
    failures_per_year: float = float("nan")
    repair_hours: float = float("nan")
    violations_per_year: float = float("nan")
    """Expected failures with a violation or without a solution."""
    energy_not_served_mwh: float = float("nan")
    """Expected per year."""

    cost: dict[str, float] = field(default_factory=dict)
    """Seconds: data (context), holdout, fit, predict, certify, risk, wall."""

    bus_under: Real = field(default_factory=_nothing, repr=False)
    """(B,) share of scenarios below the lower voltage limit; empty where nothing was studied. NaN
    at buses cut off, as in the other arrays."""
    bus_over: Real = field(default_factory=_nothing, repr=False)
    """(B,) share of scenarios above the upper voltage limit."""
    bus_violation: Real = field(default_factory=_nothing, repr=False)
    """(B,) expected distance outside the limits, p.u."""
    bus_worst: Real = field(default_factory=_nothing, repr=False)
    """(B,) share of scenarios in which no bus has a worse voltage."""
    bus_voltage_min: Real = field(default_factory=_nothing, repr=False)
    """(B,) least magnitude over scenarios, p.u.; the next four are 5 % quantile and so on."""
    bus_voltage_p5: Real = field(default_factory=_nothing, repr=False)
    bus_voltage_mean: Real = field(default_factory=_nothing, repr=False)
    bus_voltage_p95: Real = field(default_factory=_nothing, repr=False)
    bus_voltage_max: Real = field(default_factory=_nothing, repr=False)
    bus_at_q_max: Real = field(default_factory=_nothing, repr=False)
    """(B,) share of scenarios with its generators at the upper reactive limit; empty where limits
    are not kept."""
    bus_at_q_min: Real = field(default_factory=_nothing, repr=False)
    """(B,) the same of the lower one."""
    branch_overload_probability: Real = field(default_factory=_nothing, repr=False)
    """(E,) share of scenarios with a loading above 1."""
    branch_emergency_probability: Real = field(default_factory=_nothing, repr=False)
    """(E,) share of scenarios beyond the emergency rating, NaN without one."""
    branch_overload: Real = field(default_factory=_nothing, repr=False)
    """(E,) expected loading beyond 1."""
    branch_loading: Real = field(default_factory=_nothing, repr=False)
    """(E,) mean loading."""
    branch_loading_p95: Real = field(default_factory=_nothing, repr=False)
    """(E,) 95 % quantile of the loading; then 99 % and the largest."""
    branch_loading_p99: Real = field(default_factory=_nothing, repr=False)
    branch_loading_max: Real = field(default_factory=_nothing, repr=False)
    branch_worst: Real = field(default_factory=_nothing, repr=False)
    """(E,) share of scenarios in which no branch has a higher loading."""

    control_moved: Real = field(default_factory=_nothing, repr=False)
    """(C,) share of scenarios in which each control of the grid moves; empty where controls stay,
    NaN for those that are out of service."""
    control_at_end: Real = field(default_factory=_nothing, repr=False)
    """(C,) share of scenarios with it at its first or its last position."""

    @property
    def islanded(self) -> bool:
        """Whether buses are cut off; if no demand goes with them, the rest is solved exactly."""
        return self.status == RowStatus.ISLANDED.text

    @property
    def lost_supply(self) -> bool:
        """Whether demand is left without supply: ranked first, by the MW at risk."""
        return self.severity >= LOST_SUPPLY

    def mw_not_served(self, demand_mw: float) -> float:
        """Expected demand without supply after the outage, of so much, MW."""
        return self.mw_cut_off + np.nan_to_num(self.unsolved) * (demand_mw - self.mw_cut_off)

    @property
    def mw_at_risk(self) -> float:
        """Demand cut off, or all demand times the share of scenarios without a solution, MW."""
        return self.severity - LOST_SUPPLY if self.lost_supply else 0.0

    def stored(self) -> dict[str, Any]:
        """The row as plain values and arrays; `of_stored` makes it again."""
        return {name: getattr(self, name) for name in NAMES}

    @classmethod
    def of_stored(
        cls, values: dict[str, Any], *, outage: str, network: Network
    ) -> "OutageRow | None":
        """The row of values that came back from a store; None if they are no row of this outage.

        Args:
            values: as `stored` gave them.
            outage: which it is.
            network: the intact grid.
        """
        shape = dict.fromkeys(BY_BUS, network.num_buses)
        shape |= dict.fromkeys(BY_BRANCH, network.num_branches)
        shape |= dict.fromkeys(BY_CONTROL, len(network.controls))
        if set(values) != {f.name for f in fields(cls)} or values["outage"] != outage:
            return None
        if not all(_fits(f, values[f.name], shape.get(f.name, 0)) for f in fields(cls)):
            return None
        if not np.isfinite(values["severity"]):
            return None
        return cls(**values)

    def short(self) -> dict[str, Any]:
        """The row without its values per bus and branch."""
        return {key: value for key, value in self.stored().items() if key not in ARRAYS}


NAMES = tuple(f.name for f in fields(OutageRow))
ARRAYS = tuple(f.name for f in fields(OutageRow) if f.default_factory is _nothing)
"""Fields with a value per bus, branch or control."""
BY_BUS = tuple(name for name in ARRAYS if name.startswith("bus_"))
BY_BRANCH = tuple(name for name in ARRAYS if name.startswith("branch_"))
BY_CONTROL = tuple(name for name in ARRAYS if name.startswith("control_"))


def row_bytes(network: Network) -> int:
    """Memory that a row of an outage of this grid takes."""
    return 8 * (len(BY_BUS) * network.num_buses + len(BY_BRANCH) * network.num_branches)


def _fits(f: Field, value: Any, size: int) -> bool:
    """Whether a stored value is what the field holds; arrays have `size` entries or none."""
    if f.name in ARRAYS:
        real = isinstance(value, np.ndarray) and value.dtype == np.float64
        return real and value.shape in ((0,), (size,))
    if f.type is float:
        return _is_real(value)
    if f.type == list[str]:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if f.type == dict[str, float]:
        names = Clock().columns() if f.name == "cost" else f.default_factory()  # type: ignore[operator,misc]
        return (
            isinstance(value, dict)
            and value.keys() == names.keys()
            and all(map(_is_real, value.values()))
        )
    return type(value) is f.type


def _is_real(value: Any) -> bool:
    return type(value) in (float, int)


class Clock:
    """Adds up wall seconds by column: `with clock("fit"): ...`."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        names = ("data", "holdout", "fit", "predict", "certify", "risk")
        self._seconds: dict[str, float] = dict.fromkeys(names, 0.0)

    def __call__(self, column: str) -> "_Span":
        return _Span(self._seconds, column)

    def columns(self, *, interleaved: bool = False) -> dict[str, float]:
        """Seconds by column; `wall_s` is their sum where the work was interleaved with others'."""
        columns = {f"{name}_s": seconds for name, seconds in self._seconds.items()}
        wall = sum(columns.values()) if interleaved else time.perf_counter() - self._began
        return columns | {"wall_s": wall}


class _Span:
    def __init__(self, seconds: dict[str, float], column: str):
        self._seconds, self._column = seconds, column

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *exception: object) -> None:
        self._seconds[self._column] += time.perf_counter() - self._began
