"""Reactive limits of generators beside pandapower's and MATPOWER's rule, and what they cost.

    python -m benchmarks.generator_limits case14 case118
    python -m benchmarks.generator_limits case1354pegase --outages 20
    python -m benchmarks.generator_limits case118 --times
    python -m benchmarks.generator_limits --table    # writes them into docs/generator-limits.md

A solution keeps its limits if every generator bus is on the right side: at its upper limit its
voltage is at most the set-point, at its lower one at least, else it is held at it. The other
programs switch generators off their set-point for good, so that they may end without that. Their
solutions are kept in the cache folder: a run that was interrupted goes on.
"""

import argparse
import json
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
from benchmarks.page import write_between
from tests.reference.matpower_limits import enforced

from gridshift.caches import cache_folder
from gridshift.grid.contingency import candidate_elements
from gridshift.grid.network import Network
from gridshift.grid.powerflow import RowStatus, solve
from gridshift.grid.prepared import prepare
from gridshift.grid.reactive import bus_limits
from gridshift.grid.readers import read_grid
from gridshift.grid.readers.pandapower_source import builtin_net, quiet_pandapower
from gridshift.grid.scenarios import named_rng, nominal_loads, sample_loads
from gridshift.peers.clock import in_turns, pinned
from gridshift.storage import write_bytes

RESULTS = Path(__file__).parent / "results" / "generator_limits.json"
PAGE = Path(__file__).parents[1] / "docs" / "generator-limits.md"
TOL = 1e-10
"""Mismatch of all, as a multiple of the tolerance base: 1e-8 MVA."""
SAME = 1e-8
"""Largest distance of voltages that agree, p.u."""
OFF = 1e-7
"""Voltage, p.u., and reactive power, p.u., from which on a bus is on the wrong side."""
NUM_ROWS = 1000
"""Rows that are timed, at +-20 %."""
RULES = {
    "pandapower": "pandapower, `enforce_q_lims=True`",
    "all": "MATPOWER's rule, all at once, slack without limits",
    "one": "MATPOWER's rule, one at a time, slack without limits",
    "slack": "MATPOWER's rule, all at once, slack with limits",
}
OUTCOMES = {
    "agree": "agree", "wrong_side": "wrong side", "other": "another solution",
    "only_here": "only here", "only_there": "only there, right side",
    "only_wrong": "only there, wrong side", "neither": "neither", "moved": "slack moved",
}  # fmt: skip


def compared(case: str, most: int | None) -> dict:
    """What becomes of the grid and its line outages at nominal demand, here and by each rule."""
    network = read_grid(case)
    found = Counter(topologies=0, at_limits=0, solved=0, unsettled=0)
    rules = {rule: Counter() for rule in RULES}
    worst = 0.0
    lines = candidate_elements(network, "lines")
    for outage in _outages(network, lines, most):
        left = network.without(outage) if outage else network
        ours = solve(left, nominal_loads(left), tol=TOL, q_limits=True)
        assert ours.at_limit is not None
        solved, voltage = bool(ours.solved[0]), ours.voltage[0]
        assert not solved or on_the_right_side(left, voltage), (case, outage)
        found["topologies"] += 1
        found["solved"] += solved
        found["unsettled"] += int(ours.status[0] == RowStatus.UNSETTLED_LIMITS)
        found["at_limits"] += bool(ours.at_limit.any())
        for rule, (theirs, moved) in theirs_of(case, left, outage).items():
            outcome = _outcome(left, voltage if solved else None, theirs, moved)
            rules[rule][outcome] += 1
            if outcome == "agree":
                worst = max(worst, float(np.abs(voltage - theirs).max()))
            elif outcome in ("other", "only_there"):
                print(case, outage, rule, outcome, flush=True)
    return {"case": case, "lines": len(lines), **found, "rules": rules, "worst": worst}


def _outages(network: Network, lines: list[str], most: int | None):
    """None, then all lines or a random sample of them, without those that cut buses off."""
    yield ()
    count, most = 0, len(lines) if most is None else most
    if most < len(lines):
        order = named_rng(network.name, "generator limits, outages").permutation(len(lines))
        lines = [lines[k] for k in order]
    for label in lines:
        if count < most and not len(network.without([label]).cut_off_buses()):
            count += 1
            yield (label,)


