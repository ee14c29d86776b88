"""Says when kernels compile, which takes up to a minute once per machine, and how long it took."""

import time
from functools import cache
from typing import Any

import click

NOTICE = "compiling kernels (once per machine)"


class CompileTimes:
    """Adds up the seconds in which numba compiles; what it finds in its cache costs none."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._began = 0.0

    def on_start(self, event: Any) -> None:
        """Called by numba, under its lock, before each function."""
        if self._depth == 0:
            if self.seconds == 0:
                click.echo(NOTICE, err=True)
            self._began = time.perf_counter()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """Called by numba after each function, those that it calls included."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._began


@cache
def watch_compiler() -> CompileTimes:
    """The times of this process from now on; the first compilation is told on standard error."""
    from gridshift.grid.kernels.events import listen

    times = CompileTimes()
    listen(times.on_start, times.on_end)
    return times
