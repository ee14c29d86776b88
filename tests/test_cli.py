"""The command as a person or a program meets it: results, exit codes, documentation."""

import json
import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import click
import numpy
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

import gridshift as gs
from gridshift.cli import main
from gridshift.cli.bases import NOTICE
from gridshift.cli.group import Command, Group, one_line
from gridshift.cli.output import duration, progress, table, text
from gridshift.errors import GridshiftWarning
from gridshift.grid.kernels.events import CompileTimes
from gridshift.study.text import json_value
from tests.reference.matpower_equations import case_file

ROOT = Path(__file__).parent.parent


def gridshift(*args: str) -> Result:
    """The command in this process."""
    return CliRunner().invoke(main, list(args), env={"COLUMNS": "80"})


def payload(*args: str) -> dict:
    """The JSON object that the command prints, and nothing else does it print."""
    result = gridshift(*args, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


# what is documented is what there is


def test_the_written_reference_is_current():
    reference = runpy.run_path(str(ROOT / "docs" / "write_cli.py"))["reference"]()
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == reference, "run `make docs`"


def test_a_long_name_is_cut_and_leaves_its_row_one_line_with_whole_numbers(capsys):
    drawn = table("", ("…outage", ">severity"), [("line:5 " + "river crossing " * 9, 12.345)])
    Console(width=80).print(drawn)
    *_, line = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"line:5 (river crossing )+.*… +12\.3", line)


def test_the_list_of_commands_is_whole_in_80_columns():
    assert "..." not in gridshift("--help").stdout.partition("Commands:")[2]


@pytest.mark.parametrize("name", main.commands)
def test_every_option_has_help_and_every_command_examples(name):
    command = main.commands[name]
    assert isinstance(command, Command)
    assert command.help
    assert command.examples
    shown = " ".join(command.examples)
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, f"{name} {option.name}"
            assert any(text in shown for text in option.opts), f"no example of {option.opts}"


NEEDED_BEFORE = {
    "adapt": "train", "screen": "train", "export": "train", "compare": "train", "pareto": "train",
    "identify": "train",
    "adapt-table": "fit-table", "predict-table": "adapt-table",
}  # fmt: skip
"""The command whose first example leaves what the examples of another one start from."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Where the examples find tables of solved cases, and leave their files for each other."""
    folder = tmp_path_factory.mktemp("examples")
    network = gs.read_grid("case14")
    (folder / "study14.toml").write_text(
        'grid = "case14"\nscenarios = 64\n[[loads.group]]\ndistribution = "normal"\nsd = 0.1\n'
    )
    (folder / "ratings14.csv").write_text("element,normal_mva,emergency_mva\nline:2,60,75\n")
    outaged = network.without(("line:2",))
    for name, topology, num_rows in (
        ("intact.parquet", network, 300),
        ("outage.csv", outaged, 60),
        ("test.csv", outaged, 20),
    ):
        loads = gs.sample_loads(topology, gs.named_rng("case14", name), num_rows)
        columns = {"case": pa.array(range(num_rows))}
        voltage = gs.solve(topology, loads).voltage
        parts = (
            ("p", loads.load_p), ("q", loads.load_q), ("v", abs(voltage)),
            ("theta", np.angle(voltage)),
        )  # fmt: skip
        for letter, values in parts:
            columns |= {f"{letter}_{k}": pa.array(values[:, k]) for k in range(values.shape[1])}
        if name.endswith("csv"):
            pyarrow.csv.write_csv(pa.table(columns), folder / name)
        else:
            pyarrow.parquet.write_table(pa.table(columns), folder / name)
    buses = [f'"{k}" = ["theta_{k}", "v_{k}"]' for k in range(network.num_buses)]
    (folder / "buses.toml").write_text("\n".join(["[buses]", *buses]) + "\n")
    return folder


