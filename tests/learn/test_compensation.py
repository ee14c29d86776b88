from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridshift.errors import ContextError, GridshiftWarning
from gridshift.learn.compensation import Compensated, Touched, fit_compensation
from gridshift.learn.identification import identify


@dataclass
class LinearGrid:
    """DC power flow of a meshed grid of 8 buses, bus 0 the slack: y = angles = inverse(B) x."""

    susceptance: np.ndarray
    lines: tuple = (
        (0, 1), (1, 2), (2, 3), (3, 0), (1, 4), (4, 5), (5, 6), (6, 2), (6, 7), (7, 3), (5, 7),
    )  # fmt: skip

    def laplacian(self, out=()):
        matrix = np.zeros((8, 8))
        for number, (i, j) in enumerate(self.lines):
            if number not in out:
                b = self.susceptance[number]
                matrix[[i, j], [i, j]] += b
                matrix[[i, j], [j, i]] -= b
        return matrix[1:, 1:]

    def solve(self, x, out=()):
        return np.linalg.solve(self.laplacian(out), x.T).T

    def predict(self, x):
        return self.solve(x)

    def touched(self, *out):
        """Angle of bus k is column k - 1; there are no magnitudes."""
        buses = sorted({bus for number in out for bus in self.lines[number]})
        return Touched(
            angles=tuple(bus - 1 if bus else None for bus in buses),
            magnitudes=(None,) * len(buses),
            branches=tuple(tuple(map(buses.index, self.lines[number])) for number in out),
        )


@pytest.fixture
def grid():
    return LinearGrid(np.linspace(1.0, 2.0, 11))


def loads(num_rows, seed=0):
    return -np.random.default_rng(seed).uniform(0.5, 1.5, (num_rows, 7))


@given(
    susceptance=st.lists(st.floats(0.3, 3.0), min_size=11, max_size=11),
    out=st.sampled_from([(0,), (4,), (8,), (0, 5), (2, 6), (4, 9)]),
)
@settings(max_examples=30, deadline=None)
def test_with_linear_physics_and_an_exact_base_compensation_is_exact_from_five_cases(
    susceptance, out
):
    grid = LinearGrid(np.array(susceptance))
    x, fresh = loads(5), loads(40, seed=1)
    fitted = fit_compensation(x, grid.solve(x, out), grid.predict(x), grid.touched(*out))
    predicted = Compensated(base=grid, compensation=fitted).predict(fresh)
    truth = grid.solve(fresh, out)
    # the smallest penalty is 1e-12; two angle differences may be nearly parallel in five rows
    np.testing.assert_allclose(predicted, truth, atol=1e-5 * np.abs(truth).max())


def test_a_shift_alone_or_a_wrong_branch_is_not_exact(grid):
    x, fresh = loads(10), loads(40, seed=1)
    wrong = fit_compensation(x, grid.solve(x, (4,)), grid.predict(x), grid.touched(9))
    predicted = Compensated(base=grid, compensation=wrong).predict(fresh)
    assert np.abs(predicted - grid.solve(fresh, (4,))).max() > 1e-2


def test_flows_are_linear_in_the_power_of_a_branch():
    rng = np.random.default_rng(4)
    v, theta = rng.uniform(0.9, 1.1, (30, 2)), rng.uniform(-0.5, 0.5, (30, 2))
    voltage = v * np.exp(1j * theta)
    y_ii, y_ij = 1.3 - 4.1j, -1.2 + 4.4j
    power = voltage[:, 0] * (y_ii * voltage[:, 0] + y_ij * voltage[:, 1]).conj()
    touched = Touched(angles=(2, 3), magnitudes=(0, 1), branches=((0, 1),))
    flows = touched.features("flows", np.hstack([v, theta]))
    assert flows.shape == (30, 4)
    target = np.stack([power.real, power.imag], 1)
    coefficients, *_ = np.linalg.lstsq(flows, target, rcond=None)
    np.testing.assert_allclose(flows @ coefficients, target, atol=1e-12)


