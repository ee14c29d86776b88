"""Rows with generators held at their reactive limits, by pandapower.

`solve(..., q_limits=True)` keeps the same limits, and lets a bus back where pandapower doesn't
(docs/generator-limits.md); rows of an independent program say how far off predictions are.
"""

from functools import cache

import numpy as np

from gridshift.adapt.datasets import Dataset
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.grid.readers.pandapower_source import builtin_net, quiet_pandapower
from gridshift.trial.cases import draw

NUM_TEST = 60
"""Test rows; pandapower takes some hundredths of a second for each."""
ROOM = {"case30": 0.1}
"""Grids whose own limits are never reached at ±20 %: theirs are put at the nominal reactive power
of each generator, this share of it to both sides."""
AT_LIMIT = 1e-5
"""Distance, p.u., from which on a generator isn't at its limit."""


@cache
def net_of(case: str):
    """The pandapower network, with limits that matter."""
    net = builtin_net(case)
    if case in ROOM:
        with quiet_pandapower():
            import pandapower

            pandapower.runpp(net)
        q, room = net.res_gen.q_mvar, ROOM[case] * net.res_gen.q_mvar.abs()
        net.gen["max_q_mvar"], net.gen["min_q_mvar"] = q + room, q - room
    return net


def rows_with_limits(network: Network, role: str, num: int, seed: int, *, limited: bool) -> Dataset:
    """The usual scenarios at ±20 %, at most `NUM_TEST` of them, solved by pandapower.

    A generator that would exceed a limit is held at it and its bus loses its set-point, as in
    `pandapower.runpp(net, enforce_q_lims=True)`; y has no magnitude for it, for it is controlled on
    the grid that the base knows.
    """
    import pandapower

    regime = "drawn" if role == "test" else "mixed"
    drawn = draw(network, role, num, spread=0.2, regime=regime, seed=seed)
    loads, net = drawn.rows(slice(min(num, NUM_TEST))), net_of(network.name)
    tables = [name.partition(":") for name in network.outaged]
    voltage = []
    with quiet_pandapower():
        for kind, _, number in tables:
            net[kind].at[int(number), "in_service"] = False
        for p, q in zip(loads.load_p, loads.load_q, strict=True):
            at = [int(label.partition(":")[2]) for label in network.load_labels]
            net.load.loc[at, "p_mw"] = p * network.base_mva
            net.load.loc[at, "q_mvar"] = q * network.base_mva
            pandapower.runpp(net, enforce_q_lims=limited, tolerance_mva=1e-6)
            found = net.res_bus.loc[[int(b.partition(":")[2]) for b in network.bus_labels]]
            angle = np.deg2rad(found.va_degree.to_numpy())
            voltage.append(found.vm_pu.to_numpy() * np.exp(1j * angle))
        for kind, _, number in tables:
            net[kind].at[int(number), "in_service"] = True
    layout = Layout.of(network)
    return Dataset(
        x=layout.pack_inputs(network, loads),
        y=layout.pack_outputs(network, loads, np.array(voltage)),
        layout=layout, network=network, status_counts={"solved": loads.num_rows},
    )  # fmt: skip


def held_generators(data: Dataset) -> dict[str, float]:
    """How many generators of a row are at a limit, on average."""
    network, net = data.network, net_of(data.network.name)
    bus = [f"bus:{number}" for number in net.gen.bus]
    place = {network.bus_labels[b]: k for k, b in enumerate(data.layout.controlled)}
    q = data.y[:, data.layout.y_slices["q_gen"]][:, [place[b] for b in bus]] * network.base_mva
    least, most = net.gen.min_q_mvar.to_numpy(), net.gen.max_q_mvar.to_numpy()
    room = np.minimum(q - least, most - q) / network.base_mva
    return {"held": float(f"{(room < AT_LIMIT).sum(1).mean():.3g}")}
