"""A certificate is the mismatch of a dense textbook; a certified row keeps it, or is NaN."""

import numpy as np
import pytest

from gridshift.adapt.certificate import CertifiedPredictor, certificate, certify, states
from gridshift.adapt.datasets import generate
from gridshift.errors import GridshiftError
from gridshift.grid.balance import Origin, StateRows, check, repair
from gridshift.grid.powerflow import RowStatus
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import LoadScenarios, nominal_loads, sample_loads
from tests.adapt.grids import small_grid
from tests.reference.grids import branch_two_port, make_network
from tests.reference.newton import bus_matrix, bus_power, dense_newton, off_balance


def rows_of(network, num_rows, seed=0):
    rng = np.random.default_rng(seed)
    return generate(network, sample_loads(network, rng, num_rows, regime="fixed"))


def noisy(data, size, seed=1):
    return data.y + size * np.random.default_rng(seed).standard_normal(data.y.shape)


@pytest.fixture(scope="module", params=["small", "case30"])
def data(request):
    network = small_grid() if request.param == "small" else read_grid("case30")
    return rows_of(network.without(["line:1"]), 70)


def demand(data, row):
    return data.layout.unpack_loads(data.x).load_power[row]


# --- what a certificate says ---------------------------------------------------------------


def test_the_mismatch_and_its_bus_are_those_of_the_dense_equations(data):
    y = noisy(data, 1e-2)
    found = certificate(data.network, data.layout, data.x, y)
    voltage = data.layout.unpack_voltage(data.x, y)
    matrix, kind = bus_matrix(data.network), data.network.bus_kind
    for row in range(len(y)):
        v = voltage[row]
        d = v * (matrix @ v).conj() - bus_power(data.network, demand(data, row))
        worst = np.maximum(np.where(kind != 3, abs(d.real), 0), np.where(kind == 1, abs(d.imag), 0))
        # the sum over a bus's branches cancels from about 100 p.u. to 0.01: 1e-12 of the mismatch
        assert found.mismatch[row] == pytest.approx(worst.max(), rel=1e-10)
        assert found.bus[row] == worst.argmax()


def test_the_norm_is_the_one_of_the_papers_appendix_with_the_generation_predicted(data):
    y, layout, network = noisy(data, 1e-2), data.layout, data.network
    found = certificate(network, layout, data.x, y)
    voltage, matrix = layout.unpack_voltage(data.x, y), bus_matrix(data.network)
    for row in range(len(y)):
        s = bus_power(network, demand(data, row))
        s[layout.controlled] += 1j * y[row, layout.y_slices["q_gen"]]
        d = voltage[row] * (matrix @ voltage[row]).conj() - s
        d[network.slack] = 0
        # single precision inside
        assert found.norm[row] == pytest.approx(abs(d).max(), rel=1e-6)


def test_exact_rows_are_balanced_and_a_wrong_generation_shows_in_the_norm_alone(data):
    found = certificate(data.network, data.layout, data.x, data.y)
    assert found.mismatch.max() <= 1.01e-8  # the solver's tolerance, in other arithmetic
    assert found.norm.max() <= 1.5e-8
    y = data.y.copy()
    at_pv = ~np.isin(data.layout.controlled, data.network.slack)
    y[:, np.flatnonzero(at_pv)[0] + data.layout.y_slices["q_gen"].start] += 0.25
    wrong = certificate(data.network, data.layout, data.x, y)
    assert np.array_equal(wrong.mismatch, found.mismatch)
    assert wrong.norm == pytest.approx(np.full(len(y), 0.25), rel=1e-6)


def test_angles_count_modulo_a_full_turn(data):
    y = data.y.copy()
    turns = np.random.default_rng(0).integers(-3, 4, y[:, data.layout.y_slices["theta"]].shape)
    y[:, data.layout.y_slices["theta"]] += 2 * np.pi * turns
    assert certificate(data.network, data.layout, data.x, y).mismatch.max() < 1e-7


def test_complex_voltages_are_states_as_well(data):
    y = noisy(data, 1e-3)
    loads = data.layout.unpack_loads(data.x)
    voltage = StateRows.of_voltage(data.network, data.layout.unpack_voltage(data.x, y))
    found = check(data.network, loads, voltage)
    expected = check(data.network, loads, states(data.layout, y))
    assert found.mismatch == pytest.approx(expected.mismatch, rel=1e-10)