def test_a_slack_has_no_angle_and_a_controlled_bus_no_magnitude():
    y = np.random.default_rng(5).uniform(0.5, 1.0, (9, 4))
    touched = Touched(angles=(None, 1), magnitudes=(None, 3), branches=((0, 1),), others=(0,))
    expected = np.stack([-y[:, 1], y[:, 3], y[:, 0]], 1)
    np.testing.assert_array_equal(touched.features("differences", y), expected)
    flows = touched.features("flows", y)
    by_hand = [-y[:, 3] * np.sin(y[:, 1]), y[:, 3] * np.cos(y[:, 1]), y[:, 3] ** 2, y[:, 0]]
    np.testing.assert_allclose(flows, np.stack(by_hand, 1))


def test_the_choice_is_never_worse_left_out_than_features_alone(grid):
    x = loads(30)
    noise = 0.01 * np.random.default_rng(6).normal(size=(30, 7))
    fitted = fit_compensation(x, grid.solve(x, (4,)) + noise, grid.predict(x), grid.touched(4))
    assert fitted.left_out_mae <= fitted.candidates["differences, nothing"]
    assert set(fitted.candidates) > {"no change", "differences, inputs", "squares, state"}


@pytest.mark.parametrize("seed", range(5))
def test_where_noise_hides_what_changed_the_base_stays_as_it_is(grid, seed):
    """Ten rows whose noise is ten times the effect of an outage say nothing of it."""
    x, fresh = loads(10, seed), loads(200, seed + 50)
    effect = np.abs(grid.solve(x, (4,)) - grid.predict(x)).mean()
    noise = 10 * effect * np.random.default_rng(seed).normal(size=(10, 7))
    fitted = fit_compensation(x, grid.solve(x, (4,)) + noise, grid.predict(x), grid.touched(4))
    predicted = Compensated(base=grid, compensation=fitted).predict(fresh)
    assert np.array_equal(predicted, grid.predict(fresh))
    assert (fitted.features, fitted.rest) == ("nothing", "nothing")
    assert fitted.left_out_mae == pytest.approx(fitted.candidates["no change"])


def test_inputs_at_rest_in_the_cases_are_told_and_keep_the_fit_simple(grid):
    """A local curvature is learned by squares, and goes on for ever where the loads move more."""
    x, fresh = loads(40), loads(200, seed=1)
    x[:, [0, 3, 4, 5]] = -1.0

    def after(x):
        bent, angles = grid.solve(x, (4,)), grid.predict(x)
        bent[:, 2] += 0.1 * np.tanh(4 * (angles[:, 0] - angles[:, 3] - 0.5))
        return bent

    rows = x, after(x), grid.predict(x), grid.touched(4)
    with pytest.warns(GridshiftWarning, match="4 of 7 inputs .* in all 40 cases"):
        fitted = fit_compensation(*rows, varied=np.arange(7))
    assert (fitted.features, fitted.rest) == ("differences", "nothing")
    fooled = fit_compensation(*rows)  # nobody says that the first input varies elsewhere
    error, other = (
        np.abs(Compensated(base=grid, compensation=one).predict(fresh) - after(fresh)).mean()
        for one in (fitted, fooled)
    )
    assert fooled.left_out_mae < fitted.left_out_mae
    assert error < other
    fit_compensation(loads(40), *rows[1:], varied=np.arange(7))  # all move: no warning


def test_what_follows_the_inputs_is_learned_once_there_are_cases_enough(grid):
    rng = np.random.default_rng(7)
    more = 0.1 * rng.normal(size=(7, 7))
    x, fresh = loads(60), loads(40, seed=1)
    fitted = fit_compensation(x, grid.solve(x, (4,)) + x @ more, grid.predict(x), grid.touched(4))
    assert fitted.rest != "nothing"
    truth = grid.solve(fresh, (4,)) + fresh @ more
    predicted = Compensated(base=grid, compensation=fitted).predict(fresh)
    np.testing.assert_allclose(predicted, truth, atol=1e-4)


