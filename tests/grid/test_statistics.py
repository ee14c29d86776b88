"""Statistics of streamed rows: those of numpy on the voltages of `solve`, whoever counts them."""

from functools import partial
from itertools import permutations

import numpy as np
import pytest

from gridshift.grid import intact_rows
from gridshift.grid.engine import NOWHERE
from gridshift.grid.equations import branch_loading
from gridshift.grid.intact_rows import IntactRows
from gridshift.grid.powerflow import solve
from gridshift.grid.prepared import prepare
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import LoadScenarios, named_rng, sample_loads
from gridshift.grid.statistics import Limits, Statistics
from gridshift.grid.streaming import stream_rows

ROUNDING = 1e-12
"""Sums are of whole multiples of 2^-40, each term off by half of that at most."""


@pytest.fixture(scope="module")
def grid():
    return read_grid("case30")


def loads_of(network, rows, spread=0.5):
    return sample_loads(
        network, named_rng(network.name, "test"), rows, spread=spread, regime="fixed"
    )


def as_bytes(statistics):
    counts = b"".join(np.ascontiguousarray(array).tobytes() for array in statistics.counts)
    scenarios = statistics.scenarios()
    return counts + scenarios[:, np.lexsort(scenarios)].tobytes()


def streamed_and_solved(network, rows):
    loads = loads_of(network, rows)
    return stream_rows(network, loads, Limits.of(network)), solve(network, loads)


@pytest.mark.parametrize("rows", [1, 7, 32, 33, 700])
def test_streamed_statistics_are_those_of_numpy_on_solved_voltages(grid, rows):
    found, solution = streamed_and_solved(grid.without(("line:9",)), rows)
    voltage = solution.voltage[solution.solved]
    statistics, size = found.statistics, np.abs(voltage)
    np.testing.assert_array_equal(found.solved, solution.solved)
    np.testing.assert_array_equal(found.mismatch[found.solved], solution.mismatch[solution.solved])
    assert statistics.num_rows == len(voltage)
    counts = statistics.counts
    np.testing.assert_array_equal(counts.under, (grid.bus_v_min - size > 1e-9).sum(0))
    np.testing.assert_array_equal(counts.over, (size - grid.bus_v_max > 1e-9).sum(0))
    np.testing.assert_allclose(
        statistics.mean(counts.bus_sums[:, 0]), size.mean(0), atol=ROUNDING, rtol=0
    )
    np.testing.assert_allclose(
        statistics.mean_voltage(), voltage.mean(0), atol=2 * ROUNDING, rtol=0
    )
    loading = branch_loading(solution.network, voltage)
    assert (counts.overloaded == (loading > 1 + 1e-9).sum(0)).all()
    np.testing.assert_allclose(
        statistics.mean(counts.branch_sums[:, 0]), loading.mean(0), atol=ROUNDING, rtol=0
    )
    spread = statistics.loadings((0.95,))
    np.testing.assert_allclose(spread[:, 0], loading.min(0), atol=ROUNDING, rtol=0)
    np.testing.assert_allclose(spread[:, 1], loading.max(0), atol=ROUNDING, rtol=0)
    scenarios = statistics.scenarios()
    np.testing.assert_allclose(np.sort(scenarios[3]), np.sort(loading.max(1)), rtol=1e-12)
    worst = np.bincount(scenarios[4].astype(int), minlength=grid.num_branches)
    np.testing.assert_array_equal(
        worst, np.bincount(loading.argmax(1), minlength=grid.num_branches)
    )


def test_histograms_hold_every_row_once(grid):
    found, solution = streamed_and_solved(grid, 500)
    size = np.abs(solution.voltage[solution.solved]).round(11)  # set-points lie on edges
    edges = 0.75 + np.arange(129) / 256
    for bus in range(grid.num_buses):
        mine = found.statistics.counts.bus_bins[bus]
        np.testing.assert_array_equal(mine.cumsum()[:-1], (size[:, bus, None] < edges[1:-1]).sum(0))
        assert mine.sum() == found.statistics.num_rows


def test_neither_threads_nor_blocks_nor_the_order_of_parts_touch_a_bit(grid):
    network, limits = grid.without(("line:9",)), Limits.of(grid.without(("line:9",)))
    loads = loads_of(network, 900)
    whole = stream_rows(network, loads, limits).statistics
    threads = stream_rows(network, loads, limits, threads=3).statistics
    assert as_bytes(whole) == as_bytes(threads)
    for order in permutations(range(3)):
        cuts = [slice(0, 17), slice(17, 640), slice(640, 900)]
        parts = [stream_rows(network, loads.rows(cuts[i]), limits).statistics for i in order]
        assert as_bytes(parts[0].merge(parts[1:])) == as_bytes(whole)


