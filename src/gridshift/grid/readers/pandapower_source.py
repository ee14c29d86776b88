"""pandapower networks from a built-in name or a JSON file."""

import json
import logging
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gridshift.errors import GridFileError, GridshiftWarning, StorageError
from gridshift.grid.readers.pandapower_safety import (
    CONTROLLERS,
    NO_NETWORK,
    OLD_POSITIONS,
    safe_content,
)
from gridshift.text_file import read_bytes, text_of

PANDAPOWER_ERRORS = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, MemoryError, OSError,
    RuntimeError, TypeError, ValueError, Warning,
)  # fmt: skip
"""What pandapower, pandas and numpy raise on networks that they cannot make sense of."""


def one_line(error: BaseException) -> str:
    """The message of an error of somebody else on one line, never empty."""
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def quiet_pandapower() -> Iterator[list[str]]:
    """Keeps pandapower's warnings and log lines from the user while it works for us.

    The list fills with those that are about the network, in pandapower's words. Deprecations and
    numerical warnings are not: they are about how it is used.
    """
    logger = logging.getLogger("pandapower")
    heard: list[str] = []
    listener = _Listener(heard)
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(listener)
    try:
        with warnings.catch_warnings(record=True) as met:
            warnings.simplefilter("always")
            yield heard
            heard += [f"pandapower says: {one_line(w.message)}" for w in met  # type: ignore[arg-type]
                      if w.category is UserWarning]  # fmt: skip
    finally:
        logger.removeHandler(listener)
        logger.propagate = propagate


class _Listener(logging.Handler):
    """Writes down warnings and errors."""

    def __init__(self, heard: list[str]):
        super().__init__(logging.WARNING)
        self.heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(f"pandapower says: {' '.join(record.getMessage().split())}")


def builtin_net(name: str):
    """The pandapower network that `pandapower.networks.<name>()` makes, the same every time.

    The Kerber networks draw their line types from Python's global random numbers; these are
    set to a fixed state for the call and put back after it.
    """
    with quiet_pandapower():
        import pandapower.networks

        state = random.getstate()
        random.seed(0)
        try:
            return getattr(pandapower.networks, name)()
        finally:
            random.setstate(state)


def json_net(path: Path):
    """The pandapower network of a JSON file, as `net_of_json` makes it.

    Raises:
        GridFileError: the file cannot be read, or `net_of_json` refuses it.
    """
    try:
        return net_of_json(path, read_bytes(path))
    except StorageError as error:
        raise GridFileError(str(path), [str(error)]) from None


def net_of_json(path: Path, content: bytes):
    """The pandapower network that `pandapower.to_json` wrote, in today's format.

    Older formats are converted, as `pandapower.from_json` does; only the parts of `KEPT` are read.

    Raises:
        GridFileError: the content is no such network, or one of a newer format.
    """
    try:
        text = text_of(content)
    except StorageError as error:
        raise GridFileError(str(path), [str(error)]) from None
    parts, problems = safe_content(text)
    if problems:
        raise GridFileError(str(path), problems)
    with quiet_pandapower() as heard:
        import pandapower

        if newer := _newer_format(parts):
            raise GridFileError(str(path), [newer])
        # Its conversion refuses a network for one position that is no number.
        positions = parts.get("_object", parts).pop(OLD_POSITIONS, None)
        controllers = parts.get("_object", parts).pop(CONTROLLERS, None)
        try:
            net = pandapower.from_json_string(json.dumps(parts), convert=True)
        except PANDAPOWER_ERRORS as error:
            refusal = f"pandapower cannot read it: {one_line(error)}"
            raise GridFileError(str(path), [refusal]) from None
    if not isinstance(net, pandapower.pandapowerNet):
        raise GridFileError(str(path), [NO_NETWORK])
    net[OLD_POSITIONS] = _table(positions)
    net[CONTROLLERS] = _table(controllers)
    for words in heard:
        warnings.warn(f"{path.name}: {words}", GridshiftWarning, stacklevel=3)
    return net


def _table(written: Any):
    """A table that pandapower doesn't see, as the file has it; None if there is none to be read."""
    import pandas as pd

    try:
        held = written.get("_object", written)
        held = json.loads(held) if isinstance(held, str) else held
        return pd.DataFrame(held["data"], index=held["index"], columns=held["columns"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _newer_format(content: Any) -> str:
    """That a file's format is newer than the installed pandapower's; empty if it isn't."""
    from packaging.version import InvalidVersion, Version
    from pandapower._version import __format_version__, __version__

    parts = content.get("_object")
    given = str(parts.get("format_version", "0") if isinstance(parts, dict) else "0")
    try:
        if Version(given) <= Version(__format_version__):
            return ""
    except InvalidVersion:
        return f"its format_version is {given!r}, which is no version"
    return (
        f"its format version {given} is newer than {__format_version__}, which the installed "
        f"pandapower {__version__} reads; update pandapower"
    )


def other_format(net) -> Iterator[str]:
    """That a network in memory is of another format than pandapower's own, if it is."""
    from pandapower._version import __format_version__

    given = net.get("format_version", __format_version__)
    if str(given) != __format_version__:
        yield (
            f"its format is {given}, pandapower's is {__format_version__}; convert it first, with "
            "pandapower.convert_format(net), or store it and read the file"
        )
