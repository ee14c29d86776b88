"""`fit-table`, `adapt-table`, `predict-table` and `export`: what they give and what they refuse."""

import gzip
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pandapower
import pandapower.networks
import pytest
from click.testing import CliRunner, Result

from gridshift.cli import main
from gridshift.exchange.tables import read_table
from gridshift.learn.onnx_graph import onnx_predict
from tests.tables import solved_cases, write, write_tables

COLUMNS = ("--inputs", "p_*,q_0", "--outputs", "v_*")
QUICK = ("--base", "mlp", "--steps", "300", "--hidden", "32")


def gridshift(*args: str | Path) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def payload(*args: str | Path) -> dict:
    result = gridshift(*args, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*args: str | Path) -> str:
    """The one line with which the command refuses."""
    result = gridshift(*args)
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    return line


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> Path:
    """A folder with three tables, a model and the model adapted."""
    folder = tmp_path_factory.mktemp("tables")
    write_tables(folder)
    payload("fit-table", folder / "intact.parquet", *COLUMNS, *QUICK, "--out", folder / "model")
    payload(
        "adapt-table", folder / "model", folder / "outage.csv", "--moments", "paired",
        "--onnx", folder / "outage.onnx", "--out", folder / "adapted",
    )  # fmt: skip
    return folder


# what they give


def test_a_fit_tells_its_error_on_rows_that_it_did_not_see(here, tmp_path):
    found = payload(
        "fit-table", here / "intact.parquet", *COLUMNS, *QUICK, "--out", tmp_path / "again"
    )
    assert (found["num_rows"], found["num_holdout"]) == (270, 30)
    assert (found["num_inputs"], found["num_outputs"]) == (5, 3)
    assert found["constant_inputs"] == ["q_0"]
    assert found["mae"] < found["mae_of_mean"] / 10
    assert found["mae"] == pytest.approx(np.mean([*found["mae_by_output"].values()]))


def test_adapting_says_whether_it_was_worth_it(here, tmp_path):
    found = payload(
        "adapt-table", here / "model", here / "outage.csv", "--moments", "auto",
        "--out", tmp_path / "adapted",
    )  # fmt: skip
    mae = found["mae"]
    assert set(mae) == {"frozen", "context", "paired", "compensation"}
    assert mae[found["method"]] == min(mae.values()) < mae["frozen"] / 3


def test_auto_leaves_a_model_frozen_where_nothing_has_changed(here, tmp_path):
    write(solved_cases(5, 8), tmp_path / "same.csv")
    found = payload(
        "adapt-table", here / "model", tmp_path / "same.csv", "--moments", "auto",
        "--out", tmp_path / "adapted",
    )  # fmt: skip
    assert found["method"] == "frozen"


def test_predictions_are_written_in_the_order_of_the_table(here, tmp_path):
    for out in (tmp_path / "a.csv", tmp_path / "a.parquet", tmp_path / "a.csv.gz"):
        found = payload("predict-table", here / "adapted", here / "test.csv", "--keep", "case",
                        "--out", out)  # fmt: skip
        table, true = read_table(out), solved_cases(2, 40, changed=True)
        assert table.column_names == ["case", "v_0", "v_1", "v_2"]
        np.testing.assert_array_equal(table["case"], true["case"])
        error = np.mean(
            [np.abs(table[v].to_numpy() - true[v]).mean() for v in ("v_0", "v_1", "v_2")]
        )
        assert found["mae"] == pytest.approx(error, rel=1e-6)
        assert error < 2e-3


def test_columns_are_found_by_name_wherever_they_are(here, tmp_path):
    columns = solved_cases(2, 40, changed=True)
    shuffled = write({n: columns[n] for n in reversed(columns)}, tmp_path / "shuffled.parquet")
    for table, out in ((here / "test.csv", "one.csv"), (shuffled, "other.csv")):
        payload("predict-table", here / "adapted", table, "--out", tmp_path / out)
    one, other = (read_table(tmp_path / name) for name in ("one.csv", "other.csv"))
    np.testing.assert_allclose(one["v_1"], other["v_1"], rtol=1e-12)


def test_without_the_outputs_there_are_predictions_but_no_errors(here, tmp_path):
    columns = {n: c for n, c in solved_cases(2, 5).items() if not n.startswith("v_")}
    table = write(columns, tmp_path / "asked.csv")
    found = payload("predict-table", here / "adapted", table, "--out", tmp_path / "out.csv")
    assert (found["mae"], found["mae_by_output"], found["num_rows"]) == (None, {}, 5)


