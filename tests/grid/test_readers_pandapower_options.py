"""Stored options are followed as runpp follows them, or refused; networks in memory are read."""

import copy
import warnings

import numpy as np
import pytest

from gridshift.errors import GridFileError, GridshiftError, GridshiftWarning
from gridshift.grid.contingency import branch_loading
from gridshift.grid.powerflow import nominal
from gridshift.grid.readers import read_grid
from gridshift.study.screening import ScreenConfig
from tests.reference.pandapower_equations import built
from tests.reference.small_nets import (
    iron_losses,
    pandapowers_voltages,
    ring,
    tapped,
    three_windings,
)

TOLERANCE = 1e-8
"""Complex voltage, p.u.; both sides are solved to 1e-10."""


def solved(net):
    network = read_grid(net)
    voltage = nominal(network, tol=1e-10).require_converged().voltage[0]
    return voltage[[":trafo" not in label for label in network.bus_labels]]


def shifted():
    net = tapped(shift_degree=30.0)
    net.ext_grid["va_degree"] = 12.0
    return net


def warm():
    net = ring()
    net.line["temperature_degree_celsius"] = 80.0
    net.line["alpha"] = 0.004
    return net


def with_switches():
    import pandapower as pp

    net = ring()
    pp.create_switch(net, 1, 1, "l", closed=False)
    bus = pp.create_bus(net, 20.0)
    pp.create_load(net, bus, 1.0, 0.4)
    pp.create_switch(net, 2, bus, "b", z_ohm=2.0)
    return net


def voltage_dependent():
    net = ring()
    net.load["const_z_p_percent"] = 50.0
    return net


@pytest.mark.parametrize(
    ("make", "option", "value", "matters"),
    [
        (iron_losses, "trafo_model", "pi", True),
        (iron_losses, "trafo_model", "t", False),
        (shifted, "calculate_voltage_angles", False, True),
        (shifted, "calculate_voltage_angles", "auto", False),
        (three_windings, "trafo3w_losses", "star", True),
        (three_windings, "trafo3w_losses", "MV", True),
        (warm, "consider_line_temperature", True, True),
        (with_switches, "switch_rx_ratio", 0.5, True),
        (with_switches, "neglect_open_switch_branches", True, True),
    ],
)
def test_an_option_that_changes_the_equations_is_followed(make, option, value, matters):
    net = make()
    without = solved(net)
    net.user_pf_options = {option: value}
    voltage = solved(net)
    assert np.abs(voltage - pandapowers_voltages(net)).max() < TOLERANCE
    assert (np.abs(voltage - without).max() > 10 * TOLERANCE) == matters


def test_the_pi_model_is_the_one_by_hand():
    net = iron_losses()
    net.user_pf_options = {"trafo_model": "pi"}
    z = (0.011 + 1j * np.sqrt(0.06**2 - 0.011**2)) / 0.63  # p.u. on 1 MVA
    iron = 1.65e-3 - 1j * np.sqrt((0.05 * 0.63) ** 2 - 1.65e-3**2)
    v = 1.05 + 0j
    for _ in range(100):
        v = 1.05 - z * (np.conj((0.5 + 0.2j) / v) + iron / 2 * v)
    assert abs(v) == pytest.approx(1.02073508, abs=1e-8)
    assert abs(solved(net)[1]) == pytest.approx(abs(v), abs=1e-9)


def test_an_option_makes_loads_that_depend_on_voltage_constant():
    net = voltage_dependent()
    assert read_grid(net).load_impedance.tolist() == [0.5] * 4
    net.user_pf_options = {"voltage_depend_loads": False}
    assert not read_grid(net).load_impedance.any()
    assert np.abs(solved(net) - pandapowers_voltages(net)).max() < TOLERANCE


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("trafo_model", "gamma", "has trafo_model='gamma'; allowed are 't', 'pi'"),
        ("trafo_model", None, "has trafo_model=None; allowed are"),
        ("trafo3w_losses", "middle", "has trafo3w_losses='middle'; allowed are"),
        ("calculate_voltage_angles", "yes", "has calculate_voltage_angles='yes'; allowed are"),
        ("switch_rx_ratio", float("nan"), "has switch_rx_ratio=nan; it must be a number from 0 on"),
        ("switch_rx_ratio", "2", "has switch_rx_ratio='2'; it must be a number"),
        ("distributed_slack", True, "asks for distributed_slack, which is not supported"),
        ("tdpf", True, "asks for tdpf, which is not supported"),
        (
            "enforce_q_lims",
            True,
            "asks for enforce_q_lims, which is not supported in a file; take it out and ask for "
            "reactive limits where you solve, --q-limits",
        ),
        ("enforce_p_lims", 1, "asks for enforce_p_lims=1, which is not supported"),
        ("trafo_loading", "power", "asks for trafo_loading='power', which is not supported"),
        ("mode", "opf", "asks for mode='opf', which is not supported"),
        ("trafo_modell", "pi", "has an unknown option 'trafo_modell'"),
    ],
)
def test_an_option_that_cannot_be_followed_is_refused(option, value, expected):
    net = ring()
    net.user_pf_options = {option: value}
    with pytest.raises(GridFileError) as caught:
        read_grid(net)
    (problem,) = caught.value.problems
    assert problem.startswith(f"user_pf_options {expected}")


