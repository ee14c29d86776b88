"""docs/engine.md says what was measured, and its example runs."""

import json
import re
from pathlib import Path

from benchmarks.engine.__main__ import BEGIN, END, section, show

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "engine.md"
RESULTS = ROOT / "benchmarks" / "results" / "solve.json"


def test_tables_of_the_page_are_those_of_the_results():
    text = PAGE.read_text(encoding="utf-8")
    between = text.split(BEGIN)[1].split(END)[0]
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert between.strip() == section(found), "run python -m benchmarks.engine --page"


def test_every_table_fits_a_terminal_of_80_columns(capsys):
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    show(found)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_the_example_of_the_page_runs():
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict = {}
    exec(code[0], names)
    assert names["solution"].counts() == {"solved": 1000}
    assert names["solution"].loading.shape == (1000, names["network"].num_branches)
