"""Certified predictions of all single-line outages of case118, beside solving everything.

    python -m benchmarks.certify [--rows 10000] [--tol 1e-6]   # resumes results/certify.json

For each outage that keeps the grid connected and each way to predict: time to predict, check,
repair and solve; rows of each kind; the largest mismatch returned. In the same process and turn:
all rows solved exactly by the engine, at 1e-8 and at the tolerance. On a sample of outages:
lightsim2grid's best mode, and pandapower's own equations on sampled rows. One thread.
"""

import argparse
import copy
import json
import time
from functools import cache
from pathlib import Path

import numpy as np
import torch
from benchmarks.page import write_between

from gridshift.adapt.cache import cached_surrogate
from gridshift.adapt.certificate import certify
from gridshift.adapt.datasets import generate
from gridshift.adapt.methods import METHODS, Context
from gridshift.adapt.surrogate import SurrogateConfig
from gridshift.grid.contingency import cut_off_buses, enumerate_outages, outage_text
from gridshift.grid.layout import Layout
from gridshift.grid.powerflow import solve
from gridshift.grid.readers import read_grid
from gridshift.grid.readers.pandapower_source import builtin_net, quiet_pandapower
from gridshift.peers.roster import PEERS, Case
from gridshift.study.provenance import about_this_run
from gridshift.trial.cases import draw

RESULTS = Path(__file__).parent / "results" / "certify.json"
PAGE = Path(__file__).parent.parent / "docs" / "certificates.md"
BEGIN, END = "<!-- certify:begin -->", "<!-- certify:end -->"
WAYS = ("icw", "tangent2")
"""Of `METHODS`: the paper's, and the most accurate one that needs no training here."""
EVERY_LIGHTSIM, LIGHTSIM_ROWS = 28, 1000
SAMPLED_ROWS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grid", default="case118")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--table", action="store_true", help="rewrite the table in the docs")
    given = parser.parse_args()
    if given.table:
        write_table(json.loads(RESULTS.read_text()))
        return
    torch.set_num_threads(1)
    base = read_grid(given.grid)
    key = {"grid": given.grid, "rows": given.rows, "tol": given.tol}
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if found.get("task") != key:
        found = {"task": key, "outages": {}}
    ways = {name: METHODS[name] for name in WAYS}
    surrogates = {
        name: cached_surrogate(base, SurrogateConfig(transform=m.transform or "zca"))
        for name, m in ways.items()
    }
    outages = enumerate_outages(base, "lines")
    whole = [
        o for o, cut in zip(outages, cut_off_buses(base, outages), strict=True) if not len(cut)
    ]
    for number, outage in enumerate(whole):
        text = outage_text(outage)
        if text in found["outages"]:
            continue
        began = time.perf_counter()
        row = one_outage(base.without(outage), ways, surrogates, given.rows, given.tol)
        if number % EVERY_LIGHTSIM == 0:
            row["lightsim2grid"] = lightsim(given.grid, outage, given.tol)
        found["outages"][text] = row
        found["summary"] = summary(found["outages"], len(whole), given.rows)
        found["about"] = about_this_run(base, None, threads={"blas": 1, "torch": 1})
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
        print(number, text, f"{time.perf_counter() - began:.1f} s", flush=True)
    print(json.dumps(found["summary"], indent=1))


def one_outage(network, ways, surrogates, num_rows, tol):
    loads = draw(network, "certify", num_rows, spread=0.2, regime="drawn", seed=0)
    layout = Layout.of(network)
    x = layout.pack_inputs(network, loads)
    solve(network, loads.rows(slice(64)))
    times = {}
    for name, tolerance in (("exact_1e-8_s", 1e-8), ("exact_tol_s", tol)):
        began = time.perf_counter()
        solution = solve(network, loads, tol=tolerance)
        times[name] = time.perf_counter() - began
    row = times | {"exact_solved": int(solution.solved.sum()), "ways": {}}
    voltages = {}
    for name, method in ways.items():
        began = time.perf_counter()
        context = Context.empty(network, surrogates[name])
        if "solved cases" in method.needs:
            cases = draw(network, "context", 400, spread=0.2, regime="mixed", seed=0)
            context = Context.of(generate(network, cases))
        data_s = time.perf_counter() - began
        began = time.perf_counter()
        predictor = method.fit(surrogates[name], context)
        fit_s = time.perf_counter() - began
        predictor.predict(x[:64])
        began = time.perf_counter()
        y = predictor.predict(x)
        predict_s = time.perf_counter() - began
        kept = certify(network, layout, x, y, tol=tol)
        given = kept.rows.given
        row["ways"][name] = {
            "data_s": data_s, "fit_s": fit_s, "predict_s": predict_s,
            **{f"{part}_s": seconds for part, seconds in kept.rows.seconds.items()},
            **kept.counts(), "worst_mismatch": kept.worst_mismatch,
            "given_median": float(np.median(given.mismatch)),
            "given_max": float(given.mismatch.max()),
        }  # fmt: skip
        voltages[name] = kept.voltage
    sample = np.random.default_rng(0).choice(num_rows, SAMPLED_ROWS, replace=False)
    for name, worst in pandapowers_mismatch(network, loads, voltages, sample).items():
        row["ways"][name]["pandapower"] = worst
    return row


@cache
def net_of(grid):
    return builtin_net(grid)


