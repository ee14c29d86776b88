"""Ten solved cases on the command line: compensation, and which outage they tell of."""

import json

import pytest

from tests.test_cli import gridshift


@pytest.mark.parametrize("num_context", [2, 5, 9])
def test_compensation_works_from_two_cases_on(num_context, monkeypatch, tmp_path):
    monkeypatch.setenv("GRIDSHIFT_CACHE", str(tmp_path))
    args = ("adapt", "case14", "--outage", "line:2", "--test", "100", "--json")
    context = "--context", str(num_context)
    frozen = json.loads(gridshift(*args, "--method", "frozen").stdout)
    found = json.loads(gridshift(*args, "--method", "compensation", *context).stdout)
    assert (found["base"], found["num_context"]) == ("quadratic", num_context)
    assert found["mae"]["overall"] < frozen["mae"]["overall"] / 5


def test_identify_refuses_four_cases_before_it_fits_a_base(monkeypatch, tmp_path):
    monkeypatch.setenv("GRIDSHIFT_CACHE", str(tmp_path))
    refused = gridshift("identify", "case14", "--outage", "line:2", "--context", "4")
    assert refused.exit_code == 1
    assert "at least 5 cases" in refused.output
    assert not list(tmp_path.glob("regressions/*"))


def test_identify_names_the_outage_that_was_drawn_and_nothing_for_the_intact_grid(
    monkeypatch, tmp_path
):
    monkeypatch.setenv("GRIDSHIFT_CACHE", str(tmp_path))
    found = json.loads(gridshift("identify", "case14", "--outage", "line:2", "--json").stdout)
    assert found["decided"] == found["candidates"][0]["outage"] == "line:2"
    assert len(found["candidates"][0]["buses"]) == 2
    assert json.loads(gridshift("identify", "case14", "--json").stdout)["decided"] is None
