"""How time is taken: one pinned core, thread CPU time beside wall time, medians over rounds.

On a machine that others use as well, wall time counts their work too; CPU time of the own thread
counts only what it shares with them in caches and memory. Programs that are compared take turns
inside one run, so that what disturbs one disturbs the other.
"""

import gc
import os
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)
LONG = 1.0
"""Seconds from which compiling and cold caches are lost in the time of a call."""


@contextmanager
def pinned() -> Iterator[None]:
    """Keep this process on the last usable core, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(usable)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, usable)


def least_cpu_seconds(run: Callable[[], object], *, repeats: int) -> float:
    """Least CPU time of some calls, s, after one that is not timed."""
    run()
    return min(_timed(run, 1)[0] for _ in range(repeats))


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Time of one call, s, in each round."""

    cpu: tuple[float, ...]
    wall: tuple[float, ...]
    calls: int
    """Calls in each round."""

    @property
    def cpu_s(self) -> float:
        """Median over rounds of the own thread's CPU time."""
        return median(self.cpu)


def in_turns(
    runs: Mapping[Name, Callable[[], object]], *, rounds: int = 7, at_least: float = 0.03
) -> dict[Name, Timing]:
    """Time several functions in turns; a round repeats each until `at_least` seconds are full.

    Every function is called beforehand, so that nothing is compiled in the rounds, and short ones
    again, to find how often to call them.
    """
    calls = {}
    for name, run in runs.items():
        seconds = _timed(run, 1)[0]
        if seconds < LONG:
            seconds = _timed(run, 1)[0]
        calls[name] = max(1, round(at_least / max(seconds, 1e-7)))
    times: dict[Name, list[tuple[float, float]]] = {name: [] for name in runs}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, run in runs.items():
                if calls[name] > 1:
                    run()  # the caches belonged to another program
                times[name].append(_timed(run, calls[name]))
    finally:
        if collecting:
            gc.enable()
    return {
        name: Timing(
            cpu=tuple(cpu for cpu, _ in taken),
            wall=tuple(wall for _, wall in taken),
            calls=calls[name],
        )
        for name, taken in times.items()
    }


def _timed(run: Callable[[], object], calls: int) -> tuple[float, float]:
    """CPU and wall time of one call."""
    wall, cpu = time.perf_counter(), time.thread_time()
    for _ in range(calls):
        run()
    return (time.thread_time() - cpu) / calls, (time.perf_counter() - wall) / calls
