"""The tables of a MATPOWER case, checked: every problem of a file is named, none left out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gridshift.arrays import Int, Real
from gridshift.errors import GridFileError
from gridshift.grid.network import Network
from gridshift.grid.readers.matlab_expression import Value
from gridshift.grid.readers.matpower_columns import COLUMN_FUNCTIONS

NEEDED = {
    "bus": "BUS_I BUS_TYPE PD QD GS BS VM VA BASE_KV VMAX VMIN",
    "gen": "GEN_BUS PG QG VG GEN_STATUS",
    "branch": "F_BUS T_BUS BR_R BR_X BR_B RATE_A TAP SHIFT BR_STATUS",
}
"""Columns that the power flow, limits and ratings need."""

MAY_BE_INFINITE = {"VMAX", "VMIN", "RATE_A"}
OTHER_EQUATIONS = ("userfcn", "bus3p", "line3p", "xfmr3p", "load3p", "gen3p", "buslink")
"""Fields of MATPOWER extensions that take part in a power flow and that `Network` cannot hold."""

_DCLINE = ["F_BUS", "T_BUS", "BR_STATUS", "PF", "PT", "QF", "QT", "VF", "VT", "PMIN", "PMAX",
           "QMINF", "QMAXF", "QMINT", "QMAXT", "LOSS0", "LOSS1"]  # fmt: skip
_FUNCTION_OF = {"bus": "idx_bus", "gen": "idx_gen", "branch": "idx_brch"}


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Columns by MATPOWER's names, in MATPOWER's units."""

    base_mva: float
    bus: Mapping[str, Real]
    gen: Mapping[str, Real]
    branch: Mapping[str, Real]
    dcline: Mapping[str, Any]
    """Ends of dclines in service as generators: row in `bus`, complex power in MVA, set-point."""

    def row_of(self, numbers: Real) -> Int:
        """Row in `bus` of each bus number."""
        return _rows(self.bus["BUS_I"], numbers)


def _rows(bus_numbers: Real, numbers: Real) -> Int:
    """Row of each number in `bus_numbers`, -1 where it is not there."""
    order = np.argsort(bus_numbers, kind="stable")
    place = np.minimum(np.searchsorted(bus_numbers[order], numbers), len(order) - 1)
    rows = order[place]
    return np.where(bus_numbers[rows] == numbers, rows, -1)


def tables_of(fields: Mapping[str, Value], source: str) -> Tables:
    """Checked tables of a case.

    Raises:
        GridFileError: every problem found.
    """
    problems = list(_shape_problems(fields))
    if problems:
        raise GridFileError(source, problems)
    columns = {
        table: {
            name: np.asarray(fields[table])[:, number - 1].copy()
            for name, number in _numbers(table).items()
        }
        for table in NEEDED
    }
    bus, gen, branch = columns["bus"], columns["gen"], columns["branch"]
    dcline = np.asarray(fields.get("dcline", np.zeros((0, len(_DCLINE)))), float)
    problems += _bus_problems(bus, gen)
    problems += _reference_problems(bus, gen, branch, dcline)
    problems += _number_problems(columns)
    problems += _branch_problems(branch, bus)
    if problems:
        raise GridFileError(source, problems)
    return Tables(
        base_mva=float(np.asarray(fields["baseMVA"])[0, 0]),
        bus=bus,
        gen=gen,
        branch=branch,
        dcline=_dcline_ends(dcline, bus["BUS_I"]),
    )


def _numbers(table: str) -> dict[str, int]:
    columns = COLUMN_FUNCTIONS[_FUNCTION_OF[table]]
    return {name: columns[name] for name in NEEDED[table].split()}


def _names(kind: str, rows: Int) -> str:
    shown = [f"{kind}:{row}" for row in rows[:5]]
    return ", ".join(shown) + (f" and {len(rows) - 5} more" if len(rows) > 5 else "")


def _shape_problems(fields: Mapping[str, Value]) -> Iterator[str]:
    if (version := fields.get("version")) != "2":
        yield f"case format version {version!r} is not supported, '2' is; is the file cut off?"
    base = fields.get("baseMVA")
    if not (isinstance(base, np.ndarray) and base.size == 1 and 0 < base[0, 0] < np.inf):
        yield "baseMVA must be one positive number"
    for table in NEEDED:
        value, columns = fields.get(table), max(_numbers(table).values())
        if not isinstance(value, np.ndarray):
            yield f"mpc.{table} is missing; is the file cut off?"
        elif len(value) == 0:
            yield f"mpc.{table} has no rows"
        elif value.shape[1] < columns:
            yield f"mpc.{table} has {value.shape[1]} columns; {columns} are needed"
    dcline = fields.get("dcline")
    if dcline is not None and not (
        isinstance(dcline, np.ndarray) and (dcline.shape[1] >= len(_DCLINE) or not len(dcline))
    ):
        yield f"mpc.dcline needs {len(_DCLINE)} columns"
    for name in OTHER_EQUATIONS:
        if any(field == name or field.startswith(f"{name}.") for field in fields):
            yield f"mpc.{name} changes the power flow and is not supported"


