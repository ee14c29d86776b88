"""A certified screening counts what exact solutions would."""

import pytest

from gridshift.study.screening import ScreenConfig
from gridshift.study.sweep import screen
from tests.adapt.grids import quick_surrogate, small_grid


def test_a_certified_screening_has_the_statistics_of_exact_solutions(tmp_path):
    grid = small_grid()
    surrogate = quick_surrogate(grid)
    (tmp_path / "some.txt").write_text("line:1\nline:4\n")
    common = {
        "grid": "small", "contingencies": str(tmp_path / "some.txt"), "num_scenarios": 300,
        "num_context": 40, "num_holdout": 20, "workers": 1, "v_min": 1.0, "v_max": 1.04,
        "rating_mva": 25.0,
    }  # fmt: skip
    exact = screen(ScreenConfig(method="newton", **common), network=grid)
    loose = screen(ScreenConfig(method="frozen", **common), network=grid, surrogate=surrogate)
    certified = screen(
        ScreenConfig(method="frozen", certify=1e-8, **common), network=grid, surrogate=surrogate
    )
    key = {r.outage: r for r in exact.rows}
    off = {r.outage: abs(r.excess - key[r.outage].excess) for r in loose.rows}
    for r in certified.rows:
        # violations are sums over buses and branches of voltages that agree to about 1e-8
        assert r.excess == pytest.approx(key[r.outage].excess, abs=1e-5)
        assert off[r.outage] > 1e-4
        assert r.certified["repaired"] == 300
        assert r.unsolved == 0.0
        assert r.mae["overall"] < 1e-7
    assert certified.cost["num_repaired"] == 600
