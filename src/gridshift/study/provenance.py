"""What a result was made with: versions, machine, threads, and who the surrogate is."""

import platform
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from gridshift.grid.network import Network
from gridshift.machine import processor, versions
from gridshift.threads import usable_cores

if TYPE_CHECKING:
    from gridshift.adapt.base import Base

PACKAGES = ("gridshift", "numpy", "scipy", "numba", "torch", "pandapower")


def about_this_machine() -> dict[str, Any]:
    """Versions of what computes, and the machine."""
    return {
        "versions": {"python": platform.python_version()} | versions(PACKAGES),
        "machine": {
            "processor": processor(),
            "cores": usable_cores(),
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
