"""Loads that depend on the voltage, and controls, beside pandapower; and what they cost.

    python benchmarks/loads_and_controls.py case14 case118 --rows 20
    python benchmarks/loads_and_controls.py case14 case118 case1354pegase --times
    python benchmarks/loads_and_controls.py --kinds --rows 10
    python benchmarks/loads_and_controls.py --table   # writes both into docs/loads-and-controls.md

Loads: all of a grid with 30 % constant impedance and 20 % constant current, row by row on the
intact grid and on line outages. Controls: a tap changer with pandapower's DiscreteTapControl on
each transformer that has none of its own, ten positions to each side; the same with
ContinuousTapControl, and either at a transformer of three windings.
"""

import argparse
import copy
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from gridshift.grid.contingency import candidate_elements, cut_off_buses
from gridshift.grid.powerflow import RowStatus, solve
from gridshift.grid.prepared import prepare
from gridshift.grid.readers import from_pandapower
from gridshift.grid.readers.pandapower_source import builtin_net, quiet_pandapower
from gridshift.grid.scenarios import named_rng, sample_loads
from gridshift.peers.clock import in_turns, pinned
from gridshift.storage import write_bytes
from page import write_between

RESULTS = Path(__file__).parent / "results" / "loads_and_controls.json"
PAGE = Path(__file__).parents[1] / "docs" / "loads-and-controls.md"
TOL = 1e-10
NUM_TIMED = 1000
KINDS = "kinds"
SAME = 1e-6
"""Difference of continuous positions that counts as none."""
MULTIVOLTAGE = "example_multivoltage"
SHARES = {"const_z_p_percent": 30.0, "const_i_p_percent": 20.0,
          "const_z_q_percent": 30.0, "const_i_q_percent": 20.0}  # fmt: skip


def with_shares(case: str) -> Any:
    """The built-in network, 30 % Z and 20 % I in every load."""
    net = builtin_net(case)
    for column, value in SHARES.items():
        net.load[column] = value
    return net


def with_tap_changers(case: str, *, continuous: bool = False) -> Any:
    """The built-in network with a tap changer of 21 positions at each of its transformers."""
    from pandapower.control import ContinuousTapControl, DiscreteTapControl

    net = builtin_net(case)
    changer = {"tap_side": "hv", "tap_neutral": 0.0, "tap_min": -10.0, "tap_max": 10.0,
               "tap_pos": 0.0, "tap_step_percent": 1.0, "tap_changer_type": "Ratio"}  # fmt: skip
    for column, value in changer.items():
        net.trafo[column] = value
    held = {*net.gen.bus, *net.ext_grid.bus}
    for index in net.trafo.index:
        if net.trafo.lv_bus[index] in held:
            continue
        if continuous:
            ContinuousTapControl(net, index, 1.0)
        else:
            DiscreteTapControl(net, index, 0.985, 1.015)
    return net


def with_three_windings(*, continuous: bool) -> Any:
    """pandapower's example of several voltages with a tap changer at its three windings' high side,
    that holds the middle one."""
    from pandapower.control import ContinuousTapControl, DiscreteTapControl

    net = builtin_net(MULTIVOLTAGE)
    net.trafo3w["tap_pos"] = net.trafo3w.tap_pos.astype(float)
    for index in net.trafo3w.index:
        if continuous:
            ContinuousTapControl(net, index, 1.0, side="mv", element="trafo3w")
        else:
            DiscreteTapControl(net, index, 0.99, 1.01, side="mv", element="trafo3w")
    return net


