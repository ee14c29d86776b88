"""MATPOWER case files to `Network`, by MATPOWER's own rules, rows kept as rows."""

from pathlib import Path

import numpy as np

from gridshift.arrays import Complex, Int
from gridshift.errors import GridFileError, StorageError
from gridshift.grid.names import own_name
from gridshift.grid.network import BusKind, Network
from gridshift.grid.readers.element_powers import ElementPowers, warn_of_left_out
from gridshift.grid.readers.matlab_script import run_case
from gridshift.grid.readers.matlab_text import MatlabError
from gridshift.grid.readers.matpower_checks import (
    network_problems,
    problems_of,
    warn_of_surprises,
)
from gridshift.grid.readers.matpower_tables import Tables, tables_of
from gridshift.grid.readers.placeholders import UNLIMITED_MVA, UNLIMITED_RATE_A
from gridshift.text_file import text_of


def read_matpower(path: Path, content: bytes) -> Network:
    """The grid that MATPOWER's `runpf` would solve for this file; reactive limits are read as well.

    Elements are `branch:12`, the row of mpc.branch counted from 1; loads and buses carry the bus
    number, generators their row. Isolated buses (type 4) and what hangs on them are out, with a
    warning that names what draws or gives power there; dclines in service are the generator pairs
    that `toggle_dcline(mpc, 'on')` makes.

    Raises:
        GridFileError: a statement that is not understood, or tables with problems, all of them.

    Warns:
        GridshiftWarning: a dcline that delivers more than it takes, a set-point that is not used.
    """
    try:
        tables = tables_of(run_case(text_of(content)), str(path))
    except (MatlabError, StorageError) as error:
        raise GridFileError(str(path), [str(error)]) from None
    problems = problems_of(tables)
    if problems:
        raise GridFileError(str(path), problems)
    with np.errstate(all="ignore"):  # what overflows is found in the network
        network = _network(tables, path)
    problems = network_problems(network)
    if problems:
        raise GridFileError(str(path), problems)
    warn_of_surprises(tables, path.name, stacklevel=3)
    warn_of_left_out(_left_out(tables), network.name, "their buses are isolated (type 4)")
    return network


def _network(tables: Tables, path: Path) -> Network:
    base, bus = tables.base_mva, tables.bus
    on = tables.bus_on
    number = np.where(on, np.cumsum(on) - 1, -1)
    kind, sources = tables.kind[on], tables.sources
    at = number[sources.bus]

    controlled = kind[at] != BusKind.PQ
    v_set = np.full(len(kind), np.nan)
    v_set[at[controlled]] = sources.v[controlled]  # several at one bus: the last one counts
    # What the slack is scheduled to give is not used, so it may be missing.
    active = np.where(np.isfinite(sources.p), sources.p, 0)
    power = (active + 1j * np.where(controlled, 0, sources.q)) / base
    q_min, q_max = (q[controlled] / base for q in (sources.q_min, sources.q_max))
    fixed = np.zeros(len(kind), complex)
    np.add.at(fixed, at[~controlled], power[~controlled])
    drawn = np.zeros(len(kind))
    np.add.at(drawn, at[~controlled], np.maximum(0, -power.real[~controlled]))

    magnitude = np.where(np.isnan(v_set), bus["VM"][on], v_set)
    demand = (bus["PD"] + 1j * bus["QD"])[on] / base
    load = np.flatnonzero(demand)
    labels = bus["BUS_I"][on].astype(np.int64)
    ends, y = _branches(tables, number)
    rate, kv = tables.branch["RATE_A"], bus["BASE_KV"][on]
    none = ~(rate > 0) | (rate >= UNLIMITED_RATE_A)
    rating = np.where(none, np.inf, rate) / base
    short = tables.branch["RATE_C"]
    given = ~none & (short > 0) & (short < UNLIMITED_RATE_A)
    emergency = np.where(given, np.maximum(1, short / np.where(none, 1, rate)), np.inf)
    return Network(
        name=path.stem,
        origin=f"MATPOWER {path.name}",
        base_mva=base,
        bus_labels=tuple(f"bus:{n}" for n in labels),
        bus_kind=kind,
        bus_kv=np.where((kv > 0) & np.isfinite(kv), kv, 0),
        bus_v_min=np.where(np.isfinite(bus["VMIN"]), bus["VMIN"], np.nan)[on],
        bus_v_max=np.where(np.isfinite(bus["VMAX"]), bus["VMAX"], np.nan)[on],
        bus_shunt=(bus["GS"] + 1j * bus["BS"])[on] / base,
        bus_fixed=fixed,
        bus_consumed=drawn,
        bus_v_set=v_set,
        v_start=magnitude * np.exp(1j * np.deg2rad(bus["VA"][on])),
        load_labels=tuple(f"load:{n}" for n in labels[load]),
        load_bus=load,
        load_power=demand[load],
        gen_labels=tuple(np.array(sources.labels, object)[controlled]),
        gen_bus=at[controlled],
        gen_p=power.real[controlled],
        gen_q_min=np.where(np.isnan(q_min), -np.inf, q_min),
        gen_q_max=np.where(np.isnan(q_max), np.inf, q_max),
        gen_p_min=sources.p_min[controlled] / base,
        gen_p_max=sources.p_max[controlled] / base,
        gen_weight=sources.weight[controlled],
        branch_labels=tuple(f"branch:{row}" for row in range(1, len(y) + 1)),
        branch_from=ends[0],
        branch_to=ends[1],
        branch_y=y,
        branch_in_service=tables.branch_on,
        branch_rating=np.stack([rating, rating], axis=1),
        branch_rated=~none & (rate < UNLIMITED_MVA),
        rating_kind="power",
        branch_emergency=emergency,
        names=_names(tables),
        areas={
            f"bus:{n}": f"{area:g}"
            for n, area in zip(labels, bus["BUS_AREA"][on], strict=True)
            if np.isfinite(area)
        },
    )


