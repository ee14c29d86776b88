import numpy as np
import pytest

from gridshift.adapt.datasets import generate
from gridshift.adapt.expansion import ExpansionPredictor
from gridshift.adapt.methods import METHODS, Context
from gridshift.adapt.surrogate import Surrogate, train
from gridshift.errors import GridshiftError, NotConvergedError, SurrogateMismatchError
from gridshift.grid.scenarios import sample_loads
from tests.adapt.conftest import quick_config
from tests.adapt.grids import small_grid

TANGENTS = ("tangent", "tangent2")


def mae(predictor, rows):
    return np.abs(predictor.predict(rows.x) - rows.y).mean()


@pytest.mark.parametrize("name", TANGENTS)
def test_what_the_surrogate_learns_is_the_remainder_scaled_entry_by_entry(
    surrogates, training_rows, grid, name
):
    transform = surrogates[name].transform
    expansion = ExpansionPredictor.of(grid, TANGENTS.index(name) + 1)
    z = transform.forward(training_rows.y - expansion.predict(training_rows.x))
    np.testing.assert_allclose(z.mean(0), 0, atol=1e-9)
    # entries of less than the mean variance times 1e-6 are scaled down, none up
    assert (z.std(0) < 1.01).all()
    assert np.median(z.std(0)) == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize("name", TANGENTS)
def test_prediction_is_the_plane_plus_the_inverse_of_z(surrogates, outage_rows, name):
    surrogate = surrogates[name]
    network = outage_rows.network
    predictor = METHODS[f"{name}-icw"].fit(surrogate, Context.empty(network, surrogate))
    expansion = ExpansionPredictor.of(network, TANGENTS.index(name) + 1)
    z = surrogate.predict_whitened(outage_rows.x)
    expected = expansion.predict(outage_rows.x) + surrogate.transform.inverse(z)
    np.testing.assert_allclose(predictor.predict(outage_rows.x), expected, atol=1e-9)


def test_one_solve_beats_sixty_and_the_learned_curvature_beats_the_plane(surrogates, outage_rows):
    context, network = Context.of(outage_rows), outage_rows.network
    test = generate(network, sample_loads(network, np.random.default_rng(9), 200))

    def error(name, given):
        method = METHODS[name]
        return mae(method.fit(surrogates[method.transform or "zca"], given), test)

    without = Context.empty(network, surrogates["zca"])
    assert error("tangent", without) < error("icw", context) / 5
    assert error("tangent-icw", without) < error("tangent", without)
    assert error("tangent2", without) < error("tangent", without) / 10


@pytest.mark.parametrize("name", TANGENTS)
@pytest.mark.parametrize("num", [2, 5, 20, 60])
def test_a_context_does_no_harm(surrogates, outage_rows, name, num):
    method, network = METHODS[f"{name}-icw"], outage_rows.network
    test = generate(network, sample_loads(network, np.random.default_rng(9), 200))
    without = method.fit(surrogates[name], Context.empty(network, surrogates[name]))
    with_it = method.fit(surrogates[name], Context.of(outage_rows.rows(slice(0, num))))
    # a correction is taken on left-out errors of `num` rows, which may be lucky
    assert mae(with_it, test) < 1.1 * mae(without, test)


@pytest.mark.parametrize("name", TANGENTS)
def test_a_saved_tangent_surrogate_predicts_bit_for_bit_the_same(
    surrogates, outage_rows, grid, tmp_path, name
):
    surrogates[name].save(tmp_path)
    back = Surrogate.load(tmp_path, outage_rows.network)
    assert np.array_equal(back.predict(outage_rows.x), surrogates[name].predict(outage_rows.x))


def test_a_surrogate_of_an_outage_keeps_that_outages_plane(outage_rows, tmp_path, grid):
    surrogate = train(outage_rows.network, quick_config("tangent"), data=outage_rows)
    surrogate.save(tmp_path)
    back = Surrogate.load(tmp_path, grid)
    assert np.array_equal(back.predict(outage_rows.x), surrogate.predict(outage_rows.x))
    assert mae(back, outage_rows) < 1e-4


def test_set_points_may_move_in_the_plane_and_not_in_its_curvature(grid):
    plane, curved = (ExpansionPredictor.of(grid, order) for order in (1, 2))
    x = np.tile(plane.expansion.tangent.x, (2, 1))
    where = plane.layout.x_slices["v_set"]
    x[1, where.start] += 0.01
    matrix = plane.expansion.tangent.matrix()
    moved = plane.predict(x)
    np.testing.assert_allclose(moved[1] - moved[0], 0.01 * matrix[:, where.start], atol=1e-12)
    with pytest.raises(GridshiftError, match="v_set bus:1 differs from the network's own value"):
        curved.predict(x)
    # round-off, as after a table was written and read, is no change of a set-point
    np.testing.assert_allclose(curved.predict(x[:1] + 1e-12), curved.predict(x[:1]), atol=1e-9)


def test_a_topology_without_a_nominal_solution_is_a_known_problem(surrogates):
    heavy = small_grid(load_scale=60.0)
    with pytest.raises(NotConvergedError, match="no nominal point"):
        ExpansionPredictor.of(heavy)


def test_methods_of_the_tangent_refuse_surrogates_of_y(surrogates, outage_rows):
    with pytest.raises(SurrogateMismatchError, match="trained with transform tangent"):
        METHODS["tangent-icw"].fit(surrogates["zca"], Context.of(outage_rows))
