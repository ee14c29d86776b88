"""Sweeps over all outages: what is measured of one, and what is said about all."""

import numpy as np
import pandas as pd
import pytest

from gridshift.grid.layout import Layout
from gridshift_paper import gap_and_wins, robustness
from gridshift_paper.artefacts import cell
from gridshift_paper.claims import Judged, Verdict
from gridshift_paper.gap_and_wins import gaps, wins
from gridshift_paper.outages import OUTAGES, PAIRS, balance, num_unsolvable, outages, terciles
from gridshift_paper.protocol import SCALES, Experiment, network_of
from gridshift_paper.records import Book
from tests.paper.conftest import TINY

ARTEFACTS = {one.name: one for one in (*robustness.ARTEFACTS, *gap_and_wins.ARTEFACTS)}
THERE = Experiment(TINY, outage="line:9")


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    book = Book(tmp_path_factory.mktemp("paper"), TINY)
    book.run(OUTAGES)
    book.run(PAIRS)
    return book


def test_every_outage_that_can_be_studied_is_a_task_once_a_seed_and_so_is_the_intact_grid():
    keys = [tuple(task.key.values()) for task in OUTAGES.tasks(SCALES["full"])]
    assert len(keys) == len(set(keys)) == 3 * (38 + 1) + 3 * (166 + 1)
    assert sum(1 for _ in PAIRS.tasks(SCALES["full"])) == 3 * (677 + 1)


def test_outages_without_a_nominal_solution_are_counted():
    assert num_unsolvable("case30") == 0
    assert num_unsolvable("case30", 2) == 0


def test_balance_is_that_of_a_loop_over_buses():
    test = THERE.test(5)
    layout, network = test.layout, test.network
    y_hat = test.y + 1e-3 * np.random.default_rng(0).normal(size=test.y.shape)
    y_by_name = [dict(zip([e.name for e in layout.outputs], row, strict=True)) for row in y_hat]
    x_by_name = [dict(zip([e.name for e in layout.inputs], row, strict=True)) for row in test.x]
    admittance = network.admittance.toarray()
    by_row = []
    for y, x in zip(y_by_name, x_by_name, strict=True):
        voltage = np.array([
            y.get(f"v {bus}", x.get(f"v_set {bus}"))
            * np.exp(1j * y.get(f"theta {bus}", x.get(f"theta_slack {bus}")))
            for bus in network.bus_labels
        ])  # fmt: skip
        drawn = voltage * (admittance @ voltage).conj()
        off = []
        for number, bus in enumerate(network.bus_labels):
            if number in network.slack:
                continue
            demand = sum(
                x[f"p_load {load}"] + 1j * x[f"q_load {load}"]
                for load, at in zip(network.load_labels, network.load_bus, strict=True)
                if at == number
            )
            active = sum(
                x[f"p_gen {gen}"]
                for gen, at in zip(network.gen_labels, network.gen_bus, strict=True)
                if at == number
            )
            made = active + 1j * y.get(f"q_gen {bus}", 0.0)
            off.append(abs(drawn[number] + demand - made))
        by_row.append(max(off))
    found = balance(test, y_hat)
    assert found["worst_median"] == pytest.approx(np.median(by_row), rel=1e-9)
    assert found["worst_max"] == pytest.approx(max(by_row), rel=1e-9)


def test_solved_rows_are_balanced_to_the_tolerance_of_the_solver():
    test = THERE.test(50)
    # the root of two parts, each below 1e-8 where the solver specifies it
    assert balance(test, test.y)["worst_max"] < 2e-8


def test_thirds_are_equally_large_and_ordered_by_the_error():
    error = pd.Series([5.0, 1.0, 3.0, 2.0, 4.0, 6.0], index=list("abcdef"))
    assert terciles(error).tolist() == ["high", "low", "mid", "low", "mid", "high"]


def test_rows_hold_every_method_and_level_of_every_outage(book):
    rows = book.rows(OUTAGES)
    assert set(rows.outage) == {"", "line:0", "line:20", "line:40"} or rows.outage.nunique() == 4
    methods = rows.groupby("outage").method.nunique()
    assert (methods == 11).all()
    errors = rows[rows.method != "solver"]
    assert np.isfinite(errors[["overall", "v", "theta"]].to_numpy()).all()
    assert (errors[["failed_context", "failed_test"]] == 0).all(axis=None)


