"""A trial draws, solves, fits and predicts once, and what it gives belongs together."""

from dataclasses import replace

import numpy as np
import pytest

from gridshift.adapt.methods import METHODS
from gridshift.errors import ContextError, ScenarioError
from gridshift.trial import cases as cases_module
from gridshift.trial.cases import Cases
from gridshift.trial.trial import Trial, measure_adaptation


@pytest.fixture
def closed_form(closed_forms):
    return closed_forms["quadratic"]


@pytest.fixture
def network(grid):
    return grid.without(["line:1"])


def test_everything_a_trial_gives_comes_from_one_fit_and_one_set_of_solved_cases(
    network, surrogate, monkeypatch
):
    generated, fitted = [], []
    generate = cases_module.generate

    def counted(net, loads, **options):
        generated.append(loads.num_rows)
        return generate(net, loads, **options)

    def adapt(base, context):
        fitted.append(len(context.x))
        return METHODS["icw"].adapt(base, context)

    monkeypatch.setattr(cases_module, "generate", counted)
    method = replace(METHODS["icw"], adapt=adapt)
    trial = Trial(surrogate, method, Cases(network, num_context=60, num_test=80))
    trial.measurement()
    trial.certified(1e-6)
    trial.error_bars(0.8)
    trial.certified_us_per_row(1e-6)
    assert sorted(generated) == [2, 60, 80]  # two rows beforehand, which may compile
    assert fitted == [60, 45]  # error bars belong to a fit without the cases that set them


def test_a_certified_test_counts_every_row(network, surrogate):
    cases = Cases(network, num_context=60, num_test=80)
    found = Trial(surrogate, METHODS["icw"], cases).certified(1e-6)
    assert sum(found.counts.values()) == 80
    assert found.worst_mismatch <= 1e-6
    assert found.mae["overall"] < 1e-6
    only = Trial(surrogate, METHODS["frozen"], cases).certified(None, correct_share=0.05)
    assert only.counts["predicted"] == 76


def test_error_bars_hold_at_about_their_rate_on_the_test(network, surrogate):
    cases = Cases(network, num_context=60, num_test=80)
    bars = Trial(surrogate, METHODS["icw"], cases).error_bars(0.8)
    assert (bars.num_context, bars.num_calibration) == (45, 15)
    assert set(bars.coverage) == {"p_slack", "q_gen", "v", "theta"}
    # 15 rows calibrate to a rate that scatters by 0.1 around 0.8: three deviations
    assert 0.5 < bars.coverage["v"]["interval"] <= 1.0
    frozen = Trial(surrogate, METHODS["frozen"], cases).error_bars(0.8)
    assert (frozen.num_context, frozen.num_calibration) == (0, 15)


def test_a_context_is_solved_for_methods_that_use_it_and_charged_to_no_others(network, surrogate):
    cases = Cases(network, num_context=40, num_test=20)
    free = Trial(surrogate, METHODS["frozen"], cases).measurement()
    assert free.num_solves == free.cost.data_s == 0
    assert "context" not in vars(cases)
    paid = Trial(surrogate, METHODS["icw"], cases).measurement()
    assert paid.num_solves == 40
    assert paid.cost.data_s == cases.data_s > 0
    assert paid.cost.setup_s == paid.cost.data_s + paid.cost.fit_s


def test_context_and_test_depend_on_topology_role_and_seed_alone(grid, network):
    one, again = Cases(network, num_context=10, num_test=10), Cases(network, num_test=10)
    np.testing.assert_array_equal(one.test.x, again.test.x)
    assert not np.isin(one.context.x[:, 0], one.test.x[:, 0]).any()
    for other in (Cases(network, num_test=10, seed=1), Cases(grid, num_test=10)):
        assert not np.isin(other.test.x[:, 0], one.test.x[:, 0]).any()


def test_the_verb_measures_what_the_trial_does(network, surrogate):
    numbers = {"num_context": 40, "num_test": 30, "seed": 3}
    found = measure_adaptation(surrogate, network, METHODS["ridge"], **numbers)
    trial = Trial(surrogate, METHODS["ridge"], Cases(network, **numbers))
    assert found.mae == trial.mae
    assert found.mismatch == trial.mismatch


def test_too_few_or_unsolvable_cases_are_refused(network, surrogate):
    with pytest.raises(ContextError, match="at least 9"):
        Trial(surrogate, METHODS["frozen"], Cases(network, num_context=8)).error_bars(0.9)
    with pytest.raises(ContextError, match="at least 2"):
        _ = Trial(surrogate, METHODS["icw"], Cases(network, num_context=1)).context
    with pytest.raises(ScenarioError, match="are needed"):
        _ = Cases(network, num_context=20, tol=1e-30).context


def test_error_bars_of_few_cases_leave_each_out_and_hold_over_many_draws(network, closed_form):
    covered = []
    for seed in range(12):
        cases = Cases(network, num_context=10, num_test=100, seed=seed)
        bars = Trial(closed_form, METHODS["compensation"], cases).error_bars(0.9)
        assert (bars.way, bars.num_context, bars.num_calibration) == ("left out", 9, 10)
        assert bars.guaranteed == pytest.approx(0.8)
        assert all(np.isfinite(one["band"]) for one in bars.widths.values())
        covered.append([one["interval"] for one in bars.coverage.values()])
    # contexts have wider spreads than the tests, so that the level is exceeded; the mean of 12
    # draws that scatter by 0.1 each has a standard error of 0.03
    assert np.mean(covered) > 0.85


def test_error_bars_of_few_cases_take_them_all_where_nothing_is_fitted(network, closed_form):
    cases = Cases(network, num_context=10, num_test=100)
    bars = Trial(closed_form, METHODS["frozen"], cases).error_bars(0.9)
    error = np.abs(closed_form.predict(cases.context.x) - cases.context.y)
    at = cases.context.layout.y_slices["v"]
    assert bars.widths["v"]["interval"] == pytest.approx(error[:, at].max(0).mean())
    assert (bars.num_context, bars.num_calibration, bars.guaranteed) == (0, 10, 0.9)
