"""The pages of the paper's artefacts: `docs/paper.md`, and one self-contained HTML page."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
import matplotlib as mpl
import pandas as pd

from gridshift.pictures import as_svg
from gridshift.storage import replacing, write_text
from gridshift_paper import context_sweep, deployment
from gridshift_paper.artefacts import Artefact, Table, cell, mean_and_spread
from gridshift_paper.claims import PAPER, Frame, Judged, Rows, Undecided, Verdict
from gridshift_paper.figures import STYLE
from gridshift_paper.outages import COMPENSATION, OUTAGES, compensated, frame_of, outages
from gridshift_paper.protocol import Experiment, Scale
from gridshift_paper.records import Book, Progress
from gridshift_paper.selection import mean, picked
from gridshift_paper.variants import DRAWS, drawn, drawn_factor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMN = 3.7, 1_000
"""Inches up to which a picture is one column wide, and the pixels that it gets then."""
HEADLINES = (DRAWS, context_sweep.SWEEP, deployment.TIMES, OUTAGES, COMPENSATION)
"""Studies that the five numbers at the top of the page are from."""
DOTS_PER_INCH = 160
"""Of wider pictures, which stay below 300 kB."""
TINY = "Small scale: tiny surrogates, to try the commands; numbers and verdicts tell nothing."


@dataclass(frozen=True)
class Section:
    """One artefact, as far as it was measured; nothing is measured or drawn before it is asked."""

    artefact: Artefact
    rows: Rows = field(repr=False)

    @property
    def heading(self) -> str:
        """Where it is in the paper, and what it shows."""
        place = f"{self.artefact.paper}: " if self.artefact.paper else ""
        return f"{place}{self.artefact.title}"

    @property
    def num_rows(self) -> int:
        """Rows of all its studies."""
        return sum(len(frame) for frame in self.rows.values())

    @property
    def is_empty(self) -> bool:
        """Whether it needs rows and there are none."""
        return bool(self.artefact.studies) and not self.num_rows

    @cached_property
    def tables(self) -> Sequence[Table]:
        """The tables that the rows suffice for."""
        return () if self.is_empty else self.artefact.tables(self.rows)

    @cached_property
    def comments(self) -> Sequence[Judged | str]:
        """What the rows say of each finding."""
        return self.artefact.comments(self.rows)

    @cached_property
    def figure(self) -> "Figure | None":
        """The picture; None of a table, or where rows that it needs are missing."""
        if self.artefact.draw is None or not self.num_rows:
            return None
        with mpl.rc_context(STYLE):
            try:
                return self.artefact.draw(self.rows)
            except Undecided:
                return None  # the tables say which are missing

    @property
    def claims(self) -> list[Judged]:
        """The paper's claims among the comments."""
        return [comment for comment in self.comments if isinstance(comment, Judged)]

    @cached_property
    def sources(self) -> Table:
        """The studies that it is made from: on which grids and outages, by how many seeds."""
        lines = [
            (study.name, study.about, _named(frame.get("grid", pd.Series([Experiment.grid]))),
             _named(frame["outage"].replace("", "intact")) if "outage" in frame else None,
             frame["seed"].nunique() if "seed" in frame else None, len(frame))
            for study in self.artefact.studies if len(frame := self.rows[study.name])
        ]  # fmt: skip
        columns = ("study", "what was measured", "grids", "outages", ">seeds", ">rows")
        return Table("Measured", columns, lines)


FEW = 3
"""Values up to which all are named."""


def _named(values: Frame) -> str:
    """The different values, or of many how many."""
    different = list(dict.fromkeys(values.dropna()))
    return "; ".join(different) if len(different) <= FEW else f"{len(different):,}"


def section(artefact: Artefact, book: Book) -> Section:
    """The artefact, made from the rows there are; nothing is measured."""
    return Section(artefact, artefact.rows(book))


