"""What is cut off: demand and generation apart, whatever element draws or gives the power."""

import warnings

import numpy as np
import pandapower as pp
import pandapower.networks
import pytest

from gridshift.errors import GridshiftWarning
from gridshift.grid.contingency import assess
from gridshift.grid.network import BusKind
from gridshift.grid.powerflow import nominal, solve
from gridshift.grid.prepared import prepare
from gridshift.grid.readers import read_grid
from gridshift.grid.readers.pandapower_network import network_from_pandapower
from gridshift.grid.scenarios import sample_loads
from gridshift.grid.supplied import standing_apart, supplied_part
from tests.reference import pandapower_equations as reference
from tests.reference.grids import branch_two_port, make_network
from tests.reference.newton import dense_newton

STD = {"r_ohm_per_km": 0.1, "x_ohm_per_km": 0.4, "c_nf_per_km": 10.0, "max_i_ka": 1.0}


def tree():
    """External grid at bus 0; path 0-1-2, and from 2 to 3 and to 4 (lines 2 and 3); 110 kV."""
    net = pp.create_empty_network()
    buses = [pp.create_bus(net, 110.0) for _ in range(5)]
    pp.create_ext_grid(net, buses[0])
    for start, end in ((0, 1), (1, 2), (2, 3), (2, 4)):
        pp.create_line_from_parameters(net, start, end, length_km=5.0, **STD)
    pp.create_load(net, 1, 20.0, 5.0)
    return net


def network_of(net):
    with warnings.catch_warnings():
        warnings.simplefilter("error", GridshiftWarning)
        return network_from_pandapower(net, name="tree", origin="test")


def cut(net, outage):
    found = assess(network_of(net), (outage,))
    return found.mw_cut_off, found.mw_generation_cut_off


def test_generation_beside_a_load_does_not_hide_that_its_supply_is_lost():
    net = tree()
    pp.create_load(net, 3, 50.0)
    pp.create_load(net, 4, -60.0)
    assert cut(net, "line:1") == pytest.approx((50.0, 60.0))
    assert cut(net, "line:2") == pytest.approx((50.0, 0.0))
    assert cut(net, "line:3") == pytest.approx((0.0, 60.0))


def asymmetric(create, net, bus, *powers):
    create(net, bus, **dict(zip(("p_a_mw", "p_b_mw", "p_c_mw"), powers, strict=True)))


ELEMENTS = {
    "load": (lambda net: pp.create_load(net, 4, 2.0, scaling=1.5), 3, 0),
    "load that gives": (lambda net: pp.create_load(net, 4, -2.0), 0, 2),
    "motor": (
        lambda net: pp.create_motor(
            net, 4, pn_mech_mw=0.9, cos_phi=0.9, efficiency_percent=90.0, loading_percent=50.0,
            scaling=2.0,
        ), 1, 0,
    ),
    "ward": (
        lambda net: pp.create_ward(net, 4, ps_mw=1.0, qs_mvar=0, pz_mw=0.5, qz_mvar=0), 1.5, 0,
    ),
    "ward of an impedance": (
        lambda net: pp.create_ward(net, 4, ps_mw=0, qs_mvar=0, pz_mw=0.5, qz_mvar=0), 0.5, 0,
    ),
    "ward that gives": (
        lambda net: pp.create_ward(net, 4, ps_mw=-1.0, qs_mvar=0, pz_mw=0, qz_mvar=0), 0, 1,
    ),
    "xward": (
        lambda net: pp.create_xward(
            net, 4, ps_mw=0.4, qs_mvar=0, pz_mw=0.2, qz_mvar=0, r_ohm=1, x_ohm=2, vm_pu=1.0,
        ), 0.6, 0,
    ),
    "charging storage": (lambda net: pp.create_storage(net, 4, p_mw=3.0, max_e_mwh=9), 3, 0),
    "discharging storage": (lambda net: pp.create_storage(net, 4, p_mw=-3.0, max_e_mwh=9), 0, 3),
    "asymmetric load": (
        lambda net: asymmetric(pp.create_asymmetric_load, net, 4, 0.5, 0.25, 0.25), 1, 0,
    ),
    "asymmetric static generator": (
        lambda net: asymmetric(pp.create_asymmetric_sgen, net, 4, 0.5, 0.25, 0.25), 0, 1,
    ),
    "static generator": (lambda net: pp.create_sgen(net, 4, 4.0, scaling=0.5), 0, 2),
    "static generator that draws": (lambda net: pp.create_sgen(net, 4, -4.0), 4, 0),
    "generator": (lambda net: pp.create_gen(net, 4, 5.0, scaling=0.8), 0, 4),
    "pump": (lambda net: pp.create_gen(net, 4, -5.0), 5, 0),
    "dcline from there": (
        lambda net: pp.create_dcline(net, 4, 0, p_mw=2.0, loss_percent=0, loss_mw=0.5,
                                     vm_from_pu=1, vm_to_pu=1), 2, 0,
    ),
    "dcline to there": (
        lambda net: pp.create_dcline(net, 0, 4, p_mw=2.0, loss_percent=0, loss_mw=0.5,
                                     vm_from_pu=1, vm_to_pu=1), 0, 1.5,
    ),
    "capacitor": (lambda net: pp.create_shunt(net, 4, q_mvar=-3.0), 0, 0),
}  # fmt: skip
"""What is put at bus 4, and the MW that it draws and gives there, by its definition."""


