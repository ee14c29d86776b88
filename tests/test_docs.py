"""What the documentation points at is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ARCHITECTURE = " ".join((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split())
LIBRARY, PAPER = ROOT / "src" / "gridshift", ROOT / "src" / "gridshift_paper"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


def test_files_that_the_architecture_names_exist():
    named = set(re.findall(r"`((?:\w+/)*\w+\.py)`", ARCHITECTURE)) - {"grid/readers/psse.py"}
    assert len(named) > 20
    for name in named:
        assert (LIBRARY / name).exists() or (PAPER / name).exists(), name


def test_every_room_and_single_file_is_in_the_architecture():
    for path in LIBRARY.iterdir():
        if (path.suffix == ".py" and not path.stem.startswith("__")) or (
            path / "__init__.py"
        ).exists():
            assert f"`{path.stem}`" in ARCHITECTURE, path.stem


def test_names_that_the_architecture_looks_up_are_defined_in_the_file_beside_them():
    found = re.findall(r"`(?:\w+\.)?(\w+)` (?:in|of) `((?:\w+/)*\w+\.py)`", ARCHITECTURE)
    assert len(found) >= 16
    for name, file in found:
        path = LIBRARY / file if (LIBRARY / file).exists() else PAPER / file
        text = path.read_text(encoding="utf-8")
        assert re.search(rf"\b(def|class) {name}\b|^{name}\b", text, re.MULTILINE), (name, file)
