"""Compensation: a local change of a system, learned from few rows by the base model's own outputs.

A line that is lost changes a grid at its end buses only. By the compensation theorem the new state
is the old grid's with extra injections there, and these follow from the state at the end buses
(Alsac, Stott and Tinney, 1983). To first order

    y_new(x) = y_base(x) + c + W phi(x)

with phi made of the base model's own predictions at the buses that the change touches: a handful of
numbers for each output, instead of one for each input or each pair of outputs. What is left follows
the inputs, or the state that the base predicts; rows left out decide whether to learn that too.

Letters: N rows of the context, X inputs, d outputs, F features.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gridshift.errors import ContextError
from gridshift.learn.moments import Real
from gridshift.learn.ridge import kept_part

FEATURES = ("differences", "flows", "squares")
"""Angle differences and magnitudes; V_i V_j sin, V_i V_j cos and V^2, in which the power of a
branch is linear; the first with all products of two of them."""
RESTS = ("nothing", "inputs", "state")
"""What else the difference may follow: nothing, x, or what the base predicts."""
REST_PRIOR = 1e-2
"""Expected size of a standardised weight of the rest, as a multiple of one of the features'."""
ROWS_FOR_MORE = 20
"""Rows of context from which on squares and the rest are tried: ten are fooled too easily."""
SHARES = np.concatenate([10.0 ** np.arange(-12, 2.1), [np.inf]])
"""Penalties that are tried, as shares of the largest squared singular value; the last one leaves
the mean alone."""
ROUND_OFF = 1e-12
"""Spread below which a feature counts as constant, relative to its size."""


class Predicts(Protocol):
    """A base model: anything that predicts."""

    def predict(self, x: Real) -> Real:
        """(R, d) outputs of inputs (R, X)."""
        ...


