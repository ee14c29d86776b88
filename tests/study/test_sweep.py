"""Many outages: the same rows whatever the workers, order and interruptions; failures are rows."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pandapower
import pandapower.networks
import pytest

from gridshift.adapt.methods import METHODS, Method
from gridshift.adapt.surrogate import SurrogateConfig, train
from gridshift.errors import (
    ContextError,
    GridshiftError,
    NotConvergedError,
    OutageError,
    StorageError,
    SurrogateMismatchError,
)
from gridshift.grid.network import BusKind
from gridshift.grid.powerflow import solve
from gridshift.grid.readers import read_grid
from gridshift.grid.readers.pandapower_network import network_from_pandapower
from gridshift.grid.scenarios import named_rng, sample_loads
from gridshift.learn.training import TrainingConfig
from gridshift.study.risk import LOST_SUPPLY
from gridshift.study.row import OutageRow
from gridshift.study.screening import ScreenConfig
from gridshift.study.store import Store
from gridshift.study.sweep import rank, screen


@pytest.fixture(scope="module")
def surrogate9(case9):
    config = SurrogateConfig(num_rows=200, training=TrainingConfig(num_steps=60))
    return train(case9, config)


@pytest.fixture
def few(tmp_path):
    path = tmp_path / "few.txt"
    path.write_text("line:9\nline:24\nline:9,line:28\nline:3\n")
    return str(path)


def newton30(contingencies, **options):
    given = {"num_scenarios": 12, "num_holdout": 5, "workers": 1} | options
    return ScreenConfig(grid="case30", contingencies=contingencies, method="newton", **given)


def icw9(**options):
    given = {"num_scenarios": 30, "num_context": 40, "num_holdout": 6, "workers": 1} | options
    return ScreenConfig(grid="case9", **({"method": "icw", "refuse_splits": True} | given))


def without_times(study):
    rows = [row.stored() | {"cost": None} for row in study.rows]
    return json.dumps(rows, default=np.ndarray.tolist)  # NaN is equal to NaN in text


@dataclass
class _Exact:
    """A predictor that solves, in the place of a perfect surrogate."""

    context: object

    def predict(self, x):
        network = self.context.network
        layout = type(self).layout
        loads = layout.unpack_loads(x)
        return layout.pack_outputs(network, loads, solve(network, loads).voltage)


def register(monkeypatch, name, adapt, needs=("solved cases",)):
    method = Method(name=name, summary="", needs=needs, source="test", adapt=adapt)
    monkeypatch.setitem(METHODS, name, method)


# --- the numbers ---------------------------------------------------------------------------


def test_exact_statistics_are_pandapowers_on_the_same_loads(case30, tmp_path):
    (tmp_path / "one.txt").write_text("line:9")
    config = newton30(str(tmp_path / "one.txt"), num_scenarios=8, v_min=0.97, v_max=1.03)
    (row,) = screen(config, network=case30).rows

    rng = named_rng("case30", "scenarios", seed=0)
    loads = sample_loads(case30, rng, 8, spread=0.2, regime="drawn")
    net = pandapower.networks.case30()
    net.line.loc[9, "in_service"] = False
    overload, violated, excess = 0, 0, 0.0
    assert list(case30.load_labels) == [f"load:{i}" for i in net.load.index]
    for p, q in zip(loads.load_p * 100, loads.load_q * 100, strict=True):
        net.load["p_mw"], net.load["q_mvar"] = p, q
        pandapower.runpp(net, numba=False, tolerance_mva=1e-8)
        loading = net.res_line.loading_percent.fillna(0) / 100
        v = net.res_bus.vm_pu
        overload += (loading > 1).any()
        violated += ((v < 0.97) | (v > 1.03)).any()
        excess += (loading - 1).clip(lower=0).sum()
        excess += (np.maximum(0.97 - v, v - 1.03).clip(lower=0) / 0.03).sum()
    assert row.any_overload == overload / 8
    assert row.any_voltage == violated / 8
    # both solve to 1e-8 p.u. or better; a violation is divided by 0.03
    assert row.severity == pytest.approx(excess / 8, abs=1e-5)


def test_a_perfect_predictor_gives_the_statistics_of_exact_solutions(
    case9, surrogate9, monkeypatch
):
    _Exact.layout = surrogate9.layout
    register(monkeypatch, "perfect", lambda surrogate, context: _Exact(context))
    limits = {"v_min": 0.99, "v_max": 1.01, "rating_mva": 100.0}
    exact = screen(replace(icw9(**limits), method="newton"), network=case9)
    perfect = screen(replace(icw9(**limits), method="perfect"), network=case9, surrogate=surrogate9)
    for a, b in zip(exact.rows, perfect.rows, strict=True):
        assert a.outage == b.outage
        assert a.severity > 0
        assert b.severity == pytest.approx(a.severity, rel=1e-6)
        assert b.any_voltage == a.any_voltage
        if not b.islanded:  # where a generator is cut off, the rest is solved and not predicted
            assert b.mae["overall"] < 1e-8
            assert b.holdout_excess_predicted == pytest.approx(b.holdout_excess, rel=1e-6)


def test_the_rank_follows_the_severity_and_ties_the_voltage_shift(case30):
    study = screen(newton30("lines", num_scenarios=2), network=case30)
    assert len(study.rows) == 41
    order = [row.severity for row in study.rows]
    assert order == sorted(order, reverse=True)
    told = study.to_json()
    assert told["num_outages"] == 41
    assert [outage["rank"] for outage in told["outages"]] == list(range(1, 42))
    tied = [replace(study.rows[0], severity=0.0, shift=s) for s in (0.1, 0.3, 0.2)]
    assert [row.shift for row in rank(tied)] == [0.3, 0.2, 0.1]
    tied = [replace(study.rows[0], outage=name) for name in ("line:10", "line:9", "line:9,line:3")]
    assert [row.outage for row in rank(tied)] == ["line:9", "line:9,line:3", "line:10"]


def test_lines_that_cut_demand_off_are_rows_or_listed_apart_if_splits_are_refused(case30):
    ranked = screen(newton30("lines", num_scenarios=1), network=case30)
    assert ranked.rows[0].outage == "line:33"
    assert ranked.rows[0].severity == pytest.approx(LOST_SUPPLY + 3.5)
    assert ranked.rows[0].num_scenarios == 1  # of what is left
    assert not ranked.splitting
    study = screen(newton30("lines", num_scenarios=1, refuse_splits=True), network=case30)
    (split,) = study.splitting
    assert split["outage"] == "line:33"
    assert split["mw_cut_off"] == pytest.approx(3.5)
    assert split["mw_generation_cut_off"] == 0
    rows = {row.outage: row for row in study.rows}
    assert "line:33" not in rows
    islands = {name for name, row in rows.items() if row.islanded}
    assert islands == {"line:12", "line:15"}
    assert rows["line:15"].mw_generation_cut_off == pytest.approx(37)  # generator at bus 13
    assert all(rows[name].num_scenarios == 1 for name in islands)


# --- independence of how it was run --------------------------------------------------------


def test_results_do_not_depend_on_workers_or_on_the_order_of_outages(case9, surrogate9, tmp_path):
    forward, backward = tmp_path / "forward.txt", tmp_path / "backward.txt"
    lines = [f"line:{i}\n" for i in (1, 2, 4, 5)]
    forward.write_text("".join(lines))
    backward.write_text("".join(reversed(lines)))
    one = screen(icw9(contingencies=str(forward)), network=case9, surrogate=surrogate9)
    config = icw9(contingencies=str(backward), workers=3)
    three = screen(config, network=case9, surrogate=surrogate9)
    assert without_times(one) == without_times(three)
    assert {row.status for row in one.rows} == {"solved"}


def test_a_second_run_resumes_and_a_truncated_row_is_recomputed(case30, few, tmp_path):
    first = screen(newton30(few), network=case30, folder=tmp_path / "out")
    second = screen(newton30(few), network=case30, folder=tmp_path / "out")
    assert second.cost["resumed"] == 4
    assert without_times(first) == without_times(second)
    (rows,) = (tmp_path / "out" / "rows").iterdir()
    rows.write_bytes(rows.read_bytes()[:-200])
    third = screen(newton30(few), network=case30, folder=tmp_path / "out")
    assert third.cost["resumed"] == 3
    assert without_times(first) == without_times(third)


@pytest.mark.parametrize(
    "change",
    [
        lambda row: {name: value for name, value in row.items() if name != "severity"},
        lambda row: row | {"more": 1.0},
        lambda row: row | {"severity": None},
        lambda row: row | {"severity": float("nan")},
        lambda row: row | {"severity": "high"},
        lambda row: row | {"outage": "line:99"},
        lambda row: row | {"cut_off": "bus:1"},
        lambda row: row | {"num_scenarios": 1.5},
        lambda row: row | {"mae": {"overall": 1.0}},
        lambda row: row | {"mae": 1.0},
        lambda row: row | {"cost": {"wall_s": 1.0}},
        lambda row: row | {"bus_under": row["bus_under"][:-1]},
        lambda row: row | {"bus_under": [None] * 30},
        lambda row: row | {"bus_under": row["bus_under"].astype(int)},
        lambda row: row | {"branch_loading": 1.0},
    ],
)
def test_a_stored_row_that_is_no_row_of_its_outage_is_computed_anew(case30, few, tmp_path, change):
    first = screen(newton30(few), network=case30, folder=tmp_path / "out")
    store = Store(tmp_path / "out")
    key = store.keys()[0]
    stored = store.load(key)
    assert stored is not None
    store.save(key, change(stored))
    second = screen(newton30(few), network=case30, folder=tmp_path / "out")
    assert second.cost["resumed"] == 3
    assert without_times(first) == without_times(second)


def test_stored_rows_with_flipped_bytes_are_computed_anew_or_are_what_they_were(
    case30, few, tmp_path
):
    first = screen(newton30(few), network=case30, folder=tmp_path / "out")
    (path,) = (tmp_path / "out" / "rows").iterdir()
    whole, rng, damaged = path.read_bytes(), np.random.default_rng(0), 0
    keys = Store(tmp_path / "out").keys()
    for _ in range(300):
        content = bytearray(whole)
        for at in rng.integers(len(content), size=rng.integers(1, 4)):
            content[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        store = Store(tmp_path / "out")
        for key in keys:
            values = store.load(key)
            row = None if values is None else OutageRow.of_stored(
                values, outage=values.get("outage", ""), network=case30
            )  # fmt: skip
            if row is None:
                damaged += 1
                continue
            kept = next(r for r in first.rows if r.outage == row.outage)
            assert json.dumps(row.stored(), default=np.ndarray.tolist) == json.dumps(
                kept.stored(), default=np.ndarray.tolist
            )
    assert 300 <= damaged <= 3 * 300  # a flipped bit costs its own row and no other


def test_resuming_clears_what_a_killed_run_was_writing(case30, few, tmp_path):
    screen(newton30(few), network=case30, folder=tmp_path / "out")
    (tmp_path / "out" / ".gridshift-0123456789abcdef.part").write_bytes(b"PAR1 half")
    screen(newton30(few), network=case30, folder=tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*.part"))


def test_a_stopped_run_goes_on_where_it_stopped(case30, few, tmp_path):
    def stop(done, total, row):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        screen(newton30(few), network=case30, folder=tmp_path / "out", progress=stop)
    seen = []
    study = screen(
        newton30(few),
        network=case30,
        folder=tmp_path / "out",
        progress=lambda done, total, row: seen.append((done, total)),
    )
    assert study.cost["resumed"] >= 2
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert without_times(study) == without_times(screen(newton30(few), network=case30))


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"spread": 0.3}, {"num_scenarios": 13}, {"v_min": 0.97}]
)
def test_another_configuration_in_the_same_folder_shares_no_row(case30, few, tmp_path, change):
    screen(newton30(few), network=case30, folder=tmp_path / "out")
    other = screen(newton30(few, **change), network=case30, folder=tmp_path / "out")
    assert other.cost["resumed"] == 0
    assert without_times(other) == without_times(screen(newton30(few, **change), network=case30))


def test_more_workers_and_more_outages_reuse_what_is_there(case30, few, tmp_path):
    screen(newton30(few), network=case30, folder=tmp_path / "out")
    with open(few, "a") as file:
        file.write("line:5\n")
    study = screen(newton30(few, workers=2), network=case30, folder=tmp_path / "out")
    assert study.cost["resumed"] == 4
    assert len(study.rows) == 5


# --- what goes wrong -----------------------------------------------------------------------


def test_an_islanding_outage_of_a_list_is_a_row_on_top(case30, tmp_path):
    (tmp_path / "list.txt").write_text("line:9\nline:0,line:1\nline:33\n")
    rows = screen(newton30(str(tmp_path / "list.txt")), network=case30).rows
    assert [row.outage for row in rows] == ["line:0,line:1", "line:33", "line:9"]
    assert rows[0].status == "islanded"
    assert len(rows[0].cut_off) == 29
    assert rows[0].severity > rows[1].severity >= LOST_SUPPLY > rows[2].severity
    assert rows[0].num_scenarios == 0
    assert np.isnan(rows[0].any_voltage)


def hub():
    """Path 0-1-2-{3, 4}, load of 50 MW at bus 3 and of -60 MW at bus 4; a ring of 0, 1 and 5."""
    net = pandapower.create_empty_network()
    for _ in range(6):
        pandapower.create_bus(net, 110.0, min_vm_pu=0.9, max_vm_pu=1.1)
    pandapower.create_ext_grid(net, 0)
    for start, end in ((0, 1), (1, 2), (2, 3), (2, 4), (0, 5), (5, 1)):
        pandapower.create_line_from_parameters(
            net, start, end, length_km=5.0, r_ohm_per_km=0.1, x_ohm_per_km=0.4, c_nf_per_km=10.0,
            max_i_ka=0.1,
        )  # fmt: skip
    pandapower.create_load(net, 3, 50.0)
    pandapower.create_load(net, 4, -60.0)
    pandapower.create_load(net, 5, 10.0)
    return net


def test_lost_demand_ranks_first_whatever_is_generated_beside_it(tmp_path):
    network = network_from_pandapower(hub(), name="hub", origin="test")
    (tmp_path / "list.txt").write_text("line:4\nline:1\nline:2\nline:3\n")
    rows = screen(newton30(str(tmp_path / "list.txt")), network=network).rows
    by_name = {row.outage: row for row in rows}
    assert {row.outage for row in rows[:2]} == {"line:1", "line:2"}
    for name, gives in (("line:1", 60), ("line:2", 0)):
        row = by_name[name]
        assert row.severity == pytest.approx(LOST_SUPPLY + 50)
        assert (row.mw_cut_off, row.mw_generation_cut_off) == pytest.approx((50, gives))
    studied = screen(newton30("lines", refuse_splits=True), network=network)
    assert [split["mw_cut_off"] for split in studied.splitting] == pytest.approx([50, 50])
    assert "line:3" in {row.outage for row in studied.rows}


@pytest.mark.parametrize("grid", ["case30", "case57", "create_cigre_network_mv"])
def test_outages_that_split_are_the_same_on_the_grid_as_on_a_part_of_it(grid, monkeypatch):
    config = ScreenConfig(grid=grid, contingencies="all", num_scenarios=40, workers=1)
    fast = {row.outage: row for row in screen(config).rows}
    monkeypatch.setattr(
        "gridshift.study.outage._on_grid",
        lambda setting, after: after.network if after.whole else None,
    )
    slow = {row.outage: row for row in screen(config).rows}
    assert any(row.status == "islanded" for row in slow.values())
    for outage, row in slow.items():
        mine, theirs = fast[outage].stored(), row.stored()
        for name in theirs.keys() - {"cost", "num_solves"}:
            if name.endswith(("_p5", "_p95", "_p99")):  # of histograms, whose bins have edges
                assert np.array_equal(np.isnan(mine[name]), np.isnan(theirs[name]))
                close = 1 / 64
            else:
                close = 1e-6
            if isinstance(theirs[name], float | np.ndarray | dict):
                approx = pytest.approx(theirs[name], abs=close, rel=1e-6, nan_ok=True)
                assert mine[name] == approx, (outage, name)
            else:
                assert mine[name] == theirs[name], (outage, name)


def test_where_only_generation_is_cut_off_the_rest_is_solved_as_pandapower_solves_it(tmp_path):
    net = hub()
    network = network_from_pandapower(net, name="hub", origin="test")
    (tmp_path / "list.txt").write_text("line:3")
    config = newton30(str(tmp_path / "list.txt"), num_scenarios=6, v_min=0.99)
    (row,) = screen(config, network=network).rows
    assert row.status == "islanded"
    assert row.num_scenarios == 6
    assert row.mw_generation_cut_off == pytest.approx(60)
    assert "bus:4" in row.reason

    loads = sample_loads(
        network, named_rng("hub", "scenarios", seed=0), 6, spread=0.2, regime="drawn"
    )
    net.line.loc[3, "in_service"] = False
    excess = overloaded = shift = 0.0
    intact = solve(network, sample_loads(network, named_rng("hub", "x"), 1, spread=0)).voltage[0]
    mean = np.zeros(6, complex)
    for p, q in zip(loads.load_p * network.base_mva, loads.load_q * network.base_mva, strict=True):
        net.load["p_mw"], net.load["q_mvar"] = p, q
        pandapower.runpp(net, numba=False, tolerance_mva=1e-8, calculate_voltage_angles=True)
        loading, v = net.res_line.loading_percent.fillna(0) / 100, net.res_bus.vm_pu.dropna()
        overloaded += (loading > 1).any() / 6
        excess += (loading - 1).clip(lower=0).sum() / 6
        excess += (np.maximum(0.99 - v, v - 1.1).clip(lower=0) / 0.055).sum() / 6
        mean += net.res_bus.vm_pu * np.exp(1j * np.deg2rad(net.res_bus.va_degree)) / 6
    shift = np.nanmean(np.abs(mean - intact))
    assert excess > 0
    assert row.severity == pytest.approx(excess, rel=1e-6)
    assert row.any_overload == pytest.approx(overloaded)
    assert row.shift == pytest.approx(shift, rel=1e-6)
    dead = network.bus_labels.index("bus:4")
    assert np.isnan(row.bus_under[dead])
    assert np.isfinite(np.delete(row.bus_under, dead)).all()
    assert np.flatnonzero(np.isnan(row.branch_loading)).tolist() == [3]


def test_an_empty_bus_that_is_cut_off_changes_nothing_that_matters(case30, tmp_path):
    (tmp_path / "list.txt").write_text("line:12\nline:33\nline:15\n")
    idle = replace(
        case30, gen_p=np.where(case30.gen_bus == 10, 0, case30.gen_p),
        load_power=np.where(np.isin(case30.load_bus, [10, 12]), 0, case30.load_power),
        bus_kind=np.where(np.isin(np.arange(30), [10]), BusKind.PQ, case30.bus_kind),
    )  # fmt: skip
    assert not np.isin(case30.load_bus, [10]).any()
    rows = screen(newton30(str(tmp_path / "list.txt")), network=idle).rows
    assert rows[0].outage == "line:33"
    assert rows[0].mw_at_risk == pytest.approx(3.5)
    assert {row.outage for row in rows[1:]} == {"line:12", "line:15"}
    assert all(row.num_scenarios == 12 for row in rows[1:])


def test_a_rest_without_a_nominal_solution_is_a_loss_of_supply(tmp_path):
    net = hub()
    net.line.loc[[0, 4, 5], "length_km"] = 60.0
    net.load["p_mw"] = [0.0, -200.0, 300.0]  # the ring can't do it without the generation at bus 4
    network = network_from_pandapower(net, name="hub", origin="test")
    (tmp_path / "list.txt").write_text("line:3")
    (row,) = screen(newton30(str(tmp_path / "list.txt")), network=network).rows
    assert row.status == "islanded"
    assert "the rest has no nominal solution" in row.reason
    assert row.severity == pytest.approx(LOST_SUPPLY + row.unsolved * 300)
    assert row.unsolved > 0


def test_surrogates_solve_what_is_left_and_count_it_apart(case9, surrogate9):
    study = screen(icw9(), network=case9, surrogate=surrogate9)
    exact = screen(replace(icw9(), method="newton"), network=case9)
    islands = {row.outage: row for row in study.rows if row.islanded}
    assert set(islands) == {"line:3", "line:6"}
    for row in exact.rows:
        if row.outage in islands:
            assert islands[row.outage].severity == row.severity
    assert study.cost["num_predicted"] == 30 * (len(study.rows) - 2)


def test_predictions_that_are_no_numbers_do_not_pass_as_harmless(case9, surrogate9, monkeypatch):
    class Blank:
        def predict(self, x):
            return np.full((len(x), surrogate9.layout.num_outputs), np.nan)

    register(monkeypatch, "blank", lambda surrogate, context: Blank())
    study = screen(replace(icw9(), method="blank"), network=case9, surrogate=surrogate9)
    blank = [row for row in study.rows if not row.islanded]
    assert {(row.status, row.severity) for row in blank} == {("failed", 100.0)}
    assert "finite" in blank[0].reason


def test_an_outage_without_a_nominal_solution_is_a_row_above_those_with_one(tmp_path):
    (tmp_path / "list.txt").write_text("line:228\nline:39\n")
    config = replace(newton30(str(tmp_path / "list.txt")), grid="case300", num_scenarios=3)
    rows = screen(replace(config, num_holdout=2)).rows
    assert [row.outage for row in rows] == ["line:39", "line:228"]
    assert rows[0].status == "no_convergence"
    assert "no nominal solution" in rows[0].reason
    assert rows[0].severity > LOST_SUPPLY


@pytest.mark.parametrize("error", [ContextError("too few"), np.linalg.LinAlgError("singular")])
def test_a_method_that_fails_leaves_a_row_with_the_holdouts_statistics(
    case9, surrogate9, monkeypatch, error
):
    def fails(surrogate, context):
        raise error

    register(monkeypatch, "broken", fails)
    study = screen(replace(icw9(), method="broken"), network=case9, surrogate=surrogate9)
    rows = [row for row in study.rows if not row.islanded]
    assert {row.status for row in rows} == {"failed"}
    assert all(str(error) in row.reason for row in rows)
    assert all(row.num_scenarios == 6 for row in rows)


def test_a_prediction_that_fails_leaves_a_row(case9, surrogate9, monkeypatch):
    class Broken:
        def predict(self, x):
            raise RuntimeError("no prediction today")

    register(monkeypatch, "broken", lambda surrogate, context: Broken())
    study = screen(replace(icw9(), method="broken"), network=case9, surrogate=surrogate9)
    told = {(row.status, row.reason) for row in study.rows if not row.islanded}
    assert told == {("failed", "no prediction today")}


def test_a_grid_without_a_nominal_solution_is_refused(case30):
    heavy = replace(case30, load_power=case30.load_power * 40)
    with pytest.raises(NotConvergedError, match="cannot be screened"):
        screen(newton30("lines"), network=heavy)


def test_wrong_configurations_are_refused_before_anything_is_computed(case9, surrogate9, tmp_path):
    with pytest.raises(GridshiftError, match="num_scenarios must be at least 1"):
        icw9(num_scenarios=0)
    with pytest.raises(GridshiftError, match="no method 'magic'"):
        screen(icw9(method="magic"), network=case9)
    with pytest.raises(OutageError, match="no contingencies"):
        screen(icw9(contingencies="everything"), network=case9)
    with pytest.raises(ContextError, match="at least 2"):
        screen(icw9(num_context=1), network=case9, surrogate=surrogate9)
    with pytest.raises(SurrogateMismatchError):
        screen(replace(icw9(), method="zscore"), network=case9, surrogate=surrogate9)
    with pytest.raises(SurrogateMismatchError):
        screen(icw9(), network=read_grid("case14"), surrogate=surrogate9)
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        screen(icw9(), network=case9, surrogate=surrogate9, folder=tmp_path / "file" / "out")


# --- what is told --------------------------------------------------------------------------


def test_small_contexts_are_told_about_once_and_the_costs_add_up(case9, surrogate9):
    study = screen(icw9(num_context=4), network=case9, surrogate=surrogate9)
    (note,) = [note for note in study.notes if "rank" in note]
    islands = sum(row.islanded for row in study.rows)
    predicted = len(study.rows) - islands
    assert f"({predicted} times)" in note
    assert study.cost["num_solves"] == predicted * (4 + 6) + islands * 30
    assert study.cost["num_predicted"] == predicted * 30
    assert study.cost["outages_s"] == pytest.approx(sum(row.cost["wall_s"] for row in study.rows))


def test_importing_the_sweep_loads_neither_torch_nor_pandapower():
    import subprocess
    import sys

    code = "import sys, gridshift.study.sweep; sys.exit('torch' in sys.modules or 'pandapower' in sys.modules)"  # noqa: E501
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
