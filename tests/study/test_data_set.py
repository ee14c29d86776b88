"""Data sets of solved cases: what is written is what an independent program solves, bit for bit."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandapower as pp
import pandapower.networks
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gridshift as gs
from gridshift.errors import (
    GridshiftError,
    NotConvergedError,
    ScenarioError,
    StorageError,
    TableError,
)
from gridshift.exchange import parquet_like
from gridshift.exchange.solved_cases import read_cases
from gridshift.exchange.tables import read_table
from gridshift.study import data_set, solved_rows
from gridshift.study.data_set import DataSetConfig, write_data_set
from gridshift.study.description import UncertaintyError
from gridshift.study.scenario_table import ScenarioTable
from gridshift.study.uncertainty import Uncertainty, draw
from gridshift.study.varied_grids import Variation
from tests.reference.matpower_equations import case_file

SOLVED = 1e-6
"""MW and degrees by which two solutions to 1e-9 p.u. may differ on case14."""
BALANCED = 1.5e-8
"""p.u.; a solved row's active and reactive mismatch are at most 1e-8 each."""
VARIED = DataSetConfig(
    grid="case14", num_scenarios=450, spread=0.3,
    variation=Variation(outages=(0.3, 0.1), impedance=0.1, set_points=0.02),
)  # fmt: skip
BY_SCENARIO = "scenario load_scenario_idx "
COLUMNS = {
    "bus_data": BY_SCENARIO + "bus Pd Qd Pg Qg Vm Va PQ PV REF vn_kv min_vm_pu max_vm_pu GS BS",
    "gen_data": BY_SCENARIO + "idx bus p_mw q_mvar min_p_mw max_p_mw min_q_mvar max_q_mvar cp0_eur "
    "cp1_eur_per_mw cp2_eur_per_mw2 in_service is_slack_gen",
    "branch_data": BY_SCENARIO + "idx from_bus to_bus pf qf pt qt r x b Yff_r Yff_i Yft_r Yft_i "
    "Ytf_r Ytf_i Ytt_r Ytt_i tap shift ang_min ang_max rate_a br_status",
    "y_bus_data": BY_SCENARIO + "index1 index2 G B",
    "runtime_data": BY_SCENARIO + "ac",
}  # fmt: skip
"""As gridfm-datakit names them (`utils/column_names.py`)."""
WHOLE = {"scenario", "bus", "from_bus", "to_bus", "index1", "index2"}


def tables(folder: Path) -> dict[str, pd.DataFrame]:
    """All tables of a data set, by pandas."""
    return {name: pd.read_parquet(folder / "raw" / f"{name}.parquet") for name in COLUMNS}


@pytest.fixture(scope="module")
def varied(tmp_path_factory) -> Path:
    """A data set in which everything varies."""
    return write_data_set(VARIED, tmp_path_factory.mktemp("varied"), threads=2).folder


def test_the_tables_are_those_of_gridfm(varied):
    assert (varied / "raw" / "n_scenarios.txt").read_text() == "450"
    for name, columns in COLUMNS.items():
        folders = sorted((varied / "raw" / f"{name}.parquet").iterdir())
        assert [one.name for one in folders] == [f"scenario_partition={k}" for k in range(3)]
        found = [pq.read_table(next(one.iterdir()), partitioning=None) for one in folders]
        assert found[0].column_names == columns.split()
        assert [len(pa.compute.unique(one["scenario"])) for one in found] == [200, 200, 50]
        for field in found[0].schema:
            assert field.type == (pa.int64() if field.name in WHOLE else pa.float64()), field


