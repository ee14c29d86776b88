"""`gridshift paper`: the tables and figures of the paper, measured here."""

import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gridshift.cli.folders import require_writable, require_writable_file
from gridshift.cli.group import command
from gridshift.cli.output import emit, progress, table

if TYPE_CHECKING:
    from gridshift_paper.artefacts import Artefact
    from gridshift_paper.records import Book
    from gridshift_paper.report import Section


@command(
    writes={"results": ("report.html",), "page": ()},
    keys={
        "artefacts": "list of `name`, `kind`, `paper` (where it is in the paper), `title`, "
        "`full_rows` (rows measured at full scale); with a name or all instead `rows`, `tasks` "
        "(measured now), `wall_s`, `tables` (`title`, `columns`, `rows`, `note`), `comments`, "
        "`figure` (file)",
        "scale": "small, full or paper",
        "num_seeds": "root seeds",
        "claims": "with claims: list of `artefact`, `says` (the paper), `where`, `verdict` (holds, "
        "does not hold, not decided here), `ours` (our numbers, in words), `numbers` (the same by "
        "name, a share as a fraction), `paper` (its numbers by these names), `needed` (the rule)",
        "page": "with report: the Markdown page",
        "site": "with report: the HTML page",
    },
    examples=[
        "gridshift paper list",
        "gridshift paper hyperparameters --scale small --results paper14",
        "gridshift paper round-trip --scale small --seeds 1 --results paper14 --json",
        "gridshift paper round-trip --scale small --results paper14 --stored --json",
        "gridshift paper claims --scale small --results paper14 --json",
        "gridshift paper report --scale small --results paper14 --page paper14/paper.md --json",
    ],
)
@click.argument("name")
@click.option(
    "--scale", type=click.Choice(["small", "full", "paper"]), default="full", show_default=True,
    help="small: to try it, a minute or two an artefact; full: the paper's sizes, hours in all; "
    "paper: the Transformer and the graph network trained as long as the paper's too.",
)  # fmt: skip
@click.option(
    "--seeds", type=click.IntRange(1, 1000), help="Root seeds, from 0.  [default: 3; small: 1]"
)
@click.option(
    "--results", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Folder of measured rows, figures and the HTML page.  [default: paper, and rows that it "
    "lacks from those that come with gridshift]",
)  # fmt: skip
@click.option("--stored", is_flag=True, help="Show the rows there are, and measure nothing.")
@click.option(
    "--page", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Markdown page that report writes.  [default: paper.md in the folder]",
)  # fmt: skip
def paper(
    name: str, scale: str, seeds: int | None, results: Path | None, stored: bool,
    page: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Measure a table or a figure beside the paper's numbers.

    NAME is an artefact, or list, all, claims or report. Rows that were measured are kept, and what
    is missing goes on from there, however it was interrupted. claims (the paper's statements, and
    whether they hold here) and report (all pages and pictures) measure nothing.
    """
    from gridshift_paper.artefacts import artefact, artefacts
    from gridshift_paper.protocol import SCALES
    from gridshift_paper.records import Book, shipped_rows

    chosen = SCALES[scale] if seeds is None else SCALES[scale].with_seeds(seeds)
    shipped = shipped_rows() if results is None else None
    results = results or Path("paper")
    book = Book(results, chosen, shipped=shipped)
    about: dict[str, Any] = {"scale": scale, "num_seeds": len(chosen.seeds)}
    if name == "list":
        _list(artefacts().values(), Book(results, SCALES["full"], shipped=shipped), about, as_json)
        return
    if name == "claims":
        _claims(list(artefacts().values()), book, about, as_json)
        return
    if name == "report":
        _report(list(artefacts().values()), book, results, page, about, as_json)
        return
    wanted = list(artefacts().values()) if name == "all" else [artefact(name)]
    require_writable(results)
    found = [_made(one, book, results, measure=not stored) for one in wanted]
    payload = about | {"artefacts": [plain for plain, _ in found]}

    def render(console) -> None:
        for each in found:
            _print(console, *each, book, stored=stored)
        console.print(f"all pages and pictures: gridshift paper report{book.options}",
                      soft_wrap=True)  # fmt: skip

    emit(payload, render, as_json=as_json)


def _list(known: "Any", full: "Book", about: dict[str, Any], as_json: bool) -> None:
    listed = [
        {
            "name": one.name, "kind": one.kind, "paper": one.paper, "title": one.title,
            "full_rows": sum(full.num_rows(study) for study in one.studies),
        }
        for one in known
    ]  # fmt: skip

    def render(console) -> None:
        rows = [(a["name"], a["paper"] or "ours", a["full_rows"], a["title"]) for a in listed]
        columns = ("name", "paper", ">rows, full", "what it shows")
        console.print(table("artefacts of the paper", columns, rows))

    emit(about | {"artefacts": listed}, render, as_json=as_json)


def _hung(text: str, indent: int) -> str:
    """The text in lines of 80 columns, all but the first indented."""
    return textwrap.fill(text, 80, subsequent_indent=" " * indent, break_long_words=False)


def _claims(known: "list[Artefact]", book: "Book", about: dict[str, Any], as_json: bool) -> None:
    from gridshift_paper.report import claims_table, judged, section, warning

    with progress("judging claims", len(known), unit="artefact") as done:
        sections = list(judged([section(one, book) for one in known], done))
    found = claims_table(sections)
    names = ("artefact", "says", "where", "verdict", "ours")
    listed = [
        {**dict(zip(names, row, strict=True)), "numbers": one.numbers, "paper": one.paper,
         "needed": one.claim.rule.needed}
        for row, one in zip(found.rows, (j for each in sections for j in each.claims), strict=True)
    ]  # fmt: skip

    def render(console) -> None:
        for name, says, where, verdict, ours in found.rows:
            console.print(_hung(f"[{verdict}] {name} ({where}): {says}", 4), markup=False)
            console.print(_hung(f"    {ours}", 4), markup=False)
        for text in (found.note, *warning(book.scale)):
            console.print(text)

    emit(about | {"claims": listed}, render, as_json=as_json)


def _report(
    known: "list[Artefact]", book: "Book", results: Path, page: Path | None,
    about: dict[str, Any], as_json: bool,
) -> None:  # fmt: skip
    from gridshift_paper.report import write_pages

    page, site = page or results / "paper.md", results / "report.html"
    require_writable(results)
    require_writable_file(page)
    with progress("drawing pages", len(known), unit="artefact") as done:
        write_pages(book, known, page=page, site=site, progress=done)
    listed = [{"name": a.name, "kind": a.kind, "paper": a.paper, "title": a.title} for a in known]
    payload = about | {"artefacts": listed, "page": page, "site": site}
    emit(payload, lambda console: console.print(f"{page}\n{site}", soft_wrap=True), as_json=as_json)


def _made(
    one: "Artefact", book: "Book", results: Path, *, measure: bool
) -> tuple[dict[str, Any], "Section"]:
    """What the artefact says, after measuring what is missing or not, as JSON and as a section."""
    from gridshift_paper.report import save_figure, section

    began, tasks = time.perf_counter(), 0
    for study in one.studies if measure else ():
        with progress(f"measuring {study.name}", 1, unit="task") as done:
            tasks += book.run(study, done)
    found = section(one, book)
    figure = None
    if found.figure is not None:
        figure = results / "figures" / f"{one.name}.png"
        save_figure(found.figure, figure)
    tables = [
        {
            "title": t.title,
            "columns": [" ".join(c.lstrip(">").split()) for c in t.columns],
            "rows": t.rows,
            "note": t.note,
        }
        for t in found.tables
    ]
    payload = {
        "name": one.name, "kind": one.kind, "paper": one.paper, "title": one.title,
        "rows": found.num_rows, "tasks": tasks, "wall_s": time.perf_counter() - began,
        "tables": tables, "comments": [str(comment) for comment in found.comments],
        "figure": figure,
    }  # fmt: skip
    return payload, found


def _print(
    console, payload: dict[str, Any], found: "Section", book: "Book", *, stored: bool
) -> None:
    from gridshift_paper.report import warning

    console.print(found.heading, style="bold", soft_wrap=True)
    for text in warning(book.scale):
        console.print(text, style="dim")
    if found.is_empty and stored:
        console.print(f"nothing measured yet; gridshift paper {payload['name']}{book.options} "
                      "measures it", soft_wrap=True)  # fmt: skip
    elif found.is_empty:
        console.print("nothing to measure at this scale: its grids are left out")
    for one in found.tables:
        console.print()
        console.print(table(one.title, one.columns, one.rows, note=one.note))
    if found.comments:
        console.print()
    for comment in found.comments:
        console.print(_hung(f"- {comment}", 2), markup=False)
    if payload["figure"]:
        console.print(f"picture: {payload['figure']}", soft_wrap=True)
    if book.folder.is_dir() and found.artefact.studies:
        console.print(f"rows: {book.folder}", soft_wrap=True)
    console.print()
