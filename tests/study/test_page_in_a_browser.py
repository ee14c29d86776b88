"""The page in headless Chromium: no errors, and it sorts, searches, opens outages, by keys too."""

import json
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from gridshift.study import page_data
from gridshift.study.report import render

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
pytestmark = pytest.mark.skipif(
    not CHROMIUM, reason="no Chromium: the page is not tried in a browser"
)

WATCH = """<script>
const met = [];
addEventListener("error", (event) => met.push(String(event.message)));
console.error = (...words) => met.push(words.join(" "));
</script>"""
ASK = """<script>
addEventListener("load", () => setTimeout(() => {
  const told = {}, $ = (id) => document.getElementById(id);
  const rows = () => [...document.querySelectorAll("#ranking tbody tr")];
  const first = () => rows()[0].cells[1].childNodes[0].textContent.trim();
  try { told.answer = (() => { %s })(); } catch (error) { met.push(String(error.stack)); }
  told.met = met;
  const box = document.createElement("pre");
  box.id = "told";
  box.textContent = JSON.stringify(told);
  document.body.append(box);
}, 50));
</script>"""


@pytest.fixture
def ask(tmp_path):
    def answer(page, question, *, size=(1280, 900), flags=()):
        page = page.replace("<head>", "<head>" + WATCH, 1)
        page = page.replace("</body>", ASK % question + "</body>", 1)
        path = tmp_path / "page.html"
        path.write_text(page)
        command = [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000",
            f"--user-data-dir={tmp_path}/profile", f"--window-size={size[0]},{size[1]}", *flags,
            "--dump-dom", f"file://{path}",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        told = json.loads(re.search(r'<pre id="told">(.*?)</pre>', done.stdout)[1])
        assert told["met"] == []
        return told.get("answer")

    return answer


def test_the_table_sorts_both_ways_and_searches(study, ask):
    found = ask(render(study), """
      const seen = [first()], column = 3;
      document.querySelector(`button[data-column="2"]`).click(); seen.push(first());
      document.querySelector(`button[data-column="2"]`).click(); seen.push(first());
      const sorted = document.querySelector("th[aria-sort]").getAttribute("aria-sort");
      $("search").value = "LINE:12"; $("search").dispatchEvent(new Event("input"));
      const left = rows().map((row) => row.cells[1].textContent);
      return { seen, sorted, left, says: $("found").textContent };
    """)  # fmt: skip
    severity = [row.severity for row in study.rows]
    labels = [row.outage for row in study.rows]
    assert found["seen"][:2] == [labels[0], labels[0]]
    assert severity[labels.index(found["seen"][2])] == min(severity)
    assert found["sorted"] == "descending"
    assert len(found["left"]) >= 1
    assert found["left"][0].startswith("line:12")
    assert f"of {len(labels)} outages" in found["says"]


def test_an_outage_opens_by_click_by_keys_and_by_address(study, ask):
    found = ask(render(study), """
      const title = () => $("detail").querySelector("h3").textContent;
      const seen = [title()];
      rows()[2].click(); seen.push(title());
      rows()[0].focus();
      const press = (key) => document.activeElement.dispatchEvent(
        new KeyboardEvent("keydown", { key, bubbles: true }));
      press("ArrowDown");
      const focused = document.activeElement.dataset.outage;
      press("Enter");
      seen.push(title());
      $("detail").querySelectorAll("button")[1].click(); seen.push(title());
      const charts = $("detail").querySelectorAll("svg").length;
      return { seen, focused, hash: location.hash, charts };
    """)  # fmt: skip
    ranks = [int(title.split(".")[0]) for title in found["seen"]]
    assert ranks == [1, 3, 2, 3]
    assert found["seen"][1].startswith(f"3. {study.rows[2].outage}")
    assert found["focused"] == "1"
    assert found["hash"] == "#" + study.rows[2].outage.replace(":", "%3A")
    assert found["charts"] == 3


def test_a_branch_of_the_map_tells_about_itself(study, ask):
    found = ask(render(study), """
      const canvas = $("canvas"), box = canvas.getBoundingClientRect();
      for (let x = 20; x < box.width; x += 7) for (let y = 20; y < box.height; y += 7) {
        const at = { clientX: box.left + x, clientY: box.top + y };
        canvas.dispatchEvent(new PointerEvent("pointerdown", at));
        canvas.dispatchEvent(new PointerEvent("pointerup", at));
        const about = $("about").textContent, title = $("detail").querySelector("h3").textContent;
        if (about.includes("Losing it: ")) return [about, title];
      }
    """)  # fmt: skip
    label = found[0].split()[0]
    assert any(row.outage == label for row in study.rows)
    assert found[1].split()[1] == label


@pytest.mark.parametrize("width", [500, 1280])
def test_nothing_is_wider_than_the_window(study, ask, width):
    found = ask(render(study), "return [document.documentElement.scrollWidth, innerWidth]",
                size=(width, 900))  # fmt: skip
    assert found[0] <= found[1]


def test_the_text_of_charts_is_as_large_on_a_narrow_window(study, ask):
    question = """
      const scale = (svg) => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
      return [...$("detail").querySelectorAll("svg")].map(
        (svg) => [scale(svg), getComputedStyle(svg).fontSize]);
    """
    for scale, size in ask(render(study), question, size=(500, 900)):
        assert scale == pytest.approx(1, abs=0.01)
        assert size == "12px"


def test_a_page_with_the_most_affected_alone_opens_them(study, ask, monkeypatch):
    monkeypatch.setattr(page_data, "FULL_BYTES", 0)
    found = ask(render(study), 'return $("detail").textContent')
    assert "it affects most" in found


def test_studies_without_ratings_rows_or_positions_make_no_errors(study, ask):
    network = replace(
        study.network, branch_rated=np.zeros(41, bool), bus_xy=np.full((30, 2), np.nan)
    )
    nothing = np.full(41, np.nan)
    intact, *rows = [
        replace(row, branch_overload_probability=nothing, branch_loading=nothing,
                branch_loading_p95=nothing, branch_loading_p99=nothing,
                branch_loading_max=nothing, any_overload=np.nan)
        for row in (study.intact_row, *study.rows)
    ]  # fmt: skip
    bare = replace(study, network=network, rows=tuple(rows), intact_row=intact)
    assert "laid out by how they are joined" in ask(
        render(bare), "return document.body.textContent"
    )
    assert "No outage is open" in ask(
        render(replace(bare, rows=())), 'return $("detail").textContent'
    )


def test_a_surrogates_page_has_its_errors(study, ask):
    rows = [
        replace(row, mae=row.mae | {"overall": 1e-4 * (1 + k)}, holdout_excess=row.excess,
                holdout_excess_predicted=1.1 * row.excess)
        for k, row in enumerate(study.rows)
    ]  # fmt: skip
    predicted = replace(study, rows=tuple(rows))
    found = ask(render(predicted), 'return $("holdout").querySelectorAll("circle").length')
    assert found == 2 * sum(row.num_scenarios > 0 for row in study.rows)


def test_methods_beside_have_a_part_of_the_page_and_of_each_outage(study, ask):
    def method(name, missed):
        of = [
            {"outage": row.outage, "severity": 1.1 * row.severity, "exact_severity": row.severity,
             "mae": 1e-3, "num_rows": 20, "num_violated": 20, "num_missed": missed * (k % 3 == 1),
             "num_false": 0}
            for k, row in enumerate(study.rows) if row.status == "solved"
        ]  # fmt: skip
        cost = dict.fromkeys(("train_s", "data_s", "fit_s", "predict_s", "wall_s"), 1.0)
        return {
            "method": name, "num_context": 40, "num_outages": len(of), "num_failed": 0,
            "problem": "", "mae": {"overall": 1e-3}, "rank_correlation": 0.9,
            "missed_violations": 0.1, "num_violated": 20 * len(of),
            "num_missed": sum(one["num_missed"] for one in of), "num_false": 0, "outages": of,
            "cost": cost | {"num_solves": 100},
        }  # fmt: skip

    page = render(replace(study, beside=(method("ridge", 7), method("icw", 3))))
    found = ask(page, """
      const open_ = (i) => { rows()[i].click(); return $("detail").textContent; };
      const number = (what) => $("beside").querySelectorAll(what).length;
      return { methods: $("methods").tBodies[0].rows.length, charts: number("svg"),
        points: number("circle"), worst: $("missed").tBodies[0].rows[0].textContent,
        first: open_(1), wide: document.documentElement.scrollWidth };
    """, size=(500, 900))  # fmt: skip
    solved = [row for row in study.rows if row.status == "solved"]
    assert (found["methods"], found["charts"], found["points"]) == (3, 2, 2 * len(solved))
    assert found["wide"] <= 500
    place = solved.index(study.rows[1])
    missed = 7 * (place % 3 == 1)
    assert f"misses {missed} of 20 scenarios" in found["first"]
    assert "7 of 20" in found["worst"]
    assert "3 of 20" in found["worst"]
