"""Branch ratings as pandapower's loading_percent uses them."""

import numpy as np

from gridshift.arrays import Bool, Real
from gridshift.grid.readers.pandapower_arrays import Assembled
from gridshift.grid.readers.placeholders import UNLIMITED_KA, UNLIMITED_MVA


def branch_ratings(grid: Assembled) -> Real:
    """(E, 2) largest current allowed at each end, p.u.; inf if none is given.

    It is the current at which pandapower's loading_percent reaches max_loading_percent, or 100
    where there is none: a line of 1 kA with a max_loading_percent of 80 is rated 0.8 kA.
    """
    share = np.ones(len(grid.branch_from))
    for kind in ("line", "trafo", "trafo3w"):
        if kind in grid.branch_range and "max_loading_percent" in grid.net[kind]:
            first, last = grid.branch_range[kind]
            percent = grid.net[kind].max_loading_percent.to_numpy()
            windings = (last - first) // len(percent)
            share[first:last] = np.tile(np.nan_to_num(percent, nan=100.0) / 100, windings)
    return rated_currents(grid) * share[:, None]


def rated_currents(grid: Assembled) -> Real:
    """(E, 2) current at each end, p.u., at which pandapower's loading_percent is 100; inf if none.

    Lines are rated by their current, transformers by the rated current of the winding at that
    end (`trafo_loading='current'`); the inner end of a three-winding transformer has no rating.
    """
    rating = np.full((len(grid.branch_from), 2), np.inf)
    net, kv = grid.net, _end_kv(grid)
    per_ka = np.sqrt(3) * kv / grid.base_mva  # p.u. current of 1 kA
    if "line" in grid.branch_range:
        first, last = grid.branch_range["line"]
        ka = (net.line.max_i_ka * net.line.df * net.line.parallel).to_numpy(float)
        rating[first:last] = ka[:, None] * per_ka[first:last]
    if "trafo" in grid.branch_range:
        first, last = grid.branch_range["trafo"]
        mva = (net.trafo.sn_mva * net.trafo.parallel * net.trafo.df).to_numpy(float)
        winding_kv = net.trafo[["vn_hv_kv", "vn_lv_kv"]].to_numpy(float)
        rating[first:last] = mva[:, None] / winding_kv * kv[first:last] / grid.base_mva
    if "trafo3w" in grid.branch_range:
        first, last = grid.branch_range["trafo3w"]
        blocks = np.arange(first, last).reshape(3, -1)
        for rows, side, end in zip(blocks, ("hv", "mv", "lv"), (0, 1, 1), strict=True):
            per_kv = net.trafo3w[f"sn_{side}_mva"] / net.trafo3w[f"vn_{side}_kv"]
            rating[rows, end] = per_kv.to_numpy(float) * kv[rows, end] / grid.base_mva
    if "switch" in grid.branch_range:
        first, last = grid.branch_range["switch"]
        ka = net.switch.in_ka[net._impedance_bb_switches].to_numpy(float)
        rating[first:last] = ka[:, None] * per_ka[first:last]
    return np.where(rating > 0, rating, np.inf)  # zero and NaN: none given


def is_real_rating(grid: Assembled) -> Bool:
    """(E,) whether a branch's limit is more than a placeholder for 'unlimited'."""
    mva = rated_currents(grid) * grid.base_mva
    with np.errstate(divide="ignore", invalid="ignore"):
        ka = mva / (np.sqrt(3) * _end_kv(grid))
    # Currents have been rounded on their way from MVA; 1e-6 is far above that.
    real = (mva < UNLIMITED_MVA * (1 - 1e-6)) & ~(ka >= UNLIMITED_KA * (1 - 1e-6))
    return real.any(axis=1)


def _end_kv(grid: Assembled) -> Real:
    """(E, 2) base voltage at both ends, kV; that of the other end where one is not energised."""
    ends = np.stack([grid.branch_from, grid.branch_to], axis=1)
    kv = np.where(ends >= 0, grid.kv[ends], np.nan)
    return np.where(np.isnan(kv), kv[:, ::-1], kv)