def test_pandapower_solves_the_cases_to_the_same_state(varied):
    found = tables(varied)
    case = {name: table[table.scenario == 7] for name, table in found.items()}
    net = pandapower.networks.case14()
    out = np.flatnonzero(case["branch_data"].br_status.to_numpy() == 0)
    labels = pq.read_table(varied / "labels").to_pandas().set_index("scenario")
    network = gs.read_grid("case14")
    assert [network.branch_labels[e] for e in out] == sorted(
        filter(None, labels.outage[7].split(","))
    )
    # pandapower's own branches, with the impedances of the case
    loads = case["bus_data"].set_index("bus")
    net.load.p_mw = loads.Pd[net.load.bus].to_numpy()
    net.load.q_mvar = loads.Qd[net.load.bus].to_numpy()
    gens = case["gen_data"]
    net.ext_grid.vm_pu = loads.Vm[net.ext_grid.bus].to_numpy()
    net.gen.vm_pu = loads.Vm[net.gen.bus].to_numpy()
    net.gen.p_mw = gens[gens.is_slack_gen == 0].p_mw.to_numpy()
    lines = case["branch_data"].iloc[: len(net.line)]
    ohm = net.bus.vn_kv[net.line.from_bus].to_numpy() ** 2 / net.sn_mva
    net.sn_mva = float(net.sn_mva)
    net.line.r_ohm_per_km = lines.r.to_numpy() * ohm / net.line.length_km
    net.line.x_ohm_per_km = lines.x.to_numpy() * ohm / net.line.length_km
    net.line.in_service = lines.br_status.to_numpy() == 1
    trafos = case["branch_data"].iloc[len(net.line) :]
    size = net.trafo.sn_mva / net.sn_mva * (net.bus.vn_kv[net.trafo.lv_bus].to_numpy()
        / net.trafo.vn_lv_kv) ** 2  # fmt: skip
    net.trafo.vkr_percent = 100 * trafos.r.to_numpy() * size
    net.trafo.vk_percent = 100 * np.hypot(trafos.r, trafos.x).to_numpy() * size
    net.trafo.in_service = trafos.br_status.to_numpy() == 1
    pp.runpp(net, calculate_voltage_angles=True, tolerance_mva=1e-9, init="dc")
    assert np.abs(net.res_bus.vm_pu.to_numpy() - loads.Vm.to_numpy()).max() < SOLVED
    assert np.abs(net.res_bus.va_degree.to_numpy() - loads.Va.to_numpy()).max() < SOLVED
    assert np.abs(net.res_gen.q_mvar - gens.q_mvar.to_numpy()[1:]).max() < SOLVED
    assert abs(net.res_ext_grid.p_mw[0] - gens.p_mw.to_numpy()[0]) < SOLVED
    for table, part, ends in ((net.res_line, lines, ("from", "to")),
                              (net.res_trafo, trafos, ("hv", "lv"))):  # fmt: skip
        for end, letter in zip(ends, "ft", strict=True):
            assert np.abs(table[f"p_{end}_mw"].fillna(0) - part[f"p{letter}"].to_numpy()).max() < (
                SOLVED
            )
            assert np.abs(
                table[f"q_{end}_mvar"].fillna(0) - part[f"q{letter}"].to_numpy()
            ).max() < (SOLVED)
    given = case["y_bus_data"]
    y = np.zeros((14, 14), complex)
    y[given.index1, given.index2] = given.G + 1j * given.B
    expected = net._ppc["internal"]["Ybus"].toarray()
    order = net._pd2ppc_lookups["bus"][np.arange(14)]
    assert np.abs(y - expected[np.ix_(order, order)]).max() < 1e-9
    assert (y[given.index1, given.index2] != 0).all()


