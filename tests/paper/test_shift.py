import numpy as np
import pytest

from gridshift.learn.whitening import fit_zca
from gridshift_paper import shift, third_moment
from gridshift_paper.claims import PAPER
from gridshift_paper.protocol import GRIDS, WIDE_SPREAD, Experiment
from gridshift_paper.records import Book
from gridshift_paper.shift import DISTANCES, HISTOGRAMS, LEVELS, at_level, mmd_drop
from gridshift_paper.third_moment import ROUND_TRIP
from tests.paper.conftest import TINY

ARTEFACTS = (*shift.ARTEFACTS, *third_moment.ARTEFACTS)
INTACT, LOST = Experiment(TINY), Experiment(TINY, outage=GRIDS["case30"].double)
# 50 rows of 60 outputs are what a test has time for
pytestmark = pytest.mark.filterwarnings("ignore::gridshift.errors.RankDeficientWarning")


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    book = Book(tmp_path_factory.mktemp("paper"), TINY)
    for study in (DISTANCES, HISTOGRAMS, ROUND_TRIP):
        book.run(study)
    return book


@pytest.fixture(scope="module")
def distances(book):
    return {DISTANCES.name: book.rows(DISTANCES)}


def named(name):
    return next(artefact for artefact in ARTEFACTS if artefact.name == name)


def cells(tables):
    return [value for table in tables for row in table.rows for value in row]


def slow_mmd(a, b):
    """From the definition, with the median of all pairs of pooled rows as the width."""
    pooled = np.vstack([a, b])
    apart = np.linalg.norm(pooled[:, None] - pooled[None], axis=2)
    width = np.median(apart[np.triu_indices(len(pooled), 1)])
    kernel, n = np.exp(-(apart**2) / (2 * width**2)), len(a)
    squared = kernel[:n, :n].mean() + kernel[n:, n:].mean() - 2 * kernel[:n, n:].mean()
    return np.sqrt(squared)


def test_distances_are_those_of_rows_of_both_topologies(distances):
    base, lost = (one.test().y for one in (INTACT, LOST))
    row = at_level(distances, "nothing").iloc[0]
    assert row.mmd == pytest.approx(slow_mmd(base, lost))
    assert row.rows == TINY.num_test


def test_moments_of_a_context_are_of_rows_that_are_not_compared(distances):
    base, lost = (one.test().y for one in (INTACT, LOST))
    fitted = (INTACT.training().y, LOST.context().y)
    a, b = (fit_zca(f).forward(y) for f, y in zip(fitted, (base, lost), strict=True))
    row = at_level(distances, "mean, covariance", moments="context").iloc[0]
    assert row.mmd == pytest.approx(slow_mmd(a, b))
    assert row.moment_rows == TINY.num_context


def test_most_of_the_shift_is_a_shift_of_the_mean(distances):
    by_level = {level: at_level(distances, level, moments="same rows") for level in LEVELS}
    assert by_level["nothing"].mmd.item() > 0.8
    assert by_level["mean"].mmd.item() < 0.3 * by_level["nothing"].mmd.item()
    floor = by_level["mean, covariance"].null_high.item()
    assert by_level["mean, covariance"].mmd.item() < floor < by_level["nothing"].mmd.item()


def test_no_level_below_the_third_changes_mardias_skewness(distances):
    skewness = [
        at_level(distances, level, moments="same rows").mardia_outage.item()
        for level in ("nothing", "mean", "mean, variance", "mean, covariance")
    ]
    # 50 rows span 49 directions, the last of them 1e7 times smaller than the first
    np.testing.assert_allclose(skewness, skewness[0], rtol=0.02)


def test_the_factor_is_raw_over_whitened_at_the_wide_spread(distances):
    def one(level):
        chosen = distances["distances"].query(
            f"level == '{level}' and spread == {WIDE_SPREAD} and moments == 'many'"
        )
        return chosen.query("loads == 'independent'").mmd.item()

    expected = one("nothing") / one("mean, covariance")
    found = mmd_drop(distances, "independent", "many")
    assert found.to_dict() == {0: pytest.approx(expected)}
    assert mmd_drop(distances, "independent", "many", "mean_coordinate").item() > 1


def test_histograms_are_densities_of_the_outputs_that_moved_most(book):
    frame = book.rows(HISTOGRAMS)
    assert set(frame.space) == {"raw", "whitened"}
    for _, bars in frame.groupby(["space", "order", "topology"]):
        share = (bars.density * (bars.right - bars.left)).sum()
        assert 0.98 < share <= 1 + 1e-12  # the outermost rows are cut off
    shown = frame.drop_duplicates(["space", "order"]).pivot(
        index="order", columns="space", values="mmd"
    )
    assert (shown.raw > 1).all()
    assert (shown.whitened < 0.5 * shown.raw).all()


def test_the_sinh_arcsinh_map_loses_nothing_and_the_parabola_is_beside_it(book):
    frame = book.rows(ROUND_TRIP)
    assert frame["max"].max() < 1e-13
    assert 1e-9 < frame.mean_single.max() < 1e-6
    assert set(frame["set"]) == {"training", "context", "validation"}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("operator-shift", [PAPER.drop]),
        ("mmd-by-moment", list(PAPER.mmd.values())),
        ("round-trip", [1.88e-9, 1.97e-9, 2.4e-7]),
    ],
)
def test_tables_have_the_papers_numbers_beside_ours(book, name, told):
    artefact = named(name)
    rows = artefact.rows(book)
    assert set(told) <= set(cells(artefact.tables(rows)))
    assert list(artefact.comments(rows))
    if artefact.draw is not None:
        assert artefact.draw(rows).axes
