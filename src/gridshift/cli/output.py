"""How a result reaches a person (tables of 80 columns) or a program (one JSON object)."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from gridshift.arguments import how_many
from gridshift.study.text import json_value, real

if TYPE_CHECKING:
    from rich.console import Console, Group

Done = Callable[..., None]
"""Called with the number of units done so far, and with the number of all if that is new."""


def emit(payload: Mapping[str, Any], render: "Callable[[Console], None]", *, as_json: bool) -> None:
    """Print the result on standard output: the payload as JSON, or what `render` draws."""
    if as_json:
        ascii_only = "utf" not in (sys.stdout.encoding or "").lower()
        shown = json.dumps(json_value(payload), indent=2, allow_nan=False, ensure_ascii=ascii_only)
        click.echo(shown)
        return
    from rich.console import Console

    render(Console(highlight=False, soft_wrap=False))


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, note: str = ""
) -> "Group":
    """A titled table without side borders.

    A column named with a leading '>' is right-aligned; one with a leading '…' is of long names,
    which are cut where the terminal is too narrow, so that a row stays a line.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    drawn = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        show_edge=False,
        show_header=any(c.strip(">") for c in columns),
    )
    cut = [name.startswith("…") for name in columns]
    for name in columns:
        right = name.startswith(">")
        drawn.add_column(
            Text(name.lstrip(">…")), justify="right" if right else "left", overflow="fold"
        )
    for row in rows:
        drawn.add_row(
            *(
                Text(text(cell), no_wrap=True, overflow="ellipsis") if long else Text(text(cell))
                for cell, long in zip(row, cut, strict=True)
            )
        )
    below = [Text(note, style="dim")] if note else []
    above = [Text(title, style="bold")] if title else []
    return Group(*above, drawn, *below)


def text(value: object) -> str:
    """A cell: three significant digits for reals, groups of thousands for counts, '-' for none."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if hasattr(value, "item"):
        value = value.item()  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return real(value)
    return str(value)


def drawn_spread(spread: float) -> str:
    """How the loads of test rows vary, in words: each row draws its own spread."""
    from gridshift.grid.scenarios import NARROWEST

    if spread <= NARROWEST:
        return f"every row's loads vary by up to ±{spread:g}"
    return (
        f"each row's loads vary by up to a share of its own, drawn from {NARROWEST:g} to {spread:g}"
    )


def duration(seconds: float) -> str:
    """'40 seconds', '3 minutes', '2 hours': as exact as an estimate is."""
    for size, unit in ((3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= 1.5 * size or unit == "second":
            number = max(1, round(seconds / size))
            return how_many(number, unit)
    raise AssertionError


class _Lines:
    """Progress without a terminal: a line at the start, and one a minute for what takes longer."""

    FIRST, EVERY = 20.0, 60.0
    """Seconds until the first time left is told, and between two."""

    def __init__(self, description: str, total: int, unit: str):
        self.description, self.total, self.unit = description, total, unit
        self.began: float | None = None

    def __call__(self, num: int, total: int | None = None) -> None:
        self.total = total or self.total
        now = time.monotonic()
        if self.began is None:
            click.echo(f"{self.description}: {how_many(self.total, self.unit)} ...", err=True)
            self.began, self.first, self.next = now, num, now + self.FIRST
        elif now >= self.next and self.first < num < self.total:
            left = (now - self.began) / (num - self.first) * (self.total - num)
            done = f"{num:,} of {how_many(self.total, self.unit)}"
            click.echo(f"{self.description}: {done}, about {duration(left)} left", err=True)
            self.next = now + self.EVERY


@contextmanager
def progress(description: str, total: int, *, unit: str) -> Iterator[Done]:
    """A bar with rate and time left on standard error, if that is a terminal; else lines.

    `unit` is what is counted, in the singular. It appears with the first call, so that what is
    found in a cache shows none.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield _Lines(description, total, unit)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{real(speed)} {unit}s/s" if speed else "", style="dim")

    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=16), MofNCompleteColumn(), Rate(),
        TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    bar = Progress(*columns, console=Console(stderr=True))
    task = bar.add_task(description, total=total)

    def done(num: int, total: int | None = None) -> None:
        bar.start()
        bar.update(task, completed=num, total=total)

    try:
        yield done
    finally:
        bar.stop()
