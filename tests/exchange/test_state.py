"""States in other programs' tables are what these programs solve themselves."""

import numpy as np
import pandapower as pp
import pandapower.networks
import pandas as pd
import pytest

import gridshift as gs
from gridshift.errors import GridFileError, ScenarioError, TableError

SAME = 1e-6
"""MW, Mvar, degrees and percent by which two solutions to 1e-9 MVA may differ."""


@pytest.mark.parametrize("case", ["case14", "case30", "case118"])
def test_a_state_in_pandapower_is_the_one_that_it_solves(case):
    net = getattr(pandapower.networks, case)()
    network = gs.from_pandapower(net).without(("line:3",))
    loads = gs.sample_loads(network, gs.named_rng(case, "state"), 3)
    filled = gs.to_pandapower(net, gs.solve(network, loads, tol=1e-11), loads=loads, row=2)
    own = pp.pandapowerNet(filled)
    pp.runpp(own, calculate_voltage_angles=True, tolerance_mva=1e-9, init="dc")
    assert not own.line.in_service[3]
    assert net.line.in_service[3], "the network that was given is left as it is"
    for name in ("res_bus", "res_line", "res_trafo", "res_load", "res_gen", "res_ext_grid"):
        mine, other = filled[name], own[name]
        assert set(other.columns) <= {*mine.columns}, name
        off = (mine[other.columns] - other).abs()
        on = own[name.removeprefix("res_")].in_service
        assert len(on) == 0 or off[on].max().max() < SAME, (name, off.max())
    powers = [c for c in filled.res_line.columns if c.startswith(("p_", "q_", "i_", "load"))]
    assert (filled.res_line.loc[3, powers] == 0).all()


def test_a_state_as_csv_holds_every_element(tmp_path):
    network = gs.read_grid("case14")
    solution = gs.solve(network, gs.nominal_loads(network))
    paths = gs.write_state(solution, tmp_path)
    assert not any(",-0," in path.read_text() for path in paths)
    buses, gens, branches = map(pd.read_csv, paths)
    assert buses.bus.tolist() == list(network.bus_labels)
    assert branches.branch.tolist() == list(network.branch_labels)
    np.testing.assert_allclose(buses.vm_pu, np.abs(solution.voltage[0]), rtol=1e-12)
    losses = gens.p_mw.sum() - buses.demand_mw.sum()
    np.testing.assert_allclose((branches.p_from_mw + branches.p_to_mw).sum(), losses, atol=1e-5)


def test_what_cannot_be_exported_says_why():
    net = pandapower.networks.case14()
    network = gs.from_pandapower(net)
    solution = gs.solve(network, gs.nominal_loads(network))
    with pytest.raises(ScenarioError, match="no row 1; the solution has 1"):
        gs.to_pandapower(net, solution, row=1)
    with pytest.raises(TableError, match="the network has no bus 9, which case14 has"):
        gs.to_pandapower(pandapower.networks.case9(), solution)
    with pytest.raises(GridFileError, match="no grid; a grid is"):
        gs.from_pandapower("case14")
