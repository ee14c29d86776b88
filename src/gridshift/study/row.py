"""The row that a study keeps of one outage."""

import time
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from gridshift.study.metrics import QUANTITIES, summarise

FAILED = "failed"
"""Status of an outage that has a nominal solution but could not be studied; `reason` says why."""


@dataclass(frozen=True, kw_only=True)
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
    num_scenarios: int = 0
    """Scenarios behind the limit statistics."""
    num_context: int = 0
    num_solves: int = 0
    """Solves paid for context and hold-out, failed ones included; all scenarios for 'newton'."""

    excess: float = float("nan")
    """Expected sum of limit violations, `Risk.excess`."""
    voltage_excess: float = float("nan")
    overload_excess: float = float("nan")
    any_voltage: float = float("nan")
    any_overload: float = float("nan")
    shift: float = float("nan")
    """Mean over buses of the distance of the mean voltage from the intact grid's nominal one."""
    worst_bus: str = ""
    worst_bus_probability: float = float("nan")
    worst_branch: str = ""
    worst_branch_probability: float = float("nan")

    mae: dict[str, float] = field(default_factory=lambda: dict.fromkeys(QUANTITIES, float("nan")))
    """Errors on the hold-out."""
    mismatch: dict[str, float] = field(default_factory=lambda: summarise(np.empty(0)))
    """Worst-bus power mismatch of the hold-out's predictions."""
    holdout_excess: float = float("nan")
    """`Risk.excess` of the hold-out's exact solutions."""
    holdout_excess_predicted: float = float("nan")
    """The same from the predictions of the same rows."""

    cost: dict[str, float] = field(default_factory=dict)
    """Seconds: data (context), holdout, fit, predict, risk, wall."""

    bus_under: list[float] = field(default_factory=list)
    bus_over: list[float] = field(default_factory=list)
    bus_violation: list[float] = field(default_factory=list)
    branch_overload_probability: list[float] = field(default_factory=list)
    branch_overload: list[float] = field(default_factory=list)
    branch_loading: list[float] = field(default_factory=list)

    ARRAYS = (
        "bus_under",
        "bus_over",
        "bus_violation",
        "branch_overload_probability",
        "branch_overload",
        "branch_loading",
    )

    def short(self) -> dict[str, Any]:
        """The row without its values per bus and branch."""
        return {key: value for key, value in asdict(self).items() if key not in self.ARRAYS}


class Clock:
    """Adds up wall seconds by column: `with clock("fit"): ...`."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        names = ("data", "holdout", "fit", "predict", "risk")
        self._seconds: dict[str, float] = dict.fromkeys(names, 0.0)

    def __call__(self, column: str) -> "_Span":
        return _Span(self._seconds, column)

    def columns(self) -> dict[str, float]:
        columns = {f"{name}_s": seconds for name, seconds in self._seconds.items()}
        return columns | {"wall_s": time.perf_counter() - self._began}


class _Span:
    def __init__(self, seconds: dict[str, float], column: str):
        self._seconds, self._column = seconds, column

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *exception: object) -> None:
        self._seconds[self._column] += time.perf_counter() - self._began
