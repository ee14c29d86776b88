"""Tells when numba compiles."""

from collections.abc import Callable
from typing import Any

from numba.core import event


class _Listener(event.Listener):
    def __init__(self, on_start: Callable[[Any], None], on_end: Callable[[Any], None]):
        self._on_start, self._on_end = on_start, on_end

    def on_start(self, event: Any) -> None:
        self._on_start(event)

    def on_end(self, event: Any) -> None:
        self._on_end(event)


def listen(on_start: Callable[[Any], None], on_end: Callable[[Any], None]) -> None:
    """Call these around each function compiled from now on, not for those found in the cache."""
    event.register("numba:compile", _Listener(on_start, on_end))