def test_kept_numbers_have_five_digits(book):
    from gridshift_paper.outages import _shortened

    assert _shortened({"x": np.pi})["x"] == pytest.approx(np.pi, rel=2**-17)
    assert np.isnan(_shortened({"x": float("nan")})["x"])


def test_wins_are_those_of_a_loop_over_outages(book):
    rows = book.rows(OUTAGES)
    won = 0
    for outage in set(rows.outage) - {""}:
        part = rows[rows.outage == outage].set_index("method").v
        won += part["icw"] < part["frozen"]
    assert wins(rows, "v", "icw", "frozen") == (won, 3, [won])


def test_an_increase_is_relative_to_the_intact_grid_of_the_same_seed(book):
    rows = book.rows(OUTAGES).set_index(["outage", "method"])
    gap = gaps(book.rows(OUTAGES))
    outage = gap.index[0]
    expected = rows.overall[outage, "icw"] / rows.overall["", "icw"] - 1
    assert gap.increase[outage] == pytest.approx(expected, rel=1e-12)
    closed = rows.mmd[outage, "frozen"] - rows.mmd[outage, "icw"]
    assert gap.closed[outage] == pytest.approx(closed, rel=1e-12)


@pytest.mark.parametrize("name", sorted(ARTEFACTS))
def test_an_artefact_has_tables_words_and_a_picture_from_rows(book, name):
    artefact = ARTEFACTS[name]
    rows = artefact.rows(book)
    if name == "mmd-gap-118":  # a grid that the scale lacks
        assert list(artefact.tables(rows)) == []
        return
    for table in artefact.tables(rows):
        heads = [column.removeprefix(">").split("\n") for column in table.columns]
        widths = [
            max(len(text) for text in (*head, *(cell(row[i]) for row in table.rows)))
            for i, head in enumerate(heads)
        ]
        assert sum(widths) + 2 * (len(widths) - 1) <= 80, "wider than a terminal"
    said = [str(comment) for comment in artefact.comments(rows)]
    assert all(text.endswith(".") and "nan" not in text for text in said)
    assert artefact.draw(rows).get_axes()


def test_the_papers_numbers_stand_beside_ours(book):
    rows = ARTEFACTS["n2-pairs"].rows(book)
    error = outages(rows["pairs"], "overall")
    summary = {row[0]: row[1:3] for row in ARTEFACTS["n2-pairs"].tables(rows)[-1].rows}
    assert summary["median"] == (pytest.approx((error.frozen / error.icw).median()), 7.6)
    assert summary["worst percentile"][1] == 2.3
    table = ARTEFACTS["physical-validity"].tables(ARTEFACTS["physical-validity"].rows(book))[0]
    assert [row[table.columns.index(">paper")] for row in table.rows] == [14.0, 18.0, 30.0]


@pytest.mark.parametrize("loses", [0, 1])
def test_uniform_is_claimed_only_if_no_outage_is_an_exception(loses):
    errors = {"frozen": 4.0, "icw": 1.0, "icw-paired": 0.5, "icw-tenfold": 0.9, "perfect": 0.8}
    rows = [
        {"grid": "case118", "outage": f"line:{n}" if n else "", "seed": 0, "method": method,
         "overall": e, "v": 9.0 if method == "icw" and 0 < n <= loses else e, "theta": e}
        for n in range(5)
        for method, e in errors.items()
    ]  # fmt: skip
    (uniform,) = [
        judged
        for judged in ARTEFACTS["consistency"].comments({"outages": pd.DataFrame(rows)})
        if isinstance(judged, Judged) and "uniform" in judged.claim.says
    ]
    assert uniform.verdict == (Verdict.FAILS if loses else Verdict.HOLDS)
    assert f"|V| {4 - loses} of 4; theta 4 of 4" in uniform.ours


def test_the_layout_of_a_sweep_is_that_of_the_grid():
    assert THERE.test(2).layout == Layout.of(network_of("case30"))
