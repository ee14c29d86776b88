"""Rows of outages that split the grid, of other elements, of equal circuits, with failure rates."""

import json
from dataclasses import replace

import numpy as np
import pandapower
import pandapower.networks
import pytest

from gridshift.grid.contingency import cut_off_buses, enumerate_outages
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import named_rng, sample_loads
from gridshift.study import chosen_outages as chosen
from gridshift.study.risk import LOST_SUPPLY
from gridshift.study.screening import ScreenConfig
from gridshift.study.sweep import screen
from tests.grid.test_after_outage import doubled


def study(network, contingencies, **options):
    given = {"num_scenarios": 8, "num_holdout": 4, "workers": 1} | options
    return screen(
        ScreenConfig(grid="case30", contingencies=str(contingencies), **given), network=network
    )


def by_pandapower(change, *, num_rows=8):
    """Share of scenarios with an overload, and worst loadings, of case30 changed."""
    network = read_grid("case30")
    loads = sample_loads(
        network, named_rng("case30", "scenarios"), num_rows, spread=0.2, regime="drawn"
    )
    net = pandapower.networks.case30()
    change(net)
    worst = []
    for p, q in zip(loads.load_p * 100, loads.load_q * 100, strict=True):
        net.load["p_mw"], net.load["q_mvar"] = p, q
        pandapower.runpp(net, numba=False, tolerance_mva=1e-8)
        worst.append(net.res_line.loading_percent.fillna(0).max() / 100)
    return np.array(worst)


def test_what_a_split_leaves_is_solved_as_pandapower_solves_it_and_ranks_by_lost_load(
    case30, tmp_path
):
    (tmp_path / "list.txt").write_text("line:9\nline:33\n")
    first, second = study(case30, tmp_path / "list.txt").rows
    assert (first.outage, second.outage) == ("line:33", "line:9")
    assert first.severity == pytest.approx(LOST_SUPPLY + 3.5)
    assert first.num_scenarios == 8

    def change(net):
        net.line.loc[33, "in_service"] = False

    worst = by_pandapower(change)
    assert first.any_overload == (worst > 1).mean()
    assert first.worst_loading["max"] == pytest.approx(worst.max(), rel=1e-6)
    assert np.isnan(first.bus_under[case30.bus_labels.index("bus:25")])


def test_generators_buses_and_loads_are_rows_solved_exactly(case30, tmp_path):
    (tmp_path / "list.txt").write_text("gen:1\nbus:7\nload:3\nshunt:4,line:9\n")
    rows = {row.outage: row for row in study(
        case30, tmp_path / "list.txt", redistribute="slack"
    ).rows}  # fmt: skip
    assert {row.status for name, row in rows.items() if name != "bus:7"} == {"solved"}
    assert rows["bus:7"].status == "islanded"
    assert rows["bus:7"].severity == pytest.approx(LOST_SUPPLY + 30)
    assert rows["load:3"].mw_cut_off == 0  # its own demand is not lost by the grid

    def no_generator(net):
        net.gen.loc[1, "in_service"] = False

    def no_load(net):
        net.load.loc[3, "in_service"] = False

    for name, change in (("gen:1", no_generator), ("load:3", no_load)):
        worst = by_pandapower(change)
        assert rows[name].worst_loading["max"] == pytest.approx(worst.max(), rel=1e-6)
        assert rows[name].worst_loading["mean"] == pytest.approx(worst.mean(), rel=1e-6)
    shared = study(case30, tmp_path / "list.txt").rows
    assert {r.outage: r.severity for r in shared}["gen:1"] != rows["gen:1"].severity


def test_the_change_is_against_the_intact_grid_in_the_same_scenarios(case30, tmp_path):
    (tmp_path / "list.txt").write_text("line:9\nline:39\n")
    found = study(case30, tmp_path / "list.txt", num_scenarios=50)
    intact = found.intact_row
    assert intact.num_scenarios == 50
    for row in found.rows:
        assert row.added_severity == row.severity - intact.severity
        assert row.added_probability == row.violation_probability - intact.violation_probability
        change = row.branch_overload - intact.branch_overload
        worst = int(np.nanargmax(change))
        assert row.added_branch == case30.branch_labels[worst]
        gain = row.branch_overload_probability - intact.branch_overload_probability
        assert row.added_branch_probability == gain[worst]


