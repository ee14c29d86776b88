"""The choice of method follows what was measured, and exact solving is never left out."""

import time
from dataclasses import replace

import numpy as np
import pytest

from gridshift.adapt.certificate import certificate
from gridshift.adapt.methods import METHODS, Context, Method
from gridshift.errors import ContextError, GridshiftError
from gridshift.trial.choice import Candidate, choose
from gridshift.trial.cost import break_even_rows
from gridshift.trial.exact import EXACT


class Known:
    """Knows the answers of the rows it may be asked for, at no cost; `off` is added."""

    def __init__(self, context, off=0.0):
        self.context, self.off = context, off
        self.answer = {x.tobytes(): y for x, y in zip(context.x, context.y, strict=True)}
        self.probe = np.resize(context.y, (2048, context.y.shape[1])) + off

    def predict(self, x):
        if len(x) == len(self.probe):  # only timed
            return self.probe
        return np.array([self.answer[row.tobytes()] for row in x]) + self.off


def method(name, adapt, needs=("solved cases",), transform=None):
    return Method(
        name=name, summary="", needs=needs, source="test", adapt=adapt, transform=transform
    )


def roster(*methods):
    return {m.name: m for m in methods}


@pytest.fixture
def context(outage_rows):
    return Context.of(outage_rows)


@pytest.fixture
def oracle(context):
    """Right to 1e-5 and free."""
    return method("oracle", lambda *_: Known(context, 1e-5))


class Slow:
    """Takes its time over every call."""

    def __init__(self, predictor):
        self.predictor = predictor

    def predict(self, x):
        time.sleep(0.2)
        return self.predictor.predict(x)


def test_exact_solving_is_chosen_where_it_is_the_cheapest(surrogate, context):
    slow = method("slow", lambda *_: Slow(surrogate))
    found = choose(surrogate, context, num_rows=10**7, target_mae=1.0, methods=roster(slow))
    assert found.chosen.name == EXACT
    assert found.exact
    assert found.predictor is None
    assert "newton is the cheapest of 2 that keep" in found.reason


def test_all_methods_are_on_the_ledger_and_so_is_exact_solving(surrogate, context):
    found = choose(surrogate, context, num_rows=1000, target_mae=1.0)
    assert {c.name for c in found.ledger} == {EXACT, *METHODS}
    assert found.chosen.total_s == min(c.total_s for c in found.ledger if c.meets)


def test_a_cheaper_method_within_the_target_is_chosen_and_fitted_on_the_whole_context(
    surrogate, context, oracle
):
    found = choose(surrogate, context, num_rows=10**9, target_mae=1e-4, methods=roster(oracle))
    assert found.chosen.name == "oracle"
    assert found.chosen.mae == pytest.approx(1e-5)
    assert found.predictor.context is context


def test_a_method_beyond_the_target_is_not_chosen_however_cheap(surrogate, context, oracle):
    found = choose(surrogate, context, num_rows=10**9, target_mae=1e-6, methods=roster(oracle))
    assert found.exact
    assert not next(c for c in found.ledger if c.name == "oracle").meets


def test_the_context_is_charged_to_methods_that_need_it_and_to_no_others(
    surrogate, context, oracle
):
    both = roster(oracle, replace(oracle, name="free", needs=("nothing",)))
    found = choose(surrogate, context, num_rows=1, target_mae=1.0, context_s=100.0, methods=both)
    lines = {c.name: c for c in found.ledger}
    assert lines["oracle"].setup_s > 100 > lines["free"].setup_s
    assert lines["oracle"].num_solves == context.num_solves
    assert lines["free"].num_solves == 0
    assert found.chosen.name in ("free", EXACT)


