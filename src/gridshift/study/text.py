"""How values are written: for people, on the terminal and in the report, and as JSON."""

import json
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any


def real(value: float | None, *, none: str = "-") -> str:
    """Three significant digits, in powers of ten outside 0.001 to 100,000."""
    if value is None or not math.isfinite(value):
        return none
    if value == 0:
        return "0"
    size = abs(value)
    if size < 1e-3 or size >= 1e5:
        return f"{value:.2e}".replace("e-0", "e-").replace("e+0", "e")
    value = float(f"{value:.3g}")  # before the digits are counted: 99.96 is 100
    return f"{value:,.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def json_lines(content: Mapping[str, Any]) -> str:
    """An object as JSON: a line for each key, and for each entry of a list of objects."""
    lines = []
    for key, value in content.items():
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], Mapping):
            entries = ",\n".join(f"  {_compact(entry)}" for entry in value)
            lines.append(f" {_compact(str(key))}: [\n{entries}\n ]")
        else:
            lines.append(f" {_compact(str(key))}: {_compact(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(json_value(value), allow_nan=False)


def differences(
    one: Mapping[str, Any], other: Mapping[str, Any], *, of_no_account: Collection[str] = ()
) -> str:
    """In which settings two configurations differ, in words: `seed 0 and 1`; empty if in none.

    Settings within a setting are told as `variation.impedance 0 and 0.1`.
    """
    told = []
    for name in one:
        first, second = json_value(one[name]), json_value(other.get(name))
        if first == second or name in of_no_account:
            continue
        if isinstance(first, Mapping) and isinstance(second, Mapping):
            told.append(differences(*({f"{name}.{k}": v for k, v in part.items()}
                                      for part in (first, second))))  # fmt: skip
        else:
            told.append(f"{name} {first} and {second}")
    return ", ".join(told)


def json_value(value: Any) -> Any:
    """The value as JSON knows it: numbers of numpy as numbers, NaN and infinities as null."""
    if isinstance(value, Mapping):
        return {str(k): json_value(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(v) for v in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return json_value(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
