"""pandapower networks come out as pandapower solves them: voltages, equations and loading."""

import random
import subprocess
import sys
import warnings
from functools import cache

import numpy as np
import pytest

from gridshift.errors import GridshiftWarning, OutageError
from gridshift.grid.contingency import branch_loading, cut_off_buses, enumerate_outages
from gridshift.grid.powerflow import nominal
from gridshift.grid.readers import builtin_names, read_grid
from gridshift.grid.readers.pandapower_network import network_from_pandapower
from tests.reference import pandapower_equations as reference

TOLERANCE = 1e-8
"""Complex voltage and mismatch, p.u.; both sides are solved to 1e-10, the issue asks for 1e-8."""


@cache
def grid(name):
    return read_grid(name)


def solved(network):
    return nominal(network, tol=1e-10).require_converged().voltage[0]


CASES_AND_OUTAGES = [
    ("case14", ["line:3", "trafo:1"]),
    ("case30", ["line:9", "line:28"]),
    ("case57", ["line:5", "trafo:3"]),
    ("case118", ["line:34", "line:128", "trafo:7"]),
    ("case300", ["line:228", "trafo:12"]),
    ("case1354pegase", ["line:100", "trafo:50"]),
    ("case6495rte", []),  # six external grids
    ("case9241pegase", []),
    ("example_multivoltage", ["line:0", "trafo3w:0", "impedance:0"]),
    ("mv_oberrhein", ["line:3"]),
    ("ieee_european_lv_asymmetric", []),
    ("simple_mv_open_ring_net", []),
]


@pytest.mark.parametrize(("name", "outages"), CASES_AND_OUTAGES)
def test_voltages_solve_pandapowers_own_equations_and_agree_with_its_solution(name, outages):
    network = grid(name)
    for outage in [None, *outages]:
        net, left = reference.built(name), network
        if outage:
            net, left = reference.switched_off(net, outage), network.without((outage,))
            if len(left.cut_off_buses()):
                continue  # pandapower leaves the rest of the grid; we report an island
        reference.run(net)
        voltage = solved(left)
        live = [
            i for i, label in enumerate(left.bus_labels) if "trafo3w" not in label or not outage
        ]
        labels = [left.bus_labels[i] for i in live]
        assert reference.residual(net, labels, voltage[live]) < TOLERANCE
        assert np.abs(voltage[live] - reference.voltages(net, labels)).max() < TOLERANCE


@pytest.mark.parametrize(("name", "outages"), CASES_AND_OUTAGES[:6])
def test_voltages_agree_with_lightsim2grid(name, outages):
    pytest.importorskip("lightsim2grid")
    for outage in [None, *outages[:1]]:
        net, left = reference.built(name), grid(name)
        if outage:
            net, left = reference.switched_off(net, outage), left.without((outage,))
        reference.run(net, lightsim2grid=True)
        difference = solved(left) - reference.voltages(net, left.bus_labels)
        assert np.abs(difference).max() < TOLERANCE


@pytest.mark.parametrize("name", ["case30", "case39", "example_multivoltage", "mv_oberrhein"])
def test_loading_is_pandapowers_loading_percent(name):
    network, net = grid(name), reference.run(reference.built(name))
    loading = branch_loading(network, solved(network))
    for label, rows in network.elements.items():
        kind, _, index = label.partition(":")
        if "loading_percent" in net[f"res_{kind}"]:
            expected = net[f"res_{kind}"].loading_percent[int(index)] / 100
            assert loading[list(rows)].max() == pytest.approx(expected, rel=1e-7, abs=1e-12), label


@pytest.mark.parametrize(("name", "count"), [("case30", 38), ("case118", 166), ("case300", 253)])
def test_single_lines_that_do_not_island_number_as_published(name, count):
    network = grid(name)
    outages = enumerate_outages(network, "lines")
    assert sum(not len(cut) for cut in cut_off_buses(network, outages)) == count


def test_parallel_circuits_of_case118_are_elements_of_their_own():
    network = grid("case118")
    lines = [r for label, (r,) in network.elements.items() if label.startswith("line:")]
    ends = [frozenset((network.branch_from[r], network.branch_to[r])) for r in lines]
    pairs = [(a, b) for i, a in enumerate(lines) for j, b in enumerate(lines)
             if i < j and ends[i] == ends[j]]  # fmt: skip
    assert len(pairs) == 7
    for pair in pairs:
        for row in pair:
            left = network.without((network.branch_labels[row],))
            assert not len(left.cut_off_buses())
            assert left.branch_in_service[list(pair)].sum() == 1


def test_case118_and_case300_have_no_real_ratings_and_case30_has():
    assert not grid("case118").branch_rated.any()
    assert not grid("case300").branch_rated.any()
    assert grid("case30").branch_rated.all()
    # The placeholders stay usable for ranking by loading.
    assert np.isfinite(grid("case118").branch_rating).all()