def test_named_columns_alone_will_do(grid):
    i, j = (bus - 1 for bus in grid.lines[4])
    x, fresh = loads(12), loads(40, seed=1)
    touched = Touched(others=(i, j))
    fitted = fit_compensation(x, grid.solve(x, (4,)), grid.predict(x), touched)
    predicted = Compensated(base=grid, compensation=fitted).predict(fresh)
    np.testing.assert_allclose(predicted, grid.solve(fresh, (4,)), atol=1e-6)


def test_the_line_that_is_out_is_named_and_its_rivals_ranked(grid):
    candidates = {f"line:{n}": grid.touched(n) for n in range(1, 11)}
    x = loads(12)
    noise = 1e-5 * np.random.default_rng(8).normal(size=(12, 7))
    for out in range(1, 11):
        found = identify(x, grid.solve(x, (out,)) + noise, grid.predict(x), candidates)
        assert found.name == f"line:{out}" == found.ranking[0][0]
        assert found.doubt < 0.05
        assert found.alike == (f"line:{out}",)


def test_nothing_is_named_where_nothing_happened_or_two_are_the_same(grid):
    candidates = {f"line:{n}": grid.touched(n) for n in range(1, 11)}
    x = loads(12)
    noise = 1e-5 * np.random.default_rng(9).normal(size=(12, 7))
    found = identify(x, grid.predict(x) + noise, grid.predict(x), candidates)
    assert found.name is None
    assert "shift of the mean" in found.reason
    twins = {"a": grid.touched(4), "b": grid.touched(4), "c": grid.touched(9)}
    found = identify(x, grid.solve(x, (4,)) + noise, grid.predict(x), twins)
    assert found.name is None
    assert set(found.alike) == {"a", "b"}


def test_a_wrong_name_is_as_rare_as_asked(grid):
    """Where noise hides the outage, naming a wrong line happens in less than 5 % of 60 tries."""
    candidates = {f"line:{n}": grid.touched(n) for n in range(1, 11)}
    wrong = 0
    for seed in range(60):
        x = loads(10, seed=seed)
        noise = 0.3 * np.random.default_rng(seed).normal(size=(10, 7))
        found = identify(x, grid.solve(x, (6,)) + noise, grid.predict(x), candidates)
        wrong += found.name not in (None, "line:6")
    assert wrong <= 3


def test_the_line_whose_angles_moved_most_is_named_where_errors_leave_a_rival(grid):
    """Six noisy rows can't tell 10 candidates apart by a test; two signs that agree can."""
    candidates = {f"line:{n}": grid.touched(n) for n in range(1, 11)}
    named = by_movement = 0
    for seed in range(20):
        x = loads(6, seed)
        noise = 2e-3 * np.random.default_rng(seed).normal(size=(6, 7))
        rows = x, grid.solve(x, (6,)) + noise, grid.predict(x), candidates
        found = identify(*rows)
        assert found.name in (None, "line:6")
        named += found.name is not None
        by_movement += "moved most" in found.reason
        # where the angles of another line are said to have moved more, it isn't named by them
        other = identify(*rows, movement={n: float(n == "line:9") for n in candidates})
        assert other.name is None or "moved most" not in other.reason
    assert named > by_movement > 0


def test_too_little_to_go_by_is_refused(grid):
    x = loads(4)
    y = grid.predict(x)
    with pytest.raises(ContextError, match="at least 2"):
        fit_compensation(x[:1], y[:1], y[:1], grid.touched(4))
    with pytest.raises(ContextError, match="at least 5 cases"):
        identify(x, y, y, {"line:4": grid.touched(4)})
    with pytest.raises(ContextError, match="one of each for every bus"):
        Touched(angles=(1,), magnitudes=())
