"""`Artefact`: a table or a figure of the paper, and what it needs to be made anew."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pandas as pd

from gridshift.study.text import real
from gridshift_paper.records import Book, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = Mapping[str, pd.DataFrame]
"""Name of a study to its rows; a frame without rows if nothing was measured."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Our numbers and the paper's; a column named with a leading '>' is aligned to the right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    note: str = ""

    def markdown(self) -> str:
        """The table for a page."""
        names = [name.removeprefix(">").replace("\n", " ") for name in self.columns]
        ruler = ["---:" if name.startswith(">") else "---" for name in self.columns]
        lines = [names, ruler, *([cell(value) for value in row] for row in self.rows)]
        text = "\n".join("| " + " | ".join(line).replace("|V|", "\\|V\\|") + " |" for line in lines)
        below = f"\n\n{self.note}" if self.note else ""
        return f"**{self.title}**\n\n{text}{below}".replace("**|V|", "**\\|V\\|")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of the paper, and what our rows say of it."""

    says: str
    """The paper's statement: a clause without a full stop."""
    holds: bool
    """Whether it is true of our numbers."""
    ours: str
    """The numbers that decide it, and why if it does not hold: the rest of the sentence."""

    def __str__(self) -> str:
        verdict = "holds here" if self.holds else "does not hold here"
        return f"The paper: {self.says}. This {verdict}: {self.ours}"


@dataclass(frozen=True, kw_only=True)
class Artefact:
    """One numbered table or data figure of the paper, or one of ours beside them."""

    name: str
    """As `gridshift paper NAME` takes it."""
    kind: Literal["table", "figure"]
    paper: str
    """Where it is in the paper: 'Table II', 'Fig. 4'; empty: not in it."""
    title: str
    studies: Sequence[Study]
    tables: Callable[[Rows], Sequence[Table]]
    """Numbers of the artefact, the paper's beside ours wherever it gives any."""
    draw: "Callable[[Rows], Figure] | None" = None
    """The picture; None for a table."""
    comments: Callable[[Rows], Iterable[str | Claim]] = lambda rows: ()
    """What the numbers say, which claims hold, where and why they differ from the paper's."""

    def rows(self, book: Book) -> Rows:
        """Rows there are of its studies."""
        return {study.name: book.rows(study) for study in self.studies}


def cell(value: object) -> str:
    """A value as a table shows it; a dash for nothing or NaN."""
    if value is None or (isinstance(value, float) and value != value):
        return "–"
    if isinstance(value, float):
        return real(value)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def mean_and_spread(values: "pd.Series | Sequence[float]") -> str:
    """'4.1e-4 ± 0.3e-4': mean and sample deviation over seeds; no deviation for a single one."""
    values = pd.Series(values, dtype=float).dropna()
    if not len(values):
        return "–"
    spread = f" ± {real(float(values.std()))}" if len(values) > 1 else ""
    return real(float(values.mean())) + spread
