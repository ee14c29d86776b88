"""Varying generation, set-points and balance, against pandapower and by hand."""

from dataclasses import replace

import numpy as np
import pandapower as pp
import pytest

from gridshift.grid.contingency import assess, cut_off_buses
from gridshift.grid.generation import Participants, generators, with_columns
from gridshift.grid.powerflow import nominal, solve
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import LoadScenarios
from gridshift.grid.supplied import supplied_part
from gridshift.study.description import UncertaintyError
from gridshift.study.generation import (
    Balance,
    Limit,
    SetPoint,
    participants,
    with_set_points,
)
from tests.reference.grids import branch_two_port, make_network
from tests.reference.pandapower_equations import built


@pytest.fixture
def four_gens():
    """Slack at bus 0, generators of 1, 2, 3 p.u. at bus 1, 4 p.u. more at bus 2, a load."""
    line = branch_two_port(0.01, 0.1)
    network = make_network(
        [3, 2, 2],
        [(0, 1, line), (1, 2, line)],
        [(2, 0.5 + 0.1j)],
        gens=[(0, 9.0), (1, 1.0), (1, 2.0), (1, 3.0), (2, 4.0)],
    )
    fixed = np.array([0, 0.2, -0.1 + 0.3j])
    return replace(network, bus_fixed=fixed)


def pandapower_voltage(net, network):
    """(B,) what `runpp` finds, in the network's order of buses."""
    pp.runpp(net, calculate_voltage_angles=True, tolerance_mva=1e-9, init="dc", numba=False)
    rows = [int(label.removeprefix("bus:").split("+")[0]) for label in network.bus_labels]
    found = net.res_bus.loc[rows]
    return found.vm_pu.to_numpy() * np.exp(1j * np.deg2rad(found.va_degree.to_numpy()))


def test_generators_are_known_but_for_those_at_the_slack(four_gens):
    found = generators(four_gens)
    assert [*found] == ["gen:1", "gen:2", "gen:3", "gen:4", "static:1"]
    assert [found[label].power for label in found] == [1, 2, 3, 4, 0.2]


def test_supply_and_consumption_at_one_bus_are_told_apart(four_gens):
    # 0.5 drawn by motors and wards, 0.4 given: -0.1 in sum, its reactive part of unknown origin
    consumed = np.array([0, 0, 0.5])
    network = replace(four_gens, bus_consumed=consumed)
    static = generators(network)["static:2"]
    assert static.power == pytest.approx(0.4)
    moved = with_columns(network, ["static:2"])
    np.testing.assert_allclose(moved.bus_fixed[2], -0.5 + 0.3j)
    np.testing.assert_allclose(moved.bus_demand, network.bus_demand)
    np.testing.assert_allclose(moved.bus_generation, network.bus_generation)


def test_generators_as_demands_of_the_other_sign_leave_the_grid_as_it_is():
    network = read_grid("case39")
    labels = [*generators(network)]
    moved = with_columns(network, labels)
    assert moved.num_loads == network.num_loads + len(labels)
    np.testing.assert_allclose(
        moved.injected(moved.load_power).real[network.pv],
        network.injected(network.load_power).real[network.pv],
        atol=1e-13,
    )
    np.testing.assert_allclose(moved.bus_demand, network.bus_demand, atol=1e-13)
    np.testing.assert_allclose(moved.bus_generation, network.bus_generation, atol=1e-13)
    assert moved.tolerance_base == network.tolerance_base
    np.testing.assert_allclose(nominal(moved).voltage, nominal(network).voltage, atol=1e-10)
    with_outage = solve(moved.without(["line:0"]), LoadScenarios(
        load_p=moved.load_power.real[None], load_q=moved.load_power.imag[None]
    ))  # fmt: skip
    expected = nominal(network.without(["line:0"]))
    np.testing.assert_allclose(with_outage.voltage, expected.voltage, atol=1e-10)


def test_an_outage_that_strands_a_generator_strands_its_column():
    network = read_grid("case118")
    moved = with_columns(network, ["gen:4", "gen:11"])
    bus = network.gen_bus[network.gen_labels.index("gen:4")]
    singles = [(label,) for label in network.elements]
    cut = zip(singles, cut_off_buses(network, singles), strict=True)
    outage = next(one for one, buses in cut if bus in buses and len(buses) < 5)
    found, before = assess(moved, outage), assess(network, outage)
    assert found.mw_generation_cut_off == pytest.approx(before.mw_generation_cut_off)
    assert found.mw_generation_cut_off >= 450
    assert found.mw_cut_off == before.mw_cut_off
    part = supplied_part(found.network)
    assert "gen:4" not in part.network.load_labels
    assert "gen:11" in part.network.load_labels
    expected = nominal(supplied_part(before.network).network).voltage
    np.testing.assert_allclose(nominal(part.network).voltage, expected, atol=1e-9)


