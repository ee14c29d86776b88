"""The measured part of a page of the documentation, between two marks."""

from pathlib import Path


def write_between(page: Path, begin: str, end: str, text: str) -> None:
    """Put the text between the page's two marks."""
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}", encoding="utf-8")
