"""Distributed slack: pandapower and a textbook Newton agree, limits hold, rows stand alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridshift.errors import GridshiftError
from gridshift.exchange.state import write_state
from gridshift.grid.after_outage import after_outage
from gridshift.grid.distributed_slack import DistributedSlack
from gridshift.grid.network import BusKind
from gridshift.grid.powerflow import RowStatus, nominal, solve
from gridshift.grid.prepared import prepare
from gridshift.grid.reactive import bus_limits
from gridshift.grid.readers import read_grid
from gridshift.grid.readers.pandapower_network import network_from_pandapower
from gridshift.grid.scenarios import LoadScenarios, named_rng, nominal_loads, sample_loads
from gridshift.grid.slack_shares import SlackShares, common_factor
from gridshift.grid.topology import settled
from tests.reference.grids import random_network
from tests.reference.lightsim import lightsim_with_weights
from tests.reference.newton import dense_distributed
from tests.reference.pandapower_equations import built, run, switched_off, voltages


def drawn(network, num_rows, spread=0.3):
    rng = named_rng(network.name, "distributed slack")
    return sample_loads(network, rng, num_rows, spread=spread, regime="fixed")


def with_weights(name, rule):
    """A pandapower grid with factors and without active limits, which `runpp` doesn't keep."""
    net = built(name)
    for table, slack in ((net.gen, False), (net.ext_grid, True)):
        number = np.arange(len(table))
        table["slack_weight"] = {
            "equal": np.ones(len(table)),
            "by schedule": np.full(1, 50.0) if slack else np.maximum(table.get("p_mw", 0), 0),
            "not the slack": np.zeros(1) if slack else number % 2.0,
            "any": 0.3 + np.sin(1 + number) ** 2,
        }[rule]
        table["min_p_mw"], table["max_p_mw"] = np.nan, np.nan
    return net


@pytest.mark.parametrize("rule", ["equal", "by schedule", "not the slack", "any"])
@pytest.mark.parametrize(
    ("name", "outage"), [("case14", ""), ("case14", "line:2"), ("case30", "line:9"),
                         ("case118", ""), ("case118", "line:20")],
)  # fmt: skip
def test_voltages_are_pandapowers(name, outage, rule):
    net = with_weights(name, rule)
    network = network_from_pandapower(net, name=name, origin="test")
    if outage:
        net, network = switched_off(net, outage), network.without([outage])
    run(net, distributed_slack=True)
    found = solve(network, nominal_loads(network), tol=1e-10, distributed_slack="given")
    expected = voltages(net, network.bus_labels)
    np.testing.assert_allclose(found.voltage[0], expected, rtol=0, atol=1e-8)
    given = dict(zip(network.gen_labels, found.gen_p[0] * network.base_mva, strict=True))
    for kind, table in (("gen", net.res_gen), ("ext_grid", net.res_ext_grid)):
        for index, p_mw in table.p_mw.items():  # both programs keep balance to 1e-8 p.u.
            assert given[f"{kind}:{index}"] == pytest.approx(p_mw, abs=1e-5)


@pytest.mark.parametrize(("name", "outage"), [("case39", "line:4"), ("case118", "line:20")])
def test_voltages_with_reactive_limits_are_pandapowers(name, outage):
    net = with_weights(name, "any")
    network = network_from_pandapower(net, name=name, origin="test").without([outage])
    net = switched_off(net, outage)
    run(net, distributed_slack=True, enforce_q_lims=True)
    found = solve(
        network, nominal_loads(network), tol=1e-10, distributed_slack="given", q_limits=True
    )
    assert found.at_limit.any()
    expected = voltages(net, network.bus_labels)
    np.testing.assert_allclose(found.voltage[0], expected, rtol=0, atol=1e-8)


