"""Results as tables of 80 columns, for the terminal and for docs/engine.md."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gridshift_paper.artefacts import Table

Result = Mapping[str, Any]
"""A result as it is in JSON, so that tables can be made again from a file."""

PHASES = {
    "gather": "gath.",
    "substitute": "subst.",
    "turn": "turn",
    "mismatch": "mism.",
    "accelerate": "acc.",
    "scatter": "scat.",
    "newton": "Newton",
    "other": "other",
}
PRECISION = {"substitute": "float32", "accelerate": "float32"}
"""Of the arithmetic of each phase, where it isn't 'float64'."""


def page_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], note: str = ""
) -> Table:
    """A table whose cells are written as docs/engine.md has them."""
    cells = [[_cell(value) for value in row] for row in rows]
    return Table(title, columns, cells, note)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.{0 if value >= 1000 else 3 if value < 1 else 2 if value < 10 else 1}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _short(found: Result) -> str:
    """Name of the grid, short enough for a column."""
    return str(found["grid"]).removesuffix("pegase")


def ratios_table(found: Sequence[Result]) -> Table:
    """gridshift and the fastest mode of lightsim2grid on all grids."""
    return page_table(
        title="µs per row, one thread",
        columns=("grid", ">rows", ">gridshift", ">lightsim2grid", ">ratio", ">default", ">runpp",
                 ">solved"),
        rows=[
            (_short(f), f["num_rows"], f["us_per_row"],
             time_of(f, f["fastest_lightsim2grid"]), f["ratio_to_lightsim2grid"],
             _times(time_of(f, "lightsim2grid, default"), f["us_per_row"]),
             time_of(f, "pandapower runpp"), _solved(f))
            for f in found
        ],
        note="lightsim2grid: its fastest mode that keeps all rows; default: ratio to its default "
        "mode; solved: rows, gridshift/lightsim2grid",
    )  # fmt: skip


def time_of(found: Result, name: str | None) -> float | None:
    """Microseconds per row of one program, None where it has no figure."""
    return next((p["us_per_row"] for p in found["peers"] if p["name"] == name), None)


def _times(other: float | None, ours: float) -> float | None:
    return other / ours if other else None


def _solved(found: Result) -> str:
    by_name = {p["name"]: p["num_converged"] for p in found["peers"]}
    other = by_name.get(found["fastest_lightsim2grid"])
    return f"{found['peers'][0]['num_converged']}/{'-' if other is None else other}"


def shares_table(found: Iterable[Result]) -> Table:
    """Where the time goes, by phase."""
    with_phases = [f for f in found if f["share"]]
    return page_table(
        title="share of the time by phase, %",
        columns=("grid", ">rows", *(f">{short}" for short in PHASES.values()), ">left"),
        rows=[
            (_short(f), f["num_rows"],
             *(round(100 * f["share"][phase]) for phase in PHASES), f["left_to_newton"])
            for f in with_phases
        ],
        note="gather demands, triangular substitution, turn voltages, mismatch, acceleration, "
        "scatter results; other: Python, calls, and memory traffic that the kernels alone don't "
        "show; left: rows that chord steps leave to Newton",
    )  # fmt: skip


def rates_table(found: Iterable[Result], machine: Result) -> Table:
    """Multiply-adds per nanosecond of each phase, and how much of the machine's peak that is."""
    peak = machine["peak_fma_per_ns"]
    names = ("substitute", "turn", "mismatch", "accelerate")
    rows = []
    for f in found:
        phases = {phase["name"]: phase for phase in f["phases"]}
        if not phases:
            continue
        cells = []
        for name in names:
            rate = phases[name]["fma"] / phases[name]["ns"]
            cells.append(f"{rate:.0f} {rate / peak[PRECISION.get(name, 'float64')]:4.0%}")
        bandwidth = phases["mismatch"]["bytes"] / phases["mismatch"]["ns"]
        rows.append((_short(f), f["num_rows"], *cells, round(bandwidth)))
    return page_table(
        title="multiply-adds per ns, and of the machine's peak",
        columns=("grid", ">rows", *(f">{name}" for name in names), ">GB/s"),
        rows=rows,
        note=f"peak of one core: {peak['float64']:.0f} in double, {peak['float32']:.0f} in single "
        "precision (substitute, accelerate); GB/s: what mismatch moves, main memory reads "
        f"{machine['read_gb_per_s']:.0f} GB/s",
    )