def test_outages_of_a_grid_with_elements_already_out_work():
    network = grid("case33bw")
    out = [label for label, (r,) in network.elements.items() if not network.branch_in_service[r]]
    assert out == ["line:32", "line:33", "line:34", "line:35", "line:36"]
    with pytest.raises(OutageError, match="line:34 is already out of service in case33bw"):
        network.without(("line:34",))
    # The feeder is radial: every line in service cuts something off.
    assert all(len(network.without((f"line:{i}",)).cut_off_buses()) for i in range(32))


@pytest.fixture(scope="module")
def everything():
    """A small net with one of everything that a Network can hold, invented."""
    import pandapower as pp

    net = pp.create_empty_network(sn_mva=50.0)
    hv = [pp.create_bus(net, 110.0, index=i, max_vm_pu=1.1, min_vm_pu=0.9) for i in (7, 3, 12, 4)]
    mv = [pp.create_bus(net, 20.0, index=i) for i in (20, 21, 22, 23, 24)]
    lv = pp.create_bus(net, 10.0, index=30)
    pp.create_ext_grid(net, 7, vm_pu=1.02, va_degree=10.0)
    pp.create_ext_grid(net, 24, vm_pu=1.0, va_degree=-135.0)
    line = "149-AL1/24-ST1A 110.0"
    for a, b in ((7, 3), (3, 12), (12, 7), (7, 3)):
        pp.create_line(net, a, b, 30.0, line, parallel=2)
    cable = "NA2XS2Y 1x185 RM/25 12/20 kV"
    for a, b in ((20, 21), (21, 22), (22, 20), (20, 22), (21, 23), (20, 21), (23, 24)):
        pp.create_line(net, a, b, 4.0, cable, df=0.9)
    pp.create_transformer(net, 12, 20, "40 MVA 110/20 kV", tap_pos=3, parallel=2)  # 150 degrees
    pp.create_transformer(net, 12, 20, "40 MVA 110/20 kV", in_service=False)
    pp.create_transformer3w(net, 3, 22, 30, "63/25/38 MVA 110/20/10 kV", tap_pos=-2)
    net.trafo3w[["shift_mv_degree", "shift_lv_degree"]] = 150.0
    pp.create_transformer_from_parameters(
        net, 21, lv, 10.0, 20.0, 10.0, 0.5, 8.0, 10.0, 0.1, tap_pos=1, tap_neutral=0, tap_side="hv",
        tap_step_percent=2.0, tap_step_degree=0.5, tap_changer_type="Ratio",
    )  # fmt: skip
    pp.create_load(net, 21, 5.0, 1.0, scaling=0.8)
    pp.create_load(net, 21, 2.0, 0.5, in_service=False)
    pp.create_load(net, lv, 3.0, 1.0)
    pp.create_load(net, 4, 4.0, 1.0)
    pp.create_asymmetric_load(net, 22, 0.2, 0.3, 0.4, 0.05, 0.06, 0.07)
    pp.create_gen(net, 3, 10.0, 1.01)
    pp.create_gen(net, 3, 5.0, 1.01, scaling=0.5)
    pp.create_gen(net, 7, 3.0, 1.02)
    pp.create_gen(net, 12, 3.0, 1.05, in_service=False)
    pp.create_sgen(net, 22, 2.0, -0.3, scaling=0.9)
    pp.create_storage(net, 23, 0.4, 1.0, q_mvar=0.1)
    pp.create_motor(net, 23, 0.3, 0.85, efficiency_percent=95, loading_percent=80)
    pp.create_shunt(net, 20, -1.5, 0.02, step=2)
    pp.create_ward(net, 21, 0.1, 0.05, 0.2, 0.1)
    pp.create_xward(net, 12, 1.0, 0.5, 0.3, 0.2, 0.5, 2.0, 1.01)
    pp.create_impedance(net, 20, 22, 0.02, 0.08, 40.0, rtf_pu=0.03, xtf_pu=0.09)
    pp.create_dcline(net, 7, 22, 2.0, 1.0, 0.05, 1.02, 1.0)
    pp.create_switch(net, 3, 4, "b")  # fuses 3 and 4
    pp.create_switch(net, 22, 6, "l", closed=False)  # line:6 stays on at its other end
    pp.create_switch(net, 20, 7, "l", closed=False)  # line:7 is off at both ends
    pp.create_switch(net, 22, 7, "l", closed=False)
    b = pp.create_bus(net, 20.0, index=40)
    pp.create_switch(net, 23, b, "b", z_ohm=0.4)
    pp.create_load(net, b, 0.5, 0.1)
    net.line.loc[9, "in_service"] = False
    assert len(hv) + len(mv) == 9
    return net


def test_one_of_everything_is_solved_as_pandapower_solves_it(everything):
    import copy

    network = network_from_pandapower(everything, name="everything", origin="test")
    net = reference.run(copy.deepcopy(everything))
    # dcline generators are gone after runpp; its equations are compared by voltages alone.
    voltage = solved(network)
    assert np.abs(voltage - reference.voltages(net, network.bus_labels)).max() < TOLERANCE
    loading = branch_loading(network, voltage)
    for kind in ("line", "trafo", "trafo3w"):
        for index, percent in net[f"res_{kind}"].loading_percent.items():
            expected = 0 if np.isnan(percent) else percent / 100  # pandapower has NaN where off
            rows = list(network.elements[f"{kind}:{index}"])
            assert loading[rows].max() == pytest.approx(expected, rel=1e-7, abs=1e-12)