def test_every_case_balances_by_its_own_tables(varied):
    found = tables(varied)
    bus, branch, y = (found[name] for name in ("bus_data", "branch_data", "y_bus_data"))
    v = bus.Vm * np.exp(1j * np.deg2rad(bus.Va))
    at = {key: row for row, key in enumerate(zip(bus.scenario, bus.bus, strict=True))}
    i = np.array([at[key] for key in zip(y.scenario, y.index1, strict=True)])
    j = np.array([at[key] for key in zip(y.scenario, y.index2, strict=True)])
    current = np.zeros(len(bus), complex)
    np.add.at(current, i, (y.G + 1j * y.B).to_numpy() * v.to_numpy()[j])
    given = (bus.Pg - bus.Pd + 1j * (bus.Qg - bus.Qd)) / 100
    assert np.abs(v * np.conj(current) - given).max() < BALANCED
    z = branch.r + 1j * branch.x
    series, tap = 1 / z, branch.tap * np.exp(1j * np.deg2rad(branch["shift"]))
    expected = {
        "Yff": (series + 0.5j * branch.b) / branch.tap**2, "Yft": -series / np.conj(tap),
        "Ytf": -series / tap, "Ytt": series + 0.5j * branch.b,
    }  # fmt: skip
    on = branch.br_status == 1
    for name, values in expected.items():
        stored = branch[f"{name}_r"] + 1j * branch[f"{name}_i"]
        assert np.abs(stored - values)[on].max() < 1e-11
        assert (stored[~on] == 0).all()
    gens = found["gen_data"].groupby(["scenario", "bus"])[["p_mw", "q_mvar"]].sum()
    of_bus = bus.set_index(["scenario", "bus"]).loc[gens.index, ["Pg", "Qg"]]
    assert np.abs(gens.to_numpy() - of_bus.to_numpy()).max() < 1e-9


def test_what_varies_varies_as_asked(varied):
    network, branch = gs.read_grid("case14"), tables(varied)["branch_data"]
    num_out = (branch.br_status == 0).groupby(branch.scenario).sum()
    assert abs((num_out == 1).mean() - 0.3) < 0.07  # three standard errors of 450 draws
    assert abs((num_out == 2).mean() - 0.1) < 0.05
    labels = pq.read_table(varied / "labels").to_pandas()
    assert (labels.outage.str.count("line|trafo").to_numpy() == num_out.to_numpy()).all()
    first, second = branch[branch.scenario == 0], branch[branch.scenario == 200]
    both = (first.br_status.to_numpy() == 1) & (second.br_status.to_numpy() == 1)
    assert (first.x.to_numpy() != second.x.to_numpy())[both].all()
    within = branch[branch.scenario < 200].groupby("idx").x.nunique()  # those that are out too
    assert (within == 1).all()
    bus = tables(varied)["bus_data"]
    moved = bus[bus.PQ == 0].Vm.to_numpy().reshape(450, -1) - network.bus_v_set[network.controlled]
    assert 0.01 < np.abs(moved).max() <= 0.02 + 1e-12


def test_generators_share_what_the_demand_differs(tmp_path):
    config = DataSetConfig(grid="case30", num_scenarios=20)
    shared = tables(write_data_set(config, tmp_path / "shared").folder)
    slack = tables(write_data_set(replace(config, redispatch=False), tmp_path / "slack").folder)
    network = gs.read_grid("case30")
    p = shared["gen_data"].p_mw.to_numpy().reshape(20, -1)[:, network.scheduled_gen]
    schedule = network.gen_p[network.scheduled_gen] * network.base_mva
    demand = shared["bus_data"].groupby("scenario").Pd.sum().to_numpy()
    nominal = network.load_power.real.sum() * network.base_mva
    steps = np.outer(demand - nominal, schedule / schedule[schedule > 0].sum())
    np.testing.assert_allclose(p, schedule + np.where(schedule > 0, steps, 0), atol=1e-9)
    of_slack = slack["gen_data"].p_mw.to_numpy().reshape(20, -1)[:, network.scheduled_gen]
    np.testing.assert_allclose(of_slack, np.tile(schedule, (20, 1)), atol=1e-12)


HARD = DataSetConfig(grid="case14", num_scenarios=900, spread=8.0, seed=3)
"""A sixth of the scenarios has no solution."""


