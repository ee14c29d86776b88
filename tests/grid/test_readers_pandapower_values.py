"""Tables with wrong columns, kinds or values: one line that names the elements, no traceback."""

import copy

import numpy as np
import pytest

from gridshift.errors import GridFileError, GridshiftWarning
from gridshift.grid.powerflow import nominal
from gridshift.grid.readers import read_grid
from tests.reference.small_nets import (
    iron_losses,
    pandapowers_voltages,
    ring,
    tapped,
    three_windings,
)


def problems_of(net):
    with pytest.raises(GridFileError) as caught:
        read_grid(net)
    assert "\n" not in str(caught.value)
    return caught.value.problems


def everything():
    """A ring with one element of every kind."""
    import pandapower as pp

    net = ring()
    pp.create_gen(net, 1, 1.0, 1.02)
    pp.create_sgen(net, 2, 0.3)
    pp.create_storage(net, 2, 0.1, 1.0)
    pp.create_motor(net, 2, 0.1, 0.9)
    pp.create_asymmetric_load(net, 3, 0.1, 0.1, 0.1)
    pp.create_asymmetric_sgen(net, 3, 0.1, 0.1, 0.1)
    pp.create_shunt(net, 3, -0.1)
    pp.create_ward(net, 3, 0.1, 0.0, 0.1, 0.0)
    pp.create_xward(net, 3, 0.1, 0.0, 0.1, 0.0, 0.1, 0.2, 1.0)
    pp.create_impedance(net, 1, 3, 0.01, 0.02, 10.0)
    pp.create_dcline(net, 0, 2, 0.1, 1.0, 0.001, 1.02, 1.0)
    for kv in (110.0, 10.0, 0.4):
        pp.create_bus(net, kv)
    pp.create_transformer(net, 4, 0, "25 MVA 110/20 kV")
    pp.create_transformer3w(net, 4, 0, 5, "63/25/38 MVA 110/20/10 kV")
    pp.create_transformer(net, 0, 6, "0.63 MVA 20/0.4 kV")
    pp.create_switch(net, 0, 0, "l")
    net.switch.index = [7]
    return net


def set_to(net, kind, column, value, row=0):
    net = copy.deepcopy(net)
    net[kind][column] = net[kind][column].astype(object)
    net[kind].at[net[kind].index[row], column] = value
    return net


TABLES = ("bus", "ext_grid", "gen", "load", "sgen", "storage", "motor", "asymmetric_load",
          "asymmetric_sgen", "shunt", "ward", "xward", "line", "trafo", "trafo3w", "impedance",
          "dcline", "switch")  # fmt: skip


@pytest.fixture(scope="module")
def net():
    return everything()


def test_columns_of_every_table_hold_numbers_or_are_named(net):
    bad, expected = copy.deepcopy(net), []
    for kind in TABLES:
        for column in net[kind].columns:
            number = net[kind][column].dtype.kind in "fiub"
            if not number or {column, f"{kind}.{column}"} & _UNUSED:
                continue
            first = net[kind].index[0]
            bad[kind][column] = bad[kind][column].astype(object)
            bad[kind].loc[first, column] = "much"
            # A shunt's steps and a bus's voltage are among these; so are taps and limits.
            expected.append(f"{kind}:{first}: {column} is 'much', not ")
    problems = problems_of(bad)
    assert len(problems) == len(expected) > 100
    for start in expected:
        assert any(problem.startswith(start) for problem in problems), start


_UNUSED = {"min_q_mvar", "max_q_mvar", "controllable", "reactive_capability_curve", "sn_a_mva",
           "sn_b_mva", "sn_c_mva", "current_source", "soc_percent", "min_e_mwh", "max_e_mwh",
           "cos_phi_n", "efficiency_n_percent", "lrc_pu", "rx", "max_step", "tap_min", "tap_max",
           "min_p_mw", "id_q_capability_characteristic", "oltc", "load.sn_mva", "sgen.sn_mva",
           "storage.sn_mva", "motor.vn_kv", "asymmetric_load.sn_mva",
           "asymmetric_sgen.sn_mva"}  # fmt: skip