@pytest.mark.filterwarnings("ignore")  # lightsim2grid tells what it fills in
def test_voltages_are_lightsim2grids():
    net = with_weights("case118", "any")
    network = network_from_pandapower(net, name="case118", origin="test")
    model = lightsim_with_weights(run(net))
    expected = model.ac_pf(np.ones(network.num_buses, complex), 30, 1e-11)
    found = solve(network, nominal_loads(network), tol=1e-10, distributed_slack="given")
    # the other program may hold the angle of another bus
    turned = expected * np.exp(1j * np.angle(found.voltage[0, 0] / expected[0]))
    np.testing.assert_allclose(found.voltage[0], turned, rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_random_grids_agree_with_a_newton_that_has_the_imbalance_as_unknown(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, 9, extra=4)
    network = replace(network, gen_weight=rng.uniform(0.1, 3, len(network.gen_bus)))
    loads = drawn(network, 5)
    found = solve(network, loads, tol=1e-11, distributed_slack="given")
    assert found.solved.all()
    factor = network.gen_weight / network.gen_weight.sum()
    for row in range(5):
        voltage, imbalance, converged = dense_distributed(
            network, network.v_start, loads.load_power[row], network.gen_p, factor
        )
        assert converged
        # 1e-11 of the tolerance base, times the condition of these grids
        np.testing.assert_allclose(found.voltage[row], voltage, rtol=0, atol=1e-9)
        expected = network.gen_p + factor * imbalance
        np.testing.assert_allclose(found.gen_p[row], expected, rtol=0, atol=1e-9)


def assert_balanced(network, loads, solution):
    """Active power of every bus from the voltages and from what each generator is said to give."""
    ok = solution.solved
    v = solution.voltage[ok]
    power = v * (network.admittance @ v.T).T.conj()
    given = np.tile(network.bus_fixed.real, (len(v), 1))
    np.subtract.at(given.T, network.load_bus, loads.load_p[ok].T)
    np.add.at(given.T, network.gen_bus, solution.gen_p[ok].T)
    limit = 1.01e-8 * network.tolerance_base  # rounding of sums on top of the tolerance
    assert np.abs(power.real - given).max() <= limit
    rest = power.imag - network.bus_fixed.imag
    np.add.at(rest.T, network.load_bus, loads.load_q[ok].T)
    assert np.abs(rest[:, network.pq]).max() <= limit
    return given


@pytest.mark.parametrize("by", ["generation", "headroom"])
def test_generators_share_by_the_rule_and_stop_at_their_limits(case118, by):
    room = 0.6  # p.u.; rows leave up to 10 open, which 54 generators share
    slack = case118.gen_bus == case118.slack[0]
    v = nominal(case118).voltage[0]
    schedule = case118.gen_p.copy()
    schedule[slack] = (v * (case118.admittance @ v).conj()).real[case118.slack] - (
        case118.injected(case118.load_power).real[case118.slack] - schedule[slack].sum()
    )
    low, high = schedule - room, schedule + 0.5 * room
    network = replace(case118, gen_p_min=low, gen_p_max=high, outage_of=None)
    shift = np.repeat([-0.3, -0.1, 0.0, 0.1, 0.3], 8)[:, None]
    base = drawn(network, 40, spread=0.1)
    loads = LoadScenarios(load_p=base.load_p * (1 + shift), load_q=base.load_q)
    found = solve(network, loads, distributed_slack=by)
    assert found.solved.all()
    assert_balanced(network, loads, found)
    moved = found.gen_p - schedule
    total = moved.sum(1, keepdims=True)
    others = ~slack
    at_limit = (found.gen_p >= high - 1e-9) | (found.gen_p <= low + 1e-9)
    assert (found.gen_p[:, others] <= high[others] + 1e-9).all()
    assert (found.gen_p[:, others] >= low[others] - 1e-9).all()
    size = np.maximum(schedule, 0) if by == "generation" else np.ones(len(schedule))
    factor = size / size.sum()
    within = 0
    for row in range(40):
        inside = ~at_limit[row] & (size > 0)
        if inside.sum() < 2:
            continue
        within += 1
        # the slack takes what the others leave to 1e-8 p.u., so it may be off by that
        ratio = moved[row, inside] / size[inside]
        assert np.ptp(ratio) * size[inside].min() < 1e-7
        if not at_limit[row, size > 0].any():
            np.testing.assert_allclose(moved[row], factor * total[row], rtol=0, atol=1e-7)
        assert (moved[row, at_limit[row] & (size > 0)] * total[row] > 0).all()
    assert within >= 16
    if by == "generation":
        assert at_limit[:, size > 0].any()


@pytest.mark.parametrize("by", ["generation", "headroom"])
@pytest.mark.parametrize("outage", [(), ("line:9",)])
def test_rows_need_no_more_chord_steps_than_with_one_slack(case118, by, outage):
    network, loads = case118.without(outage), drawn(case118, 64)
    prepared = prepare(network)
    plain = prepared.engine.chord_rows(prepared.topology, loads.load_p, loads.load_q)
    slack = DistributedSlack.of(network, SlackShares.of(case118, by))
    found = slack.chord_rows(prepared, loads.load_p, loads.load_q, tol=1e-8)
    assert settled(
        found.mismatch, found.retained, 1e-8 * network.tolerance_base, found.excess
    ).all()
    assert found.steps.mean() < plain.steps.mean() + 1


@settings(max_examples=30, deadline=None)
@given(
    weight=st.lists(st.floats(1e-6, 10) | st.just(0.0), min_size=1, max_size=6),
    seed=st.integers(0, 99), share=st.floats(0.01, 0.99),
)  # fmt: skip
def test_the_largest_line_is_the_factor_by_which_generators_share(weight, seed, share):
    weight, rng = np.array(weight), np.random.default_rng(seed)
    room = rng.uniform(0, 2, len(weight)) * (rng.random(len(weight)) > 0.2)
    amount = share * room[weight > 0].sum()
    lines = common_factor(weight, room)
    found = max((a + b * amount for a, b in lines), default=0.0)
    assert np.minimum(weight * found, room).sum() == pytest.approx(amount, abs=1e-9)


def test_what_nobody_can_give_is_left_to_the_slack(case14):
    slack = case14.gen_bus == case14.slack[0]
    network = replace(
        case14, gen_p_min=case14.gen_p - 0.01, gen_p_max=case14.gen_p + 0.01, outage_of=None
    )
    heavy = nominal_loads(network)
    heavy = LoadScenarios(load_p=1.2 * heavy.load_p, load_q=heavy.load_q)
    found = solve(network, heavy, distributed_slack="headroom")
    expected = solve(
        replace(network, gen_p=network.gen_p + np.where(slack, 0, 0.01), outage_of=None), heavy
    )
    np.testing.assert_allclose(found.voltage, expected.voltage, rtol=0, atol=1e-8)
    assert_balanced(network, heavy, found)


def test_nominal_demand_of_the_intact_grid_needs_nobody(case118):
    loads = nominal_loads(case118)
    for by in ("generation", "headroom"):
        found = solve(case118, loads, distributed_slack=by)
        np.testing.assert_allclose(found.voltage, solve(case118, loads).voltage, rtol=0, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"q_limits": True}])
