"""Studies whose scenarios a study file describes."""

from dataclasses import replace

import numpy as np
import pandapower.networks
import pandas as pd
import pytest

from gridshift.errors import OutageError, ScenarioError
from gridshift.grid.powerflow import solve
from gridshift.grid.readers import read_grid
from gridshift.study.risk import risk_of
from gridshift.study.screening import ScreenConfig
from gridshift.study.study_file import read_study_file
from gridshift.study.sweep import screen

LOADS = """
[[loads.group]]
distribution = "normal"
sd = 0.1
[outages]
contingencies = "few.txt"
[limits]
v_min = 1.0
rating_mva = 120.0
emergency_factor = 1.1
"""


def written(tmp_path, text, head='grid = "case14"\nscenarios = 64\nseed = 3\n'):
    (tmp_path / "few.txt").write_text("line:2\nline:4\n")
    (tmp_path / "study.toml").write_text(head + text)
    return tmp_path / "study.toml"


def test_the_file_says_what_is_studied_and_what_is_given_takes_its_place(tmp_path):
    config = ScreenConfig.of_study(written(tmp_path, LOADS), seed=4)
    assert (config.grid, config.num_scenarios, config.seed) == ("case14", 64, 4)
    assert (config.v_min, config.v_max, config.rating_mva) == (1.0, None, 120.0)
    assert config.emergency_rating == 1.1
    assert config.contingencies == str(tmp_path / "few.txt")
    config = ScreenConfig.of_study(written(tmp_path, "[loads]\nspread = 0.1\nregime = 'fixed'\n"))
    assert (config.spread, config.regime) == (0.1, "fixed")
    with pytest.raises(ScenarioError, match="leave out the spread"):
        ScreenConfig.of_study(written(tmp_path, LOADS), spread=0.3)


def test_rows_are_those_of_the_scenarios_that_the_file_draws(case14, tmp_path):
    path = written(tmp_path, LOADS)
    study = screen(ScreenConfig.of_study(path, workers=1), network=case14)
    drawn = read_study_file(path).draw(case14)
    assert len(study.rows) == 2
    for row in study.rows:
        left = drawn.network.without([row.outage])
        from gridshift.study.limits import with_limits

        limited = with_limits(left, v_min=1.0, rating_mva=120.0)
        risk = risk_of(limited, solve(left, drawn.loads).voltage)
        assert row.num_scenarios == 64
        assert row.excess == pytest.approx(risk.excess, rel=1e-6)
        assert row.any_overload == risk.any_overload


def test_a_spread_in_the_file_gives_the_rows_of_the_same_options(case14, tmp_path):
    path = written(tmp_path, '[loads]\nspread = 0.1\n[outages]\ncontingencies = "few.txt"\n')
    described = screen(ScreenConfig.of_study(path, workers=1), network=case14)
    options = ScreenConfig(
        grid="case14", contingencies=str(tmp_path / "few.txt"), num_scenarios=64, seed=3,
        spread=0.1, workers=1,
    )  # fmt: skip
    for a, b in zip(described.rows, screen(options, network=case14).rows, strict=True):
        assert (a.outage, a.severity, a.shift) == (b.outage, b.severity, b.shift)


GENERATION = """
[[generation.varying]]
elements = ["gen:0"]
distribution = "uniform"
low = 0.2
high = 1.0
[outages]
contingencies = "generators"
"""


def test_generation_varies_and_one_of_its_generators_may_be_out(case14, tmp_path):
    path = written(tmp_path, GENERATION)
    study = screen(ScreenConfig.of_study(path, workers=1), network=case14)
    rows = {row.outage: row for row in study.rows}
    assert set(rows) == {f"gen:{i}" for i in range(4)}
    assert {row.status for row in study.rows} == {"solved"}
    assert study.network.load_labels[-1] == "gen:0"
    # without gen:0 its drawing leaves no trace: loads alone vary
    alone = screen(
        ScreenConfig(
            grid="case14", contingencies="generators", num_scenarios=64, seed=3, workers=1
        ),
        network=case14,
    )
    same = {row.outage: row for row in alone.rows}["gen:0"]
    np.testing.assert_allclose(rows["gen:0"].bus_voltage_mean, same.bus_voltage_mean, atol=1e-9)
    assert np.abs(rows["gen:1"].bus_voltage_mean - alone.rows[0].bus_voltage_mean).max() > 1e-6