def test_the_onnx_file_of_a_table_predicts_what_the_command_predicts(here, tmp_path):
    payload("predict-table", here / "adapted", here / "test.csv", "--out", tmp_path / "out.parquet")
    table, found = read_table(here / "test.csv"), read_table(tmp_path / "out.parquet")
    x = np.column_stack([table[n].to_numpy() for n in ("p_0", "p_1", "p_2", "p_3", "q_0")])
    y = np.column_stack([found[n].to_numpy() for n in ("v_0", "v_1", "v_2")])
    np.testing.assert_allclose(onnx_predict(here / "outage.onnx", x), y, atol=1e-7)


@pytest.mark.parametrize("mark", [";", "\t", ","])
def test_the_delimiter_of_a_csv_file_is_told_by_its_header(mark, tmp_path):
    path = tmp_path / "cases.csv.gz"
    path.write_bytes(gzip.compress(f"a{mark}b\n1.5{mark}2\n".encode()))
    assert read_table(path).to_pylist() == [{"a": 1.5, "b": 2}]


def test_an_input_that_never_varied_and_now_does_is_warned_of(here, tmp_path):
    columns = solved_cases(2, 5) | {"q_0": np.linspace(0.3, 0.5, 5)}
    table = write(columns, tmp_path / "moved.csv")
    result = gridshift("predict-table", here / "model", table, "--out", tmp_path / "out.csv")
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: ")
    assert "q_0 never varied" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_export_gives_a_model_of_the_adapted_surrogate(tmp_path):
    base, out = tmp_path / "base14", tmp_path / "line2.onnx"
    payload("train", "case14", "--steps", "50", "--rows", "60", "--out", base)
    found = payload(
        "export", "case14", "--outage", "line:2", "--context", "30", "--surrogate", base,
        "--out", out,
    )  # fmt: skip
    assert (found["num_context"], found["num_solves"], found["num_checked"]) == (30, 30, 256)
    assert found["num_bytes"] == out.stat().st_size
    assert found["max_difference"] < 1e-5
    assert onnx_predict(out, np.ones((2, found["num_inputs"]))).shape == (2, found["num_outputs"])


BUSES = {"buses": {"0": {"magnitude": "v_0"}, "1": {"magnitude": "v_1"}, "2": ["v_2"]}}


@pytest.fixture
def closed(here, tmp_path) -> Path:
    """A folder with a closed-form model, ten cases of the other state, and a file of buses."""
    found = payload("fit-table", here / "intact.parquet", *COLUMNS, "--out", tmp_path / "model")
    assert (found["base"], found["num_steps"]) == ("quadratic", None)
    assert found["mae"] < found["mae_of_mean"] / 20
    write(solved_cases(1, 10, changed=True), tmp_path / "ten.csv")
    (tmp_path / "buses.json").write_text(json.dumps(BUSES))
    return tmp_path


@pytest.mark.parametrize("base", ["linear", "quadratic", "mlp"])
def test_every_base_adapts_by_ten_cases_where_the_change_is_named(base, here, tmp_path):
    quick = QUICK if base == "mlp" else ("--base", base)
    payload("fit-table", here / "intact.parquet", *COLUMNS, *quick, "--out", tmp_path / "model")
    ten = write(solved_cases(1, 10, changed=True), tmp_path / "ten.csv")
    found = payload("adapt-table", tmp_path / "model", ten, "--touching", "v_*", "--onnx",
                    tmp_path / "y.onnx", "--out", tmp_path / "out")  # fmt: skip
    assert (found["method"], found["num_context"]) == ("compensation", 10)
    assert found["mae"]["compensation"] < found["mae"]["frozen"] / 50
    assert found["mae"]["compensation"] < min(found["mae"]["context"], found["mae"]["paired"])
    predicted = payload("predict-table", tmp_path / "out", here / "test.csv", "--out",
                        tmp_path / "out.csv")  # fmt: skip
    assert predicted["mae"] < 3 * found["mae"]["compensation"] + 1e-4