@pytest.mark.parametrize("name", ELEMENTS)
def test_every_kind_of_element_is_demand_or_generation_by_what_it_does(name):
    put, draws, gives = ELEMENTS[name]
    net = tree()
    put(net)
    assert cut(net, "line:3") == pytest.approx((draws, gives), abs=1e-12)
    pp.create_sgen(net, 4, 7.0)
    pp.create_storage(net, 4, 6.0, max_e_mwh=9)
    assert cut(net, "line:3") == pytest.approx((draws + 6, gives + 7), abs=1e-9)


@pytest.mark.parametrize("name", ELEMENTS)
def test_every_kind_of_element_is_named_with_its_power_when_it_is_left_out(name):
    put, draws, gives = ELEMENTS[name]
    net = tree()
    put(net)
    (kind,) = {k for k in ("load", "motor", "ward", "xward", "storage", "asymmetric_load",
                           "asymmetric_sgen", "sgen", "gen", "dcline", "shunt")
               if len(net[k]) > (k == "load")}  # fmt: skip
    net.line.loc[3, "in_service"] = False
    with pytest.warns(GridshiftWarning) as met:
        network = network_from_pandapower(net, name="tree", origin="test")
    (text,) = [str(w.message) for w in met]
    power = f" drawing {draws:.1f} MW" if draws else f" producing {gives:.1f} MW" if gives else ""
    assert f"left out are 1 {kind}{power} ({kind}:{1 if kind == 'load' else 0}" in text
    assert text.endswith("(bus:4)")
    assert len(network.bus_labels) == 4


def test_what_is_out_of_service_is_neither_cut_off_nor_left_out():
    net = tree()
    for put, _, _ in ELEMENTS.values():
        put(net)
    for kind in ("load", "motor", "ward", "xward", "storage", "asymmetric_load",
                 "asymmetric_sgen", "sgen", "gen", "dcline", "shunt"):  # fmt: skip
        net[kind]["in_service"] = False
    assert cut(net, "line:3") == (0, 0)
    net.line.loc[3, "in_service"] = False
    network_of(net)  # without a warning


def test_demand_and_generation_are_the_sums_of_pandapowers_results():
    net = tree()
    for put, _, _ in ELEMENTS.values():
        if put is not ELEMENTS["xward"][0]:  # it would hold another voltage at its bus
            put(net)
    net.bus.loc[4, "vn_kv"] = 110.0
    network = network_of(net)
    pp.runpp(net, numba=False)
    powers = [-net.res_load.p_mw, -net.res_storage.p_mw, -net.res_motor.p_mw, net.res_sgen.p_mw,
              net.res_gen.p_mw, -net.res_asymmetric_load.p_mw, net.res_asymmetric_sgen.p_mw,
              -net.res_dcline.p_from_mw, -net.res_dcline.p_to_mw]  # fmt: skip
    buses = [net.load.bus, net.storage.bus, net.motor.bus, net.sgen.bus, net.gen.bus,
             net.asymmetric_load.bus, net.asymmetric_sgen.bus, net.dcline.from_bus,
             net.dcline.to_bus]  # fmt: skip
    power, bus = np.concatenate(powers), np.concatenate(buses)
    wards = np.concatenate([net.ward.ps_mw, net.ward.pz_mw])  # at 1 p.u., not at the solution
    power = np.concatenate([power, -wards])
    bus = np.concatenate([bus, net.ward.bus, net.ward.bus])
    at = (bus == 4) & np.isfinite(power)
    row = network.bus_labels.index("bus:4")
    demand, generation = network.bus_demand[row], network.bus_generation[row]
    assert demand == pytest.approx(-power[at & (power < 0)].sum() / network.base_mva)
    assert generation == pytest.approx(power[at & (power > 0)].sum() / network.base_mva)


