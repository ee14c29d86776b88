"""What a JSON file may hold before pandapower sees it.

pandapower imports the module that a file names for an object before it looks at its class, and
takes a table that is a path as a file to open. So every object of a file must be of the classes
below, and every table must hold its data; what the power flow does not need is not handed over.
"""

import json
import re
from typing import Any

from gridshift.grid.readers.pandapower_tables import KEPT

NO_NETWORK = "JSON, but no network written by pandapower.to_json"
DEEPEST = 100
"""Levels of lists and objects; pandapower writes fewer than ten."""

_TABLES = re.compile(r"pandas(\.core\.frame)?\.DataFrame|pandas(\.core\.series)?\.Series")
_NET = re.compile(r"pandapower\.(auxiliary\.)?pandapowerNet")
_PLAIN = re.compile(
    r"numpy\.(array|bool_?|u?int\d*|float\d*|complex\d+)"
    r"|pandas\.(Index|RangeIndex|Int64Index|Float64Index|UInt64Index)"
    r"|builtins\.(complex|tuple|set|frozenset)"
)
_CURVES = re.compile(r"pandapower\.control\.util\.characteristic\.\w*Characteristic")
_ELSEWHERE = re.compile(
    r"pandapower(\.[A-Za-z_]\w*)+|networkx\.(Multi)?(Di)?Graph|shapely\.(Point|LineString|Polygon)"
    r"|geopandas\.geodataframe\.GeoDataFrame"
)
"""Controllers, graphs and shapes: allowed in the parts that are not handed over."""
_TABLE_ENTRIES = {"_module", "_class", "_object", "dtype", "orient", "typ", "index_name",
                  "index_names", "column_name", "column_names", "is_multiindex",
                  "is_multicolumn"}  # fmt: skip
_PLAIN_ENTRIES = {"_module", "_class", "_object", "dtype"}


def safe_content(text: str) -> tuple[dict[str, Any], list[str]]:
    """The parts of a network file that are read, free of code, or what is wrong with the file."""
    content, problem = _parsed(text)
    if problem:
        return {}, [problem]
    for _ in range(3):  # some versions wrote the network as text inside the network
        if not (isinstance(content, dict) and isinstance(content.get("_object"), str)):
            break
        content, problem = _parsed(content["_object"])
        if problem:
            return {}, [NO_NETWORK]
    signed = isinstance(content, dict) and content.get("_class") == "pandapowerNet"
    if signed and not _NET.fullmatch(f"{content.get('_module')}.pandapowerNet"):
        return {}, [_not_allowed(content)]
    tables = content.get("_object") if signed else content
    # Before pandapower 2 a network was an object of tables, each an object of columns.
    if not isinstance(tables, dict) or not (signed or _is_table(tables.get("bus"))):
        return {}, [NO_NETWORK]
    problems = []
    for name, part in tables.items():
        problem = _problem_of(part, handed_over=name in KEPT)
        if problem:
            problems.append(f"{_short(name)}: {problem}")
    kept = {name: tables[name] for name in (*KEPT, *_OLD, *READ_HERE) if name in tables}
    if signed:
        module = "pandapower.auxiliary"
        kept = {"_module": module, "_class": "pandapowerNet", "_object": kept}
    return kept, problems[:5]


OLD_POSITIONS = "bus_geodata"
"""The table that holds them before pandapower 3."""
CONTROLLERS = "controller"
READ_HERE = (OLD_POSITIONS, CONTROLLERS)
"""Tables that pandapower never sees, as data."""
_OLD = ("parameters",)
"""Where networks before pandapower 2 have their base power, frequency and version."""


def _is_table(part: object) -> bool:
    if not isinstance(part, dict):
        return False
    return "_module" not in part or bool(
        _TABLES.fullmatch(f"{part['_module']}.{part.get('_class')}")
    )


def _parsed(text: str) -> tuple[Any, str]:
    try:
        return json.loads(text), ""
    except json.JSONDecodeError as error:
        return None, f"no valid JSON, line {error.lineno}: {error.msg}; is it cut off?"
    except RecursionError:
        return None, f"lists or objects nested more than {DEEPEST} levels deep"
    except ValueError as error:  # a number of more digits than Python takes
        return None, f"no valid JSON: {error}"


def _problem_of(part: object, *, handed_over: bool) -> str:
    """What one part of a network may not hold, in words; empty if there is nothing."""
    waiting: list[tuple[object, int]] = [(part, 1)]
    while waiting:
        item, level = waiting.pop()
        if level > DEEPEST:
            return f"lists or objects nested more than {DEEPEST} levels deep"
        if isinstance(item, list):
            waiting += [(inner, level + 1) for inner in item if isinstance(inner, dict | list)]
        elif isinstance(item, dict):
            problem, inside = _opened(item, handed_over) if "_module" in item else ("", None)
            if problem:
                return problem
            waiting += [(v, level + 1) for v in item.values() if isinstance(v, dict | list)]
            if isinstance(inside, dict | list):
                waiting.append((inside, level + 1))
    return ""


def _opened(item: dict[str, Any], handed_over: bool) -> tuple[str, Any]:
    """What is wrong with an object that names its class, and what is in it where that is text."""
    name, held = f"{item['_module']}.{item.get('_class')}", item.get("_object")
    if _TABLES.fullmatch(name):
        inside, problem = _parsed(held) if isinstance(held, str) else (None, "")
        if problem.startswith("lists"):
            return problem, None
        if not isinstance(inside, dict):
            return "a table without data in it", None
        return _odd_entry(item, _TABLE_ENTRIES), inside
    if _PLAIN.fullmatch(name):
        return _odd_entry(item, _PLAIN_ENTRIES), None
    if _CURVES.fullmatch(name) or (not handed_over and _ELSEWHERE.fullmatch(name)):
        inside, problem = _parsed(held) if isinstance(held, str) else (None, "")
        return (problem if problem.startswith("lists") else ""), inside
    return _not_allowed(item), None


def _odd_entry(item: dict[str, Any], known: set[str]) -> str:
    odd = [key for key in item if key not in known]
    return f"{item['_class']} with an entry {_short(odd[0])}, which is not known" if odd else ""


def _not_allowed(item: dict[str, Any]) -> str:
    name = _short(f"{item.get('_module')}.{item.get('_class')}")
    return f"class {name} is not one that a network needs; remove it from the file"


def _short(text: object) -> str:
    """Text of a file in a message: printable, on one line, not too long."""
    shown = "".join(c if c.isprintable() else "?" for c in str(text))
    return shown if len(shown) <= 60 else shown[:57] + "..."
