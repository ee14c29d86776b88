"""Options of the test suite, and grids that many tests read."""

import pytest

from gridshift.grid.readers import read_grid


def pytest_addoption(parser):
    parser.addoption(
        "--record", action="store_true", help="Write tests/prose.txt anew: read its difference."
    )


@pytest.fixture(scope="module")
def case9():
    return read_grid("case9")


@pytest.fixture(scope="module")
def case14():
    return read_grid("case14")


@pytest.fixture(scope="module")
def case30():
    return read_grid("case30")


@pytest.fixture(scope="module")
def case118():
    return read_grid("case118")


@pytest.fixture(scope="module")
def case300():
    return read_grid("case300")
