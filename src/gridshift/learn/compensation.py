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

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gridshift.arrays import Int, Real
from gridshift.errors import ContextError, GridshiftWarning
from gridshift.learn.ridge import fit_ridge
from gridshift.learn.splits import clearly_better, surely_better

FEATURES = ("nothing", "differences", "flows", "squares")
"""None; angle differences and magnitudes; V_i V_j sin, V_i V_j cos and V^2, in which the power of a
branch is linear; angle differences and magnitudes with all products of two of them."""
RESTS = ("nothing", "inputs", "state")
"""What else the difference may follow: nothing, x, or what the base predicts."""
REST_PRIOR = 1e-2
"""Expected size of a standardised weight of the rest, as a multiple of one of the features'."""
ROWS_FOR_MORE = 20
"""Rows of context from which on squares and the rest are tried: ten are fooled too easily."""
UNADAPTED = "no change"
"""Name of the base as it is, among the candidates."""
PENALTIES = np.concatenate([10.0 ** np.arange(-12, 2.1), [np.inf]])
"""Penalties that are tried, as `learn.ridge.PENALTIES`, half as many of them."""


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

    @property
    def columns(self) -> list[int]:
        """All columns that it names, each once."""
        named = (*self.angles, *self.magnitudes, *self.others)
        return sorted({column for column in named if column is not None})

    def features(self, kind: str, y: Real, center: Real | None = None) -> Real:
        """(R, F) features of this kind, of `FEATURES`, of outputs y (R, d).

        Args:
            kind: which.
            y: outputs.
            center: (d,) outputs from which products are counted, so that they aren't nearly linear;
                'squares' need it.
        """
        if kind == "nothing":
            return np.empty((len(y), 0))
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
    x: Real, y: Real, y_base: Real, touched: Touched, *, state: np.ndarray | None = None,
    varied: Int | None = None,
) -> Compensation:  # fmt: skip
    """What a change adds, learned from rows; left-out error chooses among `FEATURES`, `RESTS`.

    The base stays as it is unless another candidate is surely better, and the simplest is taken
    unless another is clearly better (`learn/splits.py`), for few rows can't tell more. Of inputs
    that are at rest in the rows, and vary elsewhere, rows left out tell nothing: then only angle
    differences and magnitudes are tried, which do the least harm.

    Args:
        x: (N, X) inputs of rows after the change.
        y: (N, d) their outputs.
        y_base: (N, d) outputs that the base model has for these inputs.
        touched: which columns of y belong to what the change touches.
        state: outputs that may stand for the state that the rest follows; by default all.
        varied: inputs that the base model has seen vary; by default those that vary here.

    Raises:
        ContextError: fewer than 2 rows.

    Warns:
        GridshiftWarning: inputs that the base has seen vary are the same in all rows.
    """
    if len(x) < 2:
        raise ContextError(f"compensation needs at least 2 solved cases, not {len(x)}")
    columns = {
        "nothing": np.empty(0, int),
        "inputs": np.flatnonzero(x.max(0) > x.min(0)),
        "state": np.arange(y.shape[1]) if state is None else state,
    }
    at_rest = varied is not None and _warn_of_rest(varied, columns["inputs"], len(x))
    remainder, center = y - y_base, y_base.mean(0)
    best, names, best_rows = None, ("nothing", "nothing"), np.abs(remainder).mean(1)
    scores = {UNADAPTED: float(best_rows.mean())}
    for features, rest in _attempts(len(x), at_rest=at_rest):
        own = touched.features(features, y_base, center)
        more = _rest(rest, columns[rest], x, y_base)
        # x in units of its own; the state as it is, where what matters more is larger
        scale = more.std(0) if rest == "inputs" else np.full(more.shape[1], _largest(more.std(0)))
        by_rest = REST_PRIOR * more.std(0) / np.where(scale > 0, scale, 1.0)
        prior = np.concatenate([np.ones(own.shape[1]), by_rest])
        fitted = fit_ridge(
            np.hstack([own, more]), remainder, choose="simplest", prior=prior, penalties=PENALTIES
        )
        rows = np.abs(fitted.left_out).mean(1)
        scores[f"{features}, {rest}"] = float(rows.mean())
        better = surely_better if best is None else clearly_better
        if better(rows, best_rows):
            best, best_rows, names = fitted, rows, (features, rest)
    width = y.shape[1]
    weight, bias = (np.empty((0, width)), np.zeros(width)) if best is None else best.linear()
    return Compensation(
        touched=touched, features=names[0], rest=names[1], columns=columns[names[1]], center=center,
        weight=weight, bias=bias, left_out=remainder if best is None else best.left_out,
        candidates=scores,
    )  # fmt: skip


def _attempts(num_rows: int, *, at_rest: bool) -> Iterator[tuple[str, str]]:
    """Features and rest to try, the simplest first."""
    kinds, rests = FEATURES[1:], RESTS
    if at_rest or num_rows < ROWS_FOR_MORE:
        kinds, rests = kinds[: 1 if at_rest else 2], RESTS[:1]
    return ((kind, rest) for rest in rests for kind in kinds)


def _warn_of_rest(varied: Int, moved: Int, num_rows: int) -> bool:
    """Whether inputs that vary elsewhere are the same in all rows; if so, say it."""
    num = len(np.setdiff1d(varied, moved))
    if num:
        warnings.warn(
            f"{num} of {len(varied)} inputs that vary where the base model was fitted are the same "
            f"in all {num_rows} cases, which can't tell what the change does where they vary; add "
            "cases in which they do",
            GridshiftWarning,
            stacklevel=4,
        )
    return num > 0


def _rest(rest: str, columns: np.ndarray, x: Real, y: Real) -> Real:
    return (x if rest == "inputs" else y)[:, columns]


def _columns(columns: list[Real], num_rows: int) -> Real:
    return np.stack(columns, 1) if columns else np.empty((num_rows, 0))


def _largest(values: Real) -> float:
    return float(values.max(initial=0.0))
