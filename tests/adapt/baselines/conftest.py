import pytest


@pytest.fixture
def own_cache(tmp_path_factory, monkeypatch):
    """Models trained here are read again within a session and never end up in the user's cache."""
    folder = tmp_path_factory.getbasetemp() / "baselines"
    monkeypatch.setenv("GRIDSHIFT_CACHE", str(folder))
    return folder
