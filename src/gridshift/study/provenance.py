"""What a result was made with: versions, machine, threads, and who the surrogate is."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import threadpoolctl

from gridshift.grid.network import Network

if TYPE_CHECKING:
    from gridshift.adapt.base import Base

PACKAGES = ("gridshift", "numpy", "scipy", "numba", "torch", "pandapower")


class Threads:
    """Sets BLAS and, if it is loaded, torch to a number of threads, and back at the end."""

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
    import sys

    return sys.modules.get("torch")


def about_this_machine() -> dict[str, Any]:
    """Versions of what computes, and the machine."""
    return {
        "versions": {"python": platform.python_version()} | _versions(),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
        },
    }


def about_this_run(
    network: Network, surrogate: "Base | None", *, threads: dict[str, int]
) -> dict[str, Any]:
    """Versions, machine, threads, time, and digests of the grid and the surrogate."""
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        **about_this_machine(),
        "threads": threads,
        "origin": network.origin,
        "grid_digest": network.digest,
        "surrogate_digest": None if surrogate is None else surrogate.digest,
        "surrogate_record": None if surrogate is None else dict(surrogate.record),
    }


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