def test_a_killed_run_goes_on_to_the_same_files(tmp_path, monkeypatch):
    monkeypatch.setattr(solved_rows, "MOST_ROWS", 200)
    whole = write_data_set(HARD, tmp_path / "whole", threads=2)

    def killed(done: int, total: int) -> None:
        if done > 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_data_set(HARD, tmp_path / "killed", threads=1, progress=killed)
    again = write_data_set(HARD, tmp_path / "killed", threads=1)
    assert 300 < again.resumed < 900
    assert again.status == whole.status
    assert again.num_rows == sum(again.status.values()) == 900
    for name in COLUMNS:
        mine, other = tables(whole.folder)[name], tables(again.folder)[name]
        pd.testing.assert_frame_equal(mine.drop(columns="ac", errors="ignore"),
                                      other.drop(columns="ac", errors="ignore"))  # fmt: skip
    labels = [pq.read_table(one.folder / "labels").to_pandas() for one in (whole, again)]
    labels = [one.sort_values("load_scenario_idx", ignore_index=True) for one in labels]
    pd.testing.assert_frame_equal(*labels)
    failed = labels[0][labels[0].status != "solved"]
    assert 0 < len(failed) < 450
    assert (failed.scenario == -1).all()
    assert not failed.secure.any()
    assert labels[0].load_scenario_idx.tolist() == list(range(900))
    cases = tables(whole.folder)["runtime_data"]
    assert cases.scenario.tolist() == list(range(900 - len(failed)))
    solved = labels[0][labels[0].status == "solved"]
    assert cases.load_scenario_idx.tolist() == solved.load_scenario_idx.tolist()
    finished = write_data_set(HARD, tmp_path / "whole")
    assert finished.resumed == 900
    assert finished.us_per_row is None


def test_a_disk_that_is_too_small_is_told_early(tmp_path, monkeypatch):
    monkeypatch.setattr(solved_rows, "MOST_ROWS", 200)
    usage = type(shutil.disk_usage(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9 - 1000, 1000))
    told = r"scenarios that are left need about [0-9.]+ .* which has .*; ask for fewer"
    with pytest.raises(StorageError, match=told):
        write_data_set(HARD, tmp_path, threads=1)
    monkeypatch.undo()
    assert 0 < write_data_set(HARD, tmp_path, threads=1).resumed < 900


def test_labels_count_limits_as_the_tables_say(tmp_path):
    config = DataSetConfig(grid="case30", num_scenarios=60, spread=0.6)
    made = write_data_set(config, tmp_path)
    network, bus = gs.read_grid("case30"), tables(made.folder)["bus_data"]
    labels = pq.read_table(made.folder / "labels").to_pandas().set_index("scenario")
    low = (bus.Vm < bus.min_vm_pu).groupby(bus.scenario).sum()
    high = (bus.Vm > bus.max_vm_pu).groupby(bus.scenario).sum()
    assert (labels.num_low == low).all()
    assert (labels.num_high == high).all()
    v = (bus.Vm * np.exp(1j * np.deg2rad(bus.Va))).to_numpy().reshape(60, -1)
    from gridshift.grid.equations import branch_loading

    loading = branch_loading(network, v)[:, network.branch_rated]
    np.testing.assert_allclose(labels.worst_loading, loading.max(1), rtol=1e-9)
    assert (labels.num_overloads == (loading > 1).sum(1)).all()
    assert labels.num_overloads.any()
    assert (labels.secure == ((loading <= 1).all(1) & (low + high == 0))).all()


def test_cases_read_back_are_the_scenarios_they_were_solved_for(varied):
    network, cases = gs.read_grid("case14"), read_cases(varied.parent)
    drawn = draw(network, Uncertainty(table=ScenarioTable(source=varied)))
    intact = np.flatnonzero((cases.in_service == 1).all(1))[:40]
    same = DataSetConfig(grid="case14", num_scenarios=450, spread=0.3)
    other = draw(
        network, Uncertainty(loads=data_set.SpreadOfLoads(spread=0.3, regime="fixed")), 450
    )
    assert same.seed == 0
    p = drawn.loads.rows(slice(None)).load_p[:, : network.num_loads]
    np.testing.assert_allclose(p, other.loads.rows(slice(None)).load_p, atol=1e-12)
    assert drawn.generators == ("gen:0",)
    assert len(intact) == 40
    table = read_table(varied)
    assert table.num_rows == 450
    np.testing.assert_array_equal(table["vm_3"], cases.magnitude[:, 3])
    out = np.flatnonzero((cases.in_service == 0).any(0))
    assert [name for name in table.column_names if name.startswith("br")] == [
        f"br_status_{e}" for e in out
    ]