def test_a_method_that_predicts_from_loads_is_refused_where_generation_varies(case14, tmp_path):
    path = written(tmp_path, GENERATION)
    for given in ({"method": "ridge"}, {"beside": ("ridge",)}):
        with pytest.raises(ScenarioError, match="solve exactly"):
            screen(ScreenConfig.of_study(path, num_context=10, **given), network=case14)


def test_contexts_and_hold_outs_are_rows_of_the_study(case14, tmp_path):
    path = written(tmp_path, LOADS)
    asked = {"method": "ridge", "num_context": 40, "num_holdout": 20, "workers": 1}
    study = screen(ScreenConfig.of_study(path, **asked), network=case14)
    assert {row.status for row in study.rows} == {"solved"}
    assert all(row.num_context == 40 and row.num_solves == 60 for row in study.rows)
    assert max(row.mae["overall"] for row in study.rows) < 1e-2
    with pytest.raises(ScenarioError, match="need 70"):
        screen(ScreenConfig.of_study(path, **(asked | {"num_holdout": 30})), network=case14)


def test_a_table_is_taken_as_a_whole_and_other_contents_are_another_study(case14, tmp_path):
    factors = np.random.default_rng(0).uniform(0.8, 1.2, 30)
    table = pd.DataFrame({"load:0": 21.7 * factors, "load:1": 94.2 * factors})
    text = '[table]\nsource = "table.csv"\n[outages]\ncontingencies = "few.txt"\n'
    path = written(tmp_path, text, head='grid = "case14"\n')
    table.to_csv(tmp_path / "table.csv", index=False)
    config = ScreenConfig.of_study(path, workers=1)
    assert config.num_scenarios == 30
    first = screen(config, network=case14, folder=tmp_path / "out")
    again = screen(config, network=case14, folder=tmp_path / "out")
    assert (first.cost["resumed"], again.cost["resumed"]) == (0, 2)
    (table * 1.001).to_csv(tmp_path / "table.csv", index=False)
    other = screen(config, network=case14, folder=tmp_path / "out")
    assert other.cost["resumed"] == 0
    assert {r.shift for r in other.rows}.isdisjoint({r.shift for r in first.rows})


def test_outages_are_those_in_an_area_of_the_grid_or_of_the_file(tmp_path):
    case30 = read_grid("case30")
    net = pandapower.networks.case30()
    zone = net.bus.zone
    config = ScreenConfig(grid="case30", area="2", num_scenarios=2, num_holdout=2, workers=1)
    found = {row.outage for row in screen(config, network=case30).rows}
    ends = net.line[["from_bus", "to_bus"]].map(zone.get)
    assert found == {f"line:{k}" for k in net.line.index[(ends == 2).any(axis=1)]}
    assert 5 < len(found) < 41
    pairs = screen(replace(config, contingencies="n-2", num_scenarios=1), network=case30)
    assert len(pairs.rows) == len(found) * (len(found) - 1) // 2
    file = written(
        tmp_path, '[areas.few]\nbuses = ["bus:0", "bus:1"]\n[outages]\narea = "few"\n',
        'grid = "case30"\nscenarios = 2\n',
    )  # fmt: skip
    rows = screen(ScreenConfig.of_study(file, workers=1, num_holdout=2), network=case30).rows
    near = net.line[["from_bus", "to_bus"]].isin([0, 1]).any(axis=1)
    assert {row.outage for row in rows} == {f"line:{k}" for k in net.line.index[near]}
    with pytest.raises(OutageError, match=r"no area 'north'; there are 1, 2, 3 \(case30\)"):
        screen(replace(config, area="north"), network=case30)
    given = (
        '[areas.few]\nbuses = ["bus:3"]\n[outages]\narea = "few"\ncontingencies = "generators"\n'
    )
    file = written(tmp_path, given, 'grid = "case30"\nscenarios = 2\n')
    with pytest.raises(OutageError, match="none of 5 outages is in area 'few'"):
        screen(ScreenConfig.of_study(file, workers=1), network=case30)


def test_a_group_of_loads_may_be_an_area_of_the_grid(tmp_path):
    case30 = read_grid("case30")
    file = written(
        tmp_path, '[[loads.group]]\narea = "2"\ndistribution = "uniform"\nlow = 0.5\nhigh = 1.5\n',
        'grid = "case30"\nscenarios = 20\n',
    )  # fmt: skip
    net = pandapower.networks.case30()
    drawn = read_study_file(file).draw(case30).loads
    varies = np.ptp(drawn.load_p, axis=0) > 0
    assert varies.tolist() == (net.bus.zone.loc[net.load.bus] == 2).tolist()
