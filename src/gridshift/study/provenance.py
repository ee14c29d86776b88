"""What a result was made with: versions, machine, threads, and who the surrogate is."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from gridshift.grid.network import Network

if TYPE_CHECKING:
    from gridshift.adapt.base import Base

PACKAGES = ("gridshift", "numpy", "scipy", "numba", "torch", "pandapower")


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
