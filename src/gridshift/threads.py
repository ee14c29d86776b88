"""Threads: a limit for the numerical libraries, and the processor cores that may be used."""

import os
import sys

import threadpoolctl


class Threads:
    """Limits BLAS and, if it is imported, torch to a number of threads while inside.

    For everything that is timed, trained or run side by side: results then don't depend on the
    machine's cores, and workers don't take each other's.
    """

    def __init__(self, num: int):
        self.limits = {"blas": num, "torch": num}
        """What was asked for, for records."""

    def __enter__(self) -> "Threads":
        self._blas = threadpoolctl.threadpool_limits(self.limits["blas"])
        self._torch = sys.modules.get("torch")
        if self._torch is not None:
            self._before = self._torch.get_num_threads()
            self._torch.set_num_threads(self.limits["torch"])
        return self

    def __exit__(self, *exception: object) -> None:
        if self._torch is not None:
            self._torch.set_num_threads(self._before)
        self._blas.restore_original_limits()


def usable_cores() -> int:
    """Processor cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
