"""A study with a distributed slack: pandapower, lightsim2grid and a textbook Newton agree."""

from dataclasses import replace

import numpy as np
import pytest

from gridshift.errors import GridshiftError
from gridshift.grid.after_outage import after_outage
from gridshift.grid.contingency import make_outage, outage_text
from gridshift.grid.powerflow import solve
from gridshift.grid.readers import read_grid
from gridshift.grid.readers.pandapower_network import network_from_pandapower
from gridshift.grid.slack_shares import SlackShares
from gridshift.grid.supplied import supplied_part
from gridshift.study.chosen_outages import chosen_outages
from gridshift.study.pieces import study_digest
from gridshift.study.plan import plan
from gridshift.study.screening import ScreenConfig
from gridshift.study.set_up import set_up
from gridshift.study.shards import merge, study_shard
from gridshift.study.shared import share, shared_setting
from gridshift.study.sweep import screen
from gridshift.study.swept import Shard
from tests.reference.lightsim import lightsim_with_weights
from tests.reference.newton import dense_distributed
from tests.reference.pandapower_equations import built, run

KINDS = {
    "a line": ["line:2"],
    "a generator": ["gen:0"],
    "a line and a generator": ["line:2", "gen:1"],
    "a generator is cut off": ["trafo:3"],
    "a bus with a load and a generator": ["bus:2"],
}
"""Outages of case14, of which pandapower's bus 7 with a generator hangs on trafo:3."""


def config(**options):
    given = {"num_scenarios": 3, "workers": 1, "distributed_slack": "given", "seed": 4}
    return ScreenConfig(**({"grid": "case14"} | given | options))


def weighted():
    """case14 with factors and without active limits, which pandapower doesn't keep."""
    net = built("case14")
    net.gen["slack_weight"], net.ext_grid["slack_weight"] = [1.0, 0.5, 2.0, 0.7], [1.5]
    for table in (net.gen, net.ext_grid):
        table["min_p_mw"], table["max_p_mw"] = np.nan, np.nan
    return net


@pytest.fixture(scope="module")
def network():
    return network_from_pandapower(weighted(), name="case14", origin="test")


@pytest.fixture(scope="module")
def rows(network, tmp_path_factory):
    listed = tmp_path_factory.mktemp("outages") / "list.txt"
    listed.write_text("\n".join(",".join(outage) for outage in KINDS.values()))
    found = screen(config(contingencies=str(listed)), network=network)
    return {row.outage: row for row in found.rows}


def after(kind: str):
    """pandapower's network after an outage, with what hangs on it out of service."""
    net = weighted()
    for label in KINDS[kind]:
        table, _, number = label.partition(":")
        net[table].loc[int(number), "in_service"] = False
    gone = {7} if kind == "a generator is cut off" else {2} if "bus" in kind else set()
    for name in ("gen", "load"):
        net[name].loc[net[name].bus.isin(gone), "in_service"] = False
    ends = net.line.from_bus.isin(gone) | net.line.to_bus.isin(gone)
    net.line.loc[ends, "in_service"] = False
    return net, gone


@pytest.mark.parametrize("kind", KINDS)
def test_voltages_of_the_scenarios_are_pandapowers(network, rows, kind):
    net, gone = after(kind)
    loads, magnitude = set_up(config(), network).loads, []
    for row in range(3):
        net.load["p_mw"] = loads.load_p[row] * network.base_mva
        net.load["q_mvar"] = loads.load_q[row] * network.base_mva
        run(net, distributed_slack=True)
        magnitude.append(net.res_bus.vm_pu.to_numpy())
    row = rows[outage_text(make_outage(KINDS[kind]))]
    assert row.unsolved == 0
    left = [b for b in range(14) if b not in gone]
    found, expected = row.bus_voltage_mean, np.mean(magnitude, 0)
    # both keep balance to 1e-8 p.u.
    np.testing.assert_allclose(found[left], expected[left], rtol=0, atol=2e-8)
    plain = set_up(config(distributed_slack=None), network)
    assert np.abs(expected[left] - solve(network, plain.loads).voltage[0][left]).max() > 1e-4


@pytest.mark.filterwarnings("ignore")  # lightsim2grid tells what it fills in
def test_voltages_of_the_scenarios_are_lightsim2grids(network, rows):
    net = weighted()
    model = lightsim_with_weights(run(net))
    loads = set_up(config(), network).loads
    for outage, off in (("line:2", lambda: model.deactivate_powerline(2)),
                        ("gen:0", lambda: model.deactivate_gen(0))):  # fmt: skip
        off()
        magnitude = []
        for row in range(3):
            for number in range(network.num_loads):
                model.change_p_load(number, loads.load_p[row, number] * network.base_mva)
                model.change_q_load(number, loads.load_q[row, number] * network.base_mva)
            magnitude.append(np.abs(model.ac_pf(np.ones(14, complex), 30, 1e-11)))
        model.reactivate_powerline(2)
        found = rows[outage].bus_voltage_mean
        np.testing.assert_allclose(found, np.mean(magnitude, 0), rtol=0, atol=2e-8)