def test_a_state_that_is_not_finite_has_no_bus_and_leaves_its_neighbours_alone(data):
    y = noisy(data, 1e-3)
    before = certificate(data.network, data.layout, data.x, y)
    y[5, -1] = np.nan
    y[6, -1] = np.inf
    after = certificate(data.network, data.layout, data.x, y)
    others = np.delete(np.arange(len(y)), [5, 6])
    assert (after.bus[[5, 6]] == -1).all()
    assert not np.isfinite(after.mismatch[[5, 6]]).any()
    assert np.array_equal(after.mismatch[others], before.mismatch[others])
    assert np.array_equal(after.norm[others], before.norm[others])


# --- what certified rows keep --------------------------------------------------------------


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-9])
def test_every_returned_row_is_within_the_tolerance_by_the_dense_equations(data, tol):
    sizes = np.logspace(-12, -1, len(data))[:, None]
    y = data.y + sizes * np.random.default_rng(2).standard_normal(data.y.shape)
    found = certify(data.network, data.layout, data.x, y, tol=tol)
    assert found.counts()["marked"] == 0
    assert sum(found.counts().values()) == len(y)
    for row in range(len(y)):
        off = off_balance(data.network, found.voltage[row], demand(data, row))
        assert off <= tol + 1e-12  # round-off of another summation
        v, _ = dense_newton(data.network, found.voltage[row], demand(data, row))
        assert np.abs(found.voltage[row] - v).max() <= 20 * tol  # conditioning of these grids


def test_a_row_within_the_tolerance_keeps_the_voltages_predicted(data):
    y = noisy(data, 1e-9)
    found = certify(data.network, data.layout, data.x, y, tol=1e-5)
    assert found.counts() == {"predicted": len(y), "repaired": 0, "solved": 0, "marked": 0}
    assert np.abs(found.voltage - data.layout.unpack_voltage(data.x, y)).max() < 1e-14
    v = data.layout.y_slices["v"]
    assert found.y[:, v] == pytest.approx(y[:, v], abs=1e-14)


def test_generation_returned_is_what_the_voltages_need(data):
    y = noisy(data, 1e-3)
    found = certify(data.network, data.layout, data.x, y, tol=1e-8)
    injected = found.voltage * (found.voltage @ bus_matrix(data.network).T).conj()
    net = injected - data.network.bus_fixed
    np.add.at(net.T, data.network.load_bus, data.layout.unpack_loads(data.x).load_power.T)
    assert found.y[:, data.layout.y_slices["q_gen"]] == pytest.approx(
        net.imag[:, data.layout.controlled], abs=1e-10
    )


def test_the_correct_share_is_corrected_even_within_the_tolerance(data):
    y = noisy(data, 1e-5)
    given = certificate(data.network, data.layout, data.x, y).mismatch
    found = certify(data.network, data.layout, data.x, y, tol=1.0, correct_share=0.1)
    corrected = found.rows.origin != Origin.PREDICTED
    assert corrected.sum() == np.ceil(0.1 * len(y))
    assert given[corrected].min() >= given[~corrected].max()
    assert found.rows.mismatch[corrected].max() <= 1e-8


def test_rows_without_solution_or_loads_are_marked_and_others_do_not_notice(data):
    loads = data.layout.unpack_loads(data.x)
    load_p, load_q = loads.load_p.copy(), loads.load_q.copy()
    load_p[3] *= 200
    load_p[40, 0] = np.nan
    state = states(data.layout, noisy(data, 1e-3))
    plain = repair(data.network, loads, state)
    found = repair(data.network, LoadScenarios(load_p=load_p, load_q=load_q), state)
    others = np.delete(np.arange(len(load_p)), [3, 40])
    assert found.status[3] in (RowStatus.NO_CONVERGENCE, RowStatus.SINGULAR, RowStatus.IMPLAUSIBLE)
    assert found.status[40] == RowStatus.NOT_RUN
    assert (found.origin[[3, 40]] == Origin.MARKED).all()
    assert np.isnan(found.voltage[[3, 40]]).all()
    assert np.array_equal(found.voltage[others], plain.voltage[others])
    assert "not a finite number" in found.reason