def _outcome(network: Network, ours, theirs, moved: bool) -> str:
    if moved:
        return "moved"
    if theirs is None:
        return "neither" if ours is None else "only_here"
    right = on_the_right_side(network, theirs)
    if ours is None:
        return "only_there" if right else "only_wrong"
    if not right:
        return "wrong_side"
    return "agree" if np.abs(ours - theirs).max() <= SAME else "other"


def on_the_right_side(network: Network, voltage) -> bool:
    """Whether a solution keeps every limit by the rule above."""
    low, high = bus_limits(network)
    power = voltage * (network.admittance @ voltage).conj() - network.injected(network.load_power)
    pv = network.pv
    given, off = power.imag[pv], np.abs(voltage[pv]) - network.bus_v_set[pv]
    within = (given >= low[pv] - OFF) & (given <= high[pv] + OFF)
    below = (off >= -OFF) | (given >= high[pv] - OFF)
    above = (off <= OFF) | (given <= low[pv] + OFF)
    return bool((within & below & above).all())


def theirs_of(case: str, network: Network, outage: tuple[str, ...]) -> dict:
    """Voltages (B,) by each rule, or None, and whether the slack has moved; from the cache."""
    place = cache_folder() / "generator_limits" / case / f"{'+'.join(outage) or 'intact'}.npz"
    place = place.with_name(place.name.replace(":", "_"))
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        found = {"pandapower": (pandapowers(case, network, outage), False)}
        start = prepare(network).voltage if prepare(network).solved else network.v_start
        free, limited = slack_limits(case, network)
        rules = {"all": (1, free), "one": (2, free), "slack": (1, limited)}
        for rule, (number, limits) in rules.items():
            one = enforced(
                network, network.load_power, start, limits=limits, rule=number,
                tol=TOL * network.tolerance_base,
            )  # fmt: skip
            found[rule] = one.voltage, one.moved
        none = np.zeros(0)
        stored = {rule: none if v is None else v for rule, (v, _) in found.items()}
        moved = np.array([moved for _, moved in found.values()])
        half = place.with_suffix(".half.npz")
        np.savez(half, allow_pickle=False, moved=moved, **stored)
        half.replace(place)
    with np.load(place) as stored:
        moved = stored["moved"].tolist()
        return {
            rule: (stored[rule] if len(stored[rule]) else None, moved[k])
            for k, rule in enumerate(RULES)
        }


def slack_limits(case: str, network: Network):
    """(2, G) limits of all generators, p.u., twice: without and with those at the slack bus."""
    free, at_slack = np.stack([network.gen_q_min, network.gen_q_max]), {*network.slack}
    limited, table = free.copy(), _net(case).ext_grid
    for g, (label, bus) in enumerate(zip(network.gen_labels, network.gen_bus, strict=True)):
        if bus in at_slack:
            free[:, g] = -np.inf, np.inf
            kind, _, row = label.partition(":")
            if kind == "ext_grid" and {"min_q_mvar", "max_q_mvar"} <= {*table}:
                given = table.loc[int(row), ["min_q_mvar", "max_q_mvar"]].to_numpy(float)
                limited[:, g] = np.where(np.isnan(given), free[:, g], given / network.base_mva)
    return free, limited


def _run(net, tolerance_mva: float) -> bool:
    """Whether `runpp` with limits has a solution."""
    import pandapower

    try:
        with quiet_pandapower():
            pandapower.runpp(
                net, enforce_q_lims=True, tolerance_mva=tolerance_mva,
                max_iteration=50,  # pyright: ignore[reportArgumentType]
                calculate_voltage_angles=True,
            )  # fmt: skip
    except (pandapower.LoadflowNotConverged, np.linalg.LinAlgError, FloatingPointError):
        return False
    return True


_net = cache(builtin_net)


def pandapowers(case: str, network: Network, outage: tuple[str, ...]):
    """(B,) voltages of `runpp` with limits, or None."""
    net = _net(case)
    rows = [int(label.partition(":")[2]) for label in outage]
    net.line.loc[rows, "in_service"] = False
    try:
        # near the nose the looser mismatch, ours, leaves more than `SAME`; large grids don't reach
        # the other
        if not any(_run(net, tolerance_mva) for tolerance_mva in (1e-10, 1e-8)):
            return None
    finally:
        net.line.loc[rows, "in_service"] = True
    bus = net.res_bus.loc[
        [int(label.partition(":")[2].split("+")[0]) for label in network.bus_labels]
    ]
    return bus.vm_pu.to_numpy() * np.exp(1j * np.deg2rad(bus.va_degree.to_numpy()))