def headlines(book: Book) -> Iterator[tuple[str, object, object]]:
    """What each number is, ours, and the paper's; only those that rows suffice for."""
    rows: Rows = {study.name: book.rows(study) for study in HEADLINES}
    if len(rows[DRAWS.name]):
        told = PAPER.table_2["mlp"]
        yield ("overall error of ICW, heaviest two lines of case30 out, 400 solved cases, mean of "
               "15 contexts", mean_and_spread(drawn(rows, "N-2", "overall")),
               told["ICW"][2])  # fmt: skip
        yield ("how many times smaller than that of the frozen network",
               mean_and_spread(drawn_factor(rows, "N-2", "overall")), 28)  # fmt: skip
    swept = picked(rows[context_sweep.SWEEP.name], grid="case300", base="exact", method="icw")
    if len(swept):
        yield ("Table VIII, case300: gain by 4,000 instead of 800 cases, cases in random order "
               "(first half of fixed spread: " + _gain(swept, "unshuffled") + ")",
               _gain(swept, "shuffled"), "4.3×")  # fmt: skip
    seconds = deployment.seconds_of(rows, "case118")
    if seconds.step == seconds.step:
        cores, one, engine = (
            deployment.factor(seconds.speed_up(solver, num))
            for solver, num in (("pandapower", 48), ("pandapower", 1), ("engine", 1))
        )
        yield ("cost of 4,000 gradient steps over that of ICW, case118: solver's time divided by "
               f"48 cores; not divided {one}; by our engine {engine}", cores, "22×")  # fmt: skip
    single = compensated(rows, "case118", of="single")
    if single and len(rows[OUTAGES.name]):
        icw = outages(frame_of(rows, OUTAGES, "case118"), "overall")["icw"].median()
        yield ("error of ICW with 400 cases over that of compensation with 10, median outage of "
               "case118", deployment.factor(icw / single[10].median()), None)  # fmt: skip


def _gain(swept: Frame, order: str) -> str:
    errors = picked(swept, order=order).groupby("n").overall.apply(mean)
    return f"{errors.iloc[0] / errors.iloc[-1]:.1f}×"


def overview(sections: Sequence[Section], book: Book) -> list[Table]:
    """One screen: how many claims hold, the numbers that matter, and each item's verdicts."""
    found = [Counter(judged.verdict for judged in one.claims) for one in sections]
    total, places = sum(found, Counter()), list(Verdict)
    items = [
        (f"[{one.artefact.name}](#{one.artefact.name})", one.artefact.paper or "ours",
         *(counts[verdict] for verdict in places))
        for one, counts in zip(sections, found, strict=True)
    ]  # fmt: skip
    return [
        Table("Verdicts", [f">{verdict}" for verdict in places],
              [[total[verdict] for verdict in places]]),
        Table("Five numbers that matter", ["number", ">here", ">paper"], list(headlines(book))),
        Table("Items", ["item", "in the paper", *(f">{verdict}" for verdict in places)], items,
              "Table I is the list of variants of table-2, Fig. 2 the diagram of the method: "
              "definitions, nothing to measure."),
    ]  # fmt: skip


def unmeasured(sections: Iterable[Section], book: Book) -> Table:
    """Every study with tasks that have no rows: how many, and the command that measures them."""
    lines, seen = [], set()
    for artefact in (one.artefact for one in sections):
        for study in artefact.studies:
            missing = [] if study.name in seen else [task.key for task in book.missing(study)]
            seen.add(study.name)
            if missing:
                values = {name: [*dict.fromkeys(str(key[name]) for key in missing if name in key)]
                          for name in dict.fromkeys(chain(*missing))}  # fmt: skip
                which = "; ".join(f"{name} {', '.join(some[:4])}{', ...' * (len(some) > 4)}"
                                  for name, some in values.items())  # fmt: skip
                total = sum(1 for _ in study.tasks(book.scale))
                lines.append((study.name, len(missing), total, which,
                              f"`gridshift paper {artefact.name}{book.options}`"))  # fmt: skip
    return Table(
        "Tasks without rows",
        ("study", ">tasks", ">of", "which", "command"),
        lines,
        "" if lines else "Everything is measured at this scale.",
    )


def judged(sections: Sequence[Section], progress: Progress | None) -> Iterator[Section]:
    """The sections, each with its findings judged, which is kept; a second or so for each."""
    for number, one in enumerate(sections):
        if progress is not None:
            progress(number, len(sections))
        _ = one.comments
        yield one
    if progress is not None:
        progress(len(sections), len(sections))


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
        "fifth of it, a factor if neither is more than 1.25 times the other, a time if neither is "
        "more than twice the other. Not decided: ours can't stand for what the paper had, or "
        "isn't measured, and the reason is given. Where a network's own error decides, two bases "
        "are asked: on 118-bus appendix C's network and one without dropout, on 300-bus exact "
        "solutions and a network of width 1,024.",
    )  # fmt: skip


