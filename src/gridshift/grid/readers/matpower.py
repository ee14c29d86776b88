"""MATPOWER case files to `Network`, by MATPOWER's own rules, rows kept as rows."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gridshift.arrays import Bool, Complex, Int, Real
from gridshift.errors import GridFileError
from gridshift.grid.network import BusKind, Network
from gridshift.grid.readers.element_powers import ElementPowers, warn_of_left_out
from gridshift.grid.readers.matlab_script import run_case
from gridshift.grid.readers.matlab_text import MatlabError
from gridshift.grid.readers.matpower_checks import Tables, cut_off_problems, tables_of
from gridshift.grid.readers.placeholders import UNLIMITED_MVA, UNLIMITED_RATE_A

ISOLATED = 4


def read_matpower(path: Path) -> Network:
    """The grid that MATPOWER's `runpf` would solve for this file, without reactive limits.

    Elements are `branch:12`, the row of mpc.branch counted from 1; loads and buses carry the bus
    number, generators their row. Isolated buses (type 4) and what hangs on them are out, with a
    warning that names what draws or gives power there; dclines in service are the generator pairs
    that `toggle_dcline(mpc, 'on')` makes.

    Raises:
        GridFileError: a statement that is not understood, or tables with problems, all of them.
    """
    try:
        fields = run_case(_text(path))
    except OSError as error:
        raise GridFileError(str(path), [str(error.strerror)]) from None
    except MatlabError as error:
        raise GridFileError(str(path), [str(error)]) from None
    tables = tables_of(fields, str(path))
    network = _network(tables, path)
    problems = cut_off_problems(network)
    if problems:
        raise GridFileError(str(path), problems)
    warn_of_left_out(_left_out(tables), network.name, "their buses are isolated (type 4)")
    return network


def _text(path: Path) -> str:
    """UTF-8, or else Latin-1: what differs between the two is in comments and names only."""
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _network(tables: Tables, path: Path) -> Network:
    base, bus = tables.base_mva, tables.bus
    on = bus["BUS_TYPE"] != ISOLATED
    number = np.where(on, np.cumsum(on) - 1, -1)
    gens = _generators(tables, number)
    kind = _bus_kinds(bus["BUS_TYPE"].astype(np.int64), gens, number, tables.dcline["bus"])[on]

    controlled = kind[gens.bus] != BusKind.PQ
    v_set = np.full(len(kind), np.nan)
    v_set[gens.bus[controlled]] = gens.v[controlled]  # several at one bus: the last one counts
    fixed, drawn = np.zeros(len(kind), complex), np.zeros(len(kind))
    np.add.at(fixed, gens.bus[~controlled], gens.power[~controlled])
    np.add.at(drawn, gens.bus[~controlled], np.maximum(0, -gens.power.real[~controlled]))

    magnitude = np.where(np.isnan(v_set), bus["VM"][on], v_set)
    demand = (bus["PD"] + 1j * bus["QD"])[on] / base
    load = np.flatnonzero(demand)
    labels = bus["BUS_I"][on].astype(np.int64)
    ends, in_service, y = _branches(tables, number)
    rate = tables.branch["RATE_A"]
    none = (rate == 0) | (rate >= UNLIMITED_RATE_A)
    rating = np.where(none, np.inf, rate) / base
    return Network(
        name=path.stem,
        origin=f"MATPOWER {path.name}",
        base_mva=base,
        bus_labels=tuple(f"bus:{n}" for n in labels),
        bus_kind=kind,
        bus_kv=bus["BASE_KV"][on],
        bus_v_min=bus["VMIN"][on],
        bus_v_max=bus["VMAX"][on],
        bus_shunt=(bus["GS"] + 1j * bus["BS"])[on] / base,
        bus_fixed=fixed,
        bus_consumed=drawn,
        bus_v_set=v_set,
        v_start=magnitude * np.exp(1j * np.deg2rad(bus["VA"][on])),
        load_labels=tuple(f"load:{n}" for n in labels[load]),
        load_bus=load,
        load_power=demand[load],
        gen_labels=tuple(np.array(gens.labels, object)[controlled]),
        gen_bus=gens.bus[controlled],
        gen_p=gens.power.real[controlled],
        branch_labels=tuple(f"branch:{row}" for row in range(1, len(y) + 1)),
        branch_from=ends[0],
        branch_to=ends[1],
        branch_y=y,
        branch_in_service=in_service,
        branch_rating=np.stack([rating, rating], axis=1),
        branch_rated=~none & (rate < UNLIMITED_MVA),
        rating_kind="power",
    )


@dataclass(frozen=True)
class _Generators:
    """Generators in service at buses that are not isolated, dcline ends after the others."""

    labels: list[str]
    bus: Int
    power: Complex
    v: Real


def _generators(tables: Tables, number: Int) -> _Generators:
    gen, dcline = tables.gen, tables.dcline
    bus = number[tables.row_of(gen["GEN_BUS"])]
    on = (gen["GEN_STATUS"] > 0) & (bus >= 0)
    ends = number[dcline["bus"]]
    dc_on = ends >= 0
    return _Generators(
        labels=[f"gen:{row + 1}" for row in np.flatnonzero(on)]
        + [label for label, there in zip(dcline["label"], dc_on, strict=True) if there],
        bus=np.concatenate([bus[on], ends[dc_on]]),
        power=np.concatenate([(gen["PG"] + 1j * gen["QG"])[on], dcline["power"][dc_on]])
        / tables.base_mva,
        v=np.concatenate([gen["VG"][on], dcline["v"][dc_on]]),
    )


def _left_out(tables: Tables) -> ElementPowers:
    """What draws or gives power at isolated buses, MVA at 1 p.u."""
    bus, gen, dcline = tables.bus, tables.gen, tables.dcline
    numbers, on = bus["BUS_I"].astype(np.int64), np.flatnonzero(gen["GEN_STATUS"] > 0)
    rows = np.arange(len(numbers))
    at = np.concatenate([rows, rows, tables.row_of(gen["GEN_BUS"][on]), dcline["bus"]])
    power = [
        -bus["PD"] - 1j * bus["QD"],
        -bus["GS"] + 1j * bus["BS"],
        (gen["PG"] + 1j * gen["QG"])[on],
        dcline["power"],
    ]
    found = ElementPowers(
        labels=[f"{kind}:{n}" for kind in ("load", "shunt") for n in numbers]
        + [f"gen:{row + 1}" for row in on]
        + list(dcline["label"]),
        bus=np.where(bus["BUS_TYPE"][at] == ISOLATED, -1, at),
        at=[f"bus:{n}" for n in numbers[at]],
        power=np.concatenate(power),
    )
    generator = np.arange(len(at)) >= 2 * len(rows)  # holds a voltage even without power
    return found.only((found.bus < 0) & ((found.power != 0) | generator))


def _bus_kinds(kind: Int, gens: _Generators, number: Int, dcline_rows: Int) -> Int:
    """(rows of mpc.bus) MATPOWER's bustypes: no generator in service makes any bus a PQ bus."""
    kind = kind.copy()
    ends = dcline_rows[np.isin(kind[dcline_rows], (BusKind.PQ, BusKind.PV))]
    kind[ends] = BusKind.PV  # as toggle_dcline does
    served = np.isin(number, gens.bus)
    return np.where(served | (kind == ISOLATED), kind, BusKind.PQ)


