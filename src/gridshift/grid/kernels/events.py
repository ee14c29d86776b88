"""Tells when numba compiles, and for how long."""

import time
from collections.abc import Callable
from typing import Any

from numba.core import event


class CompileTimes(event.Listener):
    """Adds up the seconds in which numba compiles; what it finds in its cache costs none."""

    def __init__(self, on_first: Callable[[], None]):
        self.seconds = 0.0
        self._on_first, self._depth, self._began = on_first, 0, 0.0
        event.register("numba:compile", self)

    def on_start(self, event: Any) -> None:
        """Called by numba, under its lock, before each function."""
        if self._depth == 0:
            if self.seconds == 0:
                self._on_first()
            self._began = time.perf_counter()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """Called by numba after each function, those that it calls included."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._began
