"""`Artefact`: a table or a figure of the paper, and what it needs to be made anew."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import pandas as pd

from gridshift.errors import GridshiftError
from gridshift.study.text import real
from gridshift_paper.claims import Claim, Judged, Note, Rows, Undecided, decide, note
from gridshift_paper.records import Book, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Artefact:
    """One numbered table or data figure of the paper, or one of ours beside them."""

    name: str
    """As `gridshift paper NAME` takes it."""
    paper: str
    """Where it is in the paper: 'Table II', 'Fig. 4'; empty: not in it."""
    title: str
    studies: Sequence[Study]
    tabulate: Callable[[Rows], Iterable[Table]]
    """Numbers of the artefact, the paper's beside ours wherever it gives any.

    It may raise `Undecided` where rows are missing; a table without rows isn't shown.
    """
    draw: "Callable[[Rows], Figure] | None" = None
    """The picture; None for a table."""
    findings: Sequence[Claim | Note] = ()
    """The paper's claims, and what our rows show besides."""

    @property
    def kind(self) -> str:
        """'table' or 'figure'."""
        return "table" if self.draw is None else "figure"

    def rows(self, book: Book) -> Rows:
        """Rows there are of its studies."""
        return {study.name: book.rows(study) for study in self.studies}

    def tables(self, rows: Rows) -> list[Table]:
        """The tables that these rows suffice for."""
        found = []
        with suppress(Undecided):
            for table in self.tabulate(rows):
                found += [table] if table.rows else []
        return found

    def comments(self, rows: Rows) -> list[Judged | str]:
        """What these rows say of each finding."""
        said = [decide(f, rows) if isinstance(f, Claim) else note(f, rows) for f in self.findings]
        return [one for one in said if one]


MODULES = {
    "table-2": "table_2", "per-metric-n1": "per_metric", "per-metric-n2": "per_metric",
    "mae-by-moment": "moments", "voltage-by-level": "moments", "capacity": "networks",
    "fit-300": "networks", "regularisation": "whitening", "hyperparameters": "networks",
    "table-3": "table_3", "consistency": "robustness", "n2-pairs": "robustness",
    "physical-validity": "robustness", "mmd-gap-30": "gap_and_wins", "mmd-gap-118": "gap_and_wins",
    "win-counts": "gap_and_wins", "context-sweep": "context_sweep",
    "context-size-118": "context_size", "context-size-30": "context_size", "spectra": "spectra",
    "deviations": "spectra", "cost-position": "cost_plane", "cost-300": "cost_plane",
    "fine-tuning-cost": "cost_plane", "scratch-no-norm": "gradient_steps",
    "scratch-zscore": "gradient_steps", "band-30": "band", "deployment-cost": "deployment",
    "operator-shift": "shift", "mmd-by-moment": "shift", "round-trip": "third_moment",
    "proposition": "whitening", "tail": "context_size",
}  # fmt: skip
"""Every item, in the order of the pages, and the module that makes it."""


def artefacts() -> dict[str, Artefact]:
    """Name to artefact, all of them."""
    return {name: artefact(name) for name in MODULES}


def artefact(name: str) -> Artefact:
    """The artefact of that name.

    Raises:
        GridshiftError: there is none.
    """
    if name not in MODULES:
        raise GridshiftError(f"no artefact {name!r}; choose one of {', '.join(MODULES)}")
    made = import_module(f"gridshift_paper.{MODULES[name]}").ARTEFACTS
    return next(one for one in made if one.name == name)


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
