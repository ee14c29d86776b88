"""How a surrogate's error widens the interval of a violation's probability.

Whether a scenario violates a limit is told by two numbers: its worst voltage, as distance from the
middle of its band in half widths, and its highest loading; beyond 1 is a violation. On the hold-out
both are known exactly, and so is the largest error of each. A scenario whose prediction is nearer
to a limit than that is undecided. The interval goes from the lower bound (Wilson) with none of the
undecided scenarios to the upper bound with all of them. A scenario errs by more than all n of the
hold-out with a probability of 1 / (n + 1) at most: that share is undecided, too.

Voltages that are set-points are no prediction, so they are told apart.
"""

from dataclasses import dataclass

import numpy as np

from gridshift.arrays import Bool, Complex, Real
from gridshift.grid.kernels.statistics import MARGIN
from gridshift.grid.network import Network
from gridshift.grid.statistics import Limits, Statistics
from gridshift.study.risk import Estimate, wilson


@dataclass(frozen=True, kw_only=True, eq=False)
class Predicted:
    """Predicted scenarios of one topology, which are added block by block."""

    limits: Limits
    """Without those at set-points."""
    always: bool
    """Whether a set-point is outside its limits, so that every scenario violates one."""
    statistics: Statistics

    @classmethod
    def of(cls, limits: Limits, network: Network) -> "Predicted":
        """Nothing predicted yet."""
        held = network.controlled
        outside = np.maximum(
            limits.low[held] - network.bus_v_set[held], network.bus_v_set[held] - limits.high[held]
        )
        share = limits.per_half_width.copy()
        always = bool((outside[share[held] > 0] > MARGIN).any())
        share[held] = 0
        free = limits._replace(per_half_width=share)
        return cls(limits=free, always=always, statistics=Statistics(free))

    def largest_errors(self, predicted: Complex, exact: Complex) -> Real:
        """(2,) of the worst voltage and of the highest loading of states (n, B); 0 for none.

        Infinite if a prediction is no finite number.
        """
        if not np.isfinite(predicted).all():
            return np.full(2, np.inf)
        return np.abs(self._measures(predicted) - self._measures(exact)).max(axis=1, initial=0)

    def _measures(self, voltage: Complex) -> Real:
        statistics = Statistics(self.limits)
        statistics.add_complex(voltage)
        return statistics.scenarios()[[0, 3]]

    def exceeded(self, errors: Real, *, num_holdout: int, num_rows: int) -> Estimate:
        """Probability of a violation, with the interval that the errors leave.

        Args:
            errors: of `largest_errors`.
            num_holdout: states that they are the largest of.
            num_rows: scenarios predicted; those that are no finite numbers are undecided.
        """
        worst = self.statistics.scenarios()[[0, 3]]
        limit = 1 + MARGIN
        sure = _any(worst - errors[:, None] > limit) | self.always
        possible = _any(worst + errors[:, None] > limit) | self.always
        missing = num_rows - len(sure)
        beyond = 1 / (num_holdout + 1)
        low = wilson(float(sure.sum()) / num_rows, num_rows).low
        high = wilson(float(possible.sum() + missing) / num_rows, num_rows).high
        said = _any(worst > limit) | self.always
        return Estimate(
            share=float(said.sum()) / max(1, len(said)),
            low=max(0.0, low - beyond),
            high=min(1.0, high + beyond),
        )


def _any(of_both: Bool) -> Bool:
    return of_both[0] | of_both[1]
