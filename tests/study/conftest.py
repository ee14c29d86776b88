"""A grid small enough to compute by hand, and quick studies."""

import numpy as np
import pytest

from gridshift.grid.network import BusKind, Network
from gridshift.study.screening import ScreenConfig, Screening
from gridshift.study.sweep import screen


@pytest.fixture(scope="session")
def study() -> Screening:
    """case30 within narrow limits, outages that cut demand off set apart."""
    config = ScreenConfig(
        grid="case30", method="newton", num_scenarios=20, workers=1, v_min=0.97, v_max=1.03,
        refuse_splits=True,
    )  # fmt: skip
    return screen(config)


@pytest.fixture
def triangle() -> Network:
    """Slack bus 0 and load buses 1, 2, joined by reactances of 0.1, 0.1, 0.2; 100 MVA."""
    ends = np.array([[0, 1], [1, 2], [0, 2]])
    y = 1 / np.array([0.1j, 0.1j, 0.2j])
    return Network(
        name="triangle",
        origin="hand",
        base_mva=100.0,
        bus_labels=("bus:0", "bus:1", "bus:2"),
        bus_kind=np.array([BusKind.SLACK, BusKind.PQ, BusKind.PQ], np.int64),
        bus_kv=np.full(3, 110.0),
        bus_v_min=np.array([0.95, 0.95, np.nan]),
        bus_v_max=np.array([1.05, 1.05, np.nan]),
        bus_shunt=np.zeros(3, complex),
        bus_fixed=np.zeros(3, complex),
        bus_v_set=np.array([1.0, np.nan, np.nan]),
        v_start=np.ones(3, complex),
        load_labels=("load:0", "load:1"),
        load_bus=np.array([1, 2]),
        load_power=np.array([0.5 + 0.1j, 0.3 + 0.1j]),
        gen_labels=("ext_grid:0",),
        gen_bus=np.array([0]),
        gen_p=np.array([0.0]),
        branch_labels=("line:0", "line:1", "line:2"),
        branch_from=ends[:, 0],
        branch_to=ends[:, 1],
        branch_y=np.stack([y, -y, -y, y], 1),
        branch_in_service=np.ones(3, bool),
        branch_rating=np.array([[0.5, 0.5], [0.2, 0.4], [99.0, 99.0]]),
        branch_rated=np.array([True, True, False]),
        rating_kind="current",
    )