def test_labels_are_the_sources_own(everything):
    network = network_from_pandapower(everything, name="everything", origin="test")
    assert {"bus:3+4", "bus:trafo3w:0", "bus:xward:0", "bus:40"} <= set(network.bus_labels)
    assert network.load_labels == (
        "load:0", "load:2", "load:3", "load:4", "asymmetric_load:0"
    )  # fmt: skip
    assert set(network.gen_labels) == {
        "ext_grid:0", "ext_grid:1", "gen:0", "gen:1", "gen:2", "dcline:0.to", "dcline:0.from",
        "xward:0",
    }  # fmt: skip
    assert len(network.elements["trafo3w:0"]) == 3
    off = {
        e for e, rows in network.elements.items() if not network.branch_in_service[list(rows)].any()
    }
    assert off == {"line:7", "line:9", "trafo:1"}
    assert network.rating_kind == "current"


def test_every_outage_of_one_of_everything_is_pandapowers(everything):
    import copy

    network = network_from_pandapower(everything, name="everything", origin="test")
    with pytest.raises(OutageError, match="no element xward:0"):
        network.without(("xward:0",))
    for element, rows in network.elements.items():
        if not network.branch_in_service[list(rows)].any():
            with pytest.raises(OutageError, match="already out of service"):
                network.without((element,))
            continue
        left = network.without((element,))
        net = reference.run(reference.switched_off(copy.deepcopy(everything), element))
        cut = {network.bus_labels[b] for b in left.cut_off_buses()}
        assert not (cut and element.startswith("trafo3w"))
        dead = {f"bus:{i}" for i in net.bus.index[net.res_bus.vm_pu.isna()]}
        assert cut == dead
        if cut:
            continue
        voltage = solved(left)
        for i, label in enumerate(network.bus_labels):
            if label != f"bus:{element}":
                number = (
                    int(label.removeprefix("bus:").split("+")[0]) if label[4].isdigit() else None
                )
                if number is not None:
                    row = net.res_bus.loc[number]
                    expected = row.vm_pu * np.exp(1j * np.deg2rad(row.va_degree))
                    assert abs(voltage[i] - expected) < TOLERANCE, (element, label)
        with pytest.raises(OutageError, match="already out"):
            left.without((element,))


def test_buses_without_supply_are_left_out_and_their_load_is_named(everything):
    import copy

    net = copy.deepcopy(everything)
    net.ext_grid.loc[1, "in_service"] = False
    net.line.loc[[8, 10], "in_service"] = False  # buses 23 and 40 hang on them
    with pytest.warns(GridshiftWarning, match=r"1 load drawing 0.5 MW .*bus:40"):
        network = network_from_pandapower(net, name="cut", origin="test")
    assert not {"bus:23", "bus:40"} & set(network.bus_labels)
    with pytest.raises(OutageError, match="line:8 is already out"):
        network.without(("line:8",))
    reference.run(net)
    assert np.abs(solved(network) - reference.voltages(net, network.bus_labels)).max() < TOLERANCE


def test_reading_leaves_the_net_it_is_given_as_it_is(everything):
    tables = {kind: everything[kind].copy() for kind in ("gen", "bus", "line", "load")}
    network_from_pandapower(everything, name="everything", origin="test")
    assert all(everything[kind].equals(table) for kind, table in tables.items())


def test_a_net_written_as_json_reads_as_the_same_grid(tmp_path):
    import pandapower

    path = tmp_path / "case14.json"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pandapower.to_json(reference.built("case14"), str(path))
    assert read_grid(path).digest == grid("case14").digest


def test_built_in_names_are_the_functions_that_need_no_argument():
    import inspect

    import pandapower.networks

    no_argument = {
        name
        for name, function in inspect.getmembers(pandapower.networks, inspect.isfunction)
        if not name.startswith("_")
        and all(
            p.default is not p.empty or p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
            for p in inspect.signature(function).parameters.values()
        )
    }
    # These two are exposed there as well, but make no grid.
    assert set(builtin_names()) == no_argument - {"create_empty_network", "pp_elements"}


def test_names_are_known_without_importing_pandapower():
    code = (
        "import sys; from gridshift.grid.readers import builtin_names; "
        "assert 'case118' in builtin_names(); sys.exit('pandapower' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_random_networks_are_the_same_every_time_and_leave_the_random_state_alone():
    random.seed(5)
    state = random.getstate()
    first = read_grid("create_kerber_landnetz_kabel_1")
    assert random.getstate() == state
    random.seed(6)
    assert read_grid("create_kerber_landnetz_kabel_1").digest == first.digest


def test_a_base_case_that_diverges_is_read_and_reported():
    solution = nominal(grid("case11_iwamoto"))
    assert not solution.solved.any()
    assert np.isnan(solution.voltage).all()