def run_once(name: str, folder: Path) -> None:
    """The first example of a command, and before it of the one that it needs, once each."""
    mark = folder / f"{name}.done"
    if mark.exists():
        return
    if name in NEEDED_BEFORE:
        run_once(NEEDED_BEFORE[name], folder)
    command = main.commands[name]
    assert isinstance(command, Command)
    result = gridshift(*shlex.split(command.examples[0])[1:])
    assert result.exit_code == 0, result.output
    mark.touch()


@pytest.mark.parametrize("name", main.commands)
def test_examples_run_and_json_has_the_documented_keys(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    command = main.commands[name]
    assert isinstance(command, Command)
    if name in NEEDED_BEFORE:
        run_once(NEEDED_BEFORE[name], folder)
    found = set()
    for example in command.examples:
        result = gridshift(*shlex.split(example)[1:])
        assert result.exit_code == 0, f"{example}: {result.output}"
        notices = ("Warning: ", "compiling", "training", "screening", "measuring", "merging",
                   "generating", "judging", "drawing")  # fmt: skip
        assert all(line.startswith(notices) for line in result.stderr.splitlines())
        if "--json" in example:
            found |= set(json.loads(result.stdout))
        else:
            table = [line for line in result.stdout.splitlines() if str(folder) not in line]
            assert max(map(len, table)) <= 80
    assert found <= set(command.keys)
    always = {key for key, text in command.keys.items() if not text.startswith("with --")}
    assert found >= always - {"cases"}  # without CASE only


# cases, solve, doctor


def test_solve_counts_rows_by_status():
    found = payload("solve", "case14", "--scenarios", "20")
    assert found["status"] == {"solved": 20}
    assert found["num_rows"] == 20
    assert found["worst_mismatch"] < 1e-8
    assert found["us_per_row"] == pytest.approx(found["wall_s"] / 20 * 1e6)


def test_solve_tells_what_generators_give_that_share_the_slack():
    run = "solve", "case30", "--scenarios", "50", "--distributed-slack", "headroom"
    found = payload(*run)
    assert found["status"] == {"solved": 50}
    assert found["distributed_slack"] == "headroom"
    network = gs.read_grid("case30")
    rng = gs.named_rng("case30", "solve")
    loads = gs.sample_loads(network, rng, 50, spread=0.2, regime="fixed")
    rows = gs.solve(network, loads, distributed_slack="headroom")
    mean = dict(zip(network.gen_labels, rows.gen_p.mean(0) * network.base_mva, strict=True))
    assert found["generation_mw"] == pytest.approx(mean)
    assert payload(*run[:4])["generation_mw"] is None


def test_compiling_is_told_once_and_timed(capsys):
    times = CompileTimes(lambda: click.echo(NOTICE, err=True))
    for _ in range(2):
        times.on_start(None)
        times.on_start(None)  # a function that the first one calls
        times.on_end(None)
        times.on_end(None)
    assert capsys.readouterr().err == f"{NOTICE}\n"
    assert times.seconds > 0


def test_warm_up_has_the_compiling_in_it():
    found = payload("solve", "case14", "--scenarios", "5")
    assert 0 <= found["compile_s"] <= found["warm_up_s"]


def test_long_work_without_a_terminal_is_told_in_one_line(capsys):
    with progress("training", 1000, unit="step") as done:
        assert capsys.readouterr().err == ""
        done(0)
        done(500)
    assert capsys.readouterr().err == "training: 1,000 steps ...\n"


def test_work_of_minutes_without_a_terminal_tells_the_time_left(capsys, monkeypatch):
    clock = iter([0.0, 10.0, 30.0, 60.0, 95.0, 96.0])
    monkeypatch.setattr("gridshift.cli.output.time.monotonic", lambda: next(clock))
    with progress("training", 1000, unit="step") as done:
        for steps in (0, 100, 100, 400, 500, 1000):  # at the times above
            done(steps)
    assert capsys.readouterr().err.splitlines() == [
        "training: 1,000 steps ...",
        "training: 100 of 1,000 steps, about 4 minutes left",  # 100 in 30 s: 270 s
        "training: 500 of 1,000 steps, about 2 minutes left",  # 500 in 95 s: 95 s
    ]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 second"), (40, "40 seconds"), (89, "89 seconds"), (100, "2 minutes"),
     (5000, "83 minutes"), (8000, "2 hours")],
)  # fmt: skip
def test_durations(seconds, words):
    assert duration(seconds) == words


