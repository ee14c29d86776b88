"""What files of other programs say of controls and of loads that isn't followed, for notes.

Sources: PSS/E's data formats (switched shunts, MODSW); the IIDM serialisation of powsybl; the UCTE
data exchange format, ##R; the IEEE common data format, branch type; PSLF's and PowerWorld's tables
of shunts. What tap changers control is told by powerio in every format.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from gridshift.arguments import some_of
from gridshift.grid.readers.psse_controls import SWITCHED_SHUNTS
from gridshift.grid.readers.psse_loads import (
    WITH_SYSTEM_WIDE_DATA,
    raw_section,
    raw_version,
    rawx_table,
)

LOAD, TAP, SHUNT = "load", "tap changer", "shunt"
SAYS = {
    LOAD: "the load depends on the voltage in the file; it counts as constant power",
    TAP: "the tap changer regulates in the file; it stays where it is",
    SHUNT: "the shunt is switched to hold a voltage in the file; it stays where it is",
}
_IIDM = re.compile(
    r"<(?:\w+:)?(load|shunt|twoWindingsTransformer|threeWindingsTransformer|zipModel"
    r"|exponentialModel|\w*[rR]atioTapChanger\d?|\w*[pP]haseTapChanger\d?)\b([^>]*)"
)
_ID = re.compile(r'\bid="([^"]*)"')
_UCTE = {34: 39, 58: 64}
"""Columns of the target voltage and of the target power in ##R."""


def unfollowed(
    kind: str, text: str, branches: Sequence[Mapping[str, Any]], followed: Collection[str] = ()
) -> Iterator[str]:
    """Sentences on what isn't followed, with the elements.

    Args:
        kind: powerio's name of the format.
        text: the content of the file.
        branches: as powerio has them.
        followed: names of what is followed, or told of in another way.
    """
    found: dict[str, list[str]] = {LOAD: [], TAP: [], SHUNT: []}
    for branch in branches:
        control = branch.get("control")
        if control and control.get("enabled") and branch["in_service"]:
            found[TAP].append(str(branch.get("name") or branch.get("uid")))
    known = bool(found[TAP])  # powerio has told of tap changers
    for what, name in _IN[kind](text):
        found[what] += [] if known and what == TAP else [name]
    for what, told in found.items():
        names = [name for name in told if name not in followed]
        if names:
            yield f"{some_of(names)}: {SAYS[what]}"


def _psse(text: str) -> Iterator[tuple[str, str]]:
    version = raw_version(text)
    # two sections more come before it later
    for cells in raw_section(text, SWITCHED_SHUNTS + 2 * (version >= WITH_SYSTEM_WIDE_DATA)):
        # bus, [identifier from version 35 on], MODSW, ADJM, STAT
        mode, _, status = cells[1 + (version >= 35) :][:3]
        if _nonzero(mode) and _nonzero(status):
            yield SHUNT, f"bus {cells[0]}"


def _rawx(text: str) -> Iterator[tuple[str, str]]:
    for record in rawx_table(text, "swshunt"):
        if record.get("modsw") and record.get("stat") != 0:
            yield SHUNT, f"bus {record.get('ibus')}"


def _xiidm(text: str) -> Iterator[tuple[str, str]]:
    owner = ""
    for match in _IIDM.finditer(text):
        tag, rest = match.group(1), match.group(2)
        if tag in ("load", "shunt", "twoWindingsTransformer", "threeWindingsTransformer"):
            given = _ID.search(rest)
            owner = given.group(1) if given else ""
            if tag == "shunt" and 'voltageRegulatorOn="true"' in rest:
                yield SHUNT, owner
        elif tag in ("zipModel", "exponentialModel"):
            yield LOAD, owner
        elif 'regulating="true"' in rest:
            yield TAP, owner


def _jiidm(text: str) -> Iterator[tuple[str, str]]:
    waiting: list[tuple[Any, str]] = [(json.loads(text), "")]
    while waiting:
        item, owner = waiting.pop()
        if isinstance(item, list):
            waiting += [(inner, owner) for inner in item]
        elif isinstance(item, dict):
            owner = str(item.get("id", owner))
            if item.get("voltageRegulatorOn") is True and "sectionCount" in item:
                yield SHUNT, owner
            for name, inner in item.items():
                if name in ("zipModel", "exponentialModel"):
                    yield LOAD, owner
                if "TapChanger" in name and isinstance(inner, dict) and inner.get("regulating"):
                    yield TAP, owner
                waiting.append((inner, owner))


def _ucte(text: str) -> Iterator[tuple[str, str]]:
    regulation = False
    for line in text.splitlines():
        if line.startswith("##"):
            regulation = line.strip() == "##R"
        elif regulation and any(line[a:b].strip() for a, b in _UCTE.items()):
            yield TAP, line[:19].strip()


def _ieee(text: str) -> Iterator[tuple[str, str]]:
    branches = False
    for line in text.splitlines():
        if line.startswith("BRANCH DATA"):
            branches = True
        elif line.startswith("-99"):
            branches = False
        elif branches and line[18:19] in ("2", "3", "4"):
            yield TAP, f"{line[0:4].strip()}-{line[5:9].strip()}"


def _pslf(text: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in text.splitlines():
        if (start := re.match(r"(\w[\w ]*?) data\s*\[", line)) is not None:
            section = start.group(1).strip().lower()
        elif section in ("load", "svd") and ":" in line:
            bus, values = line.split(None, 1)[0], line.partition(":")[2].split()
            if section == "svd" and values[:1] == ["1"] and values[1:2] != ["0"]:
                yield SHUNT, f"bus {bus}"
            if section == "load" and any(_nonzero(value) for value in values[3:7]):
                yield LOAD, f"bus {bus}"


def _nonzero(text: str) -> bool:
    try:
        return float(text) != 0
    except ValueError:
        return False


_DATA = re.compile(r"DATA\s*\(\s*(\w+)\s*,\s*\[([^\]]*)\][^)]*\)\s*\{(.*?)^\s*\}", re.S | re.M)
_VARY = ("LoadIMW", "LoadIMVR", "LoadZMW", "LoadZMVR")


def _powerworld(text: str) -> Iterator[tuple[str, str]]:
    for match in _DATA.finditer(text):
        table, body = match.group(1).lower(), match.group(3)
        names = [name.strip() for name in match.group(2).replace("\n", " ").split(",")]
        for line in body.splitlines():
            cells = [a or b for a, b in re.findall(r'"([^"]*)"|(\S+)', line)]
            row = dict(zip(names, cells, strict=False))
            if table == "load" and any(_nonzero(row.get(name, "0")) for name in _VARY):
                yield LOAD, f"bus {row.get('BusNum')}"
            mode = row.get("ShuntMode", row.get("SSCMode", "Fixed"))
            if table in ("shunt", "switchedshunt") and mode.lower() not in ("fixed", "bus shunt"):
                yield SHUNT, f"bus {row.get('BusNum')}"


_IN = {
    "psse": _psse, "psse-rawx": _rawx, "xiidm": _xiidm, "jiidm": _jiidm, "ucte": _ucte,
    "ieee-cdf": _ieee, "pslf": _pslf, "powerworld": _powerworld,
}  # fmt: skip
