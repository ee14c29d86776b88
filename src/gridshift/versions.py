"""Versions of gridshift and of what it stands on, as installed."""

from collections.abc import Iterable
from importlib.metadata import version


def own_version() -> str:
    """Version of gridshift."""
    return version("gridshift")


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Version of each of these packages, all of which are installed."""
    return {name: version(name) for name in packages}
