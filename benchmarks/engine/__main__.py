"""The engine against other programs and against the machine, on all grids: `make bench`.

    python -m benchmarks.engine           # measure, write results/solve.json and the page's tables
    python -m benchmarks.engine --quick   # the small grids, two rounds: to see that it runs
    python -m benchmarks.engine --page    # print and write the tables from the file

Nothing else should run meanwhile; the load of the machine is recorded with the results.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.engine.choices import undo_choices
from benchmarks.engine.machine import measure
from benchmarks.engine.outages import (
    PAPER_CORES,
    PAPER_SECONDS,
    busy,
    n_minus_one,
    set_up,
    sweep_lines,
)
from benchmarks.engine.phases import phases_of
from benchmarks.engine.start_up import FEATURES, compare_with, start_up
from benchmarks.engine.tables import (
    choices_table,
    instruction_sets_table,
    n_minus_one_table,
    rates_table,
    ratios_table,
    set_up_table,
    shares_table,
    sweep_table,
    threads_table,
)
from benchmarks.engine.threads import scaling
from benchmarks.page import write_between
from rich.console import Console

from gridshift.cli.bench import peers_table
from gridshift.cli.output import table
from gridshift.peers.comparison import compare
from gridshift.peers.machine import machine_line
from gridshift.study.text import json_value
from gridshift_paper.artefacts import Table

RESULTS = Path(__file__).parent.parent / "results" / "solve.json"
PAGE = Path(__file__).parent.parent.parent / "docs" / "engine.md"
BEGIN, END = "<!-- engine:begin -->", "<!-- engine:end -->"

SOLVES = [
    ("case30", 400),
    ("case30", 4000),
    ("case118", 400),
    ("case118", 4000),
    ("case300", 400),
    ("case300", 4000),
    ("case1354pegase", 400),
    ("case2869pegase", 400),
    ("case9241pegase", 96),
    ("case33bw", 400),
]
"""case33bw is there because power-grid-model can express it."""
OUTAGES = {"case118": None, "case300": None, "case1354pegase": None, "case2869pegase": None,
           "case9241pegase": 128}  # fmt: skip
"""Single outages: all, or about so many."""
SCALED = [("case118", 400), ("case118", 4000), ("case300", 4000), ("case1354pegase", 400),
          ("case2869pegase", 400)]  # fmt: skip
SET_UPS = ["case30", "case118", "case300", "case1354pegase", "case2869pegase", "case9241pegase"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    if given.page:
        found = json.loads(RESULTS.read_text(encoding="utf-8"))
    else:
        found = run(2 if given.quick else given.rounds, quick=given.quick)
    show(found)
    if not given.quick:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        write_between(PAGE, BEGIN, END, section(found))


def run(rounds: int, *, quick: bool) -> dict[str, Any]:
    """Everything that is measured, as it is written to JSON."""
    solves = SOLVES[:3] if quick else SOLVES
    outages = {"case118": None} if quick else OUTAGES
    set_ups = SET_UPS[:2] if quick else SET_UPS
    found: dict[str, Any] = {"command": "make bench", "rounds": rounds, "load_before": busy()}
    note("machine")
    found["machine"] = measure()
    found["solve"] = []
    for grid, num_rows in solves:
        note(f"solve {grid} {num_rows}")
        one = compare(grid, num_rows=num_rows, rounds=rounds).as_dict()
        found["solve"].append(one | phases_of(grid, num_rows=num_rows))
    found["choices"] = []
    for grid, num_rows in solves:
        if num_rows < 1000 and grid != "case33bw":
            note(f"choices {grid}")
            undone = undo_choices(grid, num_rows=num_rows, rounds=rounds)
            found["choices"].append(asdict(undone))
    note("threads")
    found["threads"] = [
        asdict(scaling(grid, num_rows=num_rows))
        for grid, num_rows in SCALED[: 1 if quick else None]
    ]
    note("sweep")
    found["sweep"] = [asdict(sweep_lines(threads=n, rounds=rounds)) for n in (1, 2)]
    found["n_minus_one"] = []
    for grid, most in outages.items():
        note(f"outages {grid}")
        found["n_minus_one"].append(n_minus_one(grid, most=most, rounds=min(rounds, 3)).as_dict())
    found["set_up"] = []
    for grid in set_ups:
        note(f"set-up {grid}")
        found["set_up"].append(asdict(set_up(grid)))
    note("start-up")
    found["start_up"] = asdict(start_up())
    found["instruction_sets"] = {}
    for name in FEATURES:
        note(name)
        other = compare_with(name, "case118", scenarios=400, rounds=min(rounds, 5))
        found["instruction_sets"][name] = other
    found["load_after"] = busy()
    return json_value(found)


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def tables(found: dict[str, Any]) -> list[Table]:
    """All tables of the results, in the order of the page."""
    widest = {found["machine"]["instruction_set"]: next(
        f for f in found["solve"] if f["grid"] == "case118"
    )}  # fmt: skip
    return [
        ratios_table(found["solve"]),
        shares_table(found["solve"]),
        rates_table(found["solve"], found["machine"]),
        choices_table(found["choices"]),
        threads_table(found["threads"]),
        sweep_table(found["sweep"], (PAPER_SECONDS, PAPER_CORES)),
        n_minus_one_table(found["n_minus_one"]),
        set_up_table(found["set_up"], found["start_up"]),
        instruction_sets_table({**widest, **found["instruction_sets"]}),
    ]


def show(found: dict[str, Any]) -> None:
    """Print every table at 80 columns, those of single grids first."""
    console = Console(width=80, highlight=False)
    for one in found["solve"]:
        console.print(peers_table(one), "")
    for one in tables(found):
        console.print(table(one.title, one.columns, one.rows, note=one.note + "\n"))
    console.print(about(found), style="dim")


def about(found: dict[str, Any]) -> str:
    """Where, how and under what load it was measured."""
    return (
        f"{machine_line(found['machine'])}. Medians of CPU time over {found['rounds']} rounds; "
        f"running processes before and after: {found['load_before']:.1f}, "
        f"{found['load_after']:.1f}."
    )


def section(found: dict[str, Any]) -> str:
    """The measured part of the page."""
    parts = [one.markdown() for one in tables(found)]
    return "\n\n".join([*parts, about(found)])


if __name__ == "__main__":
    main()