def network_of(net: Any) -> Any:
    """As it is read, without the warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return from_pandapower(net)


def solved_by_pandapower(net: Any, network: Any, loads: Any, row: int, **options: Any) -> Any:
    """A copy with the demands of a row, solved; None without a solution."""
    import pandapower

    net = copy.deepcopy(net)
    net.load["p_mw"] = loads.load_p[row] * network.base_mva
    net.load["q_mvar"] = loads.load_q[row] * network.base_mva
    with quiet_pandapower():
        try:
            pandapower.runpp(net, tolerance_mva=TOL, max_iteration=50, **options)
        except (pandapower.LoadflowNotConverged, pandapower.ControllerNotConverged):
            return None
    return net


def voltages(net: Any) -> Any:
    """(B,) complex, in the order of the bus table."""
    return (net.res_bus.vm_pu * np.exp(1j * np.deg2rad(net.res_bus.va_degree))).to_numpy()


def loads_compared(case: str, rows: int) -> dict:
    """Rows of the intact grid and one row for each of as many line outages."""
    net = with_shares(case)
    network = network_of(net)
    loads = sample_loads(network, named_rng(case, "zip"), rows, spread=0.3, regime="fixed")
    lines = [(label,) for label in candidate_elements(network, "lines")]
    whole = [line for line, cut in zip(lines, cut_off_buses(network, lines), strict=True)
             if not len(cut)]  # fmt: skip
    outages = [whole[k] for k in np.linspace(0, len(whole) - 1, rows).astype(int)]
    found = {"rows": 0, "both": 0, "worst": 0.0}
    for row in range(rows):
        for outage in ((), outages[row]):
            one = loads.rows(slice(row, row + 1))
            ours = solve(network.without(outage) if outage else network, one, tol=TOL)
            there = copy.deepcopy(net)
            for label in outage:
                there.line.loc[int(label.partition(":")[2]), "in_service"] = False
            theirs = solved_by_pandapower(there, network, loads, row)
            found["rows"] += 1
            if theirs is not None and ours.solved[0]:
                found["both"] += 1
                apart = float(np.abs(ours.voltage[0] - voltages(theirs)).max())
                found["worst"] = max(found["worst"], apart)
    return found


def controls_compared(net: Any, rows: int, spread: float = 0.3) -> dict:
    """Rows of the intact grid: final positions and voltages."""
    network = network_of(net)
    loads = sample_loads(network, named_rng(network.name, "taps"), rows, spread=spread,
                         regime="fixed")  # fmt: skip
    ours = solve(network, loads, tol=TOL, controls=True)
    unsettled = int((ours.status == RowStatus.UNSETTLED_CONTROLS).sum())
    found = {"changers": len(network.controls), "rows": rows, "both": 0, "same": 0, "moves": 0.0,
             "unsettled": unsettled, "worst": 0.0, "apart": 0.0}  # fmt: skip
    if not network.controls:
        return found
    named = [one.label.partition(":") for one in network.controls]
    start = np.array([float(one.called(one.start)) for one in network.controls])
    places = [label[4:].partition("+")[0] for label in network.bus_labels]
    own = [row for row, place in enumerate(places) if place.isdecimal()]  # without star points
    theirs_at = [int(places[row]) for row in own]
    assert ours.positions is not None
    for row in range(rows):
        theirs = solved_by_pandapower(net, network, loads, row, run_control=True)
        if theirs is None or not ours.solved[row]:
            continue
        found["both"] += 1
        at = np.array([theirs[kind].tap_pos[int(index)] for kind, _, index in named], float)
        apart = np.abs(ours.positions[row] - at)
        found["apart"] = max(found["apart"], float(apart.max()))
        found["same"] += bool((apart <= SAME).all())
        found["moves"] = max(found["moves"], float(np.abs(ours.positions[row] - start).max()))
        v = theirs.res_bus.vm_pu * np.exp(1j * np.deg2rad(theirs.res_bus.va_degree))
        off = np.abs(ours.voltage[row, own] - v.loc[theirs_at].to_numpy())
        found["worst"] = max(found["worst"], float(off.max()))
    return found


def kinds_compared(rows: int) -> dict[str, dict]:
    """The other kinds of tap changers, on small grids."""
    return {
        "case14, continuous": controls_compared(with_tap_changers("case14", continuous=True), rows),
        f"{MULTIVOLTAGE}, three windings": controls_compared(
            with_three_windings(continuous=False), rows, 0.9
        ),
        f"{MULTIVOLTAGE}, three windings, continuous": controls_compared(
            with_three_windings(continuous=True), rows, 0.9
        ),
    }


def timed(case: str) -> dict:
    """Microseconds per row on one thread: constant power, shares, tap changers."""
    plain, shares = network_of(builtin_net(case)), network_of(with_shares(case))
    taps = network_of(with_tap_changers(case))
    loads = sample_loads(plain, named_rng(case, "times"), NUM_TIMED, spread=0.2, regime="fixed")
    runs = {
        "constant": lambda: solve(prepare(plain), loads),
        "shares": lambda: solve(prepare(shares), loads),
        "controls": lambda: solve(taps, loads, controls=True),
    }
    with pinned():
        took = in_turns(runs)
    return {f"{name}_us": one.cpu_s / NUM_TIMED * 1e6 for name, one in took.items()}


def table(records: dict[str, dict]) -> str:
    """The page's tables."""
    kinds = records.pop(KINDS, {})
    lines = [
        "| grid | loads: rows | both solve | largest difference (p.u.) | tap changers | rows | "
        "both solve | same positions | most moves | unsettled | largest difference (p.u.) |",
        "|---|" + "---:|" * 10,
    ]
    for case, one in records.items():
        loads, taps = one["loads"], one["controls"]
        lines.append(
            f"| {case} | {loads['rows']} | {loads['both']} | {loads['worst']:.1e} | "
            f"{taps['changers']} | {taps['rows']} | {taps['both']} | {taps['same']} | "
            f"{taps['moves']:g} | {taps['unsettled']} | {taps['worst']:.1e} |"
        )
    lines += ["", "| other kinds | tap changers | rows | both solve | same positions | largest "
              "difference of a position | most moves | largest difference (p.u.) |",
              "|---|" + "---:|" * 7]  # fmt: skip
    for name, one in kinds.items():
        lines.append(
            f"| {name} | {one['changers']} | {one['rows']} | {one['both']} | {one['same']} | "
            f"{one['apart']:.1e} | {one['moves']:.2g} | {one['worst']:.1e} |"
        )
    times = {case: one["times"] for case, one in records.items() if "times" in one}
    if times:
        lines += ["", "| grid, µs per row | constant power | 30 % Z, 20 % I | with controls |",
                  "|---|---:|---:|---:|"]  # fmt: skip
    for case, one in times.items():
        lines.append(
            f"| {case} | {one['constant_us']:.2f} | {one['shares_us']:.2f} | "
            f"{one['controls_us']:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure the grids named, or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--kinds", action="store_true", help="other kinds of tap changers")
    parser.add_argument("--times", action="store_true", help="measure times too")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for case in asked.cases:
        found = {
            "loads": loads_compared(case, asked.rows),
            "controls": controls_compared(with_tap_changers(case), asked.rows),
        }
        known[case] = found | ({"times": timed(case)} if asked.times else {})
        write_bytes(RESULTS, json.dumps(known, indent=1).encode())
        print(case, known[case], flush=True)
    if asked.kinds:
        known[KINDS] = kinds_compared(asked.rows)
        write_bytes(RESULTS, json.dumps(known, indent=1).encode())
        print(known[KINDS], flush=True)
    if asked.table:
        marks = "<!-- loads-and-controls:begin -->", "<!-- loads-and-controls:end -->"
        write_between(PAGE, *marks, table(known))


if __name__ == "__main__":
    main()
