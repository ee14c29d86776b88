"""A `Network` as the content of a file: arrays and JSON, nothing that is run when it is read.

The first line names the format, what the content belongs to, and the checksum of all that follows,
an npz file.
"""

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import fields
from hashlib import sha256
from typing import Any

import numpy as np

from gridshift.errors import StorageError
from gridshift.grid.controls import Control
from gridshift.grid.network import Network

FORMAT = "gridshift network 7"


def network_content(network: Network, notes: Sequence[str], *, key: str) -> bytes:
    """The content of a file from which `network_of` makes an equal network.

    Args:
        network: one that was read, not an outage of it.
        key: names what the network was made from; in one line.
    """
    assert network.outage_of is None
    values = {f.name: getattr(network, f.name) for f in fields(network) if f.name != "outage_of"}
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    others = {name: value for name, value in values.items() if name not in arrays}
    others |= {"names": dict(network.names), "areas": dict(network.areas)}
    text = json.dumps({"network": others, "notes": list(notes)})
    body = io.BytesIO()
    np.savez(body, allow_pickle=False, **arrays, json=np.frombuffer(text.encode(), np.uint8))
    return _first_line(key, body.getvalue()) + body.getvalue()


def network_of(content: bytes, *, key: str) -> tuple[Network, list[str]]:
    """The network and its notes, every number bit for bit as it was.

    Raises:
        StorageError: the content is damaged, of another format, or made from something else.
    """
    first, end, body = content.partition(b"\n")
    if first + end != _first_line(key, body):
        raise StorageError("damaged, of another format, or of another grid")
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as file:
            values: dict[str, Any] = {name: file[name] for name in file.files}
        told = json.loads(values.pop("json").tobytes())
        for name, value in told["network"].items():
            values[name] = tuple(value) if isinstance(value, list) else value
        values["controls"] = tuple(Control.of(one) for one in values["controls"])
        return Network(**values), list(told["notes"])
    except (EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as problem:
        raise StorageError(f"no network: {problem}") from None


def _first_line(key: str, body: bytes) -> bytes:
    return f"{FORMAT} {key} {sha256(body).hexdigest()}\n".encode()
