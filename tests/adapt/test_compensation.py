from dataclasses import replace

import numpy as np
import pytest

from gridshift.adapt.cache import cached_surrogate
from gridshift.adapt.compensation import adapt_compensation, identify_outage, touched_by
from gridshift.adapt.context import Context
from gridshift.adapt.datasets import generate
from gridshift.adapt.surrogate import train
from gridshift.adapt.training_rows import regression_of, state_columns
from gridshift.errors import OutageError, SurrogateMismatchError
from gridshift.grid.layout import Layout
from gridshift.grid.scenarios import sample_loads
from gridshift.grid.tangent import Tangent
from gridshift.learn.compensation import Compensated, fit_compensation
from tests.adapt.conftest import quick_base


def rows(network, num_rows, seed=0, regime="mixed"):
    return generate(
        network, sample_loads(network, np.random.default_rng(seed), num_rows, regime=regime)
    )


def mae(predictor, test):
    return np.abs(predictor.predict(test.x) - test.y).mean()


@pytest.fixture(scope="module")
def base(grid):
    return train(grid, quick_base("quadratic"), data=rows(grid, 400, seed=3))


def end_columns(network, label):
    """Names of the outputs at the ends of an element's branches, from the labels of the buses."""
    ends = {
        network.bus_labels[bus]
        for branch in network.elements[label]
        for bus in (network.branch_from[branch], network.branch_to[branch])
    }
    return {e.name for e in Layout.of(network).outputs if e.bus in ends and e.quantity[0] in "vt"}


def names_of(network, touched):
    outputs = Layout.of(network).outputs
    return {outputs[c].name for c in (*touched.angles, *touched.magnitudes) if c is not None}


@pytest.mark.parametrize("out", [["line:1"], ["line:4"], ["line:0", "line:6"]])
def test_an_outage_touches_its_end_buses(grid, out):
    touched = touched_by(grid.without(out))
    assert names_of(grid, touched) == set.union(*(end_columns(grid, label) for label in out))
    assert len(touched.branches) == len(out)


def test_slack_and_controlled_buses_have_no_angle_or_magnitude_output(grid):
    # line:3 joins the slack, bus 1, and bus 3; line:4 the PV buses 2 and 4
    assert names_of(grid, touched_by(grid.without(["line:3"]))) == {"v bus:3", "theta bus:3"}
    assert names_of(grid, touched_by(grid.without(["line:4"]))) == {"theta bus:2", "theta bus:4"}


def test_a_shunt_touches_its_bus_and_a_tap_both_ends(grid):
    shunt, y = grid.bus_shunt.copy(), grid.branch_y.copy()
    shunt[5] += 0.2j
    touched = touched_by(replace(grid, bus_shunt=shunt), grid)
    assert names_of(grid, touched) == {"v bus:5", "theta bus:5"}
    assert touched.branches == ()
    y[4, 0] *= 1.05
    y[4, 1:3] *= 1.02
    assert len(touched_by(replace(grid, branch_y=y), grid).branches) == 1


def test_a_transformer_of_three_windings_touches_its_star_point(grid):
    labels = tuple("trafo3w:0" if branch in (5, 6, 7) else f"line:{branch}" for branch in range(8))
    network = replace(grid, branch_labels=labels)  # bus 5 is the star point
    touched = touched_by(network.without(["trafo3w:0"]))
    assert len(touched.branches) == 3
    assert len(touched.angles) == 4
    assert names_of(network, touched) == end_columns(network, "trafo3w:0")


def test_what_has_not_changed_or_has_other_buses_is_refused(grid):
    with pytest.raises(OutageError, match="nothing of small differs"):
        touched_by(grid)
    kind = grid.bus_kind.copy()
    kind[2] = 1
    with pytest.raises(SurrogateMismatchError, match="kinds"):
        touched_by(replace(grid, bus_kind=kind), grid)


class LinearPhysics:
    """Outputs by the tangent of one topology at one voltage, and of its outages at the same."""

    def __init__(self, network, voltage):
        self.tangent = Tangent.at(network, voltage)

    def predict(self, x):
        return self.tangent.y + self.tangent.apply(x - self.tangent.x)


