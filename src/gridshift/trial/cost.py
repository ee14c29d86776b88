"""What an adaptation costs, how times are taken, and from how many rows on it is worth it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gridshift.adapt.base import Base

REPEATS = 5
"""Runs that are timed; the fastest counts, as what else a machine does only ever adds time."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Time that one adaptation takes, s; what a method doesn't do costs 0, NaN is not measured."""

    data_s: float = float("nan")
    """Drawing and solving the context."""
    fit_s: float = float("nan")
    """Fitting without gradients."""
    gradient_s: float = float("nan")
    """Gradient steps on the new topology."""
    predict_us_per_row: float = float("nan")

    @property
    def setup_s(self) -> float:
        """Before the first row of this outage."""
        return self.data_s + self.fit_s + self.gradient_s


def fastest(run: Callable[[], object], repeats: int = REPEATS) -> float:
    """Least wall seconds of some calls; the caller has made one before, which may compile."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def break_even_rows(setup_s: float, us: float, exact_setup_s: float, exact_us: float) -> float:
    """Rows from which a method is faster than solving all; infinite if it never is."""
    saved = exact_us - us
    if not saved > 0:
        return float("inf")
    return max(0.0, (setup_s - exact_setup_s) / saved * 1e6)


def training_seconds(base: "Base | None") -> float:
    """What the base cost when it was trained, be it now or long ago; 0 if nothing was."""
    if base is None:
        return 0.0
    return sum(float(base.record.get(part) or 0) for part in ("data_s", "train_s"))
