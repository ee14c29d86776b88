"""Names of the grids that come with pandapower, found without importing it."""

import ast
import difflib
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

# The two argument-free functions of other modules that `pandapower.networks` also exposes,
# `create_empty_network` and `pp_elements`, make no grid; only its own modules are looked at.


@cache
def builtin_names() -> tuple[str, ...]:
    """Every function of `pandapower.networks` that needs no argument, in pandapower's order.

    Read from pandapower's source text: importing it takes seconds, this takes 30 ms.
    """
    spec = find_spec("pandapower")
    assert spec is not None, "pandapower is a dependency"
    folder = Path(str(spec.origin)).parent / "networks"
    names: list[str] = []
    for node in ast.parse((folder / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            module = folder / f"{node.module.rpartition('.')[2]}.py"
            tree = ast.parse(module.read_text(encoding="utf-8"))
            names += [f.name for f in tree.body if isinstance(f, ast.FunctionDef) and _is_grid(f)]
    return tuple(dict.fromkeys(names))


def builtin_source() -> str:
    """The program that the built-in grids are from, with its version."""
    return f"pandapower {version('pandapower')}"


def _is_grid(function: ast.FunctionDef) -> bool:
    arguments = function.args
    needed = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return not function.name.startswith("_") and needed <= 0 and None not in arguments.kw_defaults


def closest_names(text: str) -> list[str]:
    """Up to three built-in names that look like `text`, the most similar first."""
    by_lower = {name.lower(): name for name in builtin_names()}
    return [by_lower[n] for n in difflib.get_close_matches(text.lower(), by_lower, 3, 0.6)]