def test_set_points_are_those_that_pandapower_holds():
    net = built("case39")
    network = with_set_points(
        read_grid("case39"),
        [
            SetPoint(elements=("gen:*",), vm_pu=1.01),
            SetPoint(elements=("gen:3",), vm_pu=1.03, p_mw=500),
            SetPoint(elements=("ext_grid:0",), vm_pu=0.99),
        ],
    )
    net.gen["vm_pu"] = 1.01
    net.gen.loc[3, ["vm_pu", "p_mw"]] = 1.03, 500.0
    net.ext_grid["vm_pu"] = 0.99
    found = nominal(network).voltage[0]
    assert np.abs(found - pandapower_voltage(net, network)).max() < 1e-8  # both solve to 1e-9 MVA


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"elements": ("gen:7",), "vm_pu": 1.0}, r"set_point\[1\].elements: no 'gen:7' among"),
        ({"elements": ("gen:*",), "vm_pu": 10.0}, "vm_pu: 10 must lie between 0.5 and 1.5"),
        ({"elements": ("gen:*",)}, "gives vm_pu, p_mw or both"),
        ({"elements": ("ext_grid:0",), "p_mw": 3}, "ext_grid:0 stands at a slack bus"),
    ],
)
def test_set_points_that_cannot_be_held_are_refused(case9, given, told):
    with pytest.raises(UncertaintyError, match=told):
        with_set_points(case9, [SetPoint(**given)])


def test_one_bus_holds_one_voltage(four_gens):
    given = [SetPoint(elements=(f"gen:{i}",), vm_pu=1 + i / 100) for i in (1, 2)]
    with pytest.raises(UncertaintyError, match="gen:2 and gen:1 hold bus:1; give both one"):
        with_set_points(four_gens, given)


def _team(**given):
    given = {"low": [-9, -9], "high": [9, 9], "size": [1, 3], "slack": 0.0} | given
    arrays = {n: None if given[n] is None else np.array(given[n], float) for n in given}
    return Participants(
        labels=("a", "b"), power=np.array([1.0, 2.0]), low=arrays["low"], high=arrays["high"],
        size=arrays["size"], slack=given["slack"],
    )  # fmt: skip


def test_a_difference_is_shared_by_weight():
    moved, left = _team().moved(np.array([4.0, -2.0, 0.0]))
    np.testing.assert_allclose(moved, [[1, 3], [-0.5, -1.5], [0, 0]], atol=1e-15)
    np.testing.assert_allclose(left, 0, atol=1e-15)


def test_the_slack_may_have_a_weight():
    moved, left = _team(slack=4).moved(np.array([4.0]))
    np.testing.assert_allclose([*moved[0], *left], [0.5, 1.5, 2])


def test_who_reaches_a_limit_leaves_the_rest_to_the_others_and_they_to_the_slack():
    team = _team(low=[0.5, 1.0], high=[4.0, 3.0])  # up by 3 and 1, down by 0.5 and 1
    moved, left = team.moved(np.array([2.0, 3.5, 6.0, -1.2, -4.0]))
    expected = [[1, 1], [2.5, 1], [3, 1], [-0.3, -0.9], [-0.5, -1]]
    np.testing.assert_allclose(moved, expected, atol=1e-14)
    np.testing.assert_allclose(left, [0, 0, 2, 0, -2.5], atol=1e-14)


def test_headroom_is_used_up_by_all_at_once():
    team = _team(low=[0.5, 1.0], high=[4.0, 3.0], size=None)
    moved, left = team.moved(np.array([2.0, 5.0, -0.75]))
    np.testing.assert_allclose(moved, [[1.5, 0.5], [3, 1], [-0.25, -0.5]], atol=1e-14)
    np.testing.assert_allclose(left, [0, 1, 0], atol=1e-14)


def test_size_is_the_upper_limit_or_else_the_schedule(four_gens):
    limits = [Limit(elements=("gen:4",), p_min_mw=100, p_max_mw=800)]
    team = participants(four_gens, Balance(elements=("gen:3", "gen:4")), limits)
    assert team.labels == ("gen:3", "gen:4")
    np.testing.assert_allclose(team.size, [3, 8])
    np.testing.assert_allclose(team.low, [-np.inf, 1])


@pytest.mark.parametrize(
    ("balance", "limits", "told"),
    [
        ({"elements": ("gen:9",)}, [], "generation.balance.elements: no 'gen:9' among"),
        ({"elements": ("gen:1",)}, [], "gen:1 both varies and balances"),
        ({"elements": ("gen:2",), "by": "headroom"}, [], "gen:2 has no limits"),
        ({"by": "given", "weights": {"gen:*": 1}}, [], "'gen:.' must be one generator"),
        ({"elements": ("gen:2",)}, [("gen:3", 0, 900)], r"limit\[1\].elements: none of them bal"),
        ({"elements": ("gen:2",)}, [("gen:2", 0, 150)], "gen:2 is scheduled to give 200 MW, out"),
        ({"elements": ("ext_grid:0", "gen:2")}, [], "no 'ext_grid:0' among the generators that"),
    ],
)
def test_those_who_cannot_balance_are_named(four_gens, balance, limits, told):
    limits = [Limit(elements=(name,), p_min_mw=a, p_max_mw=b) for name, a, b in limits]
    with pytest.raises(UncertaintyError, match=told):
        participants(four_gens, Balance(**balance), limits, varying=["gen:1"])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"by": "luck"}, "by: no balance by 'luck'; choose given, size, headroom"),
        ({}, "elements: balance by 'size' needs elements, no weights"),
        ({"by": "given"}, "weights: balance by 'given' needs weights, no elements"),
        ({"by": "given", "weights": {"gen:1": -1}}, "gen:1 has -1; a weight is at least 0"),
        ({"by": "given", "weights": {"gen:1": 0}}, "all are 0"),
    ],
)
def test_a_balance_that_means_nothing_is_refused(given, told):
    with pytest.raises(UncertaintyError, match=told):
        Balance(**given)
