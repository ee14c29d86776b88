from dataclasses import replace

import numpy as np
import pytest

from gridshift.adapt.methods import METHODS
from gridshift_paper import table_3
from gridshift_paper.claims import PAPER
from gridshift_paper.protocol import Experiment, topology
from gridshift_paper.records import Book
from gridshift_paper.table_3 import ARTEFACTS, GROUPS, METHODS_STUDY, REFERENCES

SOME = ("frozen", "icw", "ridge", "deepopf-ft", "references")


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    from tests.paper.conftest import TINY

    some = replace(
        METHODS_STUDY,
        keys=lambda scale: (key for key in METHODS_STUDY.keys(scale) if key["method"] in SOME),
    )
    book = Book(tmp_path_factory.mktemp("methods"), TINY)
    book.run(some)
    return book


def test_the_table_has_every_published_competitor_and_they_are_all_in_the_roster():
    names = {name for group in GROUPS.values() for name in group} - set(REFERENCES)
    assert names <= set(METHODS)
    assert {name for name, _ in PAPER.table_3} <= names


def test_the_papers_numbers_stand_below_ours(book):
    v = next(t for t in ARTEFACTS[0].tables(ARTEFACTS[0].rows(book)) if "|V|" in t.title)
    names = [row[0] for row in v.rows]
    at = names.index("deepopf-ft")
    assert names[at + 1 : at + 3] == ["  paper", "  ours / paper"]
    assert v.rows[at + 1][1:] == PAPER.table_3["deepopf-ft", "case30"][:3]
    assert "frozen" in names
    assert names[names.index("frozen") + 1] != "  paper"


def test_the_mean_of_the_context_is_its_own_error_computed_here(book, tiny):
    rows = book.rows(METHODS_STUDY)
    found = rows[(rows.reference == "context-mean") & (rows.topology == "N-1")].overall.item()
    experiment = Experiment(tiny, outage="line:9")
    context, test = experiment.context(), experiment.test()
    # written out; the difference is the order of a sum
    assert found == pytest.approx(np.abs(test.y - context.y.mean(0)).mean(), rel=1e-12)


def test_each_method_is_charged_for_what_it_needs(book):
    rows = book.rows(METHODS_STUDY)
    charged = rows[rows.topology == "N-1"].set_index("method")
    assert dict(charged.num_solves[["frozen", "icw", "deepopf-ft"]]) == {
        "frozen": 0, "icw": 60, "deepopf-ft": 0,
    }  # fmt: skip
    assert (charged.gradient_s[["frozen", "icw", "deepopf-ft"]] == 0).all()
    assert (charged.training_solves[["frozen", "icw", "deepopf-ft"]] > 0).all()


def test_a_model_taught_by_several_topologies_has_seen_neither_line_of_the_pair(monkeypatch, tiny):
    asked = []

    class Stop(Exception):
        pass

    def start(network, config, progress=None):
        asked.append(network.outaged)
        raise Stop

    monkeypatch.setitem(table_3.METHODS, "mmnp-multi", replace(METHODS["mmnp-multi"], base=start))
    task = next(t for t in METHODS_STUDY.tasks(tiny) if t.key["method"] == "mmnp-multi")
    with pytest.raises(Stop):
        task.measure()
    assert asked == [topology("case30", "line:9,line:28").outaged]
