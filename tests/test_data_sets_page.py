"""What docs/data-sets.md shows is what happens."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from gridshift.cli import main

TEXT = (Path(__file__).parent.parent / "docs" / "data-sets.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Where the commands and the code of the page leave their files."""
    return tmp_path_factory.mktemp("page")


def test_the_commands_run(folder, monkeypatch):
    monkeypatch.chdir(folder)
    lines = [line for kind, block in BLOCKS if kind == "sh" for line in block.splitlines()]
    assert len(lines) == 4
    for line in lines:
        quick = ["--steps", "5"] if "fit-table" in line else []
        result = CliRunner().invoke(main, [*shlex.split(line)[1:], *quick])
        assert result.exit_code == 0, (line, result.output)
    (study,) = [block for kind, block in BLOCKS if kind == "toml"]
    (folder / "again.toml").write_text(study)
    result = CliRunner().invoke(main, ["screen", "--study", "again.toml", "--out", "screened"])
    assert result.exit_code == 0, result.output


def test_the_code_prints_what_its_comments_say(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    code = "".join(block for kind, block in BLOCKS if kind == "python")
    exec(code, {})
    told = re.findall(r"  # (.*)", code)
    assert capsys.readouterr().out.splitlines() == told
    assert len(told) == 2