def _branches(tables: Tables, number: Int) -> tuple[tuple[Int, Int], Bool, Complex]:
    """Ends, service and two-ports of every row of mpc.branch.

    A row at an isolated bus is out of service and has no admittance; it stands between the
    end that is there, or else the first bus, and itself.

    Source: MATPOWER manual, section 3.2, equations 3.2-3.3; `makeYbus`.
    """
    branch = tables.branch
    start = number[tables.row_of(branch["F_BUS"])]
    end = number[tables.row_of(branch["T_BUS"])]
    there = (start >= 0) & (end >= 0)
    in_service = (branch["BR_STATUS"] != 0) & there
    start, end = np.where(start < 0, end, start), np.where(end < 0, start, end)
    impedance = branch["BR_R"] + 1j * branch["BR_X"]
    usable = there & (impedance != 0)
    series = 1 / np.where(usable, impedance, 1)
    ratio = np.where(branch["TAP"] == 0, 1, branch["TAP"])
    tap = ratio * np.exp(1j * np.deg2rad(branch["SHIFT"]))
    ytt = series + 0.5j * branch["BR_B"]
    y = np.stack([ytt / ratio**2, -series / tap.conj(), -series / tap, ytt], 1).astype(complex)
    y[~usable] = 0
    return (np.maximum(start, 0), np.maximum(end, 0)), in_service, y