def choices_table(found: Sequence[Result]) -> Table:
    """The engine with one choice undone."""
    names = list(found[0]["us_per_row"])
    return page_table(
        title="µs per row with one choice undone (mean steps)",
        columns=("grid", ">rows", *(f">{name}" for name in names)),
        rows=[
            (_short(f), f["num_rows"],
             *(f"{f['us_per_row'][name]:.3g} ({f['steps'][name]:.1f})" for name in names))
            for f in found
        ],
    )  # fmt: skip


def instruction_sets_table(found: Mapping[str, Result]) -> Table:
    """The same grid compiled for narrower vectors."""
    return page_table(
        title="instruction sets",
        columns=("instructions", "grid", ">rows", ">µs/row", ">ratio"),
        rows=[
            (name, f["grid"], f["num_rows"], f["us_per_row"], f["ratio_to_lightsim2grid"])
            for name, f in found.items()
        ],
        note="ratio: to lightsim2grid's fastest mode, which is compiled as it comes",
    )


def threads_table(found: Sequence[Result]) -> Table:
    """Wall time of a batch with one thread and more."""
    numbers = list(found[0]["seconds"])
    return page_table(
        title="wall time of a batch, ms",
        columns=("grid", ">rows", *(f">threads: {n}" for n in numbers), ">speed-up"),
        rows=[
            (_short(f), f["num_rows"], *(1e3 * f["seconds"][n] for n in numbers),
             f["seconds"][numbers[0]] / f["seconds"][numbers[-1]])
            for f in found
        ],
        note="fastest round; reading and writing memory is shared",
    )  # fmt: skip


def n_minus_one_table(found: Iterable[Result]) -> Table:
    """One scenario on all outages, beside lightsim2grid here and as published."""
    return page_table(
        title="N-1 at nominal demand, ms per outage, one thread",
        columns=("grid", ">outages", ">gridshift", ">lightsim2grid", ">ratio", ">published",
                 ">solved"),
        rows=[
            (_short(f), f"{f['num_outages']:,}{'*' * f['sampled']}", f["ms_per_outage"],
             f["ratio_to_lightsim2grid"] and f["ratio_to_lightsim2grid"] * f["ms_per_outage"],
             f["ratio_to_lightsim2grid"], f["published_ms"],
             f"{f['num_solved']}/{max(f['peers_solved'].values(), default=0)}")
            for f in found
        ],
        note="published: lightsim2grid's own figures, on a faster processor; *: a sample",
    )  # fmt: skip


def sweep_table(found: Iterable[Result], paper: tuple[float, int]) -> Table:
    """All scenarios on all line outages, beside the paper's figure."""
    rows = [
        (f"{f['threads']} thread{'s' * (f['threads'] > 1)}", f["seconds"], f["cpu_s"],
         1e3 * f["setup_s"])
        for f in found
    ]  # fmt: skip
    first = next(iter(found))
    return page_table(
        title=f"{first['grid']}: {first['num_outages']} line outages × {first['num_rows']} "
        f"scenarios, {first['num_solved']:,} solved",
        columns=("", ">wall (s)", ">CPU (s)", ">of it set-up (ms)"),
        rows=[*rows, (f"the paper, {paper[1]} cores", paper[0], None, None)],
        note="the grid's plan is not in it, set-up of the topologies is; wall: fastest round",
    )


def set_up_table(found: Iterable[Result], started: Result) -> Table:
    """What comes before the first row."""
    return page_table(
        title="before the first row",
        columns=("grid", ">plan (ms)", ">topology alone (ms)", ">one of 64 (ms)"),
        rows=[(_short(f), 1e3 * f["plan_s"], f["alone_ms"], f["together_ms"]) for f in found],
        note=f"first solve ever: {started['first_s']:.1f} s, compiling; in the next process: "
        f"{started['second_s']:.2f} s; imports and reading {started['grid']}: "
        f"{started['read_s']:.1f} s",
    )
