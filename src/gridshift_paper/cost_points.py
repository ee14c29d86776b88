"""Points of the cost-accuracy plane, put together from seconds and errors measured apart."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gridshift_paper.artefacts import Rows
from gridshift_paper.selection import picked

NAN = float("nan")


class Seconds(NamedTuple):
    """Of one thread, for one grid and backbone; NaN where nothing was measured."""

    engine: float = NAN
    """A solved case of the context, drawing and packing included."""
    pandapower: float = NAN
    """A case solved by pandapower's `runpp`."""
    fit: float = NAN
    """ICW's statistics, and folding them into the network."""
    predict: float = NAN
    """The test rows, after ICW."""
    predict_tuned: float = NAN
    """The test rows, after fine-tuning."""
    step: float = NAN
    """A gradient step."""

    def icw(self, num_solves: float, *, solver: str = "engine") -> float:
        """Cost of one adaptation: solves, statistics, prediction."""
        return num_solves * getattr(self, solver) + self.fit + self.predict

    def gradient(
        self, num_solves: float, num_steps: float, *, solver: str = "engine"
    ) -> float:  # fmt: skip
        """Cost of one adaptation by gradient steps."""
        solves = num_solves * getattr(self, solver)
        return solves + num_steps * self.step + self.predict_tuned


def seconds_of(rows: Rows, grid: str, backbone: str = "mlp") -> Seconds:
    """What the study adaptation-times has for a grid and a backbone."""
    times = rows["adaptation-times"]

    def value(column: str, **wanted: Any) -> float:
        found = picked(times, grid=grid, **wanted)
        return float(found[column].iloc[-1]) if len(found) and column in found else NAN

    names = ("fit_s", "predict_s", "predict_tuned_s", "step_s")
    return Seconds(
        value("engine_s", part="solve"),
        value("pandapower_s", part="solve"),
        *(value(name, part="network", backbone=backbone) for name in names),
    )


class Point(NamedTuple):
    """One way to adapt: what it costs, and the errors of each seed."""

    num_steps: int
    cost_s: float
    cost_pandapower_s: float
    """The same with a context solved by pandapower."""
    errors: pd.Series
    """One for each seed."""

    @property
    def error(self) -> float:
        """Mean over seeds."""
        return float(self.errors.mean()) if len(self.errors) else NAN

    @property
    def deviation(self) -> float:
        """Sample deviation over seeds; 0 for a single one."""
        return float(self.errors.std()) if len(self.errors) > 1 else 0.0


def curve(
    rows: Rows, quantity: str, grid: str, backbone: str = "mlp", **wanted: Any
) -> list[Point]:  # fmt: skip
    """Points of a curve of gradient steps, by steps; empty if nothing was measured."""
    found = picked(rows["gradient-curves"], grid=grid, backbone=backbone, **wanted)
    seconds, points = seconds_of(rows, grid, backbone), []
    for num_steps, part in found.groupby("num_steps") if len(found) else ():
        steps, solves = int(num_steps), float(part.num_solves.mean())  # type: ignore[arg-type]
        points.append(
            Point(
                steps,
                seconds.gradient(solves, steps),
                seconds.gradient(solves, steps, solver="pandapower"),
                _by_seed(part, quantity),
            )
        )
    return points


def closed_form(
    rows: Rows, quantity: str, method: str, grid: str, num_context: int, backbone: str = "mlp"
) -> Point:
    """The point of a method without gradient steps; ICW's cost, whatever the method."""
    found = picked(
        rows["closed-form"], grid=grid, backbone=backbone, num_context=num_context, method=method
    )
    seconds = seconds_of(rows, grid, backbone)
    solves = float(found.num_solves.mean()) if len(found) else NAN
    errors = _by_seed(found, quantity)
    return Point(0, seconds.icw(solves), seconds.icw(solves, solver="pandapower"), errors)


def _by_seed(frame: pd.DataFrame, quantity: str) -> pd.Series:
    if not len(frame):
        return pd.Series(dtype=float)
    return pd.Series(frame[quantity].to_numpy(), index=frame["seed"].to_numpy())


def contexts_of(rows: Rows, grid: str, backbone: str = "mlp") -> list[int]:
    """Context sizes measured, ascending."""
    found = picked(rows["closed-form"], grid=grid, backbone=backbone)
    return sorted(map(int, set(found.num_context))) if len(found) else []


def crossing(points: list[Point], level: float) -> Point | None:
    """The first point of a curve with a mean error below the level."""
    return next((point for point in points if point.error < level), None)


def factor(value: float) -> str:
    """'12×' or '0.84×'."""
    return "–" if not np.isfinite(value) else f"{value:.3g}×" if value < 10 else f"{value:,.0f}×"
