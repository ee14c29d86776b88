"""The paper's rows come with the package, and are never mixed into a folder that was asked for."""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from gridshift.cli import main
from gridshift_paper.records import shipped_rows

ROOT = Path(__file__).parent.parent.parent
BUILD = """
import sys
from setuptools.build_meta import build_sdist, build_wheel
folder = sys.argv[1]  # the first build changes it
build_wheel(folder)
build_sdist(folder)
"""


def listed(*args: str, **env: str) -> dict[str, int]:
    command = [sys.executable, "-m", "gridshift", "paper", "list", "--json", *args]
    run = subprocess.run(command, env=os.environ | env, capture_output=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return {a["name"]: a["full_rows"] for a in json.loads(run.stdout)["artefacts"]}


def test_an_installed_package_has_the_rows(tmp_path, monkeypatch):
    if int(pytest.importorskip("setuptools").__version__.split(".")[0]) < 77:
        pytest.skip("this setuptools can't build the project")
    source, site, empty = (tmp_path / name for name in ("source", "site", "empty"))
    parts = ("src", "paper", "setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE")
    source.mkdir()
    with tarfile.open(tmp_path / "all.tar", "w") as archive:
        for name in parts:
            archive.add(ROOT / name, name, filter=lambda m: None if "egg-info" in m.name else m)
    with tarfile.open(tmp_path / "all.tar") as archive:
        archive.extractall(source, filter="data")
    subprocess.run(
        [sys.executable, "-c", BUILD, str(tmp_path)], cwd=source, check=True, capture_output=True
    )
    (wheel,), (sources,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    zipfile.ZipFile(wheel).extractall(site)
    stored = {path.name for path in (ROOT / "paper" / "full").glob("*.parquet")}
    assert {path.name for path in site.rglob("*.parquet")} == stored
    with tarfile.open(sources) as archive:
        assert {Path(n).name for n in archive.getnames() if n.endswith(".parquet")} == stored

    empty.mkdir()
    monkeypatch.chdir(empty)
    found = listed(PYTHONPATH=str(site))
    references = pq.read_metadata(ROOT / "paper" / "full" / "references.parquet").num_rows
    assert sum(found.values()) >= references > 0
    assert found["table-2"] > 0
    assert not any(listed("--results", "mine", PYTHONPATH=str(site)).values())


def test_a_folder_that_is_named_holds_its_own_rows_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert shipped_rows() == ROOT / "paper"

    def rows(*args: str) -> int:
        result = CliRunner().invoke(main, ["paper", "table-2", "--stored", "--json", *args])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)["artefacts"][0]["rows"]

    assert rows() > 0
    assert rows("--results", "mine") == 0
