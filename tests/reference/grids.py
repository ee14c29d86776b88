"""Small grids made by hand or drawn at random, as `Network` objects."""

import numpy as np

from gridshift.grid.network import BusKind, Network


def branch_two_port(r, x, charging=0.0, tap=1.0, shift=0.0):
    """yff, yft, ytf, ytt of a pi section behind an ideal transformer at its from end."""
    series, a = 1 / complex(r, x), tap * np.exp(1j * shift)
    ytt = series + 0.5j * charging
    return [ytt / abs(a) ** 2, -series / a.conjugate(), -series / a, ytt]


def make_network(kinds, branches, loads, *, gens=(), shunts=None, v_set=1.0, name="hand"):
    """A grid of `branches` (from, to, two-port), `loads` (bus, s) and `gens` (bus, p), per unit."""
    b = len(kinds)
    kinds = np.array(kinds, np.int64)
    magnitude = np.where(kinds == BusKind.PQ, np.nan, v_set)
    return Network(
        name=name,
        origin="made in a test",
        base_mva=100.0,
        bus_labels=tuple(f"bus:{i}" for i in range(b)),
        bus_kind=kinds,
        bus_kv=np.full(b, 110.0),
        bus_v_min=np.full(b, 0.9),
        bus_v_max=np.full(b, 1.1),
        bus_shunt=np.zeros(b, complex) if shunts is None else np.array(shunts, complex),
        bus_fixed=np.zeros(b, complex),
        bus_v_set=magnitude,
        v_start=np.nan_to_num(magnitude, nan=1.0).astype(complex),
        load_labels=tuple(f"load:{i}" for i in range(len(loads))),
        load_bus=np.array([bus for bus, _ in loads], np.int64),
        load_power=np.array([s for _, s in loads], complex),
        gen_labels=tuple(f"gen:{i}" for i in range(len(gens))),
        gen_bus=np.array([bus for bus, _ in gens], np.int64),
        gen_p=np.array([p for _, p in gens], float),
        branch_labels=tuple(f"line:{i}" for i in range(len(branches))),
        branch_from=np.array([f for f, _, _ in branches], np.int64),
        branch_to=np.array([t for _, t, _ in branches], np.int64),
        branch_y=np.array([y for _, _, y in branches], complex).reshape(-1, 4),
        branch_in_service=np.ones(len(branches), bool),
        branch_rating=np.ones((len(branches), 2)),
        branch_rated=np.ones(len(branches), bool),
        rating_kind="current",
    )


def random_network(
    rng: np.random.Generator, num_buses: int, *, extra: int = 0, stress: float = 1.0
):
    """A connected grid: a random tree and `extra` more branches, some of them parallel.

    Has taps, phase shifters, charging, shunts, several generators and several loads at a bus.
    """
    kinds = [BusKind.SLACK, *rng.choice([BusKind.PQ, BusKind.PQ, BusKind.PV], num_buses - 1)]
    ends = [(int(rng.integers(k)), k) for k in range(1, num_buses)]
    for _ in range(extra):
        again = ends and rng.random() < 0.3
        pair = ends[rng.integers(len(ends))] if again else rng.integers(num_buses, size=2)
        if pair[0] != pair[1]:
            ends.append((int(pair[0]), int(pair[1])))
    branches = []
    for f, t in ends:
        x = rng.uniform(0.01, 0.1)
        tap, shift = 1.0, 0.0
        if rng.random() < 0.3:
            tap, shift = rng.uniform(0.95, 1.05), rng.uniform(-0.2, 0.2)
        branches.append((f, t, branch_two_port(x * rng.uniform(0, 0.5), x, x, tap, shift)))
    loads = [
        (int(rng.integers(num_buses)), stress * complex(*rng.uniform(-0.02, 0.1, 2)))
        for _ in range(num_buses)
    ]
    controlled = [b for b, kind in enumerate(kinds) if kind != BusKind.PQ]
    gens = [(b, stress * rng.uniform(0, 0.1)) for b in controlled for _ in range(1 + (b % 2))]
    shunts = 1j * rng.uniform(-0.05, 0.05, num_buses)
    shuffle = rng.permutation(num_buses)
    place = np.argsort(shuffle)
    return make_network(
        [kinds[b] for b in shuffle],
        [(int(place[f]), int(place[t]), y) for f, t, y in branches],
        [(int(place[b]), s) for b, s in loads],
        gens=[(int(place[b]), p) for b, p in gens],
        shunts=shunts[shuffle],
        v_set=rng.uniform(0.98, 1.04),
        name="random",
    )