def test_a_useless_prediction_is_solved_instead(data):
    y = data.y.copy()
    y[0] = np.nan
    y[1] = 1e6
    y[2, data.layout.y_slices["theta"]] = np.pi * (np.arange(data.network.num_buses - 1) % 2)
    found = certify(data.network, data.layout, data.x, y, tol=1e-6)
    assert found.counts()["marked"] == 0
    assert (found.rows.origin[:2] == Origin.SOLVED).all()
    exact = data.layout.unpack_voltage(data.x, data.y)
    assert np.abs(found.voltage - exact).max() < 1e-5


def test_a_balanced_low_voltage_root_is_not_returned():
    """Two buses, reactance x, load p: v^2 = (1 -+ sqrt(1 - (2 x p)^2)) / 2, v sin(theta) = -x p."""
    x, p = 0.2, 0.5
    network = make_network([3, 1], [(0, 1, branch_two_port(0, x))], [(1, p)])
    low, high = np.sqrt((1 + np.array([-1, 1]) * np.sqrt(1 - (2 * x * p) ** 2)) / 2)
    angle = -np.arcsin(x * p / low)
    root = np.array([[1.0, low * np.exp(1j * angle)]])
    state = StateRows.of_voltage(network, root)
    assert check(network, nominal_loads(network), state).mismatch[0] < 1e-12
    found = repair(network, nominal_loads(network), state, tol=1e-9)
    assert found.origin[0] == Origin.SOLVED
    assert abs(found.voltage[0, 1]) == pytest.approx(high, abs=1e-8)


def test_an_islanding_outage_marks_every_row():
    network = read_grid("case30")
    data = rows_of(network, 5)
    cut = network.without(["line:12"])
    found = certify(cut, data.layout, data.x, data.y)
    assert found.counts()["marked"] == 5
    assert (found.rows.status == RowStatus.ISLANDED).all()
    assert np.isnan(found.voltage).all()
    assert np.isnan(found.y).all()


def test_results_do_not_depend_on_threads_or_on_how_rows_are_grouped(data):
    loads, state = (
        data.layout.unpack_loads(data.x),
        states(data.layout, noisy(data, 1e-3)),
    )
    whole = repair(data.network, loads, state)
    threaded = repair(data.network, loads, state, threads=3)
    assert np.array_equal(whole.voltage, threaded.voltage)
    some = np.array([50, 3, 11])
    part = repair(data.network, loads.rows(some), state.rows(some))
    assert np.array_equal(whole.voltage[some], part.voltage)
    assert np.array_equal(whole.given.norm[some], part.given.norm)


def test_a_certified_predictor_returns_rows_of_the_surrogate_within_the_tolerance(data):
    class Rough:
        def predict(self, x):
            return data.y + 1e-3

    certified = CertifiedPredictor(predictor=Rough(), network=data.network, layout=data.layout)
    y = certified.predict(data.x)
    assert certificate(data.network, data.layout, data.x, y).norm.max() <= 2e-6


def test_what_cannot_be_certified_is_refused(data):
    x = data.x.copy()
    x[4, data.layout.x_slices["v_set"]] += 0.01
    with pytest.raises(GridshiftError, match="set-points"):
        certify(data.network, data.layout, x, data.y)
    with pytest.raises(GridshiftError, match="tolerance"):
        certify(data.network, data.layout, data.x, data.y, tol=0.0)
    with pytest.raises(GridshiftError, match="share"):
        certify(data.network, data.layout, data.x, data.y, correct_share=1.5)
    with pytest.raises(GridshiftError, match="outputs of shape"):
        certify(data.network, data.layout, data.x, data.y[:, 1:])
    with pytest.raises(GridshiftError, match="one for each"):
        certify(data.network, data.layout, data.x, data.y[:3])


def test_no_rows_are_certified_too(data):
    found = certify(data.network, data.layout, data.x[:0], data.y[:0])
    assert sum(found.counts().values()) == 0
    assert np.isnan(found.worst_mismatch)