def test_error_bars_say_what_they_belong_to(folder, monkeypatch):
    monkeypatch.chdir(folder)
    run_once("train", folder)
    args = ("adapt", "case14", "--outage", "line:2", "--context", "40", "--test", "20",
            "--error-bars", "0.9")  # fmt: skip
    bars = payload(*args, "--surrogate", "base14")["error_bars"]
    assert (bars["num_context"], bars["num_calibration"]) == (30, 10)
    shown = " ".join(gridshift(*args, "--surrogate", "base14").stdout.split())
    assert "fitted on 30 cases; 10 others set the widths" in shown
    result = gridshift(*args, "--method", "newton")
    assert "--error-bars is ignored" in result.stderr
    assert "--correct-share" not in result.stderr


@pytest.mark.parametrize("name", ["adapt", "screen"])
def test_a_former_name_of_an_option_works_and_is_not_shown(name):
    command = main.commands[name]
    context = command.make_context(name, ["case14", "--quantile", "0.1"])
    assert context.params["correct_share"] == 0.1
    shown = command.get_help(context)
    assert "--correct-share" in shown
    assert "--quantile" not in shown


def test_outages_of_a_screening_have_the_documented_columns(tmp_path):
    (tmp_path / "list.txt").write_text("line:33\nline:12\nline:9\n")
    args = (
        "screen", "case30", "--contingencies", str(tmp_path / "list.txt"), "--method", "newton",
        "--scenarios", "5", "--holdout", "2", "--out", str(tmp_path / "out"),
    )  # fmt: skip
    found = payload(*args)
    command = main.commands["screen"]
    assert isinstance(command, Command)
    stored = pyarrow.parquet.read_table(tmp_path / "out" / "screening.parquet").column_names
    assert set(stored) == set(command.columns)
    assert set(found["outages"][0]) < set(command.columns)
    assert found["outages"][0]["severity"] == pytest.approx(1e6 + 3.5)
    assert found["config"]["workers"] >= 1
    shown = gridshift(*args).stdout
    assert "3.5 MW" in shown
    assert "loss of supply" in shown
    assert "1.00e6" not in shown


def test_the_same_seed_gives_the_same_rows_and_another_seed_others():
    def worst(seed: str) -> float:
        return payload("solve", "case14", "--scenarios", "5", "--seed", seed)["worst_mismatch"]

    assert worst("1") == worst("1") != worst("2")


def test_cases_tells_what_an_outage_cuts_off():
    found = payload("cases", "case30", "--outages")
    assert len(found["outages"]) == len(found["elements"]) == 41
    cuts = {row["outage"]: row for row in found["outages"] if row["islands"]}
    assert len(cuts) == 3  # findings: 38 of 41 lines don't island
    assert cuts["line:33"]["cut_off"] == ["bus:25"]
    assert cuts["line:33"]["mw_cut_off"] == pytest.approx(3.5)  # load at MATPOWER's bus 26


def test_cases_says_which_source_a_grid_is_from(tmp_path):
    installed = f"pandapower {version('pandapower')}"
    assert {case["source"] for case in payload("cases")["cases"]} == {installed}
    assert payload("cases", "case57")["source"] == installed
    for args in (["cases"], ["cases", "case57"]):
        assert installed in " ".join(gridshift(*args).stdout.split())
    file = tmp_path / "case57.m"
    file.write_bytes(case_file("case57").read_bytes())
    assert payload("cases", str(file))["source"] == "MATPOWER case57.m"


def test_doctor_finds_everything_here():
    found = payload("doctor")
    names = {check["name"] for check in found["checks"]}
    assert found["ok"]
    assert {"threads", "compile cache", "gpu", "instruction set", "surrogate cache"} <= names
    assert {"torch", "pandapower", "numba"} <= names


