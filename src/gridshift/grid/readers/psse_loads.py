"""Loads of PSS/E files that aren't of constant power, which powerio counts as if they were.

Source: PSS/E's data formats, load data: IP, IQ are MW and Mvar drawn at 1 p.u. by constant current,
YP, YQ by constant admittance, where YQ is negative for an inductive load.
"""

import csv
import json
from collections import Counter
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
    number: int
    """1 for the first load of the bus in the file, in service or not."""
    name: str
    current: complex
    admittance: complex
    """As it is drawn: YP - j YQ."""


def varying_loads(text: str, *, rawx: bool) -> list[VaryingLoad]:
    """Loads in service that aren't of constant power alone."""
    found, at_bus = [], Counter[int]()
    for record in _rawx(text) if rawx else _raw(text):
        values = {name: _number(record.get(name)) for name in ("stat", *CURRENT, *ADMITTANCE)}
        current = complex(values["ip"], values["iq"])
        admittance = complex(values["yp"], -values["yq"])
        bus = int(_number(record["ibus"]))
        at_bus[bus] += 1
        if record.get("stat") not in (None, "") and not values["stat"]:
            continue
        if current or admittance:
            name = f"{bus}-{record.get('loadid', '')}"
            found.append(VaryingLoad(bus, at_bus[bus], name, current, admittance))
    return found


def _number(given: object) -> float:
    text = str(given if given is not None else "").strip().strip("'")
    return float(text) if text else 0.0


def _raw(text: str) -> Iterator[dict[str, str]]:
    for cells in raw_section(text, 2 if raw_version(text) >= WITH_SYSTEM_WIDE_DATA else 1):
        yield dict(zip(FIRST, cells, strict=False))


def raw_version(text: str) -> int:
    """The version that the first line of a RAW file names; 0 if it doesn't."""
    header = _raw_lines(text)[0].split("/")[0].split(",")
    return int(_number(header[2])) if len(header) > 2 else 0


def raw_section(text: str, wanted: int) -> Iterator[list[str]]:
    """The records of one section of a RAW file, from 0 for the first one."""
    section = 0
    for line in _raw_lines(text)[3:]:
        if _ends(line):
            section += 1
        elif section == wanted and line.strip():
            cells = next(csv.reader([line.partition("/")[0]], quotechar="'", skipinitialspace=True))
            yield [cell.strip() for cell in cells]
        if section > wanted:
            return


def _raw_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("@!")] or [""]


def _ends(line: str) -> bool:
    """Whether a line ends a section: a 0 alone, perhaps with a comment."""
    return line.split("/")[0].split(",")[0].strip() in ("0", "Q")


def _rawx(text: str) -> Iterator[dict[str, object]]:
    return rawx_table(text, "load")


def rawx_table(text: str, name: str) -> Iterator[dict[str, object]]:
    """The rows of a table of a RAWX file; none where it has no such table."""
    table = json.loads(text).get("network", {}).get(name, {})
    fields: Sequence[str] = table.get("fields", ())
    for row in table.get("data", ()):
        yield dict(zip(fields, row, strict=False))
