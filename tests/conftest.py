"""Options of the test suite, and grids that many tests read."""

import pytest

from gridshift.grid.readers import read_grid


def pytest_addoption(parser):
    parser.addoption(
        "--record", action="store_true", help="Write tests/prose.txt anew: read its difference."
    )


def _grid(name):
    @pytest.fixture(scope="module", name=name)
    def grid():
        return read_grid(name)

    return grid


case9, case14, case30, case118, case300 = (_grid(f"case{n}") for n in (9, 14, 30, 118, 300))
