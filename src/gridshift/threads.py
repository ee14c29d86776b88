"""Cores at hand, and a number of threads kept to while times are taken or workers share them."""

import os
import sys
from typing import Any

import threadpoolctl


def usable_cores() -> int:
    """Processor cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class Threads:
    """Sets BLAS and, if it is loaded, torch to a number of threads, and back at the end.

    With one thread times can be compared with the engine's, which has one unless asked for more.
    """

    def __init__(self, num: int):
        self.limits = {"blas": num, "torch": num}

    def __enter__(self) -> "Threads":
        self._blas = threadpoolctl.threadpool_limits(self.limits["blas"])
        torch = _torch_if_loaded()
        if torch is not None:
            self._torch = torch.get_num_threads()
            torch.set_num_threads(self.limits["torch"])
        return self

    def __exit__(self, *exception: object) -> None:
        torch = _torch_if_loaded()
        if torch is not None and hasattr(self, "_torch"):
            torch.set_num_threads(self._torch)
        self._blas.restore_original_limits()


def _torch_if_loaded() -> Any:
    return sys.modules.get("torch")
