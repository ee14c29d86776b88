"""The exact study beside the engine alone and lightsim2grid, on an otherwise idle machine.

    python benchmarks/study.py case118 case300 --rounds 5
    python benchmarks/study.py case1354pegase case2869pegase --outages 100 --rounds 2
    python benchmarks/study.py --table   # writes docs/study.md

`gridshift bench study` measures one grid the same way.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from gridshift.peers.machine import describe, machine_line
from gridshift.peers.study_time import study_time
from gridshift.storage import write_bytes
from page import write_between

RESULTS = Path(__file__).parent / "results" / "study.json"
PAGE = Path(__file__).parents[1] / "docs" / "study.md"


def table(found: dict) -> str:
    """What was measured, as a table of Markdown."""
    lines = [
        "| grid | outages | engine alone, s | study, s | study / engine | lightsim2grid / study |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for one in found["grids"].values():
        peer = one["ratio_to_lightsim2grid"]
        lines.append(
            f"| {one['grid']} | {one['num_outages']:,} | {one['engine_s']:.3g} | "
            f"{one['sweep_s']:.3g} | {one['ratio_to_engine']:.2f} | "
            f"{'–' if peer is None else f'{peer:.3g}'} |"
        )
    rows = {one["num_rows"] for one in found["grids"].values()}
    return "\n".join(
        [*lines, "", f"{max(rows):,} scenarios an outage. {machine_line(found['machine'])}."]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("grids", nargs="*")
    parser.add_argument("--scenarios", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--outages", type=int, help="an even choice of so many")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"grids": {}}
    for grid in given.grids:
        one = study_time(
            grid, num_rows=given.scenarios, rounds=given.rounds, most_outages=given.outages
        )
        found["grids"][grid] = asdict(one)
        found["machine"] = describe()
        write_bytes(RESULTS, (json.dumps(found, indent=1) + "\n").encode())
        print(json.dumps(asdict(one)))
    if given.table:
        write_between(PAGE, "<!-- study -->", "<!-- end -->", table(found))


if __name__ == "__main__":
    main()
