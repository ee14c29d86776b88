from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from gridshift.errors import GridshiftError
from gridshift_paper import claims as rules
from gridshift_paper.artefacts import MODULES, Artefact, Table, artefact, artefacts, mean_and_spread
from gridshift_paper.claims import Claim, Note, Undecided, Verdict
from gridshift_paper.protocol import SCALES
from gridshift_paper.records import Book, Study, crossed
from gridshift_paper.report import claims_table, overview, section, unmeasured, write_pages

SHRINK = Claim("errors shrink", "error", lambda rows: {"first": 1.0, "second": 2.0}, rules.FALLING)
GROW = Claim("two is more", "error", lambda rows: {"second": 2.0}, rules.above(1))


def study():
    return Study(
        name="errors", about="errors", keys=lambda scale: crossed(seed=scale.seeds),
        measure=lambda experiment: [{"mae": 1.0 + experiment.seed}],
    )  # fmt: skip


def example(**changes):
    def draw(rows):
        if not len(rows["errors"]):
            raise Undecided("nothing measured yet")
        figure = Figure(figsize=(3, 2))
        figure.subplots().plot(rows["errors"].mae)
        return figure

    whole = {
        "name": "example", "paper": "Fig. 99", "title": "errors | by seed",
        "studies": (study(),), "draw": draw,
        "tabulate": lambda rows: [
            Table(title="|V| <error>", columns=("of", ">ours"),
                  rows=[("all", mean_and_spread(rows["errors"].mae))])
        ],
        "findings": [SHRINK, Note("Rows are few", lambda rows: {"all": len(rows["errors"])})],
    }  # fmt: skip
    return Artefact(**whole | changes)


@pytest.fixture
def book(tmp_path, tiny):
    book = Book(tmp_path, tiny.with_seeds(2))
    book.run(study())
    return book


def test_both_pages_hold_every_number_and_claim_and_need_nothing_from_elsewhere(book, tmp_path):
    page, site = tmp_path / "docs" / "paper.md", tmp_path / "site" / "report.html"
    write_pages(book, [example()], page=page, site=site)
    text, html = page.read_text(), site.read_text()
    for content in (text, html):
        assert "1.50 ± 0.707" in content
        assert "errors shrink. This does not hold here. Error: first 1.00; second 2.00." in content
        assert "Rows are few: all 2." in content
        assert "Of 1 claims 0 hold here, 1 do not, and 0 are not decided here." in content
    assert "](../site/figures/example.png)" in text
    assert (tmp_path / "site" / "figures" / "example.png").stat().st_size > 1000
    assert "<svg" in html
    assert "&lt;error&gt;" in html
    for foreign in ("<script", "<link", "<img", "src=", "@import"):
        assert foreign not in html


def test_an_artefact_without_rows_says_so(tmp_path, tiny):
    empty = section(example(), Book(tmp_path, tiny))
    assert (empty.num_rows, empty.figure, tuple(empty.tables)) == (0, None, ())
    write_pages(Book(tmp_path, tiny), [example()], page=tmp_path / "p.md", site=tmp_path / "s.html")
    assert "Nothing measured at this scale yet." in (tmp_path / "p.md").read_text()


def test_the_page_opens_with_verdicts_and_ends_its_first_part_with_what_isnt_measured(
    tmp_path, tiny
):
    empty, half = Book(tmp_path / "empty", tiny), Book(tmp_path / "half", tiny.with_seeds(2))
    half.run(replace(study(), keys=lambda scale: crossed(seed=(1,))))
    shown = [section(example(), half)]
    verdicts, _, items = overview(shown, half)
    assert verdicts.rows == [[0, 1, 0]]
    assert items.rows == [("[example](#example)", "Fig. 99", 0, 1, 0)]
    command = f"`gridshift paper example{half.options}`"
    assert unmeasured(shown, half).rows == [("errors", 1, 2, "seed 0", command)]
    assert unmeasured(shown, empty).rows[0][1:3] == (1, 1)
    half.run(study())
    assert unmeasured(shown, half).note.startswith("Everything is measured")


