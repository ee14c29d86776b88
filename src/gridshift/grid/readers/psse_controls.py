"""Tap changers, phase shifters and switched shunts of PSS/E files as controls.

Source: PSS/E's data formats. Transformers, by powerio: COD 1 with CONT, VMA, VMI, RMA, RMI and NTP
holds a voltage in steps, COD 3 an active flow with any angle from RMI to RMA. Switched shunts, from
the text, as powerio has no blocks: MODSW 1 with VSWHI, VSWLO, SWREM and N, B holds a voltage.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gridshift.arrays import Complex
from gridshift.grid.controls import Continuous, Control
from gridshift.grid.readers.psse_loads import raw_section, raw_version, rawx_table

SWITCHED_SHUNTS = 16
"""Section of RAW 32 and 33, from 0 for the buses."""
READ_VERSIONS = (32, 33)
"""Of RAW, whose switched shunts are read; RAWX has names for their fields."""
MOST_POSITIONS = 1000
SAME = 1e-6
"""Difference of a susceptance from one of the steps that counts as none, relative to all steps."""


class Place(NamedTuple):
    """Where a branch of the file is in the grid that is read."""

    branch: int
    label: str
    two_port: Complex
    """(4,)"""


class Read(NamedTuple):
    """What is followed, and what isn't for a reason of its own."""

    controls: list[Control]
    followed: set[str]
    """Names of what is followed, as `unfollowed_controls` has them."""
    notes: list[str]


def psse_controls(
    branches: Sequence[Mapping[str, Any]], places: Mapping[str, Place],
    shunts: Sequence["SwitchedShunt"], rows: Mapping[int, int], held: set[int], base_mva: float,
) -> Read:  # fmt: skip
    """The controls of a file.

    Args:
        branches: as powerio has them.
        places: of branches, by powerio's uid.
        shunts: of `switched_shunts`.
        rows: of buses, by their numbers.
        held: rows of buses whose voltage a generator holds.
        base_mva: of the grid.
    """
    read = Read([], set(), [])
    for branch in branches:
        rule, place = branch.get("control"), places.get(str(branch.get("uid")))
        if not (rule and rule["enabled"] and branch["in_service"] and place):
            continue
        if rule["mode"] not in ("voltage", "active_flow"):
            continue
        made = _transformer(branch, place, rows, held, base_mva)
        _add(read, made, place.label, str(branch.get("name") or branch.get("uid")))
    for one in shunts:
        if one.mode == 1 and one.on and one.bus in rows:
            made = _shunt(one, rows, held, base_mva)
            _add(read, made, f"bus {one.bus}", f"bus {one.bus}")
    return read


def _add(read: Read, made: Control | str, label: str, name: str) -> None:
    if isinstance(made, str):
        read.notes.append(f"{label}: {made}")
    else:
        read.controls.append(made)
    if made:
        read.followed.add(name)


def _transformer(
    branch: Mapping[str, Any], place: Place, rows: Mapping[int, int], held: set[int], base: float
) -> Control | str:
    """A tap changer or a phase shifter, or why it isn't followed; empty if others say it."""
    rule = branch["control"]
    least, most, low, high = (
        float(rule[name]) for name in ("tap_min", "tap_max", "band_min", "band_max")
    )
    if least > most:
        return "RMI is above RMA, so that no position is allowed; swap them"
    if low > high:
        return "VMI is above VMA, so that no value is allowed; swap them"
    y = np.ascontiguousarray(place.two_port, complex).view(float)
    if rule["mode"] == "active_flow":
        start = float(branch["shift"])
        if not least <= start <= most:
            return f"its angle of {start:g} degrees is not between RMI and RMA; it is not moved"
        return Control(
            label=place.label, bus=-1, low=low / base, high=high / base, start=start, raises=-1,
            first=0.0, by=1.0, admittance=(tuple(y.tolist()),), branches=(place.branch,),
            continuous=Continuous(least, most, 0),
        )  # fmt: skip
    watched, start = rule["controlled_bus"], float(branch["tap"])
    if watched not in rows:
        return ""
    if rows[watched] in held:
        return f"a generator holds the voltage of bus {watched}, so it is not moved"
    steps = int(rule["tap_position_count"] or 0) - 1
    if not 1 <= steps < MOST_POSITIONS or most == least:
        return "it has no steps (NTP, RMA, RMI), so it is not moved"
    if not least * (1 - SAME) <= start <= most * (1 + SAME):
        return f"its ratio of {start:g} is not between RMI and RMA, so it is not moved"
    step = (most - least) / steps
    below, above = (int((room + SAME * step) / step) for room in (start - least, most - start))
    ratios = np.asarray(start + step * np.arange(-below, above + 1), np.float64)
    at_start = Control(
        label=place.label, bus=rows[watched], low=low, high=high, start=start,
        raises=1 if watched == branch["from_id"] or (rule["controlled_bus_on_winding_side"] and
        watched != branch["to_id"]) else -1,
        first=float(ratios[0]), by=step, admittance=(tuple(y.tolist()),), branches=(place.branch,),
        continuous=Continuous(least, most, 0, neutral=1.0, step_real=1.0),  # turns are the ratio
    )  # fmt: skip
    parts = np.ascontiguousarray(at_start.two_ports(ratios)[:, 0]).view(float)
    return at_start._replace(
        start=float(below), continuous=None, admittance=tuple(map(tuple, parts.tolist()))
    )


