"""The page: complete, self-contained, and honest about what is missing."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from gridshift.grid.readers import read_grid
from gridshift.study.report import number, percent, render, seconds
from gridshift.study.screening import ScreenConfig
from gridshift.study.sweep import screen


@pytest.fixture(scope="module")
def study():
    config = ScreenConfig(grid="case30", method="newton", num_scenarios=2, workers=1)
    return screen(config, network=read_grid("case30"))


def test_the_page_loads_nothing_from_elsewhere_and_runs_no_script(study):
    page = render(study)
    assert "<script" not in page
    sources = re.findall(r"""(?:\bsrc|\bhref|url\()=?\s*["'(]?([^"')\s>]+)""", page)
    assert all(source.startswith(("#", "data:")) for source in sources)


def test_the_page_names_every_outage_and_every_note(study):
    page = render(replace(study, notes=("something <odd>",)))
    for row in study.rows:
        assert re.search(f">{row.outage}( <span[^>]*>{row.status}</span>)?<", page)
    for split in study.splitting:
        assert f">{split['outage']}<" in page
    assert "something &lt;odd&gt;" in page


def test_the_page_says_which_outages_cut_off_generation_and_how_much(study):
    page = " ".join(render(study).split())
    assert "2 of these outages, marked islanded" in page
    assert "with up to 37.0 MW of generation" in page
    whole = [row for row in study.rows if not row.islanded]
    assert "marked islanded" not in render(replace(study, rows=tuple(whole)))


def test_the_page_is_well_formed_and_its_ids_are_unique(study):
    class Balance(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open, self.ids = [], []

        def handle_starttag(self, tag, attrs):
            self.ids += [value for name, value in attrs if name == "id"]
            if tag not in {"meta", "br", "link"}:
                self.open.append(tag)

        def handle_startendtag(self, tag, attrs):
            self.ids += [value for name, value in attrs if name == "id"]

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

    parser = Balance()
    parser.feed(render(study))
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))


def test_the_same_study_gives_the_same_page(study):
    assert render(study) == render(study)


def test_a_study_without_violations_or_ratings_says_so(study):
    calm = [
        replace(row, severity=0.0, voltage_excess=0.0, overload_excess=0.0, any_overload=np.nan,
                bus_under=np.zeros(30), bus_over=np.zeros(30),
                branch_overload_probability=np.full(41, np.nan))
        for row in study.rows
    ]  # fmt: skip
    network = replace(study.network, branch_rated=np.zeros(41, bool))
    page = render(replace(study, rows=tuple(calm), network=network))
    assert "No outage exceeds a limit" in page
    assert "no branch ratings" in page


def test_a_study_of_no_outage_still_makes_a_page(study):
    assert "0 single-line outages" in render(replace(study, rows=()))


def test_numbers_read_well():
    assert [number(v) for v in (0, 0.12345, 2.4e-4, 12345.6, float("nan"), None)] == [
        "0", "0.123", "2.40e-4", "12,300", "–", "–",
    ]  # fmt: skip
    assert [percent(v) for v in (0, 0.0001, 0.5, 1, float("nan"))] == [
        "0 %", "< 0.1 %", "50.0 %", "100 %", "–",
    ]  # fmt: skip
    assert [seconds(v) for v in (0.25, 12.34, 600)] == ["250 ms", "12.3 s", "10.0 min"]
