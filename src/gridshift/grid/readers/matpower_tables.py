"""The tables of a MATPOWER case by MATPOWER's column names, and which of their values count."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gridshift.arrays import Bool, Int, Real
from gridshift.errors import GridFileError
from gridshift.grid.readers.matlab_expression import Value
from gridshift.grid.readers.matlab_text import shown
from gridshift.grid.readers.matpower_columns import COLUMN_FUNCTIONS

ISOLATED = 4

NEEDED = {
    "bus": "BUS_I BUS_TYPE PD QD GS BS BUS_AREA VM VA BASE_KV VMAX VMIN",
    "gen": "GEN_BUS PG QG QMAX QMIN VG GEN_STATUS",
    "branch": "F_BUS T_BUS BR_R BR_X BR_B RATE_A RATE_C TAP SHIFT BR_STATUS",
}
"""Columns that the power flow, limits and ratings need."""
OPTIONAL_OF_GEN = ("PMAX", "PMIN", "APF")
"""What a distributed slack can use, if the table is so wide."""

_DCLINE = ["F_BUS", "T_BUS", "BR_STATUS", "PF", "PT", "QF", "QT", "VF", "VT", "PMIN", "PMAX",
           "QMINF", "QMAXF", "QMINT", "QMAXT", "LOSS0", "LOSS1"]  # fmt: skip
_FUNCTION_OF = {"bus": "idx_bus", "gen": "idx_gen", "branch": "idx_brch"}

OTHER_EQUATIONS = ("userfcn", "bus3p", "line3p", "xfmr3p", "load3p", "gen3p", "buslink")
"""Fields of MATPOWER extensions that take part in a power flow and that `Network` cannot hold."""


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Columns by MATPOWER's names, in MATPOWER's units, as the file has them.

    The properties make sense of any values: what is wrong is found with their help.
    """

    base_mva: float
    bus: Mapping[str, Real]
    gen: Mapping[str, Real]
    branch: Mapping[str, Real]
    dcline: Mapping[str, Real]
    bus_names: tuple[str, ...] = ()
    """`mpc.bus_name`, if it holds texts."""

    def row_of(self, numbers: Real) -> Int:
        """Row in `bus` of each bus number, -1 where it is not there."""
        known = self.bus["BUS_I"]
        order = np.argsort(known, kind="stable")
        place = np.minimum(np.searchsorted(known[order], numbers), len(order) - 1)
        rows = order[place]
        return np.where(known[rows] == numbers, rows, -1)

    @cached_property
    def bus_on(self) -> Bool:
        """Buses that are not isolated."""
        return self.bus["BUS_TYPE"] != ISOLATED

    @cached_property
    def gen_on(self) -> Bool:
        """Generators in service at such a bus."""
        return (self.gen["GEN_STATUS"] > 0) & self._there(self.gen["GEN_BUS"])

    @cached_property
    def branch_on(self) -> Bool:
        """Branches in service without an end at an isolated bus."""
        ends = np.stack([self.row_of(self.branch[end]) for end in ("F_BUS", "T_BUS")])
        isolated = ((ends >= 0) & ~self.bus_on[ends]).any(axis=0)
        return (self.branch["BR_STATUS"] != 0) & ~isolated

    @cached_property
    def dcline_on(self) -> Bool:
        """DC lines in service."""
        return self.dcline["BR_STATUS"] > 0

    @cached_property
    def sources(self) -> "Sources":
        """Generators in service, then the from ends and the to ends of dclines.

        Source: MATPOWER, `toggle_dcline`, which makes a dcline a pair of generators.
        """
        gen = np.flatnonzero(self.gen_on)
        line = np.flatnonzero(self.dcline_on)
        ends = [line[self._there(self.dcline[end][line])] for end in ("F_BUS", "T_BUS")]
        c, sent = self.dcline, self.dcline["PF"]
        with np.errstate(all="ignore"):  # a file may hold any numbers
            arriving = sent - self.dcline_loss
        powers = (self.gen["PG"][gen], -sent[ends[0]], arriving[ends[1]])
        numbers = (self.gen["GEN_BUS"][gen], c["F_BUS"][ends[0]], c["T_BUS"][ends[1]])
        return Sources(
            labels=[f"gen:{row + 1}" for row in gen]
            + [f"dcline:{row + 1}.from" for row in ends[0]]
            + [f"dcline:{row + 1}.to" for row in ends[1]],
            bus=self.row_of(np.concatenate(numbers)),
            p=np.concatenate(powers),
            # An end of a dcline controls its voltage, so its reactive power is not used.
            q=np.concatenate([self.gen["QG"][gen], np.zeros(len(ends[0]) + len(ends[1]))]),
            v=np.concatenate([self.gen["VG"][gen], c["VF"][ends[0]], c["VT"][ends[1]]]),
            q_min=np.concatenate([self.gen["QMIN"][gen], c["QMINF"][ends[0]], c["QMINT"][ends[1]]]),
            q_max=np.concatenate([self.gen["QMAX"][gen], c["QMAXF"][ends[0]], c["QMAXT"][ends[1]]]),
            p_min=self._of_gens("PMIN", -np.inf, gen, ends),
            p_max=self._of_gens("PMAX", np.inf, gen, ends),
            weight=self._of_gens("APF", 0.0, gen, ends),
            num_gens=len(gen),
        )

    @cached_property
    def dcline_loss(self) -> Real:
        """MW that get lost between the ends of each dcline."""
        with np.errstate(all="ignore"):
            return self.dcline["LOSS0"] + self.dcline["LOSS1"] * self.dcline["PF"]

    @cached_property
    def kind(self) -> Int:
        """(rows of bus) type of each bus, as `bustypes` finds it: PQ without a generator.

        The ends of dclines are PV buses, as `toggle_dcline` makes them.
        """
        kind = np.where(np.isin(self.bus["BUS_TYPE"], (1, 2, 3, 4)), self.bus["BUS_TYPE"], 1)
        kind = kind.astype(np.int64)
        ends = self.sources.bus[self.sources.num_gens :]
        kind[ends[kind[ends] == 1]] = 2
        served = np.isin(np.arange(len(kind)), self.sources.bus)
        return np.where(served | (kind == ISOLATED), kind, 1)

    def _of_gens(self, column: str, none: float, gen: Int, ends: list[Int]) -> Real:
        """An optional column of the generators; `none` for what it doesn't give and for dclines."""
        given = self.gen[column][gen] if column in self.gen else np.full(len(gen), none)
        given = np.where(np.isnan(given), none, given)
        return np.concatenate([given, np.full(len(ends[0]) + len(ends[1]), none)])

    def _there(self, numbers: Real) -> Bool:
        rows = self.row_of(numbers)
        return (rows >= 0) & self.bus_on[rows]