def test_equal_circuits_are_solved_once_and_their_rows_are_as_if_solved_each(case30, tmp_path):
    network = doubled(case30)
    (tmp_path / "both.txt").write_text("line:3\nline:2\nline:9\n")
    (tmp_path / "one.txt").write_text("line:3\n")
    seen = []
    config = ScreenConfig(
        grid="x", contingencies=str(tmp_path / "both.txt"), num_scenarios=20, workers=1
    )
    found = screen(
        config, network=network, folder=tmp_path / "out", progress=lambda *a: seen.append(a[:2])
    )
    rows = {row.outage: row for row in found.rows}
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert (rows["line:3"].equal_to, rows["line:2"].equal_to) == ("line:2", "")
    a, b = (network.elements[f"line:{i}"][0] for i in (2, 3))
    assert rows["line:3"].branch_loading[b] == rows["line:2"].branch_loading[a] == 0
    assert rows["line:3"].branch_loading[a] == rows["line:2"].branch_loading[b] > 0
    # solved itself: the same but for the order in which sums are taken
    distinct = np.where(np.arange(41) == b, 1 + 1e-12, 1)[:, None]
    straight = replace(network, branch_rating=network.branch_rating * distinct)
    (tmp_path / "alone.txt").write_text("line:3\n")
    (itself,) = study(straight, tmp_path / "alone.txt", num_scenarios=20).rows
    assert itself.equal_to == ""
    np.testing.assert_allclose(rows["line:3"].branch_loading, itself.branch_loading, atol=1e-9)
    alone = screen(replace(config, contingencies=str(tmp_path / "one.txt")), network=network).rows
    assert json.dumps(alone[0].stored() | {"cost": 0}, default=np.ndarray.tolist) == json.dumps(
        rows["line:3"].stored() | {"cost": 0}, default=np.ndarray.tolist
    )


def test_failure_rates_give_expectations_of_a_year(case30, tmp_path):
    (tmp_path / "list.txt").write_text(
        "line:9; north; 0.5; 10\nline:33; stub; 2; 6\nline:3; third; 1\nline:24\n"
    )
    found = study(case30, tmp_path / "list.txt", num_scenarios=40)
    rows = {row.outage: row for row in found.rows}
    assert rows["line:9"].name == "north"
    assert rows["line:9"].violations_per_year == 0.5 * rows["line:9"].violation_probability
    assert rows["line:9"].energy_not_served_mwh == 0
    assert rows["line:33"].energy_not_served_mwh == pytest.approx(2 * 6 * 3.5)
    assert rows["line:33"].violations_per_year == 2  # load is lost each time
    assert np.isnan(rows["line:3"].energy_not_served_mwh)
    assert np.isnan(rows["line:24"].violations_per_year)
    assert found.system["num_with_rates"] == 3
    assert found.system["energy_not_served_mwh"] == pytest.approx(42)
    assert found.system["violations_per_year"] == pytest.approx(
        sum(rows[f"line:{k}"].violations_per_year for k in (9, 33, 3))
    )
    assert found.to_json()["system"] == found.system


def test_an_emergency_rating_is_a_second_limit(case30, tmp_path):
    (tmp_path / "list.txt").write_text("line:9\n")
    (row,) = study(case30, tmp_path / "list.txt", num_scenarios=50, emergency_rating=1.5).rows

    def change(net):
        net.line.loc[9, "in_service"] = False

    worst = by_pandapower(change, num_rows=50)
    assert row.any_emergency == (worst > 1.5).mean()
    assert row.any_overload == (worst > 1).mean()
    assert 0 < row.any_emergency < 1


def test_of_many_pairs_the_worst_are_solved_and_the_rest_is_told(case30, monkeypatch):
    monkeypatch.setattr(chosen, "MANY_PAIRS", 500)
    found = study(case30, "n-2", num_scenarios=1, spread=0.0, most_pairs=60)
    assert len(found.rows) == 60
    (note,) = [note for note in found.notes if "estimate" in note]
    assert "60" in note
    monkeypatch.setattr(chosen, "MANY_PAIRS", 10_000)
    everything = study(case30, "n-2", num_scenarios=1, spread=0.0)
    assert len(everything.rows) == 820
    lines = enumerate_outages(case30)
    bridges = {o[0] for o, b in zip(lines, cut_off_buses(case30, lines), strict=True) if len(b)}
    worst = [r.outage for r in everything.rows if not bridges & {*r.outage.split(",")}][:20]
    assert len({*worst} & {row.outage for row in found.rows}) >= 19