def test_a_section_ends_with_where_its_rows_are_from(book, tmp_path):
    assert section(example(), book).sources.rows == [("errors", "errors", "case30", None, 2, 2)]
    outages = ("", "line:1", "line:2", "line:3")
    many = replace(study(), measure=lambda experiment: [{"mae": 1, "outage": o} for o in outages])
    elsewhere = Book(tmp_path / "many", book.scale)
    elsewhere.run(many)
    assert section(example(studies=(many,)), elsewhere).sources.rows[0][3] == "4"
    two = replace(many, measure=lambda experiment: [{"mae": 1, "outage": o} for o in outages[:2]])
    fewer = Book(tmp_path / "fewer", book.scale)
    fewer.run(two)
    assert section(example(studies=(two,)), fewer).sources.rows[0][3] == "intact; line:1"


def test_pages_of_small_rows_say_that_they_tell_nothing_and_name_their_own_commands(tmp_path):
    small = Book(tmp_path / "rows", SCALES["small"])
    page, site = tmp_path / "p.md", tmp_path / "s.html"
    write_pages(small, [example()], page=page, site=site)
    for text in (page.read_text(), site.read_text()):
        assert "numbers and verdicts tell nothing" in text
        assert f"gridshift paper example --scale small --results {tmp_path / 'rows'}`" in text
    full = Book(tmp_path, SCALES["full"])
    write_pages(full, [example()], page=page, site=site)
    assert "tell nothing" not in page.read_text() + site.read_text()


def test_options_of_a_command_are_those_that_arent_the_default():
    assert Book(Path("paper"), SCALES["full"]).options == ""
    assert Book(Path("paper"), SCALES["full"].with_seeds(2)).options == " --seeds 2"
    assert Book(Path("mine"), SCALES["small"]).options == " --scale small --results mine"


def test_claims_are_counted_one_by_one(book):
    holding = example(name="second", findings=[GROW])
    table = claims_table([section(example(), book), section(holding, book)])
    assert [row[2:4] for row in table.rows] == [("Fig. 99", "does not hold"), ("Fig. 99", "holds")]
    assert table.note.startswith("Of 2 claims 1 hold here, 1 do not, and 0 are not decided here.")


def test_mean_and_spread_is_the_sample_deviation_over_seeds():
    assert mean_and_spread([1.0, 3.0]) == "2.00 ± 1.41"
    assert mean_and_spread([2.0]) == "2.00"
    assert mean_and_spread(pd.Series([], dtype=float)) == "–"


def test_every_numbered_table_and_data_figure_of_the_paper_is_an_artefact():
    """Table I and Figure 2 of the paper are a list of variants and a diagram."""
    named = {a.paper for a in artefacts().values()}
    tables = {f"Table {n}" for n in ["II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X"]}
    figures = {f"Fig. {n}" for n in range(1, 21)} - {"Fig. 2"}
    assert (tables | figures) - named == set()


def test_an_unknown_artefact_is_told_with_those_there_are():
    with pytest.raises(GridshiftError, match=r"no artefact 'table-9'; choose one of table-2"):
        artefact("table-9")


def test_an_artefact_that_needs_no_rows_is_shown_without_any(tmp_path, tiny):
    shown = section(artefact("hyperparameters"), Book(tmp_path, tiny))
    assert shown.num_rows == 0
    assert any(291_772 in row for table in shown.tables for row in table.rows)


def test_the_list_of_items_names_all_that_their_modules_make():
    made = {module: import_module(f"gridshift_paper.{module}").ARTEFACTS
            for module in MODULES.values()}  # fmt: skip
    assert {one.name: module for module, all_of in made.items() for one in all_of} == MODULES


def test_every_stored_row_is_one_of_its_study():
    """Keys of tasks decide which rows are found; none may change without its study's version."""
    book = Book(Path(__file__).parents[2] / "paper", SCALES["full"])
    studies = {study.name: study for one in artefacts().values() for study in one.studies}
    stored = {path.stem for path in book.folder.glob("*.parquet")}
    assert stored <= set(studies)
    for name in stored:
        assert len(book.rows(studies[name])) == book.num_rows(studies[name]) > 0, name


MEASURED = [one for one in artefacts().values() if one.studies]


@pytest.mark.parametrize("artefact", MEASURED, ids=lambda artefact: artefact.name)
def test_nothing_measured_gives_no_table_and_says_so(artefact):
    rows = {study.name: pd.DataFrame() for study in artefact.studies}
    shown = artefact.name == "capacity"  # the paper's numbers, by width
    assert bool(artefact.tables(rows)) == shown
    assert {judged.verdict for judged in artefact.comments(rows)} <= {Verdict.OPEN}
    if artefact.draw is not None:
        with pytest.raises(GridshiftError, match="nothing measured yet"):
            artefact.draw(rows)