@pytest.mark.parametrize("form", ["gridfm", "pfdelta"])
def test_scenarios_of_a_data_set_have_its_solutions(form, tmp_path):
    network = gs.read_grid("case30")
    write_data_set(DataSetConfig(grid="case30", num_scenarios=12, format=form), tmp_path)
    cases = read_cases(tmp_path)
    drawn = draw(network, Uncertainty(table=ScenarioTable(source=tmp_path)))
    voltage = gs.solve(drawn.network, drawn.loads.rows(slice(None))).voltage
    np.testing.assert_allclose(np.abs(voltage), cases.magnitude, atol=1e-9)
    np.testing.assert_allclose(np.rad2deg(np.angle(voltage)), cases.angle, atol=1e-7)


def test_a_sample_of_pfdelta_balances_by_the_equations_of_power_models(tmp_path):
    made = write_data_set(replace(VARIED, format="pfdelta", num_scenarios=30), tmp_path)
    samples = sorted(made.folder.glob("n*/raw/sample_*.json"))
    assert len(samples) == 30
    assert {path.parent.parent.name for path in samples} == {"n", "n-1", "n-2"}
    for path in samples[::6]:
        content = json.loads(path.read_text())
        network, solution = content["network"], content["solution"]["solution"]
        v = {k: b["vm"] * np.exp(1j * b["va"]) for k, b in solution["bus"].items()}
        left = dict.fromkeys(v, 0j)
        for key, branch in network["branch"].items():
            f, t = str(branch["f_bus"]), str(branch["t_bus"])
            if branch["br_status"] == 0:
                assert set(solution["branch"][key].values()) == {0.0}
                continue
            y = 1 / (branch["br_r"] + 1j * branch["br_x"])
            tap = branch["tap"] * np.exp(1j * branch["shift"])
            own = (y + branch["g_fr"] + 1j * branch["b_fr"]) / branch["tap"] ** 2
            s_f = v[f] * np.conj(own * v[f] - y / np.conj(tap) * v[t])
            s_t = v[t] * np.conj((y + branch["g_to"] + 1j * branch["b_to"]) * v[t] - y / tap * v[f])
            told = solution["branch"][key]
            assert abs(s_f - told["pf"] - 1j * told["qf"]) < 1e-11
            assert abs(s_t - told["pt"] - 1j * told["qt"]) < 1e-11
            left[f], left[t] = left[f] + s_f, left[t] + s_t
        for shunt in network["shunt"].values():
            bus = str(shunt["shunt_bus"])
            left[bus] += abs(v[bus]) ** 2 * (shunt["gs"] - 1j * shunt["bs"])
        for load in network["load"].values():
            left[str(load["load_bus"])] += load["pd"] + 1j * load["qd"]
        for key, gen in network["gen"].items():
            told = solution["gen"][key]
            left[str(gen["gen_bus"])] -= told["pg"] + 1j * told["qg"]
        assert max(map(abs, left.values())) < BALANCED
        out = sum(branch["br_status"] == 0 for branch in network["branch"].values())
        assert path.parent.parent.name == ("n" if out == 0 else f"n-{out}")