def _names(tables: Tables) -> dict[str, str]:
    """Names of buses; MATPOWER knows no others, and no positions."""
    labels = [f"bus:{n}" for n in tables.bus["BUS_I"].astype(np.int64)[tables.bus_on]]
    given = tables.bus_names
    if len(given) != len(tables.bus_on):
        return {}
    pairs = zip(labels, (given[row] for row in np.flatnonzero(tables.bus_on)), strict=True)
    return {label: name for label, text in pairs if (name := own_name(text, label))}


def _left_out(tables: Tables) -> ElementPowers:
    """What draws or gives power at isolated buses, MVA at 1 p.u."""
    bus, gen, line = tables.bus, tables.gen, tables.dcline
    numbers, rows = bus["BUS_I"].astype(np.int64), np.arange(len(bus["BUS_I"]))
    on, dc = np.flatnonzero(gen["GEN_STATUS"] > 0), np.flatnonzero(tables.dcline_on)
    ends = [tables.row_of(line[end][dc]) for end in ("F_BUS", "T_BUS")]
    at = np.concatenate([rows, rows, tables.row_of(gen["GEN_BUS"][on]), *ends])
    power = [
        -bus["PD"] - 1j * bus["QD"],
        -bus["GS"] + 1j * bus["BS"],
        (gen["PG"] + 1j * gen["QG"])[on],
        -line["PF"][dc],
        (line["PF"] - tables.dcline_loss)[dc],
    ]
    found = ElementPowers(
        labels=[f"{kind}:{n}" for kind in ("load", "shunt") for n in numbers]
        + [f"gen:{row + 1}" for row in on]
        + [f"dcline:{row + 1}.{end}" for end in ("from", "to") for row in dc],
        bus=np.where(tables.bus_on[at], at, -1),
        at=[f"bus:{n}" for n in numbers[at]],
        power=np.concatenate(power),
    )
    generator = np.arange(len(at)) >= 2 * len(rows)  # holds a voltage even without power
    return found.only((found.bus < 0) & ((found.power != 0) | generator))


def _branches(tables: Tables, number: Int) -> tuple[tuple[Int, Int], Complex]:
    """Ends and two-ports of every row of mpc.branch.

    A row at an isolated bus has no admittance; it stands between the end that is there, or else
    the first bus, and itself. So has one out of service whose numbers give none.

    Source: MATPOWER manual, section 3.2, equations 3.2-3.3; `makeYbus`.
    """
    branch = tables.branch
    start = number[tables.row_of(branch["F_BUS"])]
    end = number[tables.row_of(branch["T_BUS"])]
    there = (start >= 0) & (end >= 0)
    start, end = np.where(start < 0, end, start), np.where(end < 0, start, end)
    with np.errstate(all="ignore"):
        series = 1 / (branch["BR_R"] + 1j * branch["BR_X"])
        ratio = np.where(branch["TAP"] == 0, 1, branch["TAP"])
        tap = ratio * np.exp(1j * np.deg2rad(branch["SHIFT"]))
        ytt = series + 0.5j * branch["BR_B"]
        y = np.stack([ytt / ratio**2, -series / tap.conj(), -series / tap, ytt], 1)
    y[~there | (~tables.branch_on & ~np.isfinite(y).all(axis=1))] = 0
    return (np.maximum(start, 0), np.maximum(end, 0)), y