def test_errors_are_measured_on_cases_that_the_method_was_not_fitted_on(surrogate, context):
    seen = []

    def adapt(_, part):
        seen.append(part)
        return Known(context, 1e-5)

    found = choose(
        surrogate, context, num_rows=10**9, target_mae=1.0, methods=roster(method("spy", adapt))
    )
    fitted, whole = seen
    assert len(fitted.x) + found.num_holdout == len(context.x)
    assert len(np.unique(fitted.x, axis=0)) == len(fitted.x)
    assert len(whole.x) == len(context.x)


def test_with_a_tolerance_every_method_keeps_it_by_correction(surrogate, context):
    def plain(_, part):
        return surrogate

    found = choose(
        surrogate, context, num_rows=1000, tol=1e-6, methods=roster(method("plain", plain))
    )
    lines = {c.name: c for c in found.ledger}
    without = choose(
        surrogate, context, num_rows=1000, target_mae=1.0, methods=roster(method("plain", plain))
    )
    rough = next(c for c in without.ledger if c.name == "plain")
    assert all(c.meets for c in found.ledger)
    assert lines["plain"].corrected == 1.0
    assert lines["plain"].mae < 1e-6 < rough.mae
    held = certificate(context.network, surrogate.layout, context.x, surrogate.predict(context.x))
    assert held.mismatch.min() > 1e-6


def test_totals_are_set_up_plus_rows_and_equal_at_the_break_even(surrogate, context, oracle):
    found = choose(
        surrogate, context, num_rows=10**7, target_mae=1.0, context_s=0.5, methods=roster(oracle)
    )
    lines = {c.name: c for c in found.ledger}
    for line in lines.values():
        assert line.total_s == pytest.approx(line.setup_s + line.us_per_row * 10)
    rows, exact, other = lines["oracle"].break_even_rows, lines[EXACT], lines["oracle"]
    assert exact.setup_s + rows * exact.us_per_row / 1e6 == pytest.approx(
        other.setup_s + rows * other.us_per_row / 1e6
    )
    assert break_even_rows(1.0, 2.0, 0.0, 1.0) == np.inf


def test_what_cannot_be_tried_says_why_and_does_not_stop_the_others(surrogate, context):
    def broken(*_):
        raise np.linalg.LinAlgError("no eigenvalues")

    methods = roster(
        method("broken", broken),
        method("slow", broken, needs=("solved cases", "gradient steps")),
        method("other", broken, transform="residual"),
    )
    found = choose(surrogate, context, num_rows=10, target_mae=1.0, methods=methods)
    problems = {c.name: c.problem for c in found.ledger}
    assert found.exact
    assert problems["broken"] == "no eigenvalues"
    assert "gradient steps" in problems["slow"]
    assert "transform residual" in problems["other"]
    with pytest.raises(GridshiftError, match="no eigenvalues"):
        choose(surrogate, context, num_rows=10, tol=1.0, methods=methods, exact=False)


def test_each_method_starts_from_a_surrogate_that_suits_it(surrogates, context):
    found = choose(list(surrogates.values()), context, num_rows=10, target_mae=1.0)
    assert {m.name for m in METHODS.values() if m.fast} <= {
        c.name for c in found.ledger if not c.problem
    }
    told = {c.name: c.problem for c in found.ledger}
    assert told["mmnp"] == "starts from its own model; not tried"
    assert "method pfgnn needs a surrogate" in told["pfgnn"]


def test_the_closest_is_taken_where_none_keeps_the_target(surrogate, context, oracle):
    found = choose(
        surrogate, context, num_rows=10, target_mae=1e-9, methods=roster(oracle), exact=False
    )
    assert found.chosen.name == "oracle"
    assert "no method keeps" in found.reason


def test_a_choice_needs_something_to_keep_and_cases_to_measure_on(surrogate, context):
    with pytest.raises(GridshiftError, match="something to keep"):
        choose(surrogate, context, num_rows=10)
    few = replace(context, x=context.x[:7], y=context.y[:7])
    with pytest.raises(ContextError, match="at least 8"):
        choose(surrogate, few, num_rows=10, tol=1e-6)
    assert Candidate(name="x").total_s == np.inf