def pandapowers_mismatch(network, loads, voltages, sample):
    """For each way, the largest mismatch of sampled rows by pandapower's own equations."""
    import pandapower
    from pandapower.pypower.makeSbus import makeSbus

    net = copy.deepcopy(net_of(network.name))
    for label in network.outaged:
        kind, _, index = label.partition(":")
        net[kind].loc[int(index), "in_service"] = False
    assert list(network.load_labels) == [f"load:{i}" for i in net.load.index]
    worst = dict.fromkeys(voltages, 0.0)
    for row in sample:
        net.load["p_mw"] = loads.load_p[row] * network.base_mva
        net.load["q_mvar"] = loads.load_q[row] * network.base_mva
        with quiet_pandapower():
            pandapower.runpp(net, calculate_voltage_angles=True, numba=False, trafo_model="t")
        internal, lookup = net._ppc["internal"], net._pd2ppc_lookups["bus"]
        rows = [lookup[int(label.removeprefix("bus:"))] for label in network.bus_labels]
        wanted = makeSbus(internal["baseMVA"], internal["bus"], internal["gen"])
        for name, voltage in voltages.items():
            v = np.empty(network.num_buses, complex)
            v[rows] = voltage[row]
            off = v * np.conj(internal["Ybus"] @ v) - wanted
            off[internal["ref"]] = 0
            off[internal["pv"]] = off[internal["pv"]].real
            worst[name] = max(worst[name], float(np.abs([off.real, off.imag]).max()))
    return worst


def lightsim(grid, outage, tol):
    """Microseconds per row of the fastest of lightsim2grid's modes that solves all rows."""
    case = Case.of(grid, outage)
    loads = draw(case.network, "certify", LIGHTSIM_ROWS, spread=0.2, regime="drawn", seed=0)
    best = {}
    for tolerance in (1e-8, tol):
        for peer in PEERS:
            if peer.module != "lightsim2grid" or not peer.available(case):
                continue
            run = peer.prepare(case, loads.load_p, loads.load_q, tolerance)
            times = []
            for _ in range(3):
                began = time.perf_counter()
                solved = run()
                times.append(time.perf_counter() - began)
            us = min(times) / LIGHTSIM_ROWS * 1e6
            key = f"us_per_row_{tolerance:g}"
            if solved.converged.all() and us < best.get(key, (np.inf, ""))[0]:
                best[key] = (us, peer.name)
    return best


def summary(outages, num_outages, num_rows):
    rows = list(outages.values())

    def total(*path):
        values = rows
        for part in path:
            values = [value[part] for value in values]
        return float(np.sum(values))

    peers = [row["lightsim2grid"] for row in rows if "lightsim2grid" in row]
    scale = num_outages * num_rows * 1e-6
    return {
        "num_outages": len(rows), "of": num_outages, "rows_each": num_rows,
        "exact_1e-8_s": total("exact_1e-8_s"), "exact_tol_s": total("exact_tol_s"),
        "lightsim2grid_extrapolated_s": {
            key: float(np.mean([peer[key][0] for peer in peers if key in peer])) * scale
            for key in (peers[0] if peers else {})
        },
        "lightsim2grid_sample": f"{len(peers)} outages x {LIGHTSIM_ROWS} rows",
        "ways": {
            name: {
                **{
                    key: total("ways", name, key)
                    for key in (
                        "data_s", "fit_s", "predict_s", "check_s", "repair_s", "solve_s",
                        "predicted", "repaired", "solved", "marked",
                    )
                },
                "total_s": sum(
                    total("ways", name, f"{part}_s")
                    for part in ("data", "fit", "predict", "check", "repair", "solve")
                ),
                "worst_mismatch": max(row["ways"][name]["worst_mismatch"] for row in rows),
                "pandapower_worst": max(row["ways"][name]["pandapower"] for row in rows),
                "pandapower_rows": SAMPLED_ROWS * len(rows),
            }
            for name in rows[0]["ways"]
        },
    }  # fmt: skip


def write_table(found) -> None:
    """The table between the marks of docs/certificates.md."""
    task, totals = found["task"], found["summary"]
    rows = totals["num_outages"] * task["rows"]

    def line(*cells):
        return "| " + " | ".join(cells) + " |"

    lines = [
        f"{totals['num_outages']} outages × {task['rows']:,} rows, tolerance {task['tol']:g}:",
        "",
        line("way", "context and fit", "predict", "check", "repair", "solve", "total",
             "kept, repaired, solved, marked", "worst mismatch", "by pandapower"),
        "|" + "---|" * 10,
    ]  # fmt: skip
    for name, way in totals["ways"].items():
        shares = [way[kind] / rows for kind in ("predicted", "repaired", "solved", "marked")]
        lines.append(
            line(
                name, f"{way['data_s'] + way['fit_s']:.1f} s",
                *(f"{way[f'{part}_s']:.2f} s" for part in ("predict", "check", "repair", "solve")),
                f"**{way['total_s']:.1f} s**", ", ".join(f"{share:.1%}" for share in shares),
                f"{way['worst_mismatch']:.1e}",
                f"{way['pandapower_worst']:.1e} ({way['pandapower_rows']} rows)",
            )
        )  # fmt: skip
    for name, key in (
        (f"exact to {task['tol']:g}", "exact_tol_s"),
        ("exact to 1e-8", "exact_1e-8_s"),
    ):
        lines.append(line(name, *["–"] * 5, f"**{totals[key]:.1f} s**", *["–"] * 3))
    for key, seconds in totals["lightsim2grid_extrapolated_s"].items():
        name = f"lightsim2grid to {key.removeprefix('us_per_row_')}, extrapolated from "
        name += totals["lightsim2grid_sample"]
        lines.append(line(name, *["–"] * 5, f"**{seconds:.0f} s**", *["–"] * 3))
    write_between(PAGE, BEGIN, END, "\n".join(lines))


if __name__ == "__main__":
    main()