@pytest.mark.parametrize("out", [["line:1"], ["line:2"], ["line:7"]])
def test_with_the_tangents_linear_physics_the_state_is_exact(grid, out):
    """Both topologies are linear around one voltage: Woodbury's identity is then exact."""
    left = grid.without(out)
    voltage = Tangent.of(grid).voltage
    before, after = LinearPhysics(grid, voltage), LinearPhysics(left, voltage)
    state = state_columns(Layout.of(grid))
    context, test = rows(grid, 12).x, rows(grid, 50, seed=1).x
    fitted = fit_compensation(
        context, after.predict(context), before.predict(context), touched_by(left), state=state
    )
    predicted = Compensated(base=before, compensation=fitted).predict(test)
    frozen = np.abs(before.predict(test) - after.predict(test))[:, state].max()
    error = np.abs(predicted - after.predict(test))[:, state].max()
    assert error < 1e-6 * frozen


def test_ten_cases_beat_every_use_of_sixty_without_the_end_buses(grid, base, outage_rows):
    from gridshift.adapt.context_methods import adapt_ridge

    test = rows(outage_rows.network, 200, seed=9)
    ten = adapt_compensation(base, Context.of(outage_rows.rows(slice(0, 10))))
    sixty = adapt_compensation(base, Context.of(outage_rows))
    assert mae(ten, test) < mae(base, test) / 30
    assert mae(sixty, test) < mae(ten, test)
    assert mae(sixty, test) < mae(adapt_ridge(base, Context.of(outage_rows)), test)


def test_any_base_that_predicts_will_do(grid, training_rows, outage_rows):
    linear = train(grid, quick_base("linear"), data=training_rows)
    test = rows(outage_rows.network, 200, seed=9)
    adapted = adapt_compensation(linear, Context.of(outage_rows.rows(slice(0, 10))))
    # what is left is mostly the base's own error on the intact grid
    own = mae(linear, rows(grid, 200, seed=9))
    assert mae(adapted, test) < 3 * own < mae(linear, test)


def test_a_regression_leaves_far_less_than_the_outputs(grid):
    data = rows(grid, 300, seed=4)
    remainder = data.y - regression_of(data).predict(data.x)
    assert np.abs(remainder).mean() < 1e-3 * np.abs(data.y - data.y.mean(0)).mean()


def test_the_base_tells_its_error_on_fresh_rows_and_comes_back_from_the_cache(
    grid, tmp_path, monkeypatch
):
    monkeypatch.setenv("GRIDSHIFT_CACHE", str(tmp_path))
    config = quick_base("quadratic")
    first, again = (
        cached_surrogate(network, config) for network in (grid, grid.without(["line:1"]))
    )
    test = rows(grid, 300, seed=8, regime="drawn")
    assert np.array_equal(first.predict(test.x), again.predict(test.x))
    assert first.record == again.record
    # 50 validation rows against 300 others
    assert first.mae == pytest.approx(mae(first, test), rel=0.5)


def test_the_line_that_is_out_is_found_from_cases_alone(grid, base):
    outages = [(f"line:{number}",) for number in range(8)]
    for out in ("line:1", "line:3"):
        cases = rows(grid.without([out]), 15, seed=2)
        assert identify_outage(base, grid, cases.x, cases.y, outages).name == out


@pytest.mark.parametrize("out", ["line:6", "line:7"])
def test_what_left_out_errors_cannot_tell_apart_is_told_by_the_angles(grid, base, out):
    """Bus 5 without line 6 or line 7 hangs on one controlled bus and bus 3 either way."""
    outages = [(f"line:{number}",) for number in range(8)]
    cases = rows(grid.without([out]), 15, seed=2)
    found = identify_outage(base, grid, cases.x, cases.y, outages)
    assert set(found.alike) == {"line:6", "line:7"}
    assert (found.name, "moved most" in found.reason) in [(out, True), (None, False)]


def test_nothing_is_named_for_the_intact_grid(grid, base):
    outages = [(f"line:{number}",) for number in range(8)]
    intact = rows(grid, 15, seed=2)
    assert identify_outage(base, grid, intact.x, intact.y, outages).name is None