def test_rows_depend_on_no_neighbour_and_no_thread(case118, options):
    network = case118.without(["line:9"])
    loads = drawn(network, 41)
    load_p = loads.load_p.copy()
    load_p[7], load_p[20] = np.nan, 40 * load_p[20]  # one not a number, one far beyond the nose
    loads = LoadScenarios(load_p=load_p, load_q=loads.load_q)
    whole = solve(network, loads, distributed_slack="headroom", powers=True, **options)
    assert whole.status[7] == RowStatus.NOT_RUN
    assert whole.status[20] in (RowStatus.NO_CONVERGENCE, RowStatus.IMPLAUSIBLE)
    assert whole.solved.sum() == 39
    assert np.isnan(whole.voltage[[7, 20]]).all()
    assert np.isnan(whole.gen_p[[7, 20]]).all()
    parts = [
        solve(network, loads.rows(np.array(rows)), distributed_slack="headroom", powers=True,
              threads=2, **options)
        for rows in (range(1), range(1, 12), range(12, 41))
    ]  # fmt: skip
    for name in ("voltage", "status", "gen_p", "powers"):
        joined = np.concatenate([getattr(one, name) for one in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))


def test_reactive_limits_are_kept_as_well(case118):
    loads = drawn(case118, 30)
    found = solve(case118, loads, distributed_slack="headroom", q_limits=True)
    assert found.solved.all()
    assert found.at_limit.any(1).all()
    assert_balanced(case118, loads, found)
    low, high = bus_limits(case118)
    v, pv = found.voltage, case118.pv
    power = v * (case118.admittance @ v.T).T.conj() - case118.injected(loads.load_power)
    given, side, off = power.imag[:, pv], found.at_limit[:, pv], np.abs(v[:, pv])
    off = off - case118.bus_v_set[pv]
    assert np.abs(off[side == 0]).max() < 1e-7
    assert np.abs(given - high[pv])[side > 0].max() < 1e-7
    assert np.abs(given - low[pv])[side < 0].max(initial=0) < 1e-7
    assert off[side > 0].max() < 1e-7
    assert off[side < 0].min(initial=0) > -1e-7


