"""Predictions where generators reach reactive limits: how far off, and what certifying them costs.

    python benchmarks/predictions_at_limits.py     # writes its table into docs/generator-limits.md

`tangent2` predicts each row with every generator at its set-point. Certified with limits, rows
beyond a limit are solved. Loads vary by +-20 %; one thread; times of both sides in turns.
"""

from pathlib import Path

import numpy as np

from gridshift.adapt.certificate import certify
from gridshift.adapt.expansion import ExpansionPredictor
from gridshift.grid.layout import Layout
from gridshift.grid.powerflow import solve
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import named_rng, sample_loads
from gridshift.peers.clock import in_turns, pinned
from page import write_section

PAGE = Path(__file__).parents[1] / "docs" / "generator-limits.md"
CASES = {"case14": 400, "case30": 400, "case300": 100, "case1354pegase": 100}
"""Rows of each; not many, as each row of case300 is followed to where it ends."""
TOL = 1e-6
"""Mismatch of a certified row, p.u."""


def measured(case: str, num_rows: int) -> str:
    """A row of the table."""
    network = read_grid(case)
    layout = Layout.of(network)
    rng = named_rng(case, "predictions at limits")
    loads = sample_loads(network, rng, num_rows, spread=0.2, regime="fixed")
    x, predictor = layout.pack_inputs(network, loads), ExpansionPredictor.of(network, 2)
    y = predictor.predict(x)
    exact = solve(network, loads, q_limits=True)
    assert exact.at_limit is not None
    at_limit = exact.at_limit.any(1)
    apart = np.abs(layout.unpack_voltage(x, y) - exact.voltage).max(1)
    found = certify(network, layout, x, y, tol=TOL, q_limits=True)
    assert (found.rows.returned == exact.solved).all()
    off = np.abs(found.voltage - exact.voltage)[exact.solved].max(initial=0.0)
    runs = {
        "exact": lambda: solve(network, loads, q_limits=True),
        "certified": lambda: certify(
            network, layout, x, predictor.predict(x), tol=TOL, q_limits=True
        ),
    }  # fmt: skip
    with pinned():
        took = {name: one.cpu_s / num_rows * 1e6 for name, one in in_turns(runs).items()}
    counts = found.counts()
    values = (
        f"{num_rows}", f"{exact.solved.sum()}", f"{(exact.solved & at_limit).sum()}",
        _largest(apart[exact.solved & ~at_limit]), _largest(apart[exact.solved & at_limit]),
        f"{counts['predicted'] + counts['repaired']}", f"{counts['solved']}",
        f"{counts['marked']}", f"{off:.0e}", f"{took['exact']:.1f}", f"{took['certified']:.1f}",
    )  # fmt: skip
    return f"| {case} | " + " | ".join(values) + " |"


def _largest(apart: np.ndarray) -> str:
    return f"{apart.max():.1e}" if len(apart) else ""


def main() -> None:
    """Measure all grids and write the page's table."""
    heads = (
        "grid", "rows", "with a solution", "of them at limits", "error within limits (p.u.)",
        "error at limits (p.u.)", "kept or repaired", "solved", "marked",
        "error certified (p.u.)", "exact (µs/row)", "certified (µs/row)",
    )  # fmt: skip
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    for case, num_rows in CASES.items():
        lines.append(measured(case, num_rows))
        print(lines[-1], flush=True)
    write_section(PAGE, "predictions-at-limits", lines)


if __name__ == "__main__":
    main()
