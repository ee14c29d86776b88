"""Surrogates of these tests are tiny, and kept in a folder of the test run."""

import pytest

from gridshift_paper.protocol import Scale

TINY = Scale(
    name="tiny", seeds=(0,), num_steps=50, num_steps_transformer=10, num_steps_pfgnn=5,
    num_steps_own=20, num_context=60, num_test=50, num_rows=200, grids=("case30",), max_outages=3,
)  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRIDSHIFT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def tiny() -> Scale:
    return TINY