def test_others_give_what_a_lost_generator_gave():
    network = read_grid("case30")
    shares = SlackShares.of(network, "headroom")
    left = after_outage(network, ["gen:1"], redistribute=False).network
    lost = network.gen_p[network.gen_labels.index("gen:1")]
    assert lost > 0.1
    loads = nominal_loads(left)
    found = solve(left, loads, distributed_slack=shares)
    assert_balanced(left, loads, found)
    before = dict(zip(network.gen_labels, network.gen_p, strict=True)) | shares.schedule
    moved = {k: p - before[k] for k, p in zip(left.gen_labels, found.gen_p[0], strict=True)}
    assert sum(moved.values()) == pytest.approx(lost, rel=0.1)  # and a change of losses
    rows = [network.gen_labels.index(label) for label in moved]
    room = network.gen_p_max[rows] - [before[label] for label in moved]
    np.testing.assert_allclose(
        [*moved.values()], sum(moved.values()) * room / room.sum(), rtol=0, atol=1e-7
    )


def test_an_outage_that_cuts_buses_off_is_islanded(case14):
    cut = case14.without(["trafo:3"])
    assert len(cut.cut_off_buses())
    found = solve(cut, nominal_loads(cut), distributed_slack="generation")
    assert found.counts() == {"solved": 0, "islanded": 1}


def test_an_exported_state_has_what_the_generators_give(case14, tmp_path):
    loads = drawn(case14, 2)
    found = solve(case14, loads, distributed_slack="headroom")
    write_state(found, tmp_path, loads=loads, row=1)
    rows = (tmp_path / "generators.csv").read_text().splitlines()[1:]
    given = [float(row.split(",")[3]) for row in rows]
    np.testing.assert_allclose(given, found.gen_p[1] * case14.base_mva, rtol=1e-12)
    buses = (tmp_path / "buses.csv").read_text().splitlines()[1:]
    by_bus = sum(float(row.split(",")[7]) for row in buses)
    assert by_bus == pytest.approx(sum(given), abs=1e-5)


def test_matpower_files_give_limits_and_factors(tmp_path):
    case = tmp_path / "three.m"
    case.write_text("""function mpc = three
mpc.version = '2';
mpc.baseMVA = 100;
mpc.bus = [1 3 0 0 0 0 1 1 0 110 1 1.1 0.9; 2 2 0 0 0 0 1 1 0 110 1 1.1 0.9;
           3 1 90 20 0 0 1 1 0 110 1 1.1 0.9];
mpc.gen = [1 50 0 90 -90 1 100 1 80 10 0 0 0 0 0 0 0 0 0 0 3;
           2 40 0 90 -90 1 100 1 60 20 0 0 0 0 0 0 0 0 0 0 1];
mpc.branch = [1 2 0.01 0.1 0 0 0 0 0 0 1 -360 360; 1 3 0.01 0.1 0 0 0 0 0 0 1 -360 360;
              2 3 0.01 0.1 0 0 0 0 0 0 1 -360 360];
""")
    network = read_grid(case)
    np.testing.assert_allclose(network.gen_p_max, [0.8, 0.6])
    np.testing.assert_allclose(network.gen_p_min, [0.1, 0.2])
    found = solve(network, nominal_loads(network), distributed_slack="given", tol=1e-10)
    moved = found.gen_p[0] - network.gen_p
    assert moved[0] == pytest.approx(3 * moved[1], abs=1e-9)
    assert_balanced(network, nominal_loads(network), found)


@pytest.mark.parametrize(
    ("change", "by", "told"),
    [
        ({}, "size", "no distributed slack by 'size'; choose generation, headroom, given"),
        ({"gen_weight": np.zeros(())}, "given", "choose generation or headroom"),
        ({"gen_weight": -np.ones(())}, "given", "it must be at least 0"),
        ({"gen_p_max": np.full((), np.inf)}, "headroom", "ext_grid:0 of case14 lacks an active"),
        ({"gen_p_max": np.full((), -5.0)}, "generation", "which is no range"),
    ],
)
def test_what_cannot_be_shared_is_refused(case14, change, by, told):
    network = replace(case14, outage_of=None, **change)
    with pytest.raises(GridshiftError, match=told):
        solve(network, nominal_loads(network), distributed_slack=by)


def test_two_slack_buses_are_refused(case14):
    kind = case14.bus_kind.copy()
    kind[case14.pv[0]] = BusKind.SLACK
    network = replace(case14, bus_kind=kind, outage_of=None)
    with pytest.raises(GridshiftError, match="needs one slack bus; case14 has 2"):
        solve(network, nominal_loads(network), distributed_slack="generation")
