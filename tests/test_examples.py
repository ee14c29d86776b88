"""Every example runs and says something."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_example_runs(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRIDSHIFT_CACHE", str(tmp_path / "cache"))
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()