def test_options_of_the_solver_and_those_with_pandapowers_defaults_change_nothing():
    net = ring()
    digest = read_grid(net).digest
    net.user_pf_options = {"init": "results", "algorithm": "bfsw", "max_iteration": 3,
                           "numba": True,
                           "tolerance_mva": 1.0, "lightsim2grid": False, "distributed_slack": False,
                           "trafo_loading": "current", "recycle": None, "check_connectivity": False,
                           "init_vm_pu": [1.0] * 4}  # fmt: skip
    assert read_grid(net).digest == digest


def test_controllers_that_an_option_asks_for_are_not_run_as_by_runpp_and_a_warning_says_so():
    net = ring()
    net.user_pf_options = {"run_control": True}
    with pytest.warns(GridshiftWarning, match="controllers are not run"):
        voltage = solved(net)
    assert np.abs(voltage - pandapowers_voltages(net)).max() < TOLERANCE


def test_line_temperatures_that_are_missing_are_refused():
    net = warm()
    net.user_pf_options = {"consider_line_temperature": True}
    net.line.loc[2, "alpha"] = np.nan
    with pytest.raises(GridFileError, match="line:2: alpha is not a finite number"):
        read_grid(net)
    del net.line["temperature_degree_celsius"]
    with pytest.raises(GridFileError, match="asks for a column temperature_degree_celsius"):
        read_grid(net)


def test_what_pandapower_warns_of_is_passed_on():
    net = warm()
    net.user_pf_options = {"consider_line_temperature": True}
    del net.line["alpha"]
    with pytest.warns(GridshiftWarning, match="pandapower says: 'alpha' is assumed to 0.004"):
        voltage = solved(net)
    assert np.abs(voltage - pandapowers_voltages(net)).max() < TOLERANCE


def test_a_network_in_memory_is_read_and_left_as_it_is():
    net = built("case14")
    before = copy.deepcopy(net)
    with warnings.catch_warnings():
        warnings.simplefilter("error", GridshiftWarning)
        network = read_grid(net)
    assert network.digest == read_grid("case14").digest
    assert read_grid(network) is network
    assert list(net.keys()) == list(before.keys())
    for key, table in before.items():
        if hasattr(table, "columns"):
            assert net[key].equals(table), key
    net.name = "my town"
    assert read_grid(net).name == "my town"


def test_a_network_in_memory_of_an_older_format_is_to_be_converted_first():
    net = ring()
    net.format_version = "2.14.1"
    with pytest.raises(GridFileError, match=r"its format is 2.14.1.*pandapower.convert_format"):
        read_grid(net)


@pytest.mark.parametrize("source", [None, 3, {"bus": []}, [1]])
def test_what_is_no_grid_at_all_is_refused(source):
    with pytest.raises(GridFileError, match="no grid; a grid is a built-in name"):
        read_grid(source)


def test_a_study_takes_a_network_in_memory_beside_its_configuration():
    from gridshift.study.sweep import screen

    with pytest.raises(GridshiftError, match=r"not a pandapowerNet.*network=net"):
        ScreenConfig(grid=ring())  # type: ignore[arg-type]
    config = ScreenConfig(grid="ring", method="newton", num_scenarios=5, workers=1)
    result = screen(config, network=ring())
    assert {row.outage for row in result.rows} == {"line:0", "line:1", "line:2", "line:3"}


def test_a_rating_is_the_current_at_which_max_loading_percent_is_reached():
    net = ring()
    plain = read_grid(net)
    net.line["max_loading_percent"] = [100.0, 80.0, np.nan, 50.0]
    limited = read_grid(net)
    share = limited.branch_rating / plain.branch_rating
    assert share == pytest.approx(np.array([[1.0] * 2, [0.8] * 2, [1.0] * 2, [0.5] * 2]))
    voltage = nominal(limited, tol=1e-10).voltage[0]
    import pandapower as pp

    pp.runpp(net, numba=False)
    expected = net.res_line.loading_percent / net.line.max_loading_percent.fillna(100.0)
    assert branch_loading(limited, voltage) == pytest.approx(expected.to_numpy(), rel=1e-7)
    assert limited.branch_rated.all()
    transformer = three_windings(max_loading_percent=60.0)
    rated = np.isfinite(read_grid(three_windings()).branch_rating)
    ratio = read_grid(transformer).branch_rating[rated]
    assert rated.sum() == 3
    assert ratio == pytest.approx(0.6 * read_grid(three_windings()).branch_rating[rated])