@pytest.mark.parametrize(
    "change",
    [("--touching", "v_0,v_2"), ("--touching", "buses.json"),
     ("--touching", "buses.json", "--between", "0,2"),
     ("--touching", "buses.json", "--between", "0,2", "--between", "1,2")],
    ids=" ".join,
)  # fmt: skip
def test_a_change_is_named_by_columns_or_by_buses_of_a_file(change, closed, monkeypatch):
    monkeypatch.chdir(closed)
    found = payload("adapt-table", "model", "ten.csv", *change, "--out", "out")
    assert found["method"] == "compensation"
    assert found["mae"]["compensation"] < found["mae"]["frozen"] / 10


def test_a_toml_file_of_buses_says_what_the_json_file_says(closed):
    (closed / "buses.toml").write_text(
        '[buses]\n0 = {magnitude = "v_0"}\n1 = {magnitude = "v_1"}\n2 = ["v_2"]\n'
    )
    errors = [
        payload("adapt-table", closed / "model", closed / "ten.csv", "--touching",
                closed / f"buses.{kind}", "--out", closed / kind)["mae"]
        for kind in ("toml", "json")
    ]  # fmt: skip
    assert errors[0] == errors[1]


def grid_tables(folder: Path, outage: str | None, num_rows: int) -> Path:
    """A table of case14, intact or not, with angles in degrees; and which columns a bus has."""
    import gridshift as gs

    network = gs.read_grid("case14")
    if outage:
        network = network.without(gs.parse_outage(network, outage))
    loads = gs.sample_loads(
        network, gs.named_rng("case14", outage or "intact"), num_rows, spread=0.2
    )
    voltage = gs.solve(network, loads).voltage
    columns = {f"p_{k}": values for k, values in enumerate(loads.load_p.T)}
    columns |= {f"q_{k}": values for k, values in enumerate(loads.load_q.T)}
    columns |= {f"va_{k}": values for k, values in enumerate(np.degrees(np.angle(voltage)).T)}
    columns |= {f"vm_{k}": values for k, values in enumerate(np.abs(voltage).T)}
    buses = {str(k): {"angle_deg": f"va_{k}", "magnitude": f"vm_{k}"} for k in range(14)}
    (folder / "buses.json").write_text(json.dumps({"buses": buses}))
    return write(columns, folder / f"{outage or 'intact'}.parquet".replace(":", ""))


def test_identify_finds_the_ends_of_the_line_that_is_out_or_refuses(tmp_path):
    intact = grid_tables(tmp_path, None, 400)
    payload("fit-table", intact, "--inputs", "p_*,q_*", "--outputs", "va_*,vm_*",
            "--out", tmp_path / "model")  # fmt: skip
    outaged = grid_tables(tmp_path, "line:2", 10)  # from bus 1 to bus 2
    found = payload("adapt-table", tmp_path / "model", outaged, "--touching",
                    tmp_path / "buses.json", "--identify", "--out", tmp_path / "out")  # fmt: skip
    assert found["identified"]["pair"] == ["1", "2"]
    assert found["identified"]["ranking"][0]["name"] == "1 - 2"
    assert found["mae"]["compensation"] < found["mae"]["frozen"] / 50
    same = grid_tables(tmp_path, None, 12)
    line = refused("adapt-table", tmp_path / "model", same, "--touching", tmp_path / "buses.json",
                   "--identify", "--out", tmp_path / "none")  # fmt: skip
    assert "doesn't tell between which buses" in line
    assert not (tmp_path / "none").exists()


# what they refuse


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (None, ("--touching", "v_9"), "no column of the model's outputs fits touching 'v_9'"),
        (None, ("--touching", "none.json"), "cannot read none.json"),
        (None, ("--identify",), "--identify needs --touching FILE"),
        (None, ("--touching", "v_0", "--between", "0,1"), "--between needs --touching FILE"),
        ("{", (), "no JSON that can be read"),
        ("[]", (), "has no 'buses'"),
        ('{"buses": {"0": ["v_0"]}, "lines": []}', (), "has a key 'lines'"),
        ('{"buses": {"0": 3}}', (), "bus 0 of a.json has '3', not its columns"),
        ('{"buses": {"0": ["v_0"]}, "branches": [["0"]]}', (), "not two buses"),
        ('{"buses": {"0": ["v_0"], "1": ["v_9"]}}', (), "no output 'v_9'; the outputs are v_0"),
        ('{"buses": {"0": ["v_0"]}}', (), "bus 0 alone has nothing to tell from"),
        ('{"buses": {"0": ["v_0"]}}', ("--identify",), "give at least 2"),
        (json.dumps(BUSES), ("--between", "0,7"), "no bus '7' in a.json"),
        (json.dumps(BUSES), ("--between", "0"), "is not two buses"),
    ],
    ids=str,
)
def test_a_change_that_cannot_be_named_so(content, options, words, closed, monkeypatch):
    monkeypatch.chdir(closed)
    if content is not None:
        Path("a.json").write_text(content)
        options = ("--touching", "a.json", *options)
    assert words in refused("adapt-table", "model", "ten.csv", *options, "--out", "out")
    assert not Path("out").exists()