def rewritten(found: dict[str, pd.DataFrame], folder: Path, *, size: int = 0) -> Path:
    """The tables as other programs write them: whole, or in partitions of another size."""
    for name, table in found.items():
        path = folder / f"{name}.parquet"
        table = table.drop(columns="scenario_partition")
        if size:
            for part, rows in table.groupby(table.scenario // size):
                (path / f"scenario_partition={part}").mkdir(parents=True)
                rows.to_parquet(path / f"scenario_partition={part}" / "x.parquet", index=False)
        else:
            table.to_parquet(path, index=False)
    return folder


def test_limits_of_generators_are_those_of_matpowers_file(tmp_path):
    source = case_file("case24_ieee_rts")
    text = source.read_text().partition("mpc.gen = [")[2].partition("];")[0]
    lines = [line.partition("%")[0].strip(" \t;") for line in text.splitlines()]
    rows = np.array([[float(cell) for cell in line.split()] for line in lines if line])
    expected = {"max_q_mvar": 3, "min_q_mvar": 4, "max_p_mw": 8, "min_p_mw": 9}
    config = DataSetConfig(grid=str(source), num_scenarios=2, spread=0.01)
    table = tables(write_data_set(config, tmp_path / "a").folder)["gen_data"]
    assert (table.is_slack_gen == 1).any()
    for name, column in expected.items():
        np.testing.assert_allclose(table[name], np.tile(rows[:, column], 2), rtol=1e-14)
    write_data_set(replace(config, format="pfdelta"), tmp_path / "b")
    (sample, *_) = sorted((tmp_path / "b").rglob("sample_1.json"))
    gens = json.loads(sample.read_text())["network"]["gen"]
    for key, column in {"qmax": 3, "qmin": 4, "pmax": 8, "pmin": 9}.items():
        found = [gens[str(number + 1)][key] for number in range(len(rows))]
        np.testing.assert_allclose(found, rows[:, column] / 100, rtol=1e-14)
    # a grid that says nothing has none: pandapower's external grid of case14 has no Q limits
    net = pandapower.networks.case14()
    net.gen[["min_q_mvar", "max_p_mw"]] = np.nan
    pp.to_json(net, tmp_path / "c.json")
    config = DataSetConfig(grid=str(tmp_path / "c.json"), num_scenarios=1)
    table = tables(write_data_set(config, tmp_path / "c").folder)["gen_data"]
    others = table.is_slack_gen == 0
    assert (table.min_q_mvar[others] == -np.inf).all()
    assert (table.max_p_mw[others] == np.inf).all()
    assert np.isfinite(table.max_q_mvar[others]).all()


def test_variants_of_gridfm_are_read_alike(varied, tmp_path):
    found = tables(varied)
    mine = read_cases(varied)
    for name in found:
        found[name] = found[name].sample(frac=1, random_state=1).drop(columns="load_scenario_idx")
        found[name] = found[name][sorted(found[name].columns)]
    found["branch_data"] = found["branch_data"].astype({"br_status": "int64", "idx": "int64"})
    (tmp_path / "whole").mkdir()
    for folder in (
        rewritten(found, tmp_path / "whole"),
        rewritten(found, tmp_path / "by100", size=100),
    ):
        other = read_cases(folder)
        for field in ("scenario", "demand_p", "bus_q", "angle", "gen_p", "in_service", "gen_bus"):
            np.testing.assert_array_equal(getattr(mine, field), getattr(other, field))


def test_continuation_samples_are_read(tmp_path):
    write_data_set(DataSetConfig(grid="case14", num_scenarios=3, format="pfdelta"), tmp_path)
    cases = read_cases(tmp_path)
    for path in tmp_path.glob("case14/n/raw/*.json"):
        content = json.loads(path.read_text())
        network, found = content["network"], content["solution"]["solution"]
        for kind in ("bus", "gen"):
            for key, values in found[kind].items():
                network[kind][key] |= values
        path.write_text(json.dumps({"solved_net": network}))
    again = read_cases(tmp_path)
    np.testing.assert_array_equal(cases.magnitude, again.magnitude)
    np.testing.assert_array_equal(cases.bus_q, again.bus_q)


def test_files_are_the_same_where_pyarrow_lays_them_out_otherwise(tmp_path, monkeypatch):
    config = DataSetConfig(grid="case14", num_scenarios=450)
    mine = tables(write_data_set(config, tmp_path / "mine").folder)
    monkeypatch.setattr(parquet_like.FilesAlike, "_found", lambda self: None)
    other = tables(write_data_set(config, tmp_path / "other").folder)
    for name in COLUMNS:
        pd.testing.assert_frame_equal(mine[name].drop(columns="ac", errors="ignore"),
                                      other[name].drop(columns="ac", errors="ignore"))  # fmt: skip


def test_what_cannot_be_written_says_why(varied, tmp_path):
    told = r"holds another data set: variation.impedance 0\.1 and 0\.3, seed 0 and 9; choose"
    other = replace(VARIED, seed=9, variation=replace(VARIED.variation, impedance=0.3))
    with pytest.raises(StorageError, match=told):
        write_data_set(other, varied.parent)
    hard = DataSetConfig(grid="case14", num_scenarios=50, spread=40)
    with pytest.raises(NotConvergedError, match="most of 50 scenarios"):
        write_data_set(hard, tmp_path)
    with pytest.raises(NotConvergedError, match="most of 1 scenario have"):
        write_data_set(replace(hard, num_scenarios=1, seed=2), tmp_path / "none")
    (labels,) = (tmp_path / "none" / "case14" / "labels").iterdir()
    assert pq.read_schema(labels) == pq.read_schema(next((varied / "labels").iterdir()))
    with pytest.raises(ScenarioError, match="no format 'csv'; choose gridfm or pfdelta"):
        DataSetConfig(grid="case14", format="csv")  # type: ignore[arg-type]
    with pytest.raises(UncertaintyError, match="from 0 to 1, and not more than 1 together"):
        Variation(outages=(0.7, 0.7))
    with pytest.raises(UncertaintyError, match=r"impedance: 1\.5 must be"):
        Variation(impedance=1.5)
    with pytest.raises(TableError, match="holds neither gridfm's"):
        read_cases(tmp_path / "nothing")
    network = gs.read_grid("case30")
    with pytest.raises(UncertaintyError, match="has 14 buses and case30 has 30"):
        draw(network, Uncertainty(table=ScenarioTable(source=varied)))


def test_a_damaged_table_says_what_is_wrong(varied, tmp_path):
    found = {name: table.copy() for name, table in tables(varied).items()}
    found["bus_data"].loc[5, "Vm"] = np.nan
    with pytest.raises(TableError, match="Vm of bus_data has an empty cell, NaN or infinity in"):
        read_cases(rewritten(found, tmp_path))
    found = tables(varied)
    found["bus_data"] = found["bus_data"].iloc[1:]
    with pytest.raises(TableError, match="bus_data has 13 rows of case 0 and 14 of case 1"):
        read_cases(rewritten(found, tmp_path))
    found = tables(varied)
    found["gen_data"] = found["gen_data"].drop(columns="q_mvar")
    with pytest.raises(TableError, match="lacks column q_mvar"):
        read_cases(rewritten(found, tmp_path))


def test_cases_are_judged_by_the_limits_of_the_study_file(tmp_path):
    (tmp_path / "ratings.csv").write_text("element,normal_mva\nline:0,1\n")
    study = tmp_path / "study.toml"
    text = 'grid = "case9"\nscenarios = 20\nseed = 1\n[loads]\nspread = 0.1\n'
    found = []
    for limits in ("", '[limits]\nv_max = 1.0\nratings = "ratings.csv"\n'):
        study.write_text(text + limits)
        folder = tmp_path / f"{len(found)}"
        write_data_set(DataSetConfig.of_study(study), folder)
        found.append(pq.read_table(folder / "case9" / "labels").to_pandas())
    assert (found[1].num_high > found[0].num_high).all()
    assert (found[1].num_overloads > found[0].num_overloads).all()
    assert not found[1].secure.any()
    study.write_text(text + "[limits]\nv_max = 1.01\n")
    with pytest.raises(StorageError, match="another data set"):
        write_data_set(DataSetConfig.of_study(study), tmp_path / "0")
    (tmp_path / "ratings.csv").write_text("element,normal_mva\nline:99,1\n")
    study.write_text(text + '[limits]\nratings = "ratings.csv"\n')
    with pytest.raises(GridshiftError, match="line:99"):
        write_data_set(DataSetConfig.of_study(study), tmp_path / "2")