def test_generators_and_unsupplied_islands_of_several_buses_are_told_in_one_warning():
    net = tree()
    for _ in range(7):
        pp.create_load(net, 3, 1.0)
    pp.create_load(net, 4, -60.0)
    pp.create_gen(net, 4, 0.0)
    pp.create_ext_grid(net, 3, in_service=True)
    net.bus.loc[3, "in_service"] = False
    net.line.loc[3, "in_service"] = False
    with pytest.warns(GridshiftWarning) as met:
        network_from_pandapower(net, name="tree", origin="test")
    (text,) = [str(w.message) for w in met]
    assert text == (
        "tree: left out are 7 load drawing 7.0 MW (load:1, load:2, load:3, load:4, load:5 and 2 "
        "more), 1 load producing 60.0 MW (load:8), 1 ext_grid (ext_grid:1), 1 gen (gen:0); their "
        "buses are out of service or have no path to an external grid (bus:3, bus:4)"
    )


# --- MATPOWER ------------------------------------------------------------------------------

CASE = """function mpc = cut
mpc.version = '2'; mpc.baseMVA = 100;
mpc.bus = [
 1 3 10 0 0 0 1 1 0 110 1 1.1 0.9;
 2 1 50 0 0 0 1 1 0 110 1 1.1 0.9;
 3 1 -60 0 3 0 1 1 0 110 1 1.1 0.9;
 4 {kind} 7 0 2 5 1 1 0 110 1 1.1 0.9;
 5 2 0 0 0 0 1 1 0 110 1 1.1 0.9;
];
mpc.gen = [
 1 0 0 99 -99 1 100 1 999 0;
 2 30 0 99 -99 1 100 1 999 0;
 2 -20 0 99 -99 1 100 1 999 0;
 5 40 0 99 -99 1 100 1 999 0;
 5 -15 0 99 -99 1 100 1 999 0;
 4 11 0 99 -99 1 100 1 999 0;
];
mpc.branch = [
 1 2 0.001 0.01 0 0 0 0 0 0 1 -360 360;
 1 3 0.001 0.01 0 0 0 0 0 0 1 -360 360;
 1 4 0.001 0.01 0 0 0 0 0 0 1 -360 360;
 1 5 0.001 0.01 0 0 0 0 0 0 1 -360 360;
];
mpc.dcline = [ 3 4 1 8 0 0 0 1 1 0 10 -9 9 -9 9 0.5 0.25; ];
"""


def read_case(tmp_path, kind):
    (tmp_path / "cut.m").write_text(CASE.format(kind=kind))
    return read_grid(tmp_path / "cut.m")


def test_matpowers_negative_demand_is_generation_and_negative_generation_demand(tmp_path):
    network = read_case(tmp_path, 1)
    found = [assess(network, (f"branch:{row}",)) for row in (1, 2, 3, 4)]
    # bus 2: PD 50, generators +30 and -20 at a PQ bus; bus 3: PD -60, GS 3, sends 8 over the dcline
    # bus 4: PD 7, GS 2, generator 11, receives 8 - 0.5 - 0.25*8 = 5.5; bus 5: PV, +40 and -15
    assert [f.mw_cut_off for f in found] == pytest.approx([70, 11, 9, 15])
    assert [f.mw_generation_cut_off for f in found] == pytest.approx([30, 60, 16.5, 40])


def test_what_hangs_on_isolated_matpower_buses_is_named_with_its_power(tmp_path):
    told = (
        r"cut: left out are 1 load drawing 7.0 MW \(load:4\), 1 shunt drawing 2.0 MW \(shunt:4\), "
        r"1 gen producing 11.0 MW \(gen:6\), 1 dcline producing 5.5 MW \(dcline:1.to\); their "
        r"buses are isolated \(type 4\) \(bus:4\)"
    )
    with pytest.warns(GridshiftWarning, match=told):
        read_case(tmp_path, 4)