def test_one_case_is_too_few_to_adapt(closed):
    one = write(solved_cases(1, 1, changed=True), closed / "one.csv")
    line = refused("adapt-table", closed / "model", one, "--touching", "v_*", "--out", closed / "o")
    assert "has 1 row; a context needs at least 4" in line


def fit(table: Path, tmp_path: Path, columns: tuple[str, ...] = COLUMNS) -> str:
    line = refused("fit-table", table, *columns, *QUICK, "--out", tmp_path / "model")
    assert not (tmp_path / "model").exists()
    return line


def test_patterns_that_fit_no_column(here, tmp_path):
    columns = ("--inputs", "p_*,x_*", "--outputs", "v_*")
    line = fit(here / "intact.parquet", tmp_path, columns)
    assert "inputs 'x_*'" in line
    assert "case, p_0" in line


def test_a_column_that_would_be_input_and_output(here, tmp_path):
    columns = ("--inputs", "p_*,v_0", "--outputs", "v_*")
    assert "v_0 of" in fit(here / "intact.parquet", tmp_path, columns)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["a.parquet", "a.csv"])
def test_a_value_that_is_not_finite_is_told_by_column_and_row(value, name, tmp_path):
    columns = solved_cases(0, 30)
    columns["v_1"][4] = value
    line = fit(write(columns, tmp_path / name), tmp_path)
    assert "1 of 30 rows" in line
    assert "column v_1, row 5" in line


def test_an_empty_cell(tmp_path):
    path = write(solved_cases(0, 30), tmp_path / "a.csv")
    lines = path.read_text().splitlines()
    lines[3] = lines[3].rsplit(",", 1)[0] + ","
    path.write_text("\n".join(lines) + "\n")
    assert "column v_2, row 3" in fit(path, tmp_path)


def test_a_column_of_text(tmp_path):
    columns = solved_cases(0, 30)
    line = fit(write(columns | {"p_1": np.array(["1,5"] * 30)}, tmp_path / "a.csv"), tmp_path)
    assert "column p_1" in line
    assert "'1,5'" in line


def test_too_few_rows(here, tmp_path):
    assert "at least 20" in fit(write(solved_cases(0, 19), tmp_path / "a.csv"), tmp_path)
    few = write(solved_cases(0, 3), tmp_path / "few.csv")
    out = tmp_path / "adapted"
    assert "at least 4" in refused("adapt-table", here / "model", few, "--out", out)
    none = write(solved_cases(0, 0), tmp_path / "none.parquet")
    out = tmp_path / "out.csv"
    assert "no rows" in refused("predict-table", here / "model", none, "--out", out)


def test_a_table_with_other_columns_than_at_the_fit(here, tmp_path):
    columns = {n: c for n, c in solved_cases(1, 30).items() if n not in ("p_1", "v_2")}
    table = write(columns, tmp_path / "a.csv")
    line = refused("adapt-table", here / "model", table, "--out", tmp_path / "out")
    assert "lacks 1 of 5 columns: p_1" in line
    line = refused("predict-table", here / "model", table, "--out", tmp_path / "out.csv")
    assert "lacks 1 of 5 columns: p_1" in line


def test_two_columns_of_one_name(tmp_path):
    (tmp_path / "a.csv").write_text("p_0,v_0,p_0\n1,2,3\n")
    assert "more than one column p_0" in fit(tmp_path / "a.csv", tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [("a.xlsx", b"PK", ".parquet, .pq, .csv, .csv.gz"), ("a.parquet", b"p_0,v_0\n1,2\n", "parquet"),
     ("a.csv", b"p_0,v_0\n1,2,3\n", "CSV"), ("a.csv", b"", "CSV"), ("a.csv.gz", b"p_0\n1\n", "")],
)  # fmt: skip
def test_a_file_of_another_kind_or_damaged(name, content, words, tmp_path):
    (tmp_path / name).write_bytes(content)
    line = fit(tmp_path / name, tmp_path)
    assert name in line
    assert words in line


