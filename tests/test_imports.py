"""What importing gridshift loads, and that its public names exist."""

import subprocess
import sys

import pytest

import gridshift

HEAVY = {"torch", "pandapower", "numba", "sklearn", "matplotlib", "scipy", "pandas", "numpy"}


def modules_after(code: str) -> set[str]:
    """Top-level names in `sys.modules` of a fresh interpreter that ran this code."""
    tell = "import sys; print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\n{tell}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(run.stderr.split())


def test_help_loads_no_heavy_module():
    code = "from gridshift.cli import main\nmain(['--help'], standalone_mode=False)"
    assert not modules_after(code) & HEAVY


def test_importing_gridshift_loads_no_heavy_module():
    assert not modules_after("import gridshift") & HEAVY


def test_an_exact_study_of_a_grid_read_before_loads_neither_torch_nor_pandapower(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("GRIDSHIFT_CACHE", str(tmp_path / "cache"))
    gridshift.read_grid("case9")
    study = ["screen", "case9", "--method", "newton", "--scenarios", "5", "--out", str(tmp_path)]
    code = f"from gridshift.cli import main\nmain({study}, standalone_mode=False)"
    found = modules_after(code)
    assert "numba" in found
    assert not found & {"torch", "pandapower", "sklearn", "networkx"}
    assert (tmp_path / "report.html").exists()


def test_what_a_grid_consists_of_needs_no_kernel_and_no_pandapower(tmp_path, monkeypatch):
    monkeypatch.setenv("GRIDSHIFT_CACHE", str(tmp_path))
    gridshift.read_grid("case9")
    code = "from gridshift.cli import main\nmain(['cases', 'case9'], standalone_mode=False)"
    assert not modules_after(code) & (HEAVY - {"numpy", "scipy"})


def test_the_version_is_that_of_the_installed_package():
    from importlib.metadata import version

    assert gridshift.__version__ == version("gridshift")


@pytest.mark.parametrize("room", ["grid.network", "grid.contingency", "grid.powerflow"])
def test_the_grid_room_never_loads_torch(room):
    assert "torch" not in modules_after(f"import gridshift.{room}")


@pytest.mark.parametrize("name", gridshift.__all__)
def test_every_public_name_exists(name):
    assert getattr(gridshift, name) is not None
    assert name in dir(gridshift)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = gridshift.no_such_thing
