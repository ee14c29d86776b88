"""Studies in which tap changers and shunts move, against rows solved one grid at a time."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import gridshift as gs
from gridshift.errors import GridshiftError
from gridshift.grid.controls import grid_of_row
from gridshift.grid.equations import branch_loading
from gridshift.grid.powerflow import solve
from gridshift.grid.solution import RowStatus
from gridshift.grid.supplied import supplied_part
from gridshift.study.outage import count_scenarios, screen_outages
from gridshift.study.pieces import Piece, keys
from gridshift.study.row import OutageRow
from gridshift.study.set_up import set_up
from tests.reference.small_nets import feeder, tapped


def read(net):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gs.from_pandapower(net)


def config(**given):
    usual = {"contingencies": "all", "num_scenarios": 150, "spread": 0.9, "workers": 1}
    return gs.ScreenConfig(grid="feeder", **usual | {"controls": True} | given)


@pytest.fixture(scope="module")
def network():
    return read(feeder())


@pytest.fixture(scope="module")
def study(network):
    return gs.screen(config(), network=network)


def test_rows_of_a_study_are_those_of_solve_with_controls(network, study):
    loads = set_up(config(), network).loads.rows(slice(None))
    start = np.array([one.called(one.start) for one in network.controls])
    split = 0
    for row in [*study.rows, study.intact_row]:
        left = network.without(row.outage.split(",")) if row.outage else network
        part = supplied_part(left)
        if part.network.num_buses == 1:
            continue
        found = solve(part.network, loads.of_loads(part.loads), controls=True)
        solved = found.solved
        assert solved.any()
        kept = [one.label for one in part.network.controls]
        own = [c for c, one in enumerate(network.controls) if one.label in kept]
        moved = found.positions[solved] != start[own]
        for k, c in enumerate(own):
            if part.network.controls[k].on(part.network):
                assert row.control_moved[c] == moved[:, k].mean(), (row.outage, kept[k])
        assert row.any_moved == moved.any(1).mean()
        assert row.unsettled == (found.status == RowStatus.UNSETTLED_CONTROLS).mean()
        rows = np.flatnonzero(solved)
        v = np.abs(found.voltage[solved])
        mean = row.bus_voltage_mean[part.buses]
        np.testing.assert_allclose(mean, v.mean(0), rtol=1e-9)
        loading = np.array([
            branch_loading(grid_of_row(found, r), found.voltage[[r]])[0] for r in rows.tolist()
        ])  # fmt: skip
        np.testing.assert_allclose(row.branch_loading[part.branches], loading.mean(0), rtol=1e-9)
        at_end = [found.positions[solved][:, k] == one.called(end)
                  for k, one in enumerate(part.network.controls) for end in one.range]  # fmt: skip
        at_end = np.array(at_end).reshape(len(own), 2, -1).any(1).mean(1)
        on = [one.on(part.network) for one in part.network.controls]
        np.testing.assert_array_equal(row.control_at_end[own], np.where(on, at_end, np.nan))
        gone = np.setdiff1d(np.arange(len(network.controls)), own)
        assert np.isnan(row.control_moved[gone]).all()
        split += len(own) < len(network.controls)
    assert split
    assert study.intact_row.any_moved > 0.5
    assert {"any_moved", "moved_control", "unsettled"} <= {*study.outages.columns}
    table = study.controls.set_index(["outage", "control"])
    assert table.loc[("trafo:1", "shunt:0"), "moved"] == study.row("trafo:1").control_moved[3]


def test_a_splitting_outage_has_the_positions_of_what_is_left(network):
    left, loads = network.without(["trafo:1", "trafo:2"]), gs.nominal_loads(network)
    found = solve(left, loads, controls=True)
    part = supplied_part(left)
    alone = solve(part.network, loads.of_loads(part.loads), controls=True)
    assert [one.label for one in part.network.controls] == ["trafo:0", "shunt:0"]
    assert found.status[0] == RowStatus.ISLANDED
    assert np.array_equal(found.positions[:, [0, 3]], alone.positions)
    assert np.isnan(found.positions[:, [1, 2]]).all()
    nothing = solve(network.without(["trafo:0"]), loads, controls=True)
    assert np.isnan(nothing.positions).all()


def test_rows_are_the_same_from_runs_of_scenarios_and_after_being_stored(network, study):
    setting = replace(set_up(config(), network), reference=study.intact_row)
    for outage in (("trafo:1",), ("line:0",)):
        row = study.row(outage[0])
        parts = tuple(count_scenarios(setting, outage, slice(k, k + 75)) for k in (0, 75))
        (other,) = screen_outages(replace(setting, counted=parts), [outage])
        stored = OutageRow.of_stored(other.stored(), outage=row.outage, network=network)
        for one in (other, stored):
            assert np.array_equal(row.control_moved, one.control_moved, equal_nan=True)
            assert np.array_equal(row.branch_loading, one.branch_loading, equal_nan=True)
            assert (row.severity, row.unsettled) == (one.severity, one.unsettled)
    plain = set_up(config(controls=False), network)
    assert keys(plain, Piece((("trafo:1",),))) != keys(setting, Piece((("trafo:1",),)))
    assert not len(screen_outages(plain, [()])[0].control_moved)


def test_rows_that_move_without_end_are_counted_as_unsolved():
    from pandapower.control import DiscreteTapControl

    net = tapped()
    DiscreteTapControl(net, 0, 0.9999, 1.0001)
    row = gs.screen(config(num_scenarios=20), network=read(net)).intact_row
    assert row.unsettled == row.unsolved > 0.5


def test_controls_are_for_exact_rows():
    with pytest.raises(GridshiftError, match="controls is for exact rows alone"):
        config(method="icw")
