"""Power balance of each prediction, and predictions of which every row keeps a tolerance.

A prediction says what it is worth without being compared with anything: its voltages either satisfy
the power flow equations of the topology under the row's loads, or they don't.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gridshift.adapt.methods import Predictor
from gridshift.arrays import Complex, Real
from gridshift.errors import GridshiftError
from gridshift.grid.balance import Balance, Repaired, StateRows, check, repair
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.grid.scenarios import LoadScenarios

BLOCK = 256
"""Rows whose outputs are computed from voltages at a time, so that they stay in the cache."""


def certificate(network: Network, layout: Layout, x: Real, y: Real) -> Balance:
    """Mismatch of each predicted row: at the worst bus, where, and by the paper's definition.

    Args:
        network: the topology whose equations the rows should satisfy.
        x: (R, X) inputs.
        y: (R, Y) predicted outputs.

    Raises:
        GridshiftError: set-points in x that aren't the network's, or shapes that don't fit.
    """
    loads = _loads(network, layout, x)
    return check(network, loads, states(layout, y))


@dataclass(frozen=True, kw_only=True, eq=False)
class Certified:
    """Predictions of which every row is within `tol` of power balance, or NaN."""

    tol: float
    layout: Layout
    loads: LoadScenarios
    network: Network
    rows: Repaired

    @property
    def voltage(self) -> Complex:
        """(R, B); NaN in marked rows."""
        return self.rows.voltage

    @cached_property
    def y(self) -> Real:
        """(R, Y) outputs that belong to the voltages; NaN in marked rows.

        Generation follows from the voltages in predicted rows as well: what the certificate covers
        is the voltages, and a generation predicted beside them need not agree with them.
        """
        y = np.empty((self.loads.num_rows, self.layout.num_outputs))
        for start in range(0, len(y), BLOCK):
            rows = slice(start, start + BLOCK)
            y[rows] = self.layout.pack_outputs(
                self.network, self.loads.rows(rows), self.voltage[rows]
            )
        return y

    @property
    def worst_mismatch(self) -> float:
        """Largest mismatch of a returned row, p.u.; NaN if none is."""
        mismatch = self.rows.mismatch[self.rows.returned]
        return float(mismatch.max()) if len(mismatch) else float("nan")

    def counts(self) -> dict[str, int]:
        """Rows predicted, repaired, solved and marked."""
        return self.rows.counts()


def certify(
    network: Network,
    layout: Layout,
    x: Real,
    y: Real,
    *,
    tol: float = 1e-6,
    correct_share: float = 0.0,
    q_limits: bool = False,
) -> Certified:
    """Predictions of which every row is within `tol` of power balance, or marked by NaN.

    Args:
        x: (R, X) inputs.
        y: (R, Y) predicted outputs.
        tol: largest mismatch of a returned row, p.u.
        correct_share: part of the rows, those furthest from balance, that are corrected to 1e-8
            even if they are within `tol`.
        q_limits: keep reactive limits: rows whose generators would exceed one are solved. Outputs
            have no magnitude for buses of generators, so of such a row only `voltage` is whole.

    Raises:
        GridshiftError: set-points in x that aren't the network's, shapes that don't fit, or a
            tolerance that isn't positive.
    """
    loads = _loads(network, layout, x)
    state = states(layout, y)
    rows = repair(network, loads, state, tol=tol, correct_share=correct_share, q_limits=q_limits)
    return Certified(tol=tol, layout=layout, loads=loads, network=network, rows=rows)


@dataclass(frozen=True, kw_only=True, eq=False)
class CertifiedPredictor:
    """A predictor whose rows are within `tol` of power balance, or NaN."""

    predictor: Predictor
    network: Network
    layout: Layout
    tol: float = 1e-6
    correct_share: float = 0.0
    q_limits: bool = False

    def certified(self, x: Real) -> Certified:
        """The prediction with voltages, origin and mismatch of each row."""
        return self.correct(x, self.predictor.predict(x))

    def correct(self, x: Real, y: Real) -> Certified:
        """Rows predicted already, corrected where they need it."""
        return certify(
            self.network, self.layout, x, y, tol=self.tol, correct_share=self.correct_share,
            q_limits=self.q_limits,
        )  # fmt: skip

    def predict(self, x: Real) -> Real:
        """(R, Y) outputs of inputs (R, X)."""
        return self.certified(x).y


def states(layout: Layout, y: Real) -> StateRows:
    """The rows of y as states: where magnitude, angle and generation of each bus are."""
    if y.ndim != 2 or y.shape[1] != layout.num_outputs:
        raise GridshiftError(f"outputs of shape {y.shape}; (N, {layout.num_outputs}) is needed")
    columns = np.arange(layout.num_outputs)
    magnitude, angle, reactive = (np.full(layout.num_buses, -1) for _ in range(3))
    magnitude[layout.pq] = columns[layout.y_slices["v"]]
    angle[layout.non_slack] = columns[layout.y_slices["theta"]]
    reactive[layout.controlled] = columns[layout.y_slices["q_gen"]]
    return StateRows(y, magnitude, angle, reactive)


def _loads(network: Network, layout: Layout, x: Real) -> LoadScenarios:
    """Loads of x, whose other entries must be the network's own: the engine knows no others."""
    if x.ndim != 2 or x.shape[1] != layout.num_inputs:
        raise GridshiftError(f"inputs of shape {x.shape}; (N, {layout.num_inputs}) is needed")
    loads = layout.unpack_loads(x)
    constants = slice(layout.x_slices["v_set"].start, layout.num_inputs)
    own = layout.pack_inputs(network, loads.rows(slice(1)))[:, constants]
    if len(x) and not (x[:, constants] == own).all():
        raise GridshiftError(
            f"x has set-points that are not those of {network.name}; a certificate holds for the "
            "grid's own, so change them in the grid"
        )
    return loads
