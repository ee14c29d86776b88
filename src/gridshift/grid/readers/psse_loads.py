"""Loads of PSS/E files that aren't of constant power, which powerio counts as if they were.

Source: PSS/E's data formats, load data: IP, IQ are MW and Mvar drawn at 1 p.u. by constant current,
YP, YQ by constant admittance, where YQ is negative for an inductive load.
"""

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

CURRENT, ADMITTANCE = ("ip", "iq"), ("yp", "yq")
FIRST = ("ibus", "loadid", "stat", "area", "zone", "pl", "ql", *CURRENT, *ADMITTANCE)
"""Fields of a record, the same in all versions."""
WITH_SYSTEM_WIDE_DATA = 34
"""Version from which a section stands before the buses."""


@dataclass(frozen=True)
class VaryingLoad:
    """A load in service with a part that depends on the voltage, MW and Mvar at 1 p.u."""

    bus: int
    name: str
    current: complex
    admittance: complex
    """As the file has it: YP + j YQ, MW and Mvar at 1 p.u., inductive if negative."""


def varying_loads(text: str, *, rawx: bool) -> list[VaryingLoad]:
    """Loads in service that aren't of constant power alone."""
    found = []
    for record in _rawx(text) if rawx else _raw(text):
        values = {name: _number(record.get(name)) for name in ("stat", *CURRENT, *ADMITTANCE)}
        current = complex(values["ip"], values["iq"])
        admittance = complex(values["yp"], values["yq"])
        if record.get("stat") not in (None, "") and not values["stat"]:
            continue
        if current or admittance:
            bus = int(_number(record["ibus"]))
            found.append(VaryingLoad(bus, f"{bus}-{record.get('loadid', '')}", current, admittance))
    return found


def _number(given: object) -> float:
    text = str(given if given is not None else "").strip().strip("'")
    return float(text) if text else 0.0


def _raw(text: str) -> Iterator[dict[str, str]]:
    lines = [line for line in text.splitlines() if not line.startswith("@!")]
    header = lines[0].split("/")[0].split(",")
    version = int(_number(header[2])) if len(header) > 2 else 0
    wanted = 2 if version >= WITH_SYSTEM_WIDE_DATA else 1
    section = 0
    for line in lines[3:]:
        if _ends(line):
            section += 1
        elif section == wanted and line.strip():
            cells = next(csv.reader([line.partition("/")[0]], quotechar="'", skipinitialspace=True))
            yield dict(zip(FIRST, (cell.strip() for cell in cells), strict=False))
        if section > wanted:
            return


def _ends(line: str) -> bool:
    """Whether a line ends a section: a 0 alone, perhaps with a comment."""
    return line.split("/")[0].split(",")[0].strip() in ("0", "Q")


def _rawx(text: str) -> Iterator[dict[str, object]]:
    table = json.loads(text).get("network", {}).get("load", {})
    fields: Sequence[str] = table.get("fields", ())
    for row in table.get("data", ()):
        yield dict(zip(fields, row, strict=False))
