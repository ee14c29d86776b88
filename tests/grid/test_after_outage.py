"""Grids without generators, buses, loads or shunts against pandapower; equal outages."""

from dataclasses import replace

import numpy as np
import pandapower
import pandapower.networks
import pytest

from gridshift.errors import OutageError
from gridshift.grid.after_outage import after_outage, other_elements
from gridshift.grid.contingency import parse_outage
from gridshift.grid.equal_outages import EqualOutages
from gridshift.grid.outage_list import Contingency, read_contingencies, select_outages
from gridshift.grid.powerflow import nominal
from gridshift.grid.supplied import supplied_part


def voltages(network, outage, **options):
    """Magnitudes and angles, degrees, at the buses that are left."""
    after = after_outage(network, outage, **options)
    part = supplied_part(after.network, lost_loads=after.lost_loads)
    voltage = nominal(part.network).require_converged().voltage[0]
    size = part.bus_values(np.abs(voltage))
    return size, part.bus_values(np.rad2deg(np.angle(voltage)))


def pandapowers(change):
    net = pandapower.networks.case30()
    change(net)
    pandapower.runpp(net, numba=False, tolerance_mva=1e-9, calculate_voltage_angles=True)
    return net.res_bus.vm_pu.to_numpy(), net.res_bus.va_degree.to_numpy()


def out(table, index):
    return lambda net: net[table].__setitem__("in_service", net[table].index != index)


def bus_out(bus):
    """pandapower leaves lines of a bus that is out energised from their other end."""

    def change(net):
        out("bus", bus)(net)
        net.line.loc[(net.line.from_bus == bus) | (net.line.to_bus == bus), "in_service"] = False

    return change


@pytest.mark.parametrize(
    ("label", "change"),
    [
        ("gen:1", out("gen", 1)),
        ("load:3", out("load", 3)),
        ("shunt:4", out("shunt", 0)),
        ("bus:7", bus_out(7)),
        ("bus:1", bus_out(1)),
    ],
)
def test_what_is_left_is_what_pandapower_solves(case30, label, change):
    found = voltages(case30, (label,), redistribute=False)
    # both solve to 1e-8 p.u. or better
    for ours, theirs in zip(found, pandapowers(change), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_a_generators_power_is_shared_by_the_size_of_the_others(case30):
    def change(net):
        out("gen", 1)(net)
        lost, left = net.gen.p_mw[1], net.gen.index != 1
        net.gen.loc[left, "p_mw"] *= 1 + lost / net.gen.p_mw[left].sum()

    found = voltages(case30, ("gen:1",))
    for ours, theirs in zip(found, pandapowers(change), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_elements_of_several_kinds_go_together(case30):
    def change(net):
        out("gen", 1)(net)
        out("line", 9)(net)

    found = voltages(case30, ("gen:1", "line:9"), redistribute=False)
    for ours, theirs in zip(found, pandapowers(change), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_a_grid_without_its_only_slack_bus_supplies_nobody(case30):
    assert len(after_outage(case30, ("bus:0",)).cut_off) == 30


def test_kinds_are_listed_and_unknown_elements_refused(case30):
    assert select_outages(case30, "generators") == [(f"gen:{i}",) for i in range(5)]
    assert len(select_outages(case30, "buses")) == 30
    assert other_elements(case30, "shunts") == ["shunt:4", "shunt:23"]
    assert parse_outage(case30, "bus:7,line:9", branches_alone=False) == ("bus:7", "line:9")
    with pytest.raises(OutageError, match="gen:9"):
        parse_outage(case30, "gen:9", branches_alone=False)
    with pytest.raises(OutageError, match="bus:7: only lines and transformers can be out here"):
        parse_outage(case30, "bus:7")  # where only branches make sense
    with pytest.raises(OutageError, match="gen:9"):
        after_outage(case30, ("gen:9",))


def test_a_list_tells_names_rates_and_hours(case30, tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("line:9,gen:1; both, at once; 0.5; 8 # seldom\nline:3;;2\nline:4\n")
    first, second, third = read_contingencies(case30, path)
    assert first == Contingency(
        outage=("gen:1", "line:9"), name="both, at once", failures_per_year=0.5, repair_hours=8
    )
    assert second.failures_per_year == 2
    assert np.isnan([second.repair_hours, third.failures_per_year]).all()
    path.write_text("line:9; a; often\nline:3; b; 1; -2\nline:4; a; 1; 2; 3\n")
    with pytest.raises(OutageError, match=r"line 1: .*'often'.*line 2: .*'-2'.*line 3: 5 columns"):
        read_contingencies(case30, path)


def doubled(network):
    """case30 whose line:3 is a copy of line:2, turned round."""
    branch_y, rating = network.branch_y.copy(), network.branch_rating.copy()
    start, end = network.branch_from.copy(), network.branch_to.copy()
    a, b = (network.elements[f"line:{i}"][0] for i in (2, 3))
    start[b], end[b] = end[a], start[a]
    branch_y[b], rating[b] = branch_y[a][::-1], rating[a][::-1]
    return replace(
        network, branch_from=start, branch_to=end, branch_y=branch_y, branch_rating=rating
    )


def test_parallel_circuits_with_equal_parameters_have_one_representative(case30):
    equal = EqualOutages(doubled(case30))
    assert equal.representative(("line:3",)) == ("line:2",)
    assert equal.representative(("line:3", "line:9")) == ("line:2", "line:9")
    assert equal.representative(("line:2", "line:3")) == ("line:2", "line:3")
    a, b = (case30.elements[f"line:{i}"][0] for i in (2, 3))
    order = equal.branches(("line:3",))
    assert (order[a], order[b]) == (b, a)
    assert (np.delete(order, [a, b]) == np.delete(np.arange(41), [a, b])).all()
    alone = EqualOutages(case30)
    assert alone.representative(("line:3",)) == ("line:3",)
