"""`ExpansionPredictor`: what a topology's own equations say of y, which a surrogate corrects."""

from dataclasses import dataclass

import numpy as np

from gridshift.arrays import Real
from gridshift.errors import GridshiftError
from gridshift.grid.expansion import Expansion, Order
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.learn.linear_terms import LinearTerms

SAME = 1e-9
"""Difference, p.u. or rad, up to which an input counts as the network's own value."""

TANGENT_ORDERS: dict[str, Order] = {"tangent": 1, "tangent2": 2}
"""Transforms that subtract a tangent plane, or its curvature as well, before they scale."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ExpansionPredictor:
    """Predicts y of one topology by its expansion around the nominal point; nothing is learned."""

    layout: Layout
    expansion: Expansion
    order: Order

    @classmethod
    def of(cls, network: Network, order: Order = 1) -> "ExpansionPredictor":
        """The tangent plane (order 1) of a topology, or with its curvature (order 2).

        Raises:
            NotConvergedError: the topology has no solution at nominal demand.
        """
        expansion = Expansion.of(network)
        return cls(layout=expansion.tangent.layout, expansion=expansion, order=order)

    def predict(self, x: Real) -> Real:
        """(R, Y) y of inputs (R, X).

        Raises:
            GridshiftError: an input that isn't a load differs from the network's own, and the order
                is 2, which knows of loads only.
        """
        tangent, loads = self.expansion.tangent, self.layout.x_slices["v_set"].start
        moved = np.abs(x[:, loads:] - tangent.x[loads:]).max(0, initial=0.0) > SAME
        if not moved.any():
            rows = self.layout.unpack_loads(x)
            return self.expansion.outputs(rows.load_p, rows.load_q, order=self.order)
        if self.order == 1:
            return tangent.y + tangent.apply(x - tangent.x)
        entry = self.layout.inputs[loads + int(moved.argmax())]
        raise GridshiftError(
            f"{entry.name} differs from the network's own value, and the expansion of order 2 is "
            "in the loads alone; give a network that has this value, or take method tangent"
        )

    def linear_terms(self) -> LinearTerms:
        """The same, if it is of the first order.

        Raises:
            GridshiftError: it is of the second.
        """
        if self.order != 1:
            raise GridshiftError(
                "the curvature of tangent2 and tangent2-icw has no ONNX form; export the method "
                "tangent or tangent-icw"
            )
        tangent = self.expansion.tangent
        return LinearTerms(
            matrix=tangent.matrix(),
            columns=np.arange(len(tangent.x)),
            centre=tangent.x,
            offset=tangent.y,
        )


def expansion_of(transform: str, network: Network) -> ExpansionPredictor | None:
    """What a surrogate with this transform leaves to the network; None for the paper's."""
    order = TANGENT_ORDERS.get(transform)
    return None if order is None else ExpansionPredictor.of(network, order)