# --- the part that stays supplied ----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "element"),
    [("case9", "line:6"), ("case118", "line:6"), ("example_multivoltage", "trafo3w:0"),
     ("case300", "line:205"), ("case300", "trafo:12")],
)  # fmt: skip
def test_the_supplied_part_is_what_pandapower_goes_on_with(name, element):
    left = read_grid(name).without((element,))
    net = reference.run(reference.switched_off(reference.built(name), element))
    part = supplied_part(left)
    dead = {f"bus:{i}" for i in net.bus.index[net.res_bus.vm_pu.isna() & net.bus.in_service]}
    gone = set(left.bus_labels) - set(part.network.bus_labels)
    assert dead
    assert {label for label in gone if "trafo3w" not in label} == dead
    voltage = nominal(part.network, tol=1e-10).require_converged().voltage[0]
    labels = [label for label in part.network.bus_labels if "trafo3w" not in label]
    ours = [voltage[part.network.bus_labels.index(label)] for label in labels]
    # both sides are solved to 1e-10 p.u. of mismatch
    assert np.abs(np.array(ours) - reference.voltages(net, labels)).max() < 1e-8
    whole = part.bus_values(np.abs(voltage))
    assert np.isnan(whole).sum() == len(gone)


def test_scenarios_of_the_part_are_those_of_its_loads():
    line = branch_two_port(0.01, 0.05)
    kinds = [BusKind.SLACK, BusKind.PQ, BusKind.PQ, BusKind.PV]
    loads = [(3, -0.1 + 0j), (1, 0.3 + 0.1j), (2, 0.2 + 0j), (1, 0.1 + 0j)]
    network = make_network(
        kinds, [(0, 3, line), (0, 1, line), (1, 2, line)], loads, gens=[(0, 0.0), (3, 0.5)]
    )
    part = supplied_part(network.without(("line:0",)))
    assert part.network.bus_labels == ("bus:0", "bus:1", "bus:2")
    assert part.network.elements == {"line:1": (0,), "line:2": (1,)}
    assert part.network.gen_bus.tolist() == [0]
    drawn = sample_loads(network, np.random.default_rng(0), 20, spread=0.5)
    small = make_network(kinds[:3], [(0, 1, line), (1, 2, line)], loads[1:], gens=[(0, 0.0)])
    expected = solve(small, type(drawn)(load_p=drawn.load_p[:, 1:], load_q=drawn.load_q[:, 1:]))
    found = solve(part.network, drawn.of_loads(part.loads))
    assert np.abs(found.voltage - expected.voltage).max() < 1e-10


def splits(grid, most=6):
    """Outages of single branches that cut buses off but leave some to solve, evenly chosen."""
    network = read_grid(grid)
    found = []
    for label in network.elements:
        left = network.without([label])
        if 0 < len(left.cut_off_buses()) < network.num_buses - len(network.slack):
            found.append(left)
    return network, found[:: -(-len(found) // most)]


@pytest.mark.parametrize("grid", ["case57", "case89pegase", "case300", "create_cigre_network_mv"])
def test_where_buses_stand_apart_the_rest_has_the_voltages_of_a_grid_of_its_own(grid):
    network, outages = splits(grid)
    loads = sample_loads(network, np.random.default_rng(1), 5, spread=0.2, regime="fixed")
    for left in outages:
        apart, part = standing_apart(left), supplied_part(left)
        prepared = prepare(apart)
        assert prepared.solved
        assert not len(prepared.cut_off)
        found = prepared.engine.chord_rows(prepared.topology, loads.load_p, loads.load_q, tol=1e-10)
        good = found.mismatch <= 1e-10 * network.tolerance_base
        assert good.any()
        voltage = found.voltage.view(np.complex128)
        for row in np.flatnonzero(good):
            demand = loads.load_power[row][part.loads]
            start = part.network.v_start
            theirs, converged = dense_newton(part.network, start, demand, tol=1e-11)
            assert converged
            assert np.abs(voltage[row, part.buses] - theirs).max() < 1e-8
        before = prepare(network).voltage
        assert np.array_equal(voltage[0, [*apart.apart]], before[[*apart.apart]])
