"""The pages of the paper's artefacts: `docs/paper.md`, and one self-contained HTML page."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
import matplotlib as mpl

from gridshift.pictures import STYLE, as_svg
from gridshift.storage import replacing, write_text
from gridshift_paper.artefacts import Artefact, Table, cell
from gridshift_paper.claims import Judged, Undecided, Verdict
from gridshift_paper.records import Book

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 160
"""Of pictures: sharp in print at column width, and below 300 kB."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """One artefact, as far as it was measured."""

    artefact: Artefact
    tables: Sequence[Table]
    comments: Sequence[Judged | str]
    figure: "Figure | None"
    num_rows: int

    @property
    def heading(self) -> str:
        """Where it is in the paper, and what it shows."""
        place = f"{self.artefact.paper}: " if self.artefact.paper else ""
        return f"{place}{self.artefact.title}"

    @property
    def claims(self) -> list[Judged]:
        """The paper's claims among the comments."""
        return [comment for comment in self.comments if isinstance(comment, Judged)]


def section(artefact: Artefact, book: Book) -> Section:
    """The artefact, made from the rows there are; nothing is measured."""
    rows = artefact.rows(book)
    number = sum(len(frame) for frame in rows.values())
    figure = None
    with mpl.rc_context(STYLE):
        if artefact.draw is not None and number:
            try:
                figure = artefact.draw(rows)
            except Undecided:
                figure = None  # the rows that it needs are still missing; the tables say which
    told = bool(number) or not artefact.studies
    return Section(
        artefact=artefact, tables=artefact.tables(rows) if told else (),
        comments=artefact.comments(rows), figure=figure, num_rows=number,
    )  # fmt: skip


def claims_table(sections: Iterable[Section]) -> Table:
    """Every claim of the paper, one by one, and what our rows say of it."""
    claims = [(one.artefact, claim) for one in sections for claim in one.claims]
    found = Counter(judged.verdict for _, judged in claims)
    return Table(
        title="The paper's claims, one by one",
        columns=("artefact", "the paper says", "where", "verdict", "our numbers"),
        rows=[
            (artefact.name, judged.claim.says, judged.claim.where or artefact.paper,
             judged.verdict.value, judged.ours)
            for artefact, judged in claims
        ],
        note=f"Of {len(claims)} claims {found[Verdict.HOLDS]} hold here, {found[Verdict.FAILS]} do "
        f"not, and {found[Verdict.OPEN]} are not decided here. A number holds if ours is within a "
        "fifth of it, a factor if ours is no more than a fifth smaller.",
    )  # fmt: skip


def save_figure(figure: "Figure", path: Path) -> None:
    """Write the picture; its type is the path's suffix.

    Raises:
        StorageError: it can't be written.
    """
    with mpl.rc_context(STYLE), replacing(path) as part:
        figure.savefig(part, format=path.suffix[1:], dpi=DOTS_PER_INCH)


def markdown(sections: Sequence[Section], figures: str) -> str:
    """The page for the documentation; `figures` is the folder of the pictures, seen from it."""
    parts = [INTRODUCTION, "## claims", claims_table(sections).markdown()]
    for one in sections:
        parts.append(f"## {one.artefact.name}\n\n{one.heading}.")
        if not one.num_rows and one.artefact.studies:
            parts.append("Nothing measured at this scale yet.")
        if one.figure is not None:
            name = one.artefact.name
            parts.append(f"![{one.artefact.title}]({figures}/{name}.png)")
        parts += [table.markdown() for table in one.tables]
        if one.comments:
            parts.append("\n".join(f"- {comment}" for comment in one.comments))
    return "\n\n".join(parts) + "\n"


def html(sections: Sequence[Section], about: str) -> str:
    """The same as one page without scripts, fonts or pictures from elsewhere."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gridshift_paper"), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.filters.update(cell=cell, svg=as_svg)
    return environment.get_template("paper.html.j2").render(
        sections=sections,
        about=about,
        claims=claims_table(sections),
        introduction=INTRODUCTION.partition("\n\n")[2],
    )


def write_pages(book: Book, artefacts: Iterable[Artefact], *, page: Path, site: Path) -> None:
    """Write all pictures, the Markdown page and the HTML page.

    Args:
        book: rows of the studies.
        artefacts: in the order of the pages.
        page: Markdown file.
        site: HTML file; pictures go into `figures` beside it.

    Raises:
        StorageError: one of them can't be written.
    """
    sections = [section(artefact, book) for artefact in artefacts]
    figures = site.parent / "figures"
    for one in sections:
        if one.figure is not None:
            save_figure(one.figure, figures / f"{one.artefact.name}.png")
    scale = book.scale
    seeds = f"{len(scale.seeds)} seed{'s' if len(scale.seeds) != 1 else ''}"
    about = f"scale {scale.name}, {seeds}, {scale.num_steps:,} training steps"
    for path, text in (
        (page, markdown(sections, Path(os.path.relpath(figures, page.parent)).as_posix())),
        (site, html(sections, about)),
    ):
        write_text(path, text)


INTRODUCTION = """# The paper, measured again

Every numbered table and every data figure of *Gradient-Free Topology Adaptation for Power Flow
Surrogates via In-Context Whitening*, ours beside the paper's. Written by `gridshift paper report`
from the rows that `gridshift paper all` measured; no number on this page is typed in, but for the
paper's own. Errors are mean absolute errors: powers and magnitudes per unit, angles in radians
unless a column says degrees, "overall" the plain mean over all outputs. "± " is the standard
deviation over seeds; a seed decides training data, weights, context and test rows together.
"Base", "N-1" and "N-2" are the intact grid, its most heavily loaded line out, and its two most
heavily loaded lines out ([conventions](conventions.md)). Contexts have 400 solved cases unless a
table says otherwise."""