@dataclass(frozen=True, kw_only=True)
class Touched:
    """Outputs that belong to what a change touches, by their columns.

    Buses are counted from 0 in the order of `angles` and `magnitudes`.
    """

    angles: tuple[int | None, ...] = ()
    """Column of each touched bus's voltage angle, rad; None where it is no output (a slack)."""
    magnitudes: tuple[int | None, ...] = ()
    """Column of each bus's voltage magnitude; None where it is no output (it is controlled)."""
    branches: tuple[tuple[int, int], ...] = ()
    """Pairs of buses between which the change is."""
    others: tuple[int, ...] = ()
    """Further columns that matter, of whatever meaning."""
    angle_unit: float = 1.0
    """Of the angles, rad: 1, or pi / 180 where they are in degrees."""

    def __post_init__(self) -> None:
        if len(self.angles) != len(self.magnitudes):
            raise ContextError(
                f"{len(self.angles)} angles and {len(self.magnitudes)} magnitudes of the buses "
                "touched; give one of each for every bus, None where there is no such column"
            )

    def features(self, kind: str, y: Real, center: Real | None = None) -> Real:
        """(R, F) features of this kind, of `FEATURES`, of outputs y (R, d).

        Args:
            kind: which.
            y: outputs.
            center: (d,) outputs from which products are counted, so that they aren't nearly linear;
                'squares' need it.
        """
        magnitudes = [y[:, column] for column in self.magnitudes if column is not None]
        others = [y[:, column] for column in self.others]
        if kind == "flows":
            sine = [self._size(y, i, j) * np.sin(self._angle(y, i, j)) for i, j in self.branches]
            cosine = [self._size(y, i, j) * np.cos(self._angle(y, i, j)) for i, j in self.branches]
            return _columns([*sine, *cosine, *map(np.square, magnitudes), *others], len(y))
        first = _columns(
            [*(self._angle(y, i, j) for i, j in self.branches), *magnitudes, *others], len(y)
        )
        if kind == "differences":
            return first
        assert center is not None, "squares are of differences to a center"
        moved = first - self.features("differences", center[None])
        i, j = np.tril_indices(first.shape[1])
        return np.hstack([first, moved[:, i] * moved[:, j]])

    def _angle(self, y: Real, i: int, j: int) -> Real:
        """(R,) difference of angles; a slack's is constant, which costs a rotation of sin, cos."""
        zero = np.zeros(len(y))
        at = [zero if (c := self.angles[bus]) is None else y[:, c] for bus in (i, j)]
        return self.angle_unit * (at[0] - at[1])

    def _size(self, y: Real, i: int, j: int) -> Real:
        """(R,) product of magnitudes, a controlled one taken as 1."""
        known = [c for bus in (i, j) if (c := self.magnitudes[bus]) is not None]
        return y[:, known].prod(1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Compensation:
    """What a change adds to the outputs of a base model; get it with `fit_compensation`."""

    touched: Touched
    features: str
    """Of `FEATURES`."""
    rest: str
    """Of `RESTS`."""
    columns: np.ndarray
    """Inputs or outputs that the rest follows."""
    center: Real
    """(d,) mean of the base's outputs in the context."""
    weight: Real
    """(F, d)"""
    bias: Real
    """(d,)"""
    left_out: Real
    """(N, d) error of each row of the context, by a fit to all others."""
    candidates: dict[str, float]
    """Mean absolute left-out error of whatever was tried."""

    @property
    def left_out_mae(self) -> float:
        """Mean absolute left-out error of what was chosen."""
        return float(np.abs(self.left_out).mean())

    def add(self, x: Real, y: Real) -> Real:
        """(R, d) outputs after the change, of inputs x (R, X) and the base's outputs y (R, d)."""
        rest = _rest(self.rest, self.columns, x, y)
        features = np.hstack([self.touched.features(self.features, y, self.center), rest])
        return y + (features @ self.weight + self.bias)


@dataclass(frozen=True, kw_only=True, eq=False)
class Compensated:
    """A base model together with a change of what it is a model of."""

    base: Predicts
    compensation: Compensation

    @property
    def left_out_mae(self) -> float:
        """Mean absolute error of each row of the context by a fit to all others."""
        return self.compensation.left_out_mae

    def predict(self, x: Real) -> Real:
        """(R, d) outputs of inputs (R, X) after the change."""
        return self.compensation.add(x, self.base.predict(x))


def fit_compensation(
    x: Real, y: Real, y_base: Real, touched: Touched, *, state: np.ndarray | None = None
) -> Compensation:
    """What a change adds, learned from rows; left-out error chooses among `FEATURES`, `RESTS`.

    The simplest is taken unless another is better by more than one standard error of the difference
    between the rows, for few rows can't tell more.

    Args:
        x: (N, X) inputs of rows after the change.
        y: (N, d) their outputs.
        y_base: (N, d) outputs that the base model has for these inputs.
        touched: which columns of y belong to what the change touches.
        state: outputs that may stand for the state that the rest follows; by default all.

    Raises:
        ContextError: fewer than 2 rows.
    """
    if len(x) < 2:
        raise ContextError(f"compensation needs at least 2 solved cases, not {len(x)}")
    columns = {
        "nothing": np.empty(0, int),
        "inputs": np.flatnonzero(x.max(0) > x.min(0)),
        "state": np.arange(y.shape[1]) if state is None else state,
    }
    remainder, center, scores = y - y_base, y_base.mean(0), {}
    best, best_rows, best_names = None, np.empty(0), ("", "")
    for features, rest in _attempts(touched, len(x)):
        own = touched.features(features, y_base, center)
        more = _rest(rest, columns[rest], x, y_base)
        # x in units of its own; the state as it is, where what matters more is larger
        scale = more.std(0) if rest == "inputs" else np.full(more.shape[1], _largest(more.std(0)))
        prior = np.concatenate([np.ones(own.shape[1]), REST_PRIOR * more.std(0) / _safe(scale)])
        fitted = fit_left_out(np.hstack([own, more]), remainder, prior)
        rows = np.abs(fitted.left_out).mean(1)
        scores[f"{features}, {rest}"] = float(rows.mean())
        if best is None or _clearly_better(rows, best_rows):
            best, best_rows, best_names = fitted, rows, (features, rest)
    assert best is not None
    return Compensation(
        touched=touched, features=best_names[0], rest=best_names[1],
        columns=columns[best_names[1]], center=center, weight=best.weight, bias=best.bias,
        left_out=best.left_out, candidates=scores,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class LeftOutFit:
    """y = features @ weight + bias, with the penalty of the smallest left-out error."""

    weight: Real
    bias: Real
    left_out: Real
    """(N, d) error of each row by the fit to all others."""


def fit_left_out(features: Real, y: Real, prior: Real | None = None) -> LeftOutFit:
    """Ridge regression with one penalty for all outputs, by mean absolute left-out error.

    Args:
        features: (N, F) rows, N at least 2.
        y: (N, d)
        prior: (F,) expected sizes of the weights of standardised features, in any unit; equal by
            default. The penalty of a weight is in proportion to 1 / prior^2.
    """
    n, mean, spread = len(features), features.mean(0), features.std(0)
    varies = spread > ROUND_OFF * np.maximum(np.abs(mean), np.finfo(float).tiny)
    scale = np.where(varies, (1.0 if prior is None else prior) / _safe(spread), 0.0)
    left, singular, right = np.linalg.svd((features - mean) * scale, full_matrices=False)
    kept = singular > 1e-13 * singular.max(initial=0)
    left, singular, right = left[:, kept], singular[kept], right[kept]
    offset = y.mean(0)
    centred = y - offset
    along, best, least = left.T @ centred, None, np.inf
    for share in SHARES:
        part = kept_part(singular, share)
        free = 1 - 1 / n - np.square(left) @ part
        # a row that the fit passes through tells nothing of how it would do without it
        if free.min() < 1e-6:
            continue
        error = (centred - left @ (part[:, None] * along)) / free[:, None]
        mae = np.abs(error).mean()
        if best is None or mae < least:
            least, best = mae, (error, part)
    assert best is not None, "the mean alone always leaves something"
    error, part = best
    weight = scale[:, None] * (right.T @ ((part / singular)[:, None] * along))
    return LeftOutFit(weight=weight, bias=offset - mean @ weight, left_out=error)


def _attempts(touched: Touched, num_rows: int) -> Iterator[tuple[str, str]]:
    """Features and rest to try, the simplest first."""
    kinds, rests = FEATURES, RESTS
    if num_rows < ROWS_FOR_MORE:
        kinds, rests = FEATURES[:2], RESTS[:1]
    return ((kind, rest) for rest in rests for kind in kinds)


def _clearly_better(rows: Real, than: Real) -> bool:
    """Whether the mean of rows is smaller by more than a standard error of the difference."""
    gain = than - rows
    return bool(gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain)))


def _rest(rest: str, columns: np.ndarray, x: Real, y: Real) -> Real:
    return (x if rest == "inputs" else y)[:, columns]


def _columns(columns: list[Real], num_rows: int) -> Real:
    return np.stack(columns, 1) if columns else np.empty((num_rows, 0))


def _largest(values: Real) -> float:
    return float(values.max(initial=0.0))


def _safe(values: Real) -> Real:
    """The values, 1 in place of 0, to divide by."""
    return np.where(values > 0, values, 1.0)
