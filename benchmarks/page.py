"""The measured part of a page of the documentation, between two marks."""

from collections.abc import Sequence
from pathlib import Path


def write_section(page: Path, name: str, lines: Sequence[str]) -> None:
    """Put the lines between the page's marks of this name."""
    marks = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    write_between(page, *marks, "\n".join(lines))


def write_between(page: Path, begin: str, end: str, text: str) -> None:
    """Put the text between the page's two marks."""
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}", encoding="utf-8")
