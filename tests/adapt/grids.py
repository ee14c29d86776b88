"""A grid of six buses with everything that the layout has to keep apart, and what predicts it."""

import numpy as np

from gridshift.adapt.surrogate import Surrogate, SurrogateConfig, train
from gridshift.grid.layout import Layout
from gridshift.grid.network import BusKind, Network
from gridshift.grid.powerflow import solve
from gridshift.learn.training import TrainingConfig


def quick_surrogate(network: Network) -> Surrogate:
    """Trained for a second."""
    return train(network, SurrogateConfig(num_rows=200, training=TrainingConfig(num_steps=60)))


class Exact:
    """A predictor that solves the rows."""

    def __init__(self, network: Network):
        self.network, self.layout = network, Layout.of(network)

    def predict(self, x):
        loads = self.layout.unpack_loads(x)
        return self.layout.pack_outputs(self.network, loads, solve(self.network, loads).voltage)


def small_grid(name: str = "small", load_scale: float = 1.0) -> Network:
    """Slack, two PV buses (one with two generators), three PQ buses; a tap, a phase shift, a shunt,
    two loads at one bus, a load at a generator, fixed generation, and no bridge."""
    f = np.array([0, 0, 1, 1, 2, 3, 4, 2])
    t = np.array([1, 2, 2, 3, 4, 5, 5, 5])
    series = 1 / np.array([0.02 + 0.1j] * 8) * np.linspace(0.8, 1.3, 8)
    charging = 0.5j * np.full(8, 0.04)
    tap = np.ones(8, complex)
    tap[4], tap[6] = 0.97, np.exp(1j * np.deg2rad(3.0))
    y = np.stack(
        [
            (series + charging) / np.abs(tap) ** 2,
            -series / tap.conj(),
            -series / tap,
            series + charging,
        ],
        axis=1,
    )
    kind = np.array([1, 3, 2, 1, 2, 1]).astype(np.int64)
    assert list(kind[[1, 2, 4]]) == [BusKind.SLACK, BusKind.PV, BusKind.PV]
    v_set = np.array([np.nan, 1.03, 1.01, np.nan, 1.02, np.nan])
    fixed = np.zeros(6, complex)
    fixed[5], fixed[4] = 0.08 + 0.02j, -0.05 - 0.03j
    shunt = np.zeros(6, complex)
    shunt[3] = 0.01 + 0.05j
    load = np.array([0.4 + 0.1j, 0.2 + 0.1j, 0.3, 0.25 + 0.08j, 0.1 + 0.02j]) * load_scale
    start = np.where(np.isnan(v_set), 1.0, v_set) * np.exp(1j * np.deg2rad(4.0))
    return Network(
        name=name,
        origin="tests",
        base_mva=100.0,
        bus_labels=tuple(f"bus:{i}" for i in range(6)),
        bus_kind=kind,
        bus_kv=np.full(6, 110.0),
        bus_v_min=np.full(6, 0.95),
        bus_v_max=np.full(6, 1.05),
        bus_shunt=shunt,
        bus_fixed=fixed,
        bus_v_set=v_set,
        v_start=start,
        load_labels=tuple(f"load:{i}" for i in range(5)),
        load_bus=np.array([0, 3, 3, 5, 2]),
        load_power=load,
        gen_labels=("ext_grid:0", "gen:0", "gen:1", "gen:2"),
        gen_bus=np.array([1, 2, 2, 4]),
        gen_p=np.array([0.0, 0.3, 0.1, 0.35]),
        branch_labels=tuple(f"line:{i}" for i in range(8)),
        branch_from=f,
        branch_to=t,
        branch_y=y,
        branch_in_service=np.ones(8, bool),
        branch_rating=np.full((8, 2), np.inf),
        branch_rated=np.zeros(8, bool),
        rating_kind="current",
    )