class SwitchedShunt(NamedTuple):
    """A record of a switched shunt."""

    bus: int
    mode: int
    """MODSW: 0 fixed, 1 in steps, 2 continuous, 3 and more with other targets."""
    on: bool
    low: float
    high: float
    remote: int
    """Bus whose voltage it watches; 0 for its own."""
    now: float
    """BINIT, Mvar at 1 p.u."""
    blocks: tuple[tuple[int, float], ...]
    """Steps and Mvar of each."""
    in_order: bool
    """ADJM 0: blocks are switched in the order of the record."""


def switched_shunts(text: str, *, rawx: bool) -> list[SwitchedShunt]:
    """Of a file, as far as its version is read."""
    found = []
    for record in _rawx(text) if rawx else _raw(text):
        try:
            found.append(_of_record(record))
        except (KeyError, TypeError, ValueError):  # then it is told as what it is: not followed
            continue
    return found


def _of_record(record: Mapping[str, Any]) -> SwitchedShunt:
    blocks = []
    for k in range(1, 9):
        number, size = record.get(f"n{k}"), record.get(f"b{k}")
        if number in (None, "") or size in (None, "") or record.get(f"s{k}", 1) in (0, "0"):
            break
        if int(number) and float(size):
            blocks.append((int(number), float(size)))
    return SwitchedShunt(
        bus=int(record["ibus"]), mode=int(record["modsw"]), on=int(record["stat"] or 0) != 0,
        low=float(record["vswlo"]), high=float(record["vswhi"]),
        remote=abs(int(record["swreg"] or 0)), now=float(record["binit"] or 0),
        blocks=tuple(blocks), in_order=int(record["adjm"] or 0) == 0,
    )  # fmt: skip


_RAW = ("ibus", "modsw", "adjm", "stat", "vswhi", "vswlo", "swreg", "rmpct", "rmidnt", "binit",
        *(f"{name}{k}" for k in range(1, 9) for name in "nb"))  # fmt: skip


def _raw(text: str) -> Iterator[dict[str, Any]]:
    if raw_version(text) in READ_VERSIONS:
        for cells in raw_section(text, SWITCHED_SHUNTS):
            yield dict(zip(_RAW, cells, strict=False))


def _rawx(text: str) -> Iterator[dict[str, Any]]:
    return rawx_table(text, "swshunt")


def _shunt(
    one: SwitchedShunt, rows: Mapping[int, int], held: set[int], base_mva: float
) -> Control | str:
    """A switched shunt, or why it isn't followed."""
    watched = one.remote or one.bus
    if watched not in rows:
        return ""
    if rows[watched] in held:
        return f"a generator holds the voltage of bus {watched}, so its shunt is not switched"
    if one.low > one.high:
        return "VSWLO is above VSWHI, so that no value is allowed; swap them"
    if not one.in_order and len({size for _, size in one.blocks}) > 1:
        return "a shunt with ADJM 1 and blocks of several sizes is not switched"
    steps = [size for number, size in one.blocks for _ in range(number)]
    down = np.cumsum([0.0, *(b for b in steps if b < 0)])
    up = np.cumsum([0.0, *(b for b in steps if b > 0)])
    mvar = np.concatenate([down[:0:-1], up])
    apart = np.abs(mvar - one.now)
    start = int(apart.argmin())
    if len(mvar) < 2 or len(mvar) > MOST_POSITIONS:
        return "a switched shunt without steps (N, B) is not switched"
    if apart[start] > SAME * np.abs(steps).sum():
        return f"BINIT {one.now:g} is none of the steps of its shunt, so it is not switched"
    return Control(
        label=f"shunt:{one.bus}", bus=rows[watched], low=one.low, high=one.high, start=float(start),
        raises=1, first=1.0 - len(down), by=1.0,
        admittance=tuple((0.0, float(b) / base_mva) for b in mvar), shunt_bus=rows[one.bus],
    )  # fmt: skip
