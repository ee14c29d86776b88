"""pandapower networks from a built-in name or a JSON file."""

import json
import logging
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gridshift.errors import GridFileError, StorageError
from gridshift.text_file import read_text


@contextmanager
def quiet_pandapower() -> Iterator[None]:
    """Keeps pandapower's own warnings and log lines from the user while it works for us."""
    logger = logging.getLogger("pandapower")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


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
    """The pandapower network of a file written by `pandapower.to_json`.

    Raises:
        GridFileError: the file is not such a network.
    """
    try:
        text = read_text(path)
        content = json.loads(text)
    except StorageError as error:
        raise GridFileError(str(path), [str(error)]) from None
    except json.JSONDecodeError as error:
        raise GridFileError(
            str(path), [f"no valid JSON, line {error.lineno}: {error.msg}; is it cut off?"]
        ) from None
    if not (isinstance(content, dict) and content.get("_class") == "pandapowerNet"):
        raise GridFileError(str(path), ["JSON, but no network written by pandapower.to_json"])
    with quiet_pandapower():
        import pandapower

        try:
            net = pandapower.from_json_string(text)
        except (AttributeError, LookupError, TypeError, ValueError, UserWarning) as error:
            raise GridFileError(str(path), [f"pandapower cannot read it: {error}"]) from None
    if not isinstance(net, pandapower.pandapowerNet):
        raise GridFileError(str(path), ["JSON, but no network written by pandapower.to_json"])
    return net