# exit codes and standard error


def test_warnings_of_gridshift_are_one_line_each_and_others_are_not_shown():
    @click.group(cls=Group)
    def group() -> None: ...

    @group.command()
    def noisy() -> None:
        warnings.warn("ours,\n  twice", GridshiftWarning, stacklevel=1)
        warnings.warn("ours,\n  twice", GridshiftWarning, stacklevel=1)
        warnings.warn("a library's", RuntimeWarning, stacklevel=1)
        warnings.warn("another library's", UserWarning, stacklevel=1)
        click.echo("done")

    result = CliRunner().invoke(group, ["noisy"])
    assert result.stderr == "Warning: ours, twice\n"
    assert result.stdout == "done\n"


def with_a_defect(message):
    @click.group(cls=Group)
    def group() -> None: ...

    @group.command()
    def broken() -> None:
        raise RuntimeError(message)

    return CliRunner().invoke(group, ["broken"])


def test_a_defect_is_one_line_and_the_file_that_it_names_has_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["gridshift", "broken", "two words"])

    result = with_a_defect("a defect,\n  on two lines")
    assert (result.exit_code, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: unexpected RuntimeError: a defect, on two lines; ")
    (path,) = [path for path in tmp_path.iterdir() if path.suffix == ".txt"]
    assert line.endswith(f"details in {path}")
    details = path.read_text(encoding="utf-8")
    assert "command: gridshift broken 'two words'" in details
    assert "Traceback" in details
    assert "raise RuntimeError(message)" in details
    assert f"numpy {numpy.__version__}" in details


def test_a_defect_without_a_folder_for_its_file_is_shown_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))

    result = with_a_defect("a defect")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("Error: unexpected RuntimeError: a defect; ")


def test_a_reader_that_goes_away_is_no_error():
    run = subprocess.run(
        f"{sys.executable} -m gridshift cases case14 --json | head -n 1",
        shell=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (run.stdout, run.stderr) == ("{\n", "")


def test_ctrl_c_is_one_line_and_leaves_nothing_half_written(tmp_path):
    command = [sys.executable, "-m", "gridshift", "train", "case14", "--steps", "9999999"]
    run = subprocess.Popen(
        [*command, "--rows", "100", "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # a run in the background, as this test's may be, ignores the signal otherwise
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert run.stderr is not None
    while not run.stderr.readline().startswith("training"):
        assert run.poll() is None
    time.sleep(1)
    os.kill(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert (out, err.splitlines()[-1]) == ("", "Error: interrupted")
    assert run.returncode in (130, -signal.SIGINT)  # a shell's $? is 130 for both
    assert "Traceback" not in err
    assert not os.listdir(tmp_path)


# how numbers are written


def test_json_has_no_nan():
    assert json_value({"a": [float("nan"), 1.5], "b": float("inf")}) == {
        "a": [None, 1.5],
        "b": None,
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1234567, "1,234,567"), (0.0, "0"), (12.345, "12.3"), (0.00059, "5.90e-4"), (None, "-"),
     (float("nan"), "-"), (True, "yes"), (99.96, "100"), (123456.0, "1.23e5"), ("a", "a")],
)  # fmt: skip
def test_cells(value, shown):
    assert text(value) == shown


def test_messages_are_one_line():
    assert one_line("a\n  b\tc") == "a b c"


def test_stored_rows_of_the_paper_are_shown_and_nothing_is_measured(tmp_path):
    where = ("--scale", "small", "--results", str(tmp_path))
    result = gridshift("paper", "round-trip", *where, "--stored")
    assert result.exit_code == 0, result.output
    assert "nothing measured yet" in result.output
    assert not list(tmp_path.rglob("*.parquet"))
    assert payload("paper", "round-trip", *where)["artefacts"][0]["tasks"] == 1
    (again,) = payload("paper", "round-trip", *where, "--stored")["artefacts"]
    assert again["tasks"] == 0
    assert again["rows"] > 0
