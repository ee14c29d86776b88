"""The page: complete, self-contained, and honest about what is missing."""

import base64
import copy
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.stats
from rich.console import Console

from gridshift.cli.screening_table import print_study
from gridshift.grid.names import described, described_outage
from gridshift.grid.readers import read_grid
from gridshift.study import page_data
from gridshift.study.report import number, percent, render, seconds
from gridshift.study.risk import wilson
from gridshift.study.screening import ScreenConfig
from gridshift.study.sweep import screen
from gridshift.study.verdict import limit_probability


@pytest.fixture(scope="module")
def study():
    config = ScreenConfig(grid="case30", num_scenarios=2, workers=1, refuse_splits=True)
    return screen(config, network=read_grid("case30"))


def data_of(page):
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1]
    )


def decoded(text, kind="<u2"):
    return np.frombuffer(base64.b64decode(text), kind)


def test_the_page_loads_nothing_from_elsewhere(study):
    page = render(study)
    assert re.findall(r"<script(?![^>]*application/json)[^>]*>", page) == ["<script>"]
    assert not re.search(r"https?://|@import|\bfetch\(|XMLHttpRequest|<link|<img", page)
    sources = re.findall(r"""(?:\bsrc|\bhref|url\()=?\s*["'(]?([^"')\s>]+)""", page)
    assert all(source.startswith(("#", "data:")) for source in sources)


def test_the_page_names_every_outage_and_every_note(study):
    page = render(replace(study, notes=("something <odd>",)))
    data = data_of(page)
    assert data["rows"]["label"] == [row.outage for row in study.rows]
    for split in study.splitting:
        assert f">{described_outage(study.network, split['outage'])}<" in page
        assert data["splitting"][split["outage"]] == pytest.approx(split["mw_cut_off"], rel=1e-4)
    assert "something &lt;odd&gt;" in page


def test_page_and_terminal_name_the_same_place_that_an_outage_adds_to_most(study):
    console = Console(file=io.StringIO(), width=200, highlight=False)
    print_study(console, study, len(study.rows), None)
    lines = console.file.getvalue().splitlines()
    page, named, intact = unescape(render(study)), 0, study.intact_row
    for row in study.rows:
        shares = {
            label: (after, after - np.nan_to_num(before))
            for labels, after_all, before_all in (
                (study.network.bus_labels, outside(row), outside(intact)),
                (study.network.branch_labels, row.branch_overload_probability,
                 intact.branch_overload_probability),
            )
            for label, after, before in zip(labels, after_all, before_all, strict=True)
        }  # fmt: skip
        most = max((rise for _, rise in shares.values() if rise == rise), default=0.0)
        (line,) = (line for line in lines if re.match(rf" *\d+ +{row.outage} ", line))
        if most <= 0:
            assert " +" not in line
            continue
        label = re.search(r"(\S+) \+", line)[1]
        assert shares[label][1] == most
        assert f"{label} +{100 * most:.1f}" in line
        if said := page.partition(f">{described_outage(study.network, row.outage)}</a>: ")[2]:
            assert said.startswith(f"{described(study.network, label)} is ")
            named += 1
    assert named > 0


def outside(row):
    return np.fmax(row.bus_under, 0) + np.fmax(row.bus_over, 0)


def test_the_page_says_which_outages_cut_off_generation_and_how_much(study):
    rows = data_of(render(study))["rows"]
    islanded = [i for i, status in enumerate(rows["status"]) if status == "islanded"]
    assert len(islanded) == 2
    assert max(rows["cutMw"][i][1] for i in islanded) == pytest.approx(37.0)
    for i in islanded:
        buses = [study.network.bus_labels[b] for b in rows["cut"][i]]
        assert buses == study.rows[i].cut_off


def test_the_numbers_of_the_page_are_those_of_the_rows(study):
    data = data_of(render(study))
    assert data["numFull"] == len(study.rows)
    row, packed = study.rows[3], data["details"]["3"]
    buses = decoded(packed["b"]).reshape(7, 30)
    assert np.allclose(buses[2] / 1e4, row.bus_voltage_mean, atol=5.1e-5)  # rounded to 1e-4
    assert np.allclose(buses[6] / 1e4, row.bus_over, atol=5.1e-5)
    branches = decoded(packed["l"]).reshape(5, 41)
    assert np.allclose(branches[1] / 1e3, row.branch_loading_p95, atol=5.1e-4)
    intact = decoded(data["intact"]["l"]).reshape(5, 41)
    assert np.allclose(intact[0] / 1e3, study.intact_row.branch_loading, atol=5.1e-4)


def test_what_the_page_has_no_room_for_is_said_and_the_most_affected_stay(study, monkeypatch):
    monkeypatch.setattr(page_data, "FULL_BYTES", 3000)
    monkeypatch.setattr(page_data, "SHORT_BYTES", 3000)
    page = render(study)
    data = data_of(page)
    num_full = data["numFull"]
    assert 0 < num_full < len(data["details"]) < len(study.rows)
    assert f"every bus and branch of the worst {num_full} outages" in page
    short = data["details"][str(num_full)]
    kept, row = decoded(short["li"], "<u4"), study.rows[num_full]
    assert len(kept) == page_data.NUM_SHORT
    rise = row.branch_overload_probability - study.intact_row.branch_overload_probability
    assert rise.argmax() in kept or rise.max() <= 0
    loadings = decoded(short["l"]).reshape(5, -1)[2] / 1e3
    assert np.allclose(loadings, row.branch_loading_p99[kept], atol=5.1e-4)


def test_a_name_cannot_end_the_script(study):
    names = {"bus:1": "</script><script>alert(1)</script>", "line:1": "<b>&\"'"}
    page = render(replace(study, network=replace(study.network, names=names)))
    assert page.count("</script>") == 2
    data = data_of(page)
    assert "</script><script>alert(1)</script>" in data["grid"]["buses"][1]


def test_a_page_is_written_without_matplotlib_and_pandas(tmp_path):
    code = (
        "import sys, gridshift as gs\n"
        "from gridshift.study.report import render\n"
        "network = gs.read_grid('case9')\n"
        "for name in ('matplotlib', 'pandas'): sys.modules[name] = None\n"
        "config = gs.ScreenConfig(grid='case9', method='newton', num_scenarios=2, workers=1)\n"
        "s = gs.screen(config, network=network)\n"
        "assert '</html>' in render(s)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_share_of_its_own_comes_before_those_of_voltages_and_overloads(study):
    row = copy.copy(study.rows[0])
    assert limit_probability(row) == max(row.any_voltage, row.any_overload)
    object.__setattr__(row, "violation_probability", 0.123)
    rows = data_of(render(replace(study, rows=(row, *study.rows[1:]))))["rows"]
    assert rows["p"][0] == 0.123


@pytest.mark.parametrize(("count", "num"), [(0, 10), (3, 10), (1000, 1000), (499, 1000)])
def test_intervals_are_those_of_scipy(count, num):
    expected = scipy.stats.binomtest(count, num).proportion_ci(0.95, method="wilson")
    found = wilson(count / num, num)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_the_page_is_well_formed_and_its_ids_are_unique(study):
    class Balance(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open, self.ids = [], []

        def handle_starttag(self, tag, attrs):
            self.ids += [value for name, value in attrs if name == "id"]
            if tag not in {"meta", "br", "link", "input"}:
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
    assert "makes a violation noticeably more likely" in page


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
