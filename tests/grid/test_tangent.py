import numpy as np
import pytest

from gridshift.errors import NotConvergedError
from gridshift.grid.expansion import Expansion
from gridshift.grid.layout import Layout
from gridshift.grid.powerflow import solve
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import LoadScenarios, sample_loads
from gridshift.grid.tangent import Tangent
from tests.adapt.grids import small_grid
from tests.reference.shifted_inputs import with_inputs

CASES = {
    "small": lambda: small_grid(),
    "small without line:4": lambda: small_grid().without(["line:4"]),
    "case30 without line:9,line:28": lambda: read_grid("case30").without(["line:9", "line:28"]),
    "case118 without line:34": lambda: read_grid("case118").without(["line:34"]),
}


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES)
def network(request):
    return request.param()


def exact_outputs(network, x):
    """y of one row of inputs x, by solving a network that has them as its own."""
    layout = Layout.of(network)
    changed = with_inputs(network, layout, x)
    load = LoadScenarios(load_p=changed.load_power.real[None], load_q=changed.load_power.imag[None])
    # a tolerance near round-off, because differences of solutions are divided by small steps
    solution = solve(changed, load, tol=1e-12, max_iterations=40).require_converged()
    return layout.pack_outputs(changed, load, solution.voltage)[0]


def test_the_nominal_point_solves_the_network(network):
    tangent = Tangent.of(network)
    np.testing.assert_allclose(tangent.y, exact_outputs(network, tangent.x), atol=1e-9)


@pytest.mark.parametrize("quantity", ["p_load", "q_load", "v_set", "p_gen", "theta_slack"])
def test_every_kind_of_input_has_the_derivative_of_the_exact_solver(network, quantity):
    """Central differences; error h^2/6 times the third derivative, plus 1e-12 / h of the solver."""
    tangent, h = Tangent.of(network), 1e-4
    rng = np.random.default_rng(0)
    direction = np.zeros_like(tangent.x)
    where = tangent.layout.x_slices[quantity]
    direction[where] = rng.choice([-1.0, 1.0], where.stop - where.start)
    ahead, behind = (exact_outputs(network, tangent.x + s * h * direction) for s in (1, -1))
    np.testing.assert_allclose(
        tangent.apply(direction[None])[0], (ahead - behind) / (2 * h), rtol=1e-5, atol=1e-6
    )


def test_the_map_its_matrix_its_transpose_and_its_low_rank_form_are_one(network):
    tangent, rng = Tangent.of(network), np.random.default_rng(1)
    dx, dy = rng.normal(size=(300, len(tangent.x))), rng.normal(size=(300, len(tangent.y)))
    matrix = tangent.matrix()
    np.testing.assert_allclose(tangent.apply(dx), dx @ matrix.T, atol=1e-10)
    np.testing.assert_allclose(tangent.apply_transposed(dy), dy @ matrix, atol=1e-10)
    chosen = np.array([3, 0])
    np.testing.assert_allclose(tangent.matrix(chosen), matrix[:, chosen], atol=1e-12)
    left, right = tangent.low_rank(4)
    values = np.linalg.svd(matrix, compute_uv=False)
    # Eckart and Young: the error of the best matrix of rank 4 is the fifth singular value
    assert np.linalg.norm(matrix - left @ right, 2) == pytest.approx(values[4], rel=1e-6)


def test_the_derivative_by_the_state_agrees_with_a_complex_step():
    """Dense powers with an imaginary step: no subtraction, so nothing cancels."""
    network = read_grid("case30").without(["line:9"])
    tangent, admittance = Tangent.of(network), network.admittance.toarray()
    voltage = tangent.voltage
    moving = network.non_slack
    angle, magnitude = np.angle(voltage), np.abs(voltage)

    def powers(angle, magnitude):
        """P and Q of every bus as analytic functions, so that complex arguments are allowed."""
        g, b = admittance.real, admittance.imag
        difference = angle[:, None] - angle[None, :]
        product = magnitude[:, None] * magnitude[None, :]
        cosine, sine = np.cos(difference), np.sin(difference)
        p = (product * (g * cosine + b * sine)).sum(1)
        q = (product * (g * sine - b * cosine)).sum(1)
        return np.concatenate([p[moving], q[network.pq]])

    columns = []
    for bus in moving:
        shifted = angle.astype(complex)
        shifted[bus] += 1e-30j
        columns.append(powers(shifted, magnitude.astype(complex)).imag / 1e-30)
    for bus in network.pq:
        shifted = magnitude.astype(complex)
        shifted[bus] += 1e-30j
        columns.append(powers(angle.astype(complex), shifted).imag / 1e-30)
    np.testing.assert_allclose(tangent.jacobian.toarray(), np.array(columns).T, atol=1e-11)


@pytest.mark.parametrize(("order", "gain"), [(1, 4.0), (2, 8.0)])
def test_halving_the_spread_divides_the_error_by_two_to_the_order_plus_one(network, order, gain):
    expansion, layout = Expansion.of(network), Layout.of(network)
    wide = sample_loads(network, np.random.default_rng(2), 60, spread=0.2, regime="fixed")

    def error(share):
        rows = LoadScenarios(
            load_p=network.load_power.real * (1 - share) + share * wide.load_p,
            load_q=network.load_power.imag * (1 - share) + share * wide.load_q,
        )
        exact = solve(network, rows, tol=1e-11).require_converged()
        y = layout.pack_outputs(network, rows, exact.voltage)
        return np.abs(expansion.outputs(rows.load_p, rows.load_q, order=order) - y).mean()

    assert error(1.0) / error(0.5) == pytest.approx(gain, rel=0.2)


def test_the_kernel_and_the_sparse_factorisation_give_the_same_outputs(network):
    expansion = Expansion.of(network)
    rows = sample_loads(network, np.random.default_rng(3), 70)
    dx = np.zeros((70, len(expansion.tangent.x)))
    loads = np.hstack([rows.load_p, rows.load_q])
    dx[:, : loads.shape[1]] = loads - expansion.tangent.x[: loads.shape[1]]
    plane = expansion.tangent.y + expansion.tangent.apply(dx)
    # the engine keeps its factors in single precision
    np.testing.assert_allclose(expansion.outputs(rows.load_p, rows.load_q), plane, atol=1e-6)
    curved = expansion._pivoted(rows.load_p, rows.load_q, 2)
    np.testing.assert_allclose(
        expansion.outputs(rows.load_p, rows.load_q, order=2), curved, atol=1e-6
    )


def test_rows_of_a_batch_do_not_depend_on_each_other(network):
    expansion = Expansion.of(network)
    rows = sample_loads(network, np.random.default_rng(4), 70)
    for order in (1, 2):
        whole = expansion.outputs(rows.load_p, rows.load_q, order=order, threads=2)
        part = expansion.outputs(rows.load_p[50:53], rows.load_q[50:53], order=order)
        assert np.array_equal(whole[50:53], part)


def test_a_topology_without_a_nominal_solution_has_no_tangent():
    grid = read_grid("case30")
    with pytest.raises(NotConvergedError, match=r"case30 without line:12 .* cut off"):
        Tangent.of(grid.without(["line:12"]))
    with pytest.raises(NotConvergedError, match="no solution at nominal demand"):
        Tangent.of(small_grid(load_scale=60.0))
