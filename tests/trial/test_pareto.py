"""The comparison leaves nothing out, exact solving least of all; the picture shows all of it."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from gridshift.adapt.methods import METHODS, Method
from gridshift.errors import ContextError, StorageError
from gridshift.grid.powerflow import solve
from gridshift.trial.cases import Cases
from gridshift.trial.compare import Comparison, ComparisonRow, compare, measure_exact
from gridshift.trial.cost import Cost
from gridshift.trial.metrics import QUANTITIES
from gridshift.trial.pareto import LOOKS, frontier, pays, save_pareto
from tests.adapt.grids import quick_surrogate, small_grid


@pytest.fixture(scope="module")
def grid():
    return small_grid()


@pytest.fixture(scope="module")
def surrogate(grid):
    return quick_surrogate(grid)


@pytest.fixture(scope="module")
def quick():
    return [m for m in METHODS.values() if not m.gradient]


@pytest.fixture(scope="module")
def comparison(grid, surrogate, quick):
    network = grid.without(["line:1"])
    return compare(quick, lambda _: surrogate, Cases(network, num_context=40, num_test=60))


def row(method, error, us, kind="network", setup=0.0, training=0.0):
    mae = dict.fromkeys(QUANTITIES, error)
    return ComparisonRow(
        method=method, kind=kind, mae=mae, mismatch={}, training_s=training,
        cost=Cost(data_s=setup, fit_s=0.0, gradient_s=0.0, predict_us_per_row=us),
    )  # fmt: skip


def made(grid, *rows):
    return Comparison(network=grid, rows=rows, num_context=0, num_test=1, spread=0.2, seed=0)


def test_every_method_has_a_row_and_exact_solving_the_first(comparison, quick):
    assert comparison.exact.kind == "exact"
    assert [r.method for r in comparison.rows[1:]] != []
    assert {r.method for r in comparison.rows} == {"newton", *(m.name for m in quick)}
    errors = [r.mae["overall"] for r in comparison.rows[1:] if not r.problem]
    assert errors == sorted(errors)
    untrained = {m.name for m in quick if m.transform not in (None, "zca")}
    assert untrained <= {r.method for r in comparison.rows if r.problem}


def test_exact_errors_are_what_the_solvers_tolerance_leaves(grid):
    cases = Cases(grid.without(["line:1"]), num_test=50)
    found = measure_exact(cases)
    assert 0 < found.mae["overall"] < 1e-7
    assert found.mismatch["max"] <= 1e-8
    assert found.test_counts == {"solved": 50}
    assert found.mismatch["max"] == solve(cases.network, cases.test_loads).mismatch.max()


def test_a_method_that_fails_is_a_row_with_its_problem(grid, surrogate):
    def broken(*_):
        raise ContextError("too dark in here")

    method = Method(name="broken", summary="", needs=("nothing",), source="test", adapt=broken)
    found = compare([method], lambda _: surrogate, Cases(grid, num_test=20))
    assert found.rows[1].problem == "too dark in here"
    assert pays(found, found.rows[1]) == "never"


def test_break_even_is_where_both_have_taken_the_same_time(grid):
    exact = row("newton", 1e-10, 2.0, kind="exact", setup=0.001)
    fast = row("fast", 1e-3, 0.5, setup=0.301, training=3.0)
    slow = row("slow", 1e-3, 2.5)
    found = made(grid, exact, fast, slow)
    number = found.break_even_rows(fast)
    assert number == pytest.approx(200_000)
    assert 0.001 + 2e-6 * number == pytest.approx(0.301 + 0.5e-6 * number)
    assert found.break_even_rows(fast, training=True) == pytest.approx(2_200_000)
    assert found.break_even_rows(slow) == np.inf
    texts = [pays(found, r) for r in found.rows]
    assert texts == ["—", "from 200,000 rows", "never"]


def test_the_frontier_holds_what_nothing_beats_in_both():
    rng = np.random.default_rng(0)
    error, time = rng.uniform(size=(2, 40))
    found = frontier(error, time)
    expected = [
        i
        for i in range(40)
        if not any(error[j] <= error[i] and time[j] <= time[i] and j != i for j in range(40))
    ]
    assert sorted(found) == expected
    assert (np.diff(time[found]) > 0).all()


def test_the_picture_names_every_method_with_its_break_even(comparison, tmp_path):
    path = save_pareto(comparison, tmp_path / "pareto.svg")
    text = " ".join(ET.parse(path).getroot().itertext())
    for r in comparison.rows:
        if not r.problem:
            assert r.method in text
            assert pays(comparison, r) in text
    assert "µs" in text


def test_labels_do_not_overlap_however_close_the_errors_are(grid, tmp_path):
    exact = row("newton", 1e-10, 2.0, kind="exact")
    found = made(grid, exact, *(row(f"method-{i}", 1e-3 * (1 + i / 1e4), 3.0) for i in range(20)))
    path = save_pareto(found, tmp_path / "pareto.svg")
    height = {}
    for element in ET.parse(path).getroot().iter("{http://www.w3.org/2000/svg}text"):
        if (element.text or "").startswith("method-"):
            height[element.text] = float(element.get("transform").split()[-1].split(")")[0])
    at = np.sort(list(height.values()))
    assert len(at) == 20
    assert np.diff(at).min() > 8.5  # the size of the type, in points


def test_kinds_differ_in_colour_and_in_shape():
    assert len({colour for colour, _, _ in LOOKS.values()}) == len(LOOKS)
    assert len({marker for _, marker, _ in LOOKS.values()}) == len(LOOKS)


def test_pictures_are_written_as_their_suffix_says_or_refused(comparison, tmp_path):
    assert save_pareto(comparison, tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    first, again = (save_pareto(comparison, tmp_path / f"{k}.svg").read_text() for k in "bc")
    assert first == again
    with pytest.raises(StorageError, match=r"\.svg"):
        save_pareto(comparison, tmp_path / "a.doc")
    with pytest.raises(StorageError, match="cannot write"):
        save_pareto(comparison, tmp_path / "a.png" / "a.svg")
