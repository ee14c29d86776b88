"""Compensation on a grid: which buses a change touches, and the base model's outputs there."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from gridshift.adapt.context import Context
from gridshift.adapt.surrogate import Surrogate
from gridshift.adapt.training_rows import state_columns
from gridshift.arrays import Int, Real
from gridshift.errors import OutageError, SurrogateMismatchError
from gridshift.grid.contingency import Outage, outage_text
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.learn.compensation import Compensated, Touched, fit_compensation
from gridshift.learn.identification import Identified, check_identifiable, identify

SAME = 1e-12
"""Change of an admittance, relative to the largest at the bus, up to which it is round-off."""


def touched_by(network: Network, before: Network | None = None) -> Touched:
    """Outputs of the buses at which two states of a grid differ; arguments as `changed_buses`."""
    return at_buses(Layout.of(network), *changed_buses(network, before))


def changed_buses(
    network: Network, before: Network | None = None
) -> tuple[Int, list[tuple[int, int]]]:
    """Buses at which two states of a grid differ, and pairs of them between which they do.

    Whatever differs shows in the bus admittances: lines and transformers of any number of windings
    at the buses they join, star points included, shunts at their own. Generation and other fixed
    powers show in what is injected there.

    Args:
        network: the new state.
        before: the old one, with the same buses; by default the grid as read.

    Raises:
        OutageError: nothing differs.
        SurrogateMismatchError: the two have different buses or kinds of buses.
    """
    before = network.intact if before is None else before
    if not np.array_equal(network.bus_kind, before.bus_kind):
        raise SurrogateMismatchError(
            f"{network.name} and {before.name} differ in their buses or in the kinds of these, so "
            "their outputs aren't the same quantities; keep a bus that has no connection any more"
        )
    size = abs(before.admittance).max(axis=1).toarray().ravel()
    change = sp.coo_array(network.admittance - before.admittance)
    change.sum_duplicates()
    found = np.abs(change.data) > SAME * size[change.row]
    i, j = change.row[found], change.col[found]
    elsewhere = np.flatnonzero(
        (network.bus_fixed != before.bus_fixed) | (network.scheduled != before.scheduled)
    )
    pairs = sorted({(int(min(p)), int(max(p))) for p in zip(i, j, strict=True) if p[0] != p[1]})
    buses = np.union1d(np.union1d(i, j), elsewhere).astype(np.int64)
    if not len(buses):
        raise OutageError(
            f"nothing of {network.name} differs from the grid that the base model is of; give an "
            "outage, or take method frozen"
        )
    return buses, pairs


def at_buses(layout: Layout, buses: Int, pairs: Sequence[tuple[int, int]] = ()) -> Touched:
    """The outputs of these buses, and of the pairs of them that something joins or joined."""
    at, position = layout.y_slices, {int(bus): k for k, bus in enumerate(buses)}
    angle = {int(bus): at["theta"].start + k for k, bus in enumerate(layout.non_slack)}
    magnitude = {int(bus): at["v"].start + k for k, bus in enumerate(layout.pq)}
    return Touched(
        angles=tuple(angle.get(int(bus)) for bus in buses),
        magnitudes=tuple(magnitude.get(int(bus)) for bus in buses),
        branches=tuple((position[i], position[j]) for i, j in pairs),
    )


def adapt_compensation(base: Surrogate, context: Context) -> Compensated:
    """The base, and what the topology changes at the buses where it differs from the base's."""
    outaged = base.record.get("outaged", [])
    intact = context.network.intact
    touched = touched_by(context.network, intact.without(outaged) if outaged else intact)
    y_base = base.predict(context.x)
    fitted = fit_compensation(
        context.x, context.y, y_base, touched, state=state_columns(base.layout),
        varied=base.model.varied,
    )  # fmt: skip
    return Compensated(base=base, compensation=fitted)


def identify_outage(
    base: Surrogate, network: Network, x: Real, y: Real, outages: Sequence[Outage], *,
    level: float = 0.05,
) -> Identified:  # fmt: skip
    """Which of these outages happened, as far as solved cases tell; parallel circuits are one.

    Args:
        x: (N, X) inputs of cases of the unknown topology.
        y: (N, Y) their outputs.
        level: chance of naming a wrong one that is accepted.

    Raises:
        ContextError: fewer than 5 cases, or no candidates.
    """
    check_identifiable(len(x), len(outages))
    names: dict[Touched, list[str]] = {}
    for outage in outages:
        names.setdefault(touched_by(network.without(outage), network), []).append(
            outage_text(outage)
        )
    y_base = base.predict(x)
    candidates = {" or ".join(alike): touched for touched, alike in names.items()}
    return identify(x, y, y_base, candidates, level=level)