@dataclass(frozen=True, kw_only=True)
class Sources:
    """What feeds power in at buses that are not isolated, MATPOWER's units."""

    labels: list[str]
    bus: Int
    """Row in the bus table."""
    p: Real
    q: Real
    v: Real
    """Set-point of the voltage magnitude, p.u."""
    q_min: Real
    q_max: Real
    p_min: Real
    """-inf where the file gives none."""
    p_max: Real
    weight: Real
    """APF, share in a distributed slack; 0 where the file gives none."""
    num_gens: int
    """So many are rows of gen, the others are ends of dclines."""

    def deciding(self) -> Bool:
        """Whose set-point counts: of several at one bus the last one."""
        last = np.zeros(len(self.bus), bool)
        last[len(self.bus) - 1 - np.unique(self.bus[::-1], return_index=True)[1]] = True
        return last


def tables_of(fields: Mapping[str, Value | tuple[str, ...]], source: str) -> Tables:
    """The tables of a case, their values not looked at.

    Raises:
        GridFileError: tables are missing, too narrow or empty; every such problem.
    """
    problems = _shape_problems(fields)
    if problems:
        raise GridFileError(source, problems)
    columns = {
        table: {
            name: np.asarray(fields[table])[:, number - 1].copy()
            for name, number in _numbers(table).items()
        }
        for table in NEEDED
    }
    for name in OPTIONAL_OF_GEN:
        number = COLUMN_FUNCTIONS["idx_gen"][name]
        if np.asarray(fields["gen"]).shape[1] >= number:
            columns["gen"][name] = np.asarray(fields["gen"])[:, number - 1].copy()
    dcline = np.asarray(fields.get("dcline", np.zeros((0, len(_DCLINE)))), float)
    if not len(dcline):
        dcline = np.zeros((0, len(_DCLINE)))
    names = fields.get("bus_name")
    return Tables(
        bus_names=names if isinstance(names, tuple) else (),
        base_mva=float(np.asarray(fields["baseMVA"])[0, 0]),
        dcline={name: dcline[:, column].copy() for column, name in enumerate(_DCLINE)},
        **columns,
    )


def _numbers(table: str) -> dict[str, int]:
    columns = COLUMN_FUNCTIONS[_FUNCTION_OF[table]]
    return {name: columns[name] for name in NEEDED[table].split()}


def _shape_problems(fields: Mapping[str, Value | tuple[str, ...]]) -> list[str]:
    found = []
    version = fields.get("version")
    if not isinstance(version, str) or version != "2":
        what = repr(version) if isinstance(version, str) else "missing or no text"
        found.append(f"case format version {shown(what)}: '2' is read; is the file cut off?")
    base = fields.get("baseMVA")
    if not (isinstance(base, np.ndarray) and base.size == 1 and 0 < base[0, 0] < np.inf):
        found.append("baseMVA must be one positive number")
    for table in NEEDED:
        value, columns = fields.get(table), max(_numbers(table).values())
        if not isinstance(value, np.ndarray):
            found.append(f"mpc.{table} is missing; is the file cut off?")
        elif len(value) == 0:
            found.append(f"mpc.{table} has no rows")
        elif value.shape[1] < columns:
            found.append(f"mpc.{table} has {value.shape[1]} columns; {columns} are needed")
    dcline = fields.get("dcline")
    if dcline is not None and not (
        isinstance(dcline, np.ndarray) and (dcline.shape[1] >= len(_DCLINE) or not len(dcline))
    ):
        found.append(f"mpc.dcline needs {len(_DCLINE)} columns")
    for name in OTHER_EQUATIONS:
        if any(field == name or field.startswith(f"{name}.") for field in fields):
            found.append(f"mpc.{name} changes the power flow and is not supported")
    return found