def warning(scale: Scale) -> list[str]:
    """What is to be said before any number of this scale, if anything is."""
    return [TINY] if scale.name == "small" else []


def save_figure(figure: "Figure", path: Path) -> None:
    """Write the picture; its type is the path's suffix, png or pdf for instance.

    Raises:
        StorageError: it can't be written.
    """
    inches, (widest, pixels) = figure.get_figwidth(), COLUMN
    dpi = pixels / inches if inches <= widest else DOTS_PER_INCH
    about = {"CreationDate": None} if path.suffix == ".pdf" else {}
    with mpl.rc_context(STYLE), replacing(path) as part:
        figure.savefig(part, format=path.suffix[1:], dpi=dpi, metadata=about)


def markdown(sections: Sequence[Section], figures: str, book: Book) -> str:
    """The page for the documentation; `figures` is the folder of the pictures, seen from it."""
    parts = ["# The paper, measured again", *warning(book.scale)]
    parts += [table.markdown() for table in overview(sections, book)]
    parts += [INTRODUCTION, "## claims", claims_table(sections).markdown()]
    parts += ["## not measured", unmeasured(sections, book).markdown()]
    for one in sections:
        parts.append(f"## {one.artefact.name}\n\n{one.heading}.")
        if one.is_empty:
            parts.append("Nothing measured at this scale yet.")
        if one.figure is not None:
            name = one.artefact.name
            parts.append(f"[![{one.artefact.title}]({figures}/{name}.png)]({figures}/{name}.pdf)")
        parts += [table.markdown() for table in one.tables]
        if one.comments:
            parts.append("\n".join(f"- {comment}" for comment in one.comments))
        if one.sources.rows:
            parts.append(one.sources.markdown())
    return "\n\n".join(parts) + "\n"


def html(sections: Sequence[Section], about: str, book: Book) -> str:
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
        unmeasured=unmeasured(sections, book),
        overview=overview(sections, book)[:2],
        introduction=INTRODUCTION.replace("*", "").replace("`", ""),
        warning=warning(book.scale),
    )


def write_pages(
    book: Book, artefacts: Sequence[Artefact], *, page: Path, site: Path,
    progress: Progress | None = None,
) -> None:  # fmt: skip
    """Write all pictures, the Markdown page and the HTML page.

    Args:
        book: rows of the studies.
        artefacts: in the order of the pages.
        page: Markdown file.
        site: HTML file; pictures go into `figures` beside it.
        progress: called with the artefacts done and the number of all.

    Raises:
        StorageError: one of them can't be written.
    """
    sections = [section(artefact, book) for artefact in artefacts]
    figures = site.parent / "figures"
    for one in judged(sections, progress):
        if one.figure is not None:
            for kind in ("png", "pdf"):
                save_figure(one.figure, figures / f"{one.artefact.name}.{kind}")
    scale = book.scale
    seeds = f"{len(scale.seeds)} seed{'s' if len(scale.seeds) != 1 else ''}"
    about = f"scale {scale.name}, {seeds}, {scale.num_steps:,} training steps"
    for path, text in (
        (page, markdown(sections, Path(os.path.relpath(figures, page.parent)).as_posix(), book)),
        (site, html(sections, about, book)),
    ):
        write_text(path, text)


INTRODUCTION = """Every numbered table and every data figure of *Gradient-Free Topology Adaptation
for Power Flow Surrogates via In-Context Whitening*, ours beside the paper's. Written by
`gridshift paper report` from the rows that `gridshift paper all` measured; no number on this page
is typed in, but for the paper's own and the bounds of rules. Errors are mean absolute errors:
powers and magnitudes per unit, angles in radians unless a column says degrees, "overall" the plain
mean over all outputs.
"± " is the standard deviation over seeds; a seed decides training data, weights, context and test
rows together. "Base", "N-1" and "N-2" are the intact grid, its most heavily loaded line out, and
its two most heavily loaded lines out (`docs/conventions.md`). Contexts have 400 solved
cases unless a table says otherwise."""
