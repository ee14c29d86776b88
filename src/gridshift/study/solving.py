"""Exact rows of one outage, counted block by block, and when they are enough."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from gridshift.grid.network import Network
from gridshift.grid.scenarios import LoadScenarios
from gridshift.grid.statistics import Statistics
from gridshift.grid.streaming import Streamed, stream_rows
from gridshift.study.counted import controls_moved, counted, limits_reached
from gridshift.study.risk import UNSOLVED_SCENARIO, wilson
from gridshift.study.row import Clock
from gridshift.study.setting import Setting
from gridshift.trial.metrics import summarise


class Solving:
    """One outage, whose scenarios are solved exactly, block by block."""

    def __init__(self, setting: Setting, network: Network, clock: Clock):
        self._setting, self._network, self._clock = setting, network, clock
        self._limited, self._limits = setting.limits_on(network)
        self._tol = min(1e-8, setting.config.certify or 1e-8)
        self._found: list[Streamed] = []
        self.stopped = ""
        """Why no more scenarios are needed; empty while they are."""

    def add(self, rows: slice, loads: LoadScenarios) -> None:
        """Solve and count some scenarios of the study: which, and their demands."""
        with self._clock("predict"):
            setting = self._setting
            start = partial(
                setting.intact_rows.start, loads=loads, rows=rows, threads=setting.threads
            )
            found = stream_rows(
                self._network, loads, self._limits, tol=self._tol, threads=setting.threads,
                q_limits=setting.config.q_limits, distributed_slack=setting.shares,
                controls=setting.config.controls, start=start,
            )  # fmt: skip
        self._found.append(found)
        if self._setting.config.precision is not None:
            with self._clock("risk"):
                self.stopped = self._enough(self._setting.config.precision)

    def take(self, counted: Sequence[dict[str, Any]]) -> None:
        """Take what was counted elsewhere, in the order of the scenarios."""
        self._found += [Streamed.of_stored(self._limits, one) for one in counted]

    def stored(self) -> dict[str, Any]:
        """What was counted, as arrays, for `take`."""
        first, *more = self._found
        return first.merge(more).stored()

    def _enough(self, precision: float) -> str:
        """Whether the scenarios so far tell what was asked, and which part of it."""
        num_rows = sum(len(one.mismatch) for one in self._found)
        each = np.concatenate([_excess(one.statistics) for one in self._found])
        each = np.append(each, np.full(num_rows - len(each), UNSOLVED_SCENARIO))
        found = wilson(float((each > 0).mean()), num_rows)
        if found.high < (self._setting.config.harmless_below or 0.0):
            return "harmless"
        each = np.sort(each)  # so that the order in which threads counted them leaves no trace
        error = each.std() / np.sqrt(num_rows)
        good = found.half_width <= precision and error <= precision * each.mean()
        return "precision" if good else ""

    def row(self) -> dict[str, Any]:
        """What all scenarios together say."""
        with self._clock("risk"):
            first, *more = self._found
            found = first.merge(more)
            mismatch, num_rows = found.mismatch[found.solved], len(found.mismatch)
            row = counted(
                self._setting, self._limited, found.statistics, 1 - len(mismatch) / num_rows
            )
            if self._setting.config.q_limits:
                row |= limits_reached(
                    self._network, found.at_limit, found.any_at_limit, len(mismatch)
                )
            if found.controls is not None:
                row |= controls_moved(
                    self._setting.network, self._network, found.controls, len(mismatch)
                )
                row["unsettled"] = found.controls.unsettled / num_rows
            if self._setting.config.precision is not None:
                row["stopped"] = self.stopped or "all"
            return row | {
                "exact": True, "num_solves": num_rows, "mismatch": summarise(mismatch)
            }  # fmt: skip


def solved(setting: Setting, network: Network, clock: Clock) -> dict[str, Any]:
    """Columns of an outage whose scenarios are solved exactly, as many as are needed."""
    solving = Solving(setting, network, clock)
    if setting.counted is not None:
        solving.take(setting.counted)
        return solving.row()
    for rows in setting.blocks():
        solving.add(rows, setting.loads.rows(rows))
        if solving.stopped:
            break
    return solving.row()


def _excess(statistics: Statistics) -> np.ndarray:
    """Sum of limit violations of each scenario, in no order."""
    scenarios = statistics.scenarios()
    return scenarios[2] + scenarios[5]
