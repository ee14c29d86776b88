"""Grid files and built-in names to `Network`; the only place that knows file formats."""

from functools import partial
from os import PathLike
from os.path import exists, isdir, isfile  # pathlib's raise where a name is too long
from pathlib import Path
from typing import Any

from gridshift.errors import GridFileError, StorageError
from gridshift.grid.network import Network
from gridshift.grid.readers.builtin import builtin_names, builtin_source, closest_names
from gridshift.grid.readers.read_before import read_once
from gridshift.text_file import read_bytes

__all__ = ["builtin_names", "builtin_source", "from_pandapower", "read_grid"]

FORMATS = (".raw", ".rawx", ".xiidm", ".jiidm", ".uct", ".aux", ".epc", ".cdf")
"""Endings of files that powerio reads, the extra `gridshift[formats]`."""
READABLE = (
    "a built-in name such as case118, a pandapower .json file, a MATPOWER .m file, or, by powerio, "
    f"a file that ends in {', '.join(FORMATS)}"
)


def read_grid(source: "str | PathLike[str] | Network | Any") -> Network:
    """The grid of a built-in name (`case118`), a pandapower JSON file or a MATPOWER `.m` file.

    With the extra `formats` also of a file of `FORMATS`: PSS/E, XIIDM, UCTE and others.
    A pandapower network in memory is a grid too; it is left as it is, and the grid takes its name.
    A `Network` is given back. A name is tried before a file, so a file called `case118` without an
    extension needs a path such as `./case118.json`. What was read is kept in the cache folder, so
    that reading the same again takes milliseconds.

    Raises:
        GridFileError: unknown name, missing or unreadable file, or a grid with parts that
            gridshift cannot represent; all problems of the source in one message.

    Warns:
        GridshiftWarning: what was left out of the grid, or is taken for something else.
    """
    if isinstance(source, Network):
        return source
    if not isinstance(source, str | PathLike):
        return _in_memory(source)
    path, text = Path(source), str(source)
    if path.suffix.lower() not in (".json", ".m", *FORMATS):
        return read_once(text, b"", partial(_builtin, text))
    if not isfile(path):
        raise GridFileError(text, ["is a folder" if isdir(path) else "no such file"])
    try:
        content = read_bytes(path)
    except StorageError as error:
        raise GridFileError(text, [str(error)]) from None
    return read_once(path.name, content, partial(_file, path, content))


def from_pandapower(net: Any) -> Network:
    """The grid of a pandapower network in memory, which is left as it is.

    Raises:
        GridFileError: as in `read_grid`, or no such network.

    Warns:
        GridshiftWarning: as in `read_grid`.
    """
    return _in_memory(net)


# pandapower costs seconds to import, so each format is loaded only when it is asked for.


def _builtin(name: str) -> Network:
    if name not in builtin_names():
        raise GridFileError(name, [_not_readable(name)])
    from gridshift.grid.readers.pandapower_network import network_from_pandapower
    from gridshift.grid.readers.pandapower_source import builtin_net

    return network_from_pandapower(builtin_net(name), name=name, origin=f"pandapower {name}")


def _file(path: Path, content: bytes) -> Network:
    if path.suffix.lower() == ".m":
        from gridshift.grid.readers.matpower import read_matpower

        return read_matpower(path, content)
    if path.suffix.lower() in FORMATS:
        from gridshift.grid.readers.powerio_network import read_with_powerio

        return read_with_powerio(path, content)
    from gridshift.grid.readers.pandapower_network import network_from_pandapower
    from gridshift.grid.readers.pandapower_source import net_of_json

    net = net_of_json(path, content)
    origin = f"pandapower {path.name}"
    return network_from_pandapower(net, name=path.stem, origin=origin, source=str(path))


def _in_memory(net: Any) -> Network:
    if type(net).__module__.partition(".")[0] != "pandapower" or not hasattr(net, "bus"):
        kind = type(net).__name__
        raise GridFileError(kind, [f"no grid; a grid is {READABLE}, or a pandapower network"])
    from gridshift.grid.readers.pandapower_network import network_from_pandapower

    name = str(net.get("name") or "net")
    return network_from_pandapower(net, name=name, origin="pandapower network in memory")


def _not_readable(text: str) -> str:
    if exists(text):
        if text.lower().endswith((".xml", ".zip")):  # may be CGMES, which nothing here reads
            more = "; CGMES isn't read: save it as XIIDM, with pypowsybl for instance"
            return f"of none of the formats that are read{more}; a grid is {READABLE}"
        return f"of none of the formats that are read; a grid is {READABLE}"
    near = closest_names(text)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return f"no built-in grid and no file of this name; {hint}'gridshift cases' lists the names"
