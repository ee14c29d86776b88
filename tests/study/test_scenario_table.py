"""Scenarios that a table or a time series gives."""

import numpy as np
import pandas as pd
import pytest
from pandapower.timeseries import DFData

from gridshift.study.description import UncertaintyError
from gridshift.study.generation import Balance
from gridshift.study.scenario_table import ScenarioTable
from gridshift.study.uncertainty import Uncertainty, draw


def _drawn(network, table, num_rows=None, **given):
    return draw(network, Uncertainty(table=table, **given), num_rows)


def _column(drawn, label, part="load_p"):
    at = drawn.network.load_labels.index(label)
    return getattr(drawn.loads, part)[:, at] * drawn.network.base_mva


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_in_mw_sets_its_elements_and_leaves_the_others(case30, tmp_path, ending):
    frame = pd.DataFrame(
        {
            "load:0": [10.0, 20.0],
            "load:3": [5.0, 6.0],
            "load:3:q": [1.0, -2.0],
            "gen:1": [30.0, 50.0],
        }
    )
    path = tmp_path / f"rows.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    drawn = _drawn(case30, ScenarioTable(source=path))
    np.testing.assert_allclose(_column(drawn, "load:0"), [10, 20])
    ratio = case30.load_power[0].imag / case30.load_power[0].real
    np.testing.assert_allclose(_column(drawn, "load:0", "load_q"), [10 * ratio, 20 * ratio])
    np.testing.assert_allclose(_column(drawn, "load:3"), [5, 6])
    np.testing.assert_allclose(_column(drawn, "load:3", "load_q"), [1, -2])
    np.testing.assert_allclose(_column(drawn, "gen:1"), [-30, -50])
    assert drawn.generators == ("gen:1",)
    np.testing.assert_array_equal(drawn.loads.load_power[:, 1], np.tile(case30.load_power[1], 2))
    np.testing.assert_array_equal(drawn.table_rows, [0, 1])


def test_profiles_of_a_pandapower_data_source_scale_what_is_mapped_to_them(case30):
    profiles = pd.DataFrame({"H0-A": [0.1, 0.5, 1.0], "H0-A_q": [0.2, 0.4, 0.9], "PV1": [0, 1, 0]})
    table = ScenarioTable(
        source=DFData(profiles).df,
        unit="relative",
        columns={"load:0": "H0-A", "load:1": "H0-A", "load:1:q": "H0-A_q", "gen:2": "PV1"},
    )
    drawn, power = _drawn(case30, table), case30.load_power * case30.base_mva
    np.testing.assert_allclose(_column(drawn, "load:0"), power[0].real * profiles["H0-A"])
    np.testing.assert_allclose(_column(drawn, "load:0", "load_q"), power[0].imag * profiles["H0-A"])
    np.testing.assert_allclose(
        _column(drawn, "load:1", "load_q"), power[1].imag * profiles["H0-A_q"]
    )
    scheduled = case30.gen_p[case30.gen_labels.index("gen:2")] * case30.base_mva
    np.testing.assert_allclose(_column(drawn, "gen:2"), -scheduled * profiles["PV1"])


def test_a_simbench_file_of_profiles_is_read(case30, tmp_path):
    path = tmp_path / "LoadProfile.csv"
    path.write_text("time;H0-A_pload;H0-A_qload\n01.01.2016 00:00;0.5;0.25\n01.01.2016 00:15;1;1\n")
    columns = {"load:0": "H0-A_pload", "load:0:q": "H0-A_qload"}
    drawn = _drawn(case30, ScenarioTable(source=path, unit="relative", columns=columns))
    power = case30.load_power[0] * case30.base_mva
    np.testing.assert_allclose(_column(drawn, "load:0"), power.real * np.array([0.5, 1]))
    np.testing.assert_allclose(_column(drawn, "load:0", "load_q"), power.imag * np.array([0.25, 1]))


def test_fewer_rows_than_the_table_has_are_chosen_once_each(case30):
    table = ScenarioTable(source={"load:0": np.arange(100.0)})
    drawn = _drawn(case30, table, 30)
    rows = drawn.table_rows
    assert rows is not None
    assert len({*rows.tolist()}) == 30
    assert (np.diff(rows) > 0).all()
    np.testing.assert_allclose(_column(drawn, "load:0"), rows)


def test_what_a_table_changes_is_balanced_too(case30):
    table = ScenarioTable(source={"load:0": [20.0, 30.0]})
    drawn = _drawn(case30, table, balance=Balance(by="given", weights={"gen:1": 1}))
    change = np.array([20.0, 30.0]) - case30.load_power[0].real * case30.base_mva
    nominal = case30.gen_p[case30.gen_labels.index("gen:1")] * case30.base_mva
    np.testing.assert_allclose(_column(drawn, "gen:1"), -nominal - change)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (
            {"source": {"load:0": [1.0], "load:98": [1], "lod:1": [2]}},
            "table.source: load:98, lod:1 in the table are no element of case30; did you mean load",
        ),
        ({"source": {"time": [1.0], "load:1": [2]}}, "time in the table is no element .*'ignore'"),
        ({"source": {"load:1": [2]}, "ignore": ("time",)}, "table.ignore: no column time in the"),
        ({"source": {"ext_grid:0": [1.0]}}, "ext_grid:0 in the table: at a slack bus"),
        ({"source": {"gen:1:q": [1.0]}}, "gen:1:q in the table: the generator holds a voltage"),
        ({"source": {"load:1": [1.0, np.nan]}}, "column load:1 of the table has an empty .* row 2"),
        ({"source": {"load:1": ["a"]}}, "column load:1 of the table holds something else than num"),
        (
            {"source": {"load:1": [1.0, 2.0], "load:2": [1.0]}},
            "column load:2 of the table has 1 and load:1 has 2 rows",
        ),
        (
            {"source": {"H0": [1.0]}, "columns": {"load:1": "H0", "load:2": "H1"}},
            "table.columns: no column H1 in the table; there are H0",
        ),
        (
            {"source": {"H0": [1.0]}, "columns": {"load:99": "H0"}},
            "table.columns: load:99 in the table is no element of case30",
        ),
        ({"source": {}}, "the table has no column of an element"),
        ({"source": 3}, "3; give a file, a mapping of columns or a pandas frame"),
        ({"source": "nowhere.csv"}, "table.source: cannot read nowhere.csv"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(case30, table, told):
    with pytest.raises(UncertaintyError, match=told):
        _drawn(case30, ScenarioTable(**table))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"unit": "kw"}, "unit: no unit 'kw'; choose mw, relative"),
        ({"columns": {"load:1": "a"}, "ignore": ("b",)}, "ignore: give it only where columns"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(given, told):
    with pytest.raises(UncertaintyError, match=told):
        ScenarioTable(source={}, **given)


def test_more_rows_than_the_table_has_are_refused(case30):
    with pytest.raises(UncertaintyError, match="scenarios: 3 asked for and the table has 1"):
        _drawn(case30, ScenarioTable(source={"load:1": [1.0]}), 3)


def test_distributions_beside_a_table_are_refused():
    from gridshift.study.spread import SpreadOfLoads

    with pytest.raises(UncertaintyError, match="table: scenarios come from it"):
        Uncertainty(table=ScenarioTable(source={}), loads=SpreadOfLoads())
