"""The CUDA source, run by numba's simulator: the same rows solved, the same voltages."""

import os
import subprocess
import sys

import pytest

from gridshift.errors import GridshiftError
from gridshift.grid.kernels import gpu
from gridshift.grid.powerflow import solve
from gridshift.grid.scenarios import nominal_loads
from tests.reference.grids import BusKind, branch_two_port, make_network

SCRIPT = """
import numpy as np
from gridshift.grid.powerflow import solve
from gridshift.grid.scenarios import LoadScenarios, sample_loads
from tests.reference.grids import random_network

network = random_network(np.random.default_rng(3), 9, extra=6)
rows = sample_loads(network, np.random.default_rng(0), 5, regime="fixed")
load_p = rows.load_p.copy()
load_p[1] *= 400  # no solution
load_p[3, 0] = np.nan
rows = LoadScenarios(load_p=load_p, load_q=rows.load_q)
outages = (network.without([label]) for label in network.elements)
outage = next(n for n in outages if not len(n.cut_off_buses()))
for case in (network, outage):
    here, there = (solve(case, rows, loading=True, device=d) for d in ("cpu", "gpu"))
    assert here.status.tolist() == there.status.tolist(), (here.status, there.status)
    assert here.solved.tolist() == [True, False, True, False, True]
    np.testing.assert_allclose(here.voltage, there.voltage, atol=1e-8, equal_nan=True)
    np.testing.assert_allclose(here.loading, there.loading, atol=1e-7, equal_nan=True)
    assert np.array_equal(here.iterations[[0, 2, 4]], there.iterations[[0, 2, 4]])
print("equal")
"""


def test_the_gpu_source_gives_what_the_processor_gives():
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.strip() == "equal", run.stderr


@pytest.mark.skipif(gpu.available(), reason="there is a CUDA device")
def test_asking_for_a_missing_gpu_says_so():
    network = make_network(
        [BusKind.SLACK, BusKind.PQ], [(0, 1, branch_two_port(0.0, 0.1))], [(1, 0.1 + 0j)]
    )
    with pytest.raises(GridshiftError, match="no CUDA device"):
        solve(network, nominal_loads(network), device="gpu")