"""Columns that no balanced power flow reads."""


def test_a_column_of_another_kind_that_says_the_same_is_read(net):
    digest = read_grid(net).digest
    other = copy.deepcopy(net)
    for kind in TABLES:
        for column in other[kind].columns:
            if other[kind][column].dtype.kind in "fiub":
                other[kind][column] = other[kind][column].astype(object)
    other.line["from_bus"] = other.line["from_bus"].astype(float)
    other.load["in_service"] = other.load["in_service"].astype(float)
    other.bus.index = other.bus.index.astype(float)
    assert read_grid(other).digest == digest


@pytest.mark.parametrize(
    ("kind", "column", "value", "expected"),
    [
        ("load", "in_service", "False", "load:0: in_service is 'False', not true or false"),
        ("load", "in_service", None, "load:0: in_service is 'None', not true or false"),
        ("load", "in_service", 2, "load:0: in_service is '2', not true or false"),
        ("load", "bus", 1.5, "load:0: bus is '1.5', not a whole number"),
        ("load", "bus", np.nan, "load:0: bus is 'nan', not a whole number"),
        ("load", "p_mw", None, "load:0: p_mw is not a finite number"),
        ("load", "p_mw", 1 + 2j, "load:0: p_mw is '(1+2j)', not a number"),
        ("load", "p_mw", [1.0], "load:0: p_mw is '[1.0]', not a number"),
        ("load", "p_mw", 10**400, "load:0: p_mw is not a finite number"),
        ("trafo", "vn_hv_kv", 1e300, "trafo:0: vn_hv_kv is 1e+300; nothing in a grid "
         "is beyond 1e+15"),
        ("load", "p_mw", -1e300, "load:0: p_mw is -1e+300; nothing in a grid is beyond 1e+15"),
        ("line", "length_km", -3.0, "line:0: length_km must not be negative"),
        ("line", "max_i_ka", -0.3, "line:0: max_i_ka must not be negative"),
        ("line", "parallel", 0, "line:0: parallel must be positive"),
        ("line", "df", 0.0, "line:0: df must be positive"),
        ("line", "to_bus", 0, "line:0: both ends are at bus:0"),
        ("impedance", "to_bus", 1, "impedance:0: both ends are at bus:1"),
        ("impedance", "sn_mva", -1.0, "impedance:0: sn_mva must be positive"),
        ("dcline", "to_bus", 0, "dcline:0: both ends are at bus:0"),
        ("trafo", "lv_bus", 4, "trafo:0: both ends are at bus:4"),
        ("trafo3w", "mv_bus", 5, "trafo3w:0: both ends are at bus:5"),
        ("trafo", "df", -1.0, "trafo:0: df must be positive"),
        ("trafo", "sn_mva", -25.0, "trafo:0: sn_mva must be positive"),
        ("trafo", "parallel", 0, "trafo:0: parallel must be positive"),
        ("trafo", "vn_lv_kv", 0.0, "trafo:0: vn_lv_kv must be positive"),
        ("trafo", "vk_percent", 0.0, "trafo:0: vkr_percent 0.41 exceeds vk_percent 0; the real "
         "part of the impedance cannot be larger than the whole"),
        ("trafo3w", "vkr_mv_percent", 50.0, "trafo3w:0: vkr_mv_percent 50 exceeds vk_mv_percent "
         "10.4; the real part of the impedance cannot be larger than the whole"),
        ("trafo3w", "sn_mv_mva", -1.0, "trafo3w:0: sn_mv_mva must be positive"),
        ("motor", "cos_phi", 1.2, "motor:0: cos_phi must not be above 1"),
        ("motor", "efficiency_percent", 0.0, "motor:0: efficiency_percent must be positive"),
        ("xward", "vm_pu", 0.0, "xward:0: vm_pu must be positive"),
        ("shunt", "vn_kv", -20.0, "shunt:0: vn_kv must be positive"),
        ("switch", "z_ohm", -1.0, "switch:7: z_ohm must not be negative"),
        ("switch", "et", "x", "switch:7: et must be one of b, l, t, t3"),
        ("switch", "element", 99, "switch:7: element is not in the line table"),
        ("switch", "bus", 2, "switch:7: bus is at no end of its line"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_meant_is_named(net, kind, column, value, expected):
    assert expected in problems_of(set_to(net, kind, column, value))


def test_crossed_limits_and_all_others_come_in_one_message(net):
    bad = copy.deepcopy(net)
    bad.bus["min_vm_pu"], bad.bus["max_vm_pu"] = 1.1, 0.9
    bad.line["max_loading_percent"] = -5.0
    bad.line["length_km"] = -1.0
    assert problems_of(bad) == [
        "line:0, line:1, line:2, line:3: length_km must not be negative",
        "line:0, line:1, line:2, line:3: max_loading_percent must be positive",
        "bus:0, bus:1, bus:2, bus:3, bus:4 and 2 more: min_vm_pu is above max_vm_pu",
    ]


def test_every_table_without_a_column_that_it_needs_is_named(net):
    named = []
    for place in range(0, max(len(net[kind].columns) for kind in TABLES), 3):
        without, found = copy.deepcopy(net), set()
        for kind in TABLES:  # three columns of every table at once
            dropped = list(net[kind].columns[place : place + 3])
            without[kind] = without[kind].drop(columns=dropped)
            found |= {f"table {kind} has no column {column}" for column in dropped}
        try:
            read_grid(without)
            problems = []
        except GridFileError as error:
            problems = error.problems
        assert set(problems) <= found
        named += [f"{problem.split()[1]}.{problem.split()[-1]}" for problem in problems]
    assert {"load.p_mw", "bus.vn_kv", "line.from_bus", "switch.closed"} <= set(named)
    # Those that pandapower itself adds, or no power flow needs, are no reason to refuse.
    assert not {"line.max_i_ka", "trafo.df", "load.name", "trafo.tap_pos"} & set(named)


def test_columns_that_pandapower_adds_itself_have_its_default():
    net = ring()
    rating = read_grid(net).branch_rating
    net.line = net.line.drop(columns=["df", "g_us_per_km"])
    assert read_grid(net).branch_rating == pytest.approx(rating)
    net.line = net.line.drop(columns="max_i_ka")
    assert np.isinf(read_grid(net).branch_rating).all()
    net.load = net.load.drop(columns=["const_z_p_percent", "const_i_q_percent"])
    assert np.abs(nominal(read_grid(net), tol=1e-10).voltage[0]
                  - pandapowers_voltages(ring())).max() < 1e-8  # fmt: skip


@pytest.mark.parametrize("make", [tapped, iron_losses])
def test_a_resistance_above_the_impedance_is_named_with_and_without_an_iron_branch(make):
    net = make()
    net.trafo["vk_percent"], net.trafo["vkr_percent"] = 4.0, 20.0
    (problem,) = problems_of(net)
    assert problem.startswith("trafo:0: vkr_percent 20 exceeds vk_percent 4;")
    net.trafo["vk_percent"] = net.trafo["vkr_percent"] = 0.0
    assert problems_of(net) == ["trafo:0: vk_percent is 0; a transformer needs one"]


def test_the_iron_branch_cannot_sit_at_an_end():
    net = iron_losses()
    net.trafo["leakage_resistance_ratio_hv"] = 1.0
    assert problems_of(net) == ["trafo:0: leakage_resistance_ratio_hv must lie between 0 and 1"]


def test_losses_at_no_side_of_a_three_winding_transformer_are_refused():
    assert problems_of(three_windings(loss_side="HV")) == [
        "trafo3w:0: loss_side must be hv, mv or lv"
    ]
    net = three_windings(loss_side="lv")
    voltage = nominal(read_grid(net), tol=1e-10).voltage[0][:3]
    assert np.abs(voltage - pandapowers_voltages(net)).max() < 1e-8


def test_a_star_equivalent_without_impedance_names_its_transformer():
    lossless = {f"vkr_{side}_percent": 0.0 for side in ("hv", "mv", "lv")}
    net = three_windings(vk_hv_percent=10.0, vk_mv_percent=9.6, vk_lv_percent=3.6, **lossless)
    assert problems_of(net) == [
        "trafo3w:0: a winding of its star equivalent has no impedance; check its vk_percent"
    ]


def test_unequal_set_points_name_the_bus_and_the_elements():
    import pandapower as pp

    net = ring()
    pp.create_gen(net, 2, 1.0, 1.01)
    pp.create_gen(net, 2, 1.0, 1.03)
    assert problems_of(net) == [
        "unequal set-points vm_pu at bus:2: gen:0 1.01, gen:1 1.03; make them equal"
    ]
    net.gen["vm_pu"] = 1.01
    pp.create_ext_grid(net, 3, 1.02)
    pp.create_switch(net, 2, 3, "b")
    assert problems_of(net) == [
        "unequal set-points vm_pu at bus:3+2: ext_grid:1 1.02, gen:0 1.01, gen:1 1.01; "
        "make them equal"
    ]
    net.gen["vm_pu"] = 1.02
    pp.create_ext_grid(net, 3, 1.02, va_degree=5.0)
    assert "va_degree at bus:3: ext_grid:1 0, ext_grid:2 5" in problems_of(net)[0]


def test_rows_have_whole_numbers_that_are_not_too_high():
    net = ring()
    net.bus.index = ["a", "b", "c", "d"]
    assert problems_of(net)[0].startswith("table bus has a row numbered 'a'")
    net.bus.index = [-1, 1, 2, 3]
    assert problems_of(net)[0].startswith("table bus has a row numbered")
    net = ring()
    net.bus.index = [0, 1, 2, 10**12]
    assert problems_of(net)[0].startswith("bus:1000000000000: number above 10000000; renumber")
    net = ring()
    net["load"] = net.load.iloc[:, [0, 1, 2, 2, *range(3, net.load.shape[1])]]
    assert problems_of(net) == ["table load has two columns p_mw"]
    net["load"] = 5
    assert problems_of(net) == ["load is no table"]


def test_a_dc_line_that_gains_power_is_warned_of():
    import pandapower as pp

    net = ring()
    pp.create_dcline(net, 0, 2, 0.1, 0.0, -0.05, 1.02, 1.0)
    with pytest.warns(GridshiftWarning, match=r"dcline:0: the losses are negative; 0.05 MW"):
        read_grid(net)


@pytest.mark.parametrize(("step", "percent"), [(20.0, 100), (30.0, 150)])
def test_a_tap_that_leaves_no_voltage_is_refused_by_name(step, percent):
    net = tapped()
    net.trafo["tap_side"], net.trafo["tap_changer_type"] = "hv", "Ratio"
    net.trafo["tap_neutral"], net.trafo["tap_pos"], net.trafo["tap_step_percent"] = 0, -5, step
    (problem,) = problems_of(net)
    assert problem.startswith(f"trafo:0: tap_pos -5 takes {percent} % off the winding's voltage;")


def test_a_table_without_rows_and_columns_is_an_empty_one():
    import pandas as pd

    net = ring()
    net.load = pd.DataFrame()
    assert read_grid(net).num_loads == 0


def test_a_rated_current_of_0_is_no_rating_and_a_warning_says_so():
    net = ring()
    net.line.loc[net.line.index[0], "max_i_ka"] = 0.0
    with pytest.warns(GridshiftWarning, match=r"line:0: max_i_ka is 0, which is taken as no"):
        network = read_grid(net)
    assert network.branch_rated.tolist() == [False] + [True] * (len(net.line) - 1)