def timed_rows(case: str) -> dict:
    """Microseconds per row on one thread without and with limits, and what the rows are like."""
    network = read_grid(case)
    rng = named_rng(case, "generator limits")
    loads = sample_loads(network, rng, NUM_ROWS, spread=0.2, regime="fixed")
    prepared = prepare(network)
    found = solve(prepared, loads, q_limits=True)
    assert found.at_limit is not None
    solved = np.flatnonzero(found.solved)
    sides = found.at_limit[solved]
    runs = {
        (q, part): (lambda q=q, rows=rows: solve(prepared, rows, q_limits=q))
        for q in (False, True)
        for part, rows in (("all", loads), ("solved", loads.rows(solved)))
    }
    with pinned():
        took = {key: one.cpu_s for key, one in in_turns(runs).items()}
    return {
        "rows_solved": len(solved), "rows_at_limits": int(sides.any(1).sum()),
        "buses_at_limits": float(np.abs(sides).sum(1).mean()),
        "sets": len(np.unique(sides, axis=0)),
        "without_us": took[False, "solved"] / len(solved) * 1e6,
        "with_us": took[True, "solved"] / len(solved) * 1e6,
        "all_without_us": took[False, "all"] / NUM_ROWS * 1e6,
        "all_with_us": took[True, "all"] / NUM_ROWS * 1e6,
    }  # fmt: skip


def section(known: dict[str, dict]) -> str:
    """The page's tables."""
    records = [one for one in known.values() if "rules" in one]
    total: dict[str, Counter] = {rule: Counter() for rule in RULES}
    lines = [
        "| grid | line outages | topologies | solved | at limits | not settled | pandapower agrees "
        "| wrong side | other outcome | largest difference (p.u.) |", "|---|" + "---:|" * 9,
    ]  # fmt: skip
    for one in records:
        for rule, counts in one["rules"].items():
            total[rule].update(counts)
        theirs = one["rules"]["pandapower"]
        rest = ", ".join(f"{theirs[key]} {OUTCOMES[key]}" for key in OUTCOMES
                         if key not in ("agree", "wrong_side") and theirs.get(key))  # fmt: skip
        lines.append(
            f"| {one['case']} | {one['lines']} | {one['topologies']} | {one['solved']} | "
            f"{one['at_limits']} | {one['unsettled']} | {theirs.get('agree', 0)} | "
            f"{theirs.get('wrong_side', 0)} | {rest} | {one['worst']:.1e} |"
        )
    lines += ["", "| all grids | " + " | ".join(OUTCOMES.values()) + " |",
              "|---|" + "---:|" * len(OUTCOMES)]  # fmt: skip
    for rule, told in RULES.items():
        lines.append(f"| {told} | " + " | ".join(str(total[rule][key]) for key in OUTCOMES) + " |")
    times = [one for one in known.values() if "with_us" in one]
    if times:
        lines += [
            "", "| grid | of 1000 rows solved | at limits | buses at limits each | different sets "
            "| without (µs/row) | with (µs/row) | ratio | ratio with unsolved rows |",
            "|---|" + "---:|" * 8,
        ]  # fmt: skip
        lines += [
            f"| {one['case']} | {one['rows_solved']} | {one['rows_at_limits']} | "
            f"{one['buses_at_limits']:.1f} | {one['sets']} | {one['without_us']:.2f} | "
            f"{one['with_us']:.2f} | {one['with_us'] / one['without_us']:.1f} | "
            f"{one['all_with_us'] / one['all_without_us']:.1f} |"
            for one in times
        ]
    return "\n".join(lines)


def main() -> None:
    """Measure the grids named, or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--outages", type=int, help="line outages at most, a random sample")
    parser.add_argument("--times", action="store_true", help="measure times instead")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    for case in asked.cases:
        found = {"case": case} | (
            timed_rows(case) if asked.times else compared(case, asked.outages)
        )
        known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        known[case] = known.get(case, {}) | found
        write_bytes(RESULTS, json.dumps(known, indent=1).encode())
        print(found, flush=True)
    if asked.table:
        marks = "<!-- generator-limits:begin -->", "<!-- generator-limits:end -->"
        write_between(PAGE, *marks, section(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
