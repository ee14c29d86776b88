"""What rows with a distributed slack cost, beside rows with one slack bus.

    python benchmarks/distributed_slack.py            # writes the table into the page

Loads vary by +-20 %, one thread; both sides in turns, as studies solve rows (counted, not kept).
"""

from pathlib import Path

from gridshift.grid.distributed_slack import DistributedSlack
from gridshift.grid.powerflow import solve
from gridshift.grid.prepared import prepare
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import named_rng, sample_loads
from gridshift.grid.slack_shares import SlackShares
from gridshift.grid.statistics import Limits
from gridshift.grid.streaming import stream_rows
from gridshift.peers.clock import in_turns, pinned
from page import write_section

PAGE = Path(__file__).parents[1] / "docs" / "distributed-slack.md"
CASES = ("case14", "case30", "case118", "case300", "case1354pegase")
NUM_ROWS = 2000


def measured(case: str, by: str) -> str:
    """A row of the table."""
    network = read_grid(case)
    loads = sample_loads(
        network, named_rng(case, "distributed slack"), NUM_ROWS, spread=0.2, regime="fixed"
    )
    shares, limits, prepared = SlackShares.of(network, by), Limits.of(network), prepare(network)
    runs = {
        one: (lambda one=one: stream_rows(network, loads, limits, distributed_slack=one))
        for one in (None, shares)
    }
    with pinned():
        took = {one: timed.cpu_s / NUM_ROWS * 1e6 for one, timed in in_turns(runs).items()}
    plain, shared = solve(prepared, loads), solve(prepared, loads, distributed_slack=shares)
    slack = DistributedSlack.of(network, shares)
    rows = slack.chord_rows(prepared, loads.load_p, loads.load_q, tol=1e-8)
    by_chords = slack.good(rows, 1e-8 * network.tolerance_base)
    ok = plain.solved & shared.solved
    values = (
        f"{len(shares.labels)}", f"{plain.solved.sum()}", f"{shared.solved.sum()}",
        f"{by_chords.sum()}", f"{plain.iterations[ok].mean():.1f}",
        f"{shared.iterations[ok].mean():.1f}", f"{took[None]:.2f}", f"{took[shares]:.2f}",
        f"{took[shares] / took[None]:.2f}",
    )  # fmt: skip
    return f"| {case} | {by} | " + " | ".join(values) + " |"


def main() -> None:
    """Measure all grids and write the page's table."""
    heads = (
        "grid", "by", "generators", "solved, one slack", "solved, distributed", "of them by chords",
        "steps, one slack", "steps, distributed", "one slack (µs/row)", "distributed (µs/row)",
        "ratio",
    )  # fmt: skip
    lines = ["| " + " | ".join(heads) + " |", "|---|---|" + "---:|" * (len(heads) - 2)]
    for case in CASES:
        for by in ("generation", "headroom"):
            lines.append(measured(case, by))
            print(lines[-1], flush=True)
    write_section(PAGE, "distributed-slack", lines)


if __name__ == "__main__":
    main()