def test_files_and_folders_that_are_not_there(here, tmp_path):
    assert "no.csv" in fit(tmp_path / "no.csv", tmp_path)
    out = tmp_path / "out.csv"
    assert "no model in" in refused("predict-table", here, here / "test.csv", "--out", out)
    line = refused("predict-table", here / "model", here / "test.csv", "--out", tmp_path / "a.txt")
    assert ".parquet" in line
    line = refused("fit-table", here / "intact.parquet", *COLUMNS, "--out", here / "test.csv" / "m")
    assert "is not a folder" in line


def test_a_damaged_model(here, tmp_path):
    for name in ("estimator.json", "estimator.safetensors"):
        (tmp_path / name).write_bytes((here / "model" / name).read_bytes())
    path = tmp_path / "estimator.safetensors"
    path.write_bytes(path.read_bytes()[:-8])
    out = tmp_path / "out.csv"
    line = refused("predict-table", tmp_path, here / "test.csv", "--out", out)
    assert "do not belong together" in line


def test_a_predicted_column_cannot_be_kept_as_well(here, tmp_path):
    out = tmp_path / "out.csv"
    line = refused(
        "predict-table", here / "model", here / "test.csv", "--keep", "v_0", "--out", out
    )
    assert "v_0 would be both" in line
    assert not out.exists()


def test_export_without_onnx_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    line = refused("export", "case14", "--outage", "line:2", "--out", tmp_path / "a.onnx")
    assert "gridshift[onnx]" in line


# an output that is an input


def everything(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def copies(here, tmp_path, monkeypatch) -> Path:
    """A copy of the folder of tables and models that commands may ruin; the current folder."""
    shutil.copytree(here, tmp_path / "own")
    monkeypatch.chdir(tmp_path / "own")
    Path("link.csv").symlink_to("outage.csv")
    Path("linked").symlink_to("model", target_is_directory=True)
    pandapower.to_json(pandapower.networks.case14(), "case14.json")
    Path("results").mkdir()
    Path("case14.json").rename("results/summary.json")
    Path("results/report.html").write_text("line:2\n")
    Path("model.csv").symlink_to("model/estimator.json")
    return tmp_path / "own"


@pytest.mark.parametrize(
    "args",
    [
        ("predict-table", "adapted", "outage.csv", "--out", "outage.csv"),
        ("predict-table", "adapted", "outage.csv", "--out", "./model/../outage.csv"),
        ("predict-table", "adapted", "link.csv", "--out", "outage.csv"),
        ("predict-table", "adapted", "outage.csv", "--out", "link.csv"),
        ("predict-table", "model", "outage.csv", "--out", "model/estimator.json"),
        ("adapt-table", "model", "outage.csv", "--out", "model"),
        ("adapt-table", "model", "outage.csv", "--out", "linked"),
        ("adapt-table", "linked", "outage.csv", "--out", "./model"),
        ("adapt-table", "model", "outage.csv", "--onnx", "outage.csv", "--out", "new"),
        ("adapt-table", "model", "outage.csv", "--onnx", "new/estimator.json", "--out", "new"),
        ("fit-table", "model.csv", *COLUMNS, *QUICK, "--out", "model"),
        ("train", "results/summary.json", "--out", "x", "--rows", "40", "--steps", "5"),
        ("export", "results/summary.json", "--out", "results/summary.json"),
        ("pareto", "results/summary.json", "--out", "results/summary.json"),
        ("screen", "results/summary.json", "--method", "newton", "--out", "results"),
        ("screen", "case14", "--contingencies", "results/report.html", "--method", "newton",
         "--out", "results"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_an_output_that_is_an_input_is_refused_and_nothing_is_changed(copies, args):
    if args[0] == "train":  # its files have fixed names
        Path("x").mkdir()
        Path("x/surrogate.json").symlink_to(copies / "results" / "summary.json")
    before = everything(copies)
    assert "would overwrite" in refused(*args)
    assert everything(copies) == before


def test_a_folder_with_other_files_may_be_both(copies):
    payload("predict-table", "model", "outage.csv", "--out", "model/predicted.csv")
    payload("screen", "case14", "--contingencies", "results/report.html", "--method", "newton",
            "--scenarios", "5", "--out", "other")  # fmt: skip


def test_every_command_says_what_it_writes():
    named = {"out", "onnx", "page", "results", "export_to"}
    for command in main.commands.values():
        assert {p.name for p in command.params} & named == {*command.writes}