@pytest.mark.parametrize("name", ["case30", "case39"])
def test_lost_power_is_shared_once_whatever_the_rule_says(name):
    """The generators left give their schedules and their shares of one imbalance."""
    network = read_grid(name)
    lost = network.gen_labels[1]
    network = replace(network, gen_p_min=np.array(-np.inf), gen_p_max=np.array(np.inf))
    setting = set_up(config(grid=name, distributed_slack="generation"), network)
    shares = SlackShares.of(network, "generation")
    part = supplied_part(after_outage(network, [lost], redistribute=False).network).network
    schedule = np.array([
        shares.schedule.get(label, p) for label, p in zip(part.gen_labels, part.gen_p, strict=True)
    ])  # fmt: skip
    factor = np.maximum(schedule, 0)
    expected = []
    for row in range(3):
        voltage, imbalance, converged = dense_distributed(
            part, part.v_start, setting.loads.load_power[row], schedule, factor / factor.sum()
        )
        assert converged
        assert imbalance > 0.5 * network.gen_p[1]
        expected.append(np.abs(voltage))
    from gridshift.study.outage import screen_outages

    (row,) = screen_outages(setting, [(lost,)])
    np.testing.assert_allclose(row.bus_voltage_mean, np.mean(expected, 0), rtol=0, atol=2e-8)


def test_both_kinds_of_limits_are_kept_together():
    asked = config(
        grid="case14", distributed_slack="headroom", q_limits=True, num_scenarios=40, spread=0.5
    )
    network = read_grid("case14")
    setting, found = set_up(asked, network), screen(asked)
    shares = SlackShares.of(network, "headroom")
    at_limit = 0
    for row in found.rows[:6]:
        if row.status != "solved":
            continue
        one = solve(
            network.without([row.outage]), setting.loads.rows(slice(None)), q_limits=True,
            distributed_slack=shares,
        )  # fmt: skip
        magnitude = np.abs(one.voltage[one.solved])
        assert row.unsolved == pytest.approx(1 - one.solved.mean())
        np.testing.assert_allclose(row.bus_voltage_mean, magnitude.mean(0), rtol=0, atol=1e-7)
        np.testing.assert_allclose(row.bus_at_q_max, (one.at_limit[one.solved] > 0).mean(0))
        at_limit += row.any_at_limit > 0
    assert at_limit


def test_the_setting_is_part_of_what_a_study_is(tmp_path):
    network = read_grid("case14")
    asked = config(contingencies="generators", distributed_slack="headroom")
    setting = set_up(asked, network)
    digests = {study_digest(setting)}
    for by in (None, "generation"):
        digests.add(study_digest(set_up(replace(
            asked, distributed_slack=by, redistribute=None), network)))  # fmt: skip
    roomy = replace(network, gen_p_max=network.gen_p_max + 1)
    digests.add(study_digest(set_up(asked, roomy)))
    assert len(digests) == 4
    theirs = shared_setting(tmp_path, share(setting, tmp_path))
    assert theirs.shares.schedule == setting.shares.schedule
    whole = screen(asked)
    for number in (1, 2):
        study_shard(setting, chosen_outages(setting), Shard(number, 2), folder=tmp_path)
    with pytest.raises(GridshiftError, match="distributed_slack"):
        study_shard(
            set_up(replace(asked, distributed_slack="generation"), network),
            chosen_outages(setting), Shard(1, 2), folder=tmp_path,
        )  # fmt: skip
    merged = merge([tmp_path])
    for one, other in zip(merged.rows, whole.rows, strict=True):
        assert (one.outage, one.severity) == (other.outage, other.severity)
        np.testing.assert_array_equal(one.bus_voltage_mean, other.bus_voltage_mean)
    planned = plan(setting, chosen_outages(setting))
    assert planned.num_outages == len(whole.rows)
    assert planned.us_per_row is None, "of so few scenarios a row's cost is not told"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"method": "icw"}, "icw takes the slack bus to balance the grid alone"),
        ({"beside": ("tangent2",)}, "tangent2 takes the slack bus to balance the grid alone"),
        ({"distributed_slack": "size"}, "choose generation, headroom, given"),
        ({"redistribute": "generators"}, "its generators share what an outage takes away"),
    ],
)
def test_what_does_not_go_together_is_refused(options, told):
    with pytest.raises(GridshiftError, match=told):
        config(**options)


def test_a_balance_of_the_study_file_is_not_counted_as_well(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        'grid = "case14"\nscenarios = 4\n'
        '[generation.balance]\nby = "given"\nweights = {"gen:0" = 1}\n'
    )
    asked = ScreenConfig.of_study(file, distributed_slack="headroom")
    with pytest.raises(GridshiftError, match="leave one of them out"):
        set_up(asked, read_grid("case14"))


def test_generators_that_vary_keep_what_is_drawn(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        'grid = "case39"\nscenarios = 5\n[[generation.varying]]\nelements = ["gen:3"]\n'
        'distribution = "uniform"\nlow = 0.8\nhigh = 1.2\n'
    )
    setting = set_up(ScreenConfig.of_study(file, distributed_slack="headroom"), read_grid("case39"))
    assert "gen:3" not in setting.shares.labels
    assert len(setting.shares.labels) == 9
    found = solve(setting.network, setting.loads, distributed_slack=setting.shares)
    assert found.solved.all()
    given = np.ptp(found.gen_p, axis=0)
    labels = [*setting.network.gen_labels]
    assert given[labels.index("gen:2")] > 1e-3
    v, at = found.voltage, int(setting.network.gen_bus[labels.index("gen:3")])
    power = (v * (setting.network.admittance @ v.T).T.conj()).real[:, at]
    demand = [k for k, bus in enumerate(setting.network.load_bus) if bus == at]
    np.testing.assert_allclose(power, -setting.loads.load_p[:, demand].sum(1), atol=1e-7)
