"""Grid files and built-in names to `Network`; the only place that knows file formats."""

from os import PathLike
from os.path import exists, isdir, isfile  # pathlib's raise where a name is too long
from pathlib import Path
from typing import Any

from gridshift.errors import GridFileError
from gridshift.grid.network import Network
from gridshift.grid.readers.builtin import builtin_names, builtin_source, closest_names

__all__ = ["builtin_names", "builtin_source", "read_grid"]

READABLE = "a built-in name such as case118, a pandapower .json file or a MATPOWER .m file"


def read_grid(source: "str | PathLike[str] | Network | Any") -> Network:
    """The grid of a built-in name (`case118`), a pandapower JSON file or a MATPOWER `.m` file.

    A pandapower network in memory is a grid too; it is left as it is, and the grid takes its name.
    A `Network` is given back. A name is tried before a file, so a file called `case118` without an
    extension needs a path such as `./case118.json`.

    Raises:
        GridFileError: unknown name, missing or unreadable file, or a grid with parts that
            gridshift cannot represent; all problems of the source in one message.
    """
    if isinstance(source, Network):
        return source
    if not isinstance(source, str | PathLike):
        return _in_memory(source)
    # pandapower costs seconds to import, so each format is loaded only when it is asked for.
    if not isinstance(source, str | PathLike):
        raise GridFileError(f"a {type(source).__name__}", [f"no grid; a grid is {READABLE}"])
    text = str(source)
    if text in builtin_names():
        from gridshift.grid.readers.pandapower_network import network_from_pandapower
        from gridshift.grid.readers.pandapower_source import builtin_net

        return network_from_pandapower(builtin_net(text), name=text, origin=f"pandapower {text}")
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix not in (".json", ".m"):
        raise GridFileError(text, [_not_readable(text, path)])
    if not isfile(path):
        raise GridFileError(text, ["is a folder" if isdir(path) else "no such file"])
    if suffix == ".m":
        from gridshift.grid.readers.matpower import read_matpower

        return read_matpower(path)
    from gridshift.grid.readers.pandapower_network import network_from_pandapower
    from gridshift.grid.readers.pandapower_source import json_net

    return network_from_pandapower(
        json_net(path), name=path.stem, origin=f"pandapower {path.name}", source=text
    )


def _in_memory(net: Any) -> Network:
    if type(net).__module__.partition(".")[0] != "pandapower" or not hasattr(net, "bus"):
        kind = type(net).__name__
        raise GridFileError(kind, [f"no grid; a grid is {READABLE}, or a pandapower network"])
    from gridshift.grid.readers.pandapower_network import network_from_pandapower

    name = str(net.get("name") or "net")
    return network_from_pandapower(net, name=name, origin="pandapower network in memory")


def _not_readable(text: str, path: Path) -> str:
    if exists(path):
        return f"neither .json nor .m; a grid is {READABLE}"
    near = closest_names(text)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return f"no built-in grid and no file of this name; {hint}'gridshift cases' lists the names"
