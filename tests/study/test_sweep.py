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
from gridshift.grid.powerflow import solve
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import sample_loads, stream
from gridshift.learn.training import TrainingConfig
from gridshift.study.risk import LOST_SUPPLY
from gridshift.study.screening import ScreenConfig
from gridshift.study.sweep import rank, screen


@pytest.fixture(scope="module")
def case9():
    return read_grid("case9")


@pytest.fixture(scope="module")
def case30():
    return read_grid("case30")


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
    return ScreenConfig(grid="case9", **given)


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
        loads = layout.unpack_injections(x)
        return layout.pack_outputs(network, loads, solve(network, loads).voltage)


def register(monkeypatch, name, adapt, needs=("solved cases",)):
    method = Method(name=name, summary="", needs=needs, source="test", adapt=adapt)
    monkeypatch.setitem(METHODS, name, method)


# --- the numbers ---------------------------------------------------------------------------


def test_exact_statistics_are_pandapowers_on_the_same_loads(case30, tmp_path):
    (tmp_path / "one.txt").write_text("line:9")
    config = newton30(str(tmp_path / "one.txt"), num_scenarios=8, v_min=0.97, v_max=1.03)
    (row,) = screen(config, network=case30).rows

    rng = stream("case30", "scenarios", seed=0)
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
        assert b.mae["overall"] < 1e-8
        assert b.holdout_excess_predicted == pytest.approx(b.holdout_excess, rel=1e-6)


def test_the_rank_follows_the_severity_and_ties_the_voltage_shift(case30):
    study = screen(newton30("lines", num_scenarios=2), network=case30)
    assert len(study.rows) == 38
    order = [row.severity for row in study.rows]
    assert order == sorted(order, reverse=True)
    told = study.to_json()
    assert told["num_outages"] == 38
    assert [outage["rank"] for outage in told["outages"]] == list(range(1, 39))
    tied = [replace(study.rows[0], severity=0.0, shift=s) for s in (0.1, 0.3, 0.2)]
    assert [row.shift for row in rank(tied)] == [0.3, 0.2, 0.1]
    tied = [replace(study.rows[0], outage=name) for name in ("line:10", "line:9", "line:9,line:3")]
    assert [row.outage for row in rank(tied)] == ["line:9", "line:9,line:3", "line:10"]


def test_lines_that_split_the_grid_are_listed_apart_by_megawatts(case30):
    study = screen(newton30("lines", num_scenarios=1), network=case30)
    assert [split["outage"] for split in study.splitting] == ["line:33", "line:15", "line:12"]
    assert study.splitting[0]["mw_cut_off"] == pytest.approx(3.5)
    generation = [split["mw_generation_cut_off"] for split in study.splitting]
    assert generation[0] == 0
    assert generation[1] == pytest.approx(37)  # MATPOWER's generator at bus 13
    assert not {row.outage for row in study.rows} & {split["outage"] for split in study.splitting}


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
    row = sorted((tmp_path / "out" / "rows").iterdir())[0]
    row.write_bytes(row.read_bytes()[:200])
    third = screen(newton30(few), network=case30, folder=tmp_path / "out")
    assert third.cost["resumed"] == 3
    assert without_times(first) == without_times(third)


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


def test_an_outage_that_cuts_off_no_load_is_last_and_its_generation_is_told(case30, tmp_path):
    (tmp_path / "list.txt").write_text("line:12\nline:9\nline:33\nline:15\n")
    idle = replace(
        case30, load_power=np.where(np.isin(case30.load_bus, [10, 12]), 0, case30.load_power),
        bus_fixed=np.where(np.arange(30) == 10, 0.2, case30.bus_fixed),
    )  # fmt: skip
    config = replace(newton30(str(tmp_path / "list.txt")), v_min=0.99)
    study = screen(config, network=idle)
    rows = study.rows
    assert [row.outage for row in rows[:2]] == ["line:33", "line:9"]
    assert rows[0].mw_at_risk == pytest.approx(3.5)
    assert rows[1].severity > 0
    assert [(row.status, row.severity) for row in rows[2:]] == [("islanded", 0.0)] * 2
    assert sorted(row.mw_generation_cut_off > 0 for row in rows[2:])[-1]
    assert study.to_json()["config"]["workers"] == 1


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
    assert {row.status for row in study.rows} == {"failed"}
    assert all(str(error) in row.reason for row in study.rows)
    assert all(row.num_scenarios == 6 for row in study.rows)


def test_a_prediction_that_fails_leaves_a_row(case9, surrogate9, monkeypatch):
    class Broken:
        def predict(self, x):
            raise RuntimeError("no prediction today")

    register(monkeypatch, "broken", lambda surrogate, context: Broken())
    study = screen(replace(icw9(), method="broken"), network=case9, surrogate=surrogate9)
    assert {(row.status, row.reason) for row in study.rows} == {("failed", "no prediction today")}


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
    assert f"({len(study.rows)} times)" in note
    assert study.cost["num_solves"] == len(study.rows) * (4 + 6)
    assert study.cost["num_predicted"] == len(study.rows) * 30
    assert study.cost["outages_s"] == pytest.approx(sum(row.cost["wall_s"] for row in study.rows))


def test_importing_the_sweep_loads_neither_torch_nor_pandapower():
    import subprocess
    import sys

    code = "import sys, gridshift.study.sweep; sys.exit('torch' in sys.modules or 'pandapower' in sys.modules)"  # noqa: E501
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
