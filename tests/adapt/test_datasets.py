import numpy as np
import pytest

from gridshift.adapt.datasets import Dataset, generate
from gridshift.errors import ScenarioError, StorageError
from gridshift.grid.scenarios import LoadScenarios, nominal_loads, sample_loads
from tests.adapt.grids import small_grid


def with_hopeless_rows(network, rows):
    """Twelve nominal scenarios; in `rows` the demand is a hundred times what the grid can carry."""
    factor = np.ones((12, 1))
    factor[rows] = 100.0
    loads = nominal_loads(network, 12)
    return LoadScenarios(load_p=loads.load_p * factor, load_q=loads.load_q * factor)


def test_failed_rows_are_left_out_and_counted(grid):
    data = generate(grid, with_hopeless_rows(grid, [0, 7]))
    assert len(data) == 10
    assert data.num_solves == 12
    assert data.status_counts["solved"] == 10
    assert np.isfinite(data.x).all()
    assert np.isfinite(data.y).all()
    # what is left is nominal: no row is another's
    np.testing.assert_allclose(data.x, np.tile(data.x[0], (10, 1)))
    np.testing.assert_allclose(data.y, np.tile(data.y[0], (10, 1)), atol=1e-7)


def test_too_few_solved_rows_are_an_error_that_tells_the_counts(grid):
    with pytest.raises(ScenarioError, match=r"3 of 12 scenarios of small .* and 6 are needed"):
        generate(grid, with_hopeless_rows(grid, slice(3, None)), min_rows=6)


def test_an_islanding_outage_is_an_error_that_names_outage_and_bus(grid):
    network = grid.without(["line:0", "line:1"])
    with pytest.raises(ScenarioError, match=r"small without line:0,line:1 .*bus:0"):
        generate(network, nominal_loads(network, 3))


def test_a_data_set_comes_back_from_its_file_bit_for_bit(grid, tmp_path):
    data = generate(grid, sample_loads(grid, np.random.default_rng(0), 8))
    data.save(tmp_path / "rows.npz")
    back = Dataset.load(tmp_path / "rows.npz", grid)
    assert np.array_equal(back.x, data.x)
    assert np.array_equal(back.y, data.y)
    assert back.status_counts == data.status_counts
    assert [p.name for p in tmp_path.iterdir()] == ["rows.npz"]


def test_rows_of_another_topology_are_refused(grid, tmp_path):
    generate(grid, nominal_loads(grid, 2)).save(tmp_path / "rows.npz")
    for other in (grid.without(["line:1"]), small_grid(load_scale=1.1)):
        with pytest.raises(StorageError, match="another state"):
            Dataset.load(tmp_path / "rows.npz", other)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut", b"not an archive"])
def test_a_damaged_file_is_refused_in_one_line(grid, tmp_path, content):
    (tmp_path / "rows.npz").write_bytes(content)
    with pytest.raises(StorageError, match="damaged"):
        Dataset.load(tmp_path / "rows.npz", grid)


def test_missing_and_unwritable_places_are_told(grid, tmp_path):
    with pytest.raises(StorageError, match="cannot read"):
        Dataset.load(tmp_path / "nothing.npz", grid)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="cannot write"):
        generate(grid, nominal_loads(grid)).save(tmp_path / "file" / "rows.npz")


def test_chosen_rows_keep_the_counts_of_what_was_paid_for(grid):
    data = generate(grid, with_hopeless_rows(grid, [1]))
    assert len(data.rows(slice(0, 4))) == 4
    assert data.rows(slice(0, 4)).num_solves == 12
