"""What computes: the processor's name and the versions of packages."""

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version


def processor() -> str:
    """The processor's own name where the system tells it, else its kind."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown"


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of those of the packages that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