def _bus_problems(bus: Mapping[str, Real], gen: Mapping[str, Real]) -> Iterator[str]:
    number, kind = bus["BUS_I"], bus["BUS_TYPE"]
    odd = np.flatnonzero(~(number >= 1) | (number != np.floor(number)))
    if len(odd):
        yield f"{_names('row', odd + 1)} of mpc.bus: bus numbers must be positive integers"
    else:
        values, count = np.unique(number.astype(np.int64), return_counts=True)
        if (count > 1).any():
            yield f"{_names('bus', values[count > 1])}: number used more than once"
    bad = np.flatnonzero(~np.isin(kind, (1, 2, 3, 4)))
    if len(bad):
        yield f"{_names('bus', number[bad].astype(np.int64))}: type must be 1, 2, 3 or 4"
    reference = kind == 3
    served = np.isin(number, gen["GEN_BUS"][gen["GEN_STATUS"] > 0])
    if not reference.any():
        yield "has no slack: no bus of mpc.bus is of type 3"
    elif not (reference & served).any():
        buses = _names("bus", number[reference].astype(np.int64))
        yield f"has no slack: no generator in service at reference {buses}"


def _reference_problems(bus, gen, branch, dcline: Real) -> Iterator[str]:
    tables = (
        ("gen", "bus", gen["GEN_BUS"]),
        ("branch", "from bus", branch["F_BUS"]),
        ("branch", "to bus", branch["T_BUS"]),
        ("dcline", "from bus", dcline[:, 0]),
        ("dcline", "to bus", dcline[:, 1]),
    )
    for kind, what, numbers in tables:
        unknown = np.flatnonzero(~np.isin(numbers, bus["BUS_I"]))
        if len(unknown):
            yield f"{_names(kind, unknown + 1)}: {what} is not in mpc.bus"


def _number_problems(columns: Mapping[str, Mapping[str, Real]]) -> Iterator[str]:
    out = {
        "bus": columns["bus"]["BUS_TYPE"] == 4,
        "gen": ~(columns["gen"]["GEN_STATUS"] > 0),
        "branch": columns["branch"]["BR_STATUS"] == 0,
    }
    for table, by_name in columns.items():
        for name, values in by_name.items():
            bad = np.isnan(values) if name in MAY_BE_INFINITE else ~np.isfinite(values)
            bad &= ~out[table] | (name in ("GEN_STATUS", "BR_STATUS"))
            if bad.any():
                rows = np.flatnonzero(bad)
                numbers = columns["bus"]["BUS_I"][rows].astype(int) if table == "bus" else rows + 1
                yield f"{_names(table, numbers)}: {name} is not a finite number"
    bus, gen = columns["bus"], columns["gen"]
    bad = np.flatnonzero((bus["VM"] <= 0) & ~out["bus"])
    if len(bad):
        yield f"{_names('bus', bus['BUS_I'][bad].astype(int))}: VM must be positive"
    bad = np.flatnonzero((gen["VG"] <= 0) & ~out["gen"])
    if len(bad):
        yield f"{_names('gen', bad + 1)}: VG must be positive"


def _branch_problems(branch: Mapping[str, Real], bus: Mapping[str, Real]) -> Iterator[str]:
    status = branch["BR_STATUS"]
    odd = np.flatnonzero(~np.isin(status, (0, 1)))
    if len(odd):
        yield f"{_names('branch', odd + 1)}: BR_STATUS must be 0 or 1"
    negative = np.flatnonzero(branch["RATE_A"] < 0)
    if len(negative):
        yield f"{_names('branch', negative + 1)}: RATE_A must not be negative"
    isolated = bus["BUS_I"][bus["BUS_TYPE"] == 4]
    on = (status != 0) & ~np.isin(branch["F_BUS"], isolated) & ~np.isin(branch["T_BUS"], isolated)
    none = np.flatnonzero(on & (branch["BR_R"] == 0) & (branch["BR_X"] == 0))
    if len(none):
        yield f"{_names('branch', none + 1)}: no impedance (BR_R = BR_X = 0); merge its two buses"


def _dcline_ends(dcline: Real, bus_numbers: Real) -> dict[str, Any]:
    """Generator pairs of the dclines in service, all from ends and then all to ends.

    Source: MATPOWER, `toggle_dcline`.
    """
    rows = np.flatnonzero(dcline[:, 2] > 0)
    c = {name: dcline[rows, column] for column, name in enumerate(_DCLINE)}
    arriving = c["PF"] - (c["LOSS0"] + c["LOSS1"] * c["PF"])
    return {
        "label": [f"dcline:{row + 1}.{end}" for end in ("from", "to") for row in rows],
        "bus": np.concatenate([_rows(bus_numbers, c["F_BUS"]), _rows(bus_numbers, c["T_BUS"])]),
        "power": np.concatenate([-c["PF"] + 1j * c["QF"], arriving + 1j * c["QT"]]),
        "v": np.concatenate([c["VF"], c["VT"]]),
    }


def cut_off_problems(network: Network) -> list[str]:
    """Buses that no reference bus supplies, in words; MATPOWER wants those to be of type 4."""
    buses = network.cut_off_buses()
    if not len(buses):
        return []
    shown = ", ".join(network.bus_labels[b] for b in buses[:5])
    more = f" and {len(buses) - 5} more" if len(buses) > 5 else ""
    return [f"{shown}{more}: no path to a reference bus; give the island one, or make it type 4"]
