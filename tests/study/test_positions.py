"""Where buses are drawn: as the file says, or laid out so that branches can be told apart."""

from dataclasses import replace

import numpy as np

from gridshift.grid.readers import read_grid
from gridshift.study.positions import laid_out, positions


def test_positions_of_the_file_keep_their_shape():
    network = read_grid("case118")
    xy, given = positions(network)
    assert given
    assert xy.min() == 0
    assert xy.max() == 1
    width, height = np.ptp(network.bus_xy, axis=0)
    north = np.cos(np.deg2rad(network.bus_xy[:, 1].mean()))
    assert np.isclose(np.ptp(xy[:, 0]) / np.ptp(xy[:, 1]), width * north / height)


def test_a_bus_without_a_position_lies_amid_its_neighbours():
    network = read_grid("case30")
    places = network.bus_xy.copy()
    places[5] = np.nan
    xy, given = positions(replace(network, bus_xy=places))
    assert given
    ends = np.stack([network.branch_from, network.branch_to])
    others = np.unique(ends[:, (ends == 5).any(axis=0)])
    assert np.allclose(xy[5], xy[others[others != 5]].mean(axis=0))


def test_a_grid_without_positions_is_laid_out_with_branches_of_about_one_length():
    network = replace(read_grid("case118"), bus_xy=np.full((118, 2), np.nan))
    xy, given = positions(network)
    assert not given
    assert np.array_equal(xy, positions(network)[0])
    raw = laid_out(network)
    length = np.linalg.norm(raw[network.branch_from] - raw[network.branch_to], axis=1)
    apart = np.linalg.norm(raw[:, None] - raw, axis=2)[np.triu_indices(118, 1)]
    assert np.median(apart) > 3 * np.median(length)  # joined buses are near each other
    assert apart.min() > 0.1 * np.median(length)  # none hides another


def test_tiny_grids_have_positions(triangle):
    xy, given = positions(triangle)
    assert not given
    assert np.isfinite(xy).all()
    assert len(np.unique(xy.round(6), axis=0)) == 3
