"""What README.md shows is what happens."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gridshift.cli import main

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = [
    line.partition("#")[0].strip()
    for _, block in BLOCKS
    for line in block.splitlines()
    if line.startswith("gridshift ")
]
QUICK = {
    "compare": "--methods frozen,ridge --context 40 --test 40 --surrogate base14",
    "pareto": "--methods frozen,ridge --context 40 --test 40 --surrogate base14",
    "adapt": "--context 40 --test 40 --surrogate base14",
    "export": "--context 40 --surrogate base14",
    "bench": "--scenarios 64 --rounds 1",
}
"""What makes each command quick: few rows, and a surrogate that is hardly trained."""


def gridshift(*args: str) -> Result:
    result = CliRunner().invoke(main, args, env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("readme")
    gridshift("train", "case14", "--steps", "5", "--rows", "40", "--out", str(folder / "base14"))
    return folder


def test_it_has_fewer_than_130_lines():
    assert len(TEXT.splitlines()) < 130


def test_the_code_prints_what_its_comments_say(capsys):
    (code,) = [block for language, block in BLOCKS if language == "python"]
    exec(code, {})
    counts, lowest = capsys.readouterr().out.splitlines()
    assert f"print(solution.counts())  # {counts}" in code
    assert 0.9 < float(lowest) < 1


def test_the_targets_of_make_are_there():
    targets = re.findall(r"^make (\w+)", TEXT, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets == ["demo", "test"]
    assert all(f"\n{target}: " in makefile for target in targets)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_runs(command, folder, monkeypatch):
    """On case14, whose surrogate takes a second: the outage is of the same name."""
    monkeypatch.chdir(folder)
    _, name, *args = shlex.split(command.replace("case30", "case14"))
    shown = gridshift(name, *args, *shlex.split(QUICK[name])).stdout
    assert "case14" in shown


def test_the_ranking_is_the_one_that_screen_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = [text for _, text in BLOCKS if text.startswith("$ gridshift screen")]
    command, *table = block.partition("[...]")[0].splitlines()
    shown = gridshift(*shlex.split(command)[2:]).stdout.splitlines()
    assert [line.rstrip() for line in shown[: len(table)]] == table
    assert shown[-1].endswith("results/case118/report.html")
