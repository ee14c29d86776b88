"""Dataclasses from the tables of a TOML file; every problem with its key and line."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from gridshift.arguments import shown
from gridshift.errors import ScenarioError, StorageError
from gridshift.study.description import Key, UncertaintyError, key_text, nearest
from gridshift.text_file import read_text

_NAME = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_NAMES = rf"\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*"
_HEADER = re.compile(rf"\s*(?:\[\[{_NAMES}\]\]|\[{_NAMES}\])\s*(?:#.*)?")
_ENTRY = re.compile(rf"{_NAMES}=")


def key_lines(text: str) -> dict[Key, int]:
    """The line of each table and key of a TOML file; keys of inline tables have none of their own.

    `tomllib` doesn't tell lines, so this looks at headers and at what stands before `=`. A line
    within a text of several lines that looks like one of them is taken for it.
    """
    lines: dict[Key, int] = {}
    entries: dict[Key, int] = {}  # last entry of each array of tables
    table: Key = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            *outer, last = _parts(header[1] or header[2])
            table = ()
            for part in outer:
                table = (*table, part)
                table = (*table, entries[table]) if table in entries else table
            table = (*table, last)
            if header[1]:
                entries[table] = entries.get(table, -1) + 1
                lines.setdefault(table, number)
                table = (*table, entries[table])
            lines.setdefault(table, number)
        elif entry := _ENTRY.match(line):
            key = table
            for part in _parts(entry[1]):
                key = (*key, part)
                lines.setdefault(key, number)
    return lines


def _parts(dotted: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_NAME, dotted)]


def located(lines: Mapping[Key, int], key: Key, problem: str) -> str:
    """A problem with its line and key; what has no line of its own stands in that around it."""
    known = key
    while known and known not in lines:
        known = known[:-1]
    text = f"{key_text(key)}: {problem}" if key else problem
    return f"line {lines[known]}: {text}" if known else text


def read_toml(path: Path) -> tuple[dict[str, Any], dict[Key, int]]:
    """What a TOML file holds, and the lines of its keys.

    Raises:
        ScenarioError: the file can't be read or is no TOML.
    """
    try:
        text = read_text(path)
        return tomllib.loads(text), key_lines(text)
    except StorageError as error:
        raise ScenarioError(f"study file {path}: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{path} is not TOML: {error}") from None


class TomlReader:
    """Builds dataclasses from tables and notes what is wrong, so that all of it can be told."""

    def __init__(self, lines: Mapping[Key, int]):
        self.lines = lines
        self.problems: list[str] = []

    def note(self, key: Key, problem: str) -> None:
        """Add a problem."""
        self.problems.append(located(self.lines, key, problem))

    def table(self, parent: dict[str, Any], key: Key) -> dict[str, Any]:
        """The table under the key's last part; empty, with a problem noted, if it is none."""
        found = parent.get(str(key[-1]), {})
        if isinstance(found, dict):
            return found
        self.note(key, f"{shown(found)} is no table; write [{key_text(key)}] and its keys below")
        return {}

    def entries(self, parent: dict[str, Any], key: Key) -> list[dict[str, Any]]:
        """The tables of an array of them; none, with a problem noted, if it is none."""
        found = parent.get(str(key[-1]), [])
        if isinstance(found, list) and all(isinstance(entry, dict) for entry in found):
            return found
        self.note(key, f"write [[{key_text(key)}]], in two pairs of brackets, for each entry")
        return []

    def list_of(self, kind: type, parent: dict[str, Any], key: Key) -> tuple[Any, ...]:
        """An object of a dataclass for each entry, as `built`."""
        entries = self.entries(parent, key)
        return tuple(self.built(kind, part, (*key, at)) for at, part in enumerate(entries))

    def optional(self, kind: type, parent: dict[str, Any], key: Key) -> Any:
        """An object of a dataclass, as `built`; None where there is no such table."""
        return self.built(kind, self.table(parent, key), key) if key[-1] in parent else None

    def known(
        self, given: dict[str, Any], names: Sequence[str], key: Key, others: Sequence[str] = ()
    ) -> None:
        """Note keys that aren't among these."""
        for name in given:
            if name not in names:
                self.note((*key, name), f"no such key{nearest(name, [*names, *others])}")

    def built(
        self, kind: type, given: Any, key: Key, *, others: Sequence[str] = (), **more: Any
    ) -> Any:
        """An object of a dataclass whose fields are the keys, or None if something is wrong."""
        if not isinstance(given, dict):
            return self.note(key, f"{shown(given)} is no table of keys")
        hints, before = get_type_hints(kind), len(self.problems)
        wanted = [f for f in fields(kind) if f.name not in more]
        self.known(given, [f.name for f in wanted], key, others)
        for f in wanted:
            needed = f.default is MISSING and f.default_factory is MISSING
            if f.name not in given:
                if needed:
                    self.note((*key, f.name), f"missing; give {_words(hints[f.name])}")
            elif not _fits(given[f.name], hints[f.name]):
                told = f"{shown(given[f.name])}; give {_words(hints[f.name])}"
                self.note((*key, f.name), told)
        if len(self.problems) > before or any(value is None for value in more.values()):
            return None
        return self.checked(kind, {name: _frozen(v) for name, v in given.items()} | more, key)

    def checked(self, kind: type, given: dict[str, Any], key: Key) -> Any:
        """The object of these fields; None, with its own problem noted, if it refuses them."""
        try:
            return kind(**given)
        except UncertaintyError as error:
            return self.note((*key, *error.key), error.problem)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value of a TOML file is of the type of a field."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in inner)
    if origin is tuple:
        return isinstance(value, list) and all(_fits(part, inner[0]) for part in value)
    if origin is Mapping:
        return isinstance(value, dict) and all(_fits(part, inner[1]) for part in value.values())
    if origin is Literal:
        return isinstance(value, str)  # which texts are allowed, the class says itself
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return hint in (int, str) and type(value) is hint


def _words(hint: Any) -> str:
    """What a value must be, for people."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _words(inner[0])
    if origin is tuple:
        return "a list of " + ("texts" if inner[0] is str else "numbers or of rows of numbers")
    if origin is Mapping:
        kinds = get_args(inner[1]) or (inner[1],)
        found = " or ".join({float: "numbers", str: "texts"}[kind] for kind in kinds)
        return f"a table of {found}, {{ name = value, ... }}"
    return {float: "a number", int: "a whole number"}.get(hint, "a text in quotation marks")