def test_rows_that_chord_steps_leave_over_are_counted_as_solve_solves_them():
    network = read_grid("case300")
    found, solution = streamed_and_solved(network, 400)
    steps = solution.iterations[solution.solved]
    assert (steps > 12).any()  # some took more than chord steps
    np.testing.assert_array_equal(found.solved, solution.solved)
    size = np.abs(solution.voltage[solution.solved])
    mean = found.statistics.mean(found.statistics.counts.bus_sums[:, 0])
    np.testing.assert_allclose(mean, size.mean(0), atol=ROUNDING, rtol=0)


def test_rows_without_a_solution_are_told_and_not_counted(grid):
    loads = loads_of(grid, 40)
    factor = np.ones((40, 1))
    factor[[3, 39]] = 50.0
    broken = LoadScenarios(load_p=loads.load_p * factor, load_q=loads.load_q * factor)
    broken.load_p[5, 0] = np.nan
    found = stream_rows(grid, broken, Limits.of(grid))
    assert np.flatnonzero(~found.solved).tolist() == [3, 5, 39]
    good = np.delete(np.arange(40), [3, 5, 39])
    alone = stream_rows(grid, loads.rows(good), Limits.of(grid))
    assert as_bytes(found.statistics) == as_bytes(alone.statistics)


@pytest.mark.parametrize(("source", "label"), [("case30", "line:9"), ("case300", "line:228")])
def test_rows_that_start_from_the_intact_grid_s_end_where_the_others_do(source, label):
    intact = read_grid(source)
    network, loads = intact.without((label,)), loads_of(intact, 333, spread=0.3)
    loads.load_p[7] *= 50.0
    loads.load_p[5, 0] = np.nan
    limits, start = Limits.of(network), IntactRows(intact).start
    near = partial(start, loads=loads, rows=slice(0, 333))
    found = stream_rows(network, loads, limits, start=near)
    solution = solve(network, loads)
    np.testing.assert_array_equal(found.solved, solution.solved)
    assert not found.solved[[5, 7]].any()
    assert found.solved.sum() > 200
    mean = found.statistics.mean_voltage()
    assert np.abs(mean - solution.voltage[solution.solved].mean(0)).max() < 1e-8
    again = stream_rows(network, loads, limits, threads=3, start=near)
    assert as_bytes(again.statistics) == as_bytes(found.statistics)
    few = IntactRows(intact).start(prepare(network), loads.rows(slice(300, 333)), slice(300, 333))
    assert sorted(few.order) == [*range(33)]


def test_what_is_not_known_of_the_intact_grid_starts_from_the_nominal_point(grid, monkeypatch):
    loads = loads_of(grid, 3)
    known, other = IntactRows(grid), prepare(read_grid("case14"))
    assert known.start(other, loads, slice(0, 3)) is NOWHERE
    assert known.start(prepare(grid), loads, slice(0, 3)) is NOWHERE
    outage = prepare(grid.without(("line:9",)))
    monkeypatch.setattr(intact_rows, "MOST_BYTES", 32 * grid.num_buses * 5)
    assert len(known.start(outage, loads, slice(2, 5)).order) == 3
    assert known.start(outage, loads, slice(3, 6)) is NOWHERE


def test_limits_of_an_outage_are_those_of_its_network(grid):
    network = grid.without(("line:9", "line:28"))
    for mine, whole in zip(Limits.of(grid).without(network), Limits.of(network), strict=True):
        np.testing.assert_array_equal(mine, whole)


def test_voltages_beyond_all_bins_and_all_measure_are_counted_at_the_ends(grid):
    statistics = Statistics(Limits.of(grid))
    voltage = np.full((3, grid.num_buses), [[0.01], [5.0], [1e9]], complex)
    statistics.add_complex(voltage)
    bins = statistics.counts.bus_bins[0]
    assert (bins[0], bins[-1], bins.sum()) == (1, 2, 3)
    assert statistics.counts.over[0] == 2
    assert np.isfinite(statistics.mean_voltage()).all()


def test_sums_of_the_largest_terms_do_not_overflow(grid):
    statistics = Statistics(Limits.of(grid))
    for _ in range(4):
        statistics.add_complex(np.full((8192, grid.num_buses), 30.0, complex))
    assert statistics.mean(statistics.counts.bus_sums[:, 0])[0] == pytest.approx(30.0, rel=1e-12)
