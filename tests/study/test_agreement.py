"""The study against exact Monte Carlo by another program, on scenarios of its own."""

import pytest

from tests.study.monte_carlo import SIGMAS, compared

pytest.importorskip("lightsim2grid")


def test_probabilities_and_severities_are_lightsim2grids_within_the_stated_errors():
    found = compared("case118", 5)
    assert all(max(one.sigmas) <= SIGMAS for one in found)
    # and the comparison has something to tell: some outages violate sometimes
    assert any(0.02 < one.probability[0] < 0.98 for one in found)
