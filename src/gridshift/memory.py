"""How much memory is free, and the refusal of what would not fit, before any of it is taken.

On Linux asking for too much ends in a kill without a word, not in a `MemoryError`.
"""

import os
import sys
from collections.abc import Iterator
from math import floor, log10
from pathlib import Path

from gridshift.errors import MemoryNeededError

SMALL = 1 << 26
"""Bytes below which nobody is asked: reading what is free takes longer than small batches do."""
NO_LIMIT = 1 << 60
"""Bytes from which a limit of a control group counts as none; version 1 writes a large number."""


def require_memory(needed: float, what: str, *, count: int = 0) -> None:
    """Pass if so many bytes are free.

    Args:
        needed: bytes.
        what: what needs them: the subject of the message's sentence, in the plural.
        count: the number that they are in proportion to, if there is one; the message then tells
            the largest that fits.

    Raises:
        MemoryNeededError: they aren't.
    """
    if needed < SMALL:
        return
    free = available_memory()
    if free is None or needed <= free:
        return
    fitting = _round_down(int(count * free / needed))
    advice = f"ask for at most {fitting:,}" if fitting else "ask for less"
    raise MemoryNeededError(
        f"{what} need about {size_text(needed)} of memory and {size_text(free)} are free; {advice}"
    )


def available_memory(
    proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")
) -> int | None:
    """Bytes that this process may still take without swapping; None where nothing tells.

    The smallest of what the machine has free, what is left to the process's control groups (a
    container's or a batch system's limit), and what is left of its address space (`ulimit -v`).
    Elsewhere than on Linux it is the machine's memory, be it free or not.
    """
    found = [*_machine(proc), *_control_groups(proc, groups), *_address_space(proc)]
    return max(0, min(found)) if found else None


def _machine(proc: Path) -> Iterator[int]:
    for line in _text(proc / "meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024
            return
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names:
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _control_groups(proc: Path, groups: Path) -> Iterator[int]:
    """What is left to the process's groups, to those around them, and to a container's own root."""
    for line in _text(proc / "self" / "cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            root, limit, usage, cached = groups, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            root, limit, usage = groups / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            cached = "total_inactive_file"
        else:
            continue
        folder = root / path.lstrip("/")
        for group in (folder, *folder.parents):
            most, used = _number(group / limit), _number(group / usage)
            if most is not None and used is not None and most < NO_LIMIT:
                yield most - used + _entry(group / "memory.stat", cached)
            if group == root:
                break


def _address_space(proc: Path) -> Iterator[int]:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = _text(proc / "self" / "statm").split()
    if most != resource.RLIM_INFINITY and pages:
        yield most - int(pages[0]) * resource.getpagesize()


def peak_bytes() -> int:
    """Most memory that this process has held at once; 0 where the system doesn't tell."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None  # 'max' is no limit


def _entry(path: Path, name: str) -> int:
    """Memory that holds files' contents and is given up when needed."""
    for line in _text(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0


def _round_down(number: int) -> int:
    """To two digits, so that the number still fits when the next call finds a little less free."""
    if number < 10:
        return number
    unit = 10 ** (floor(log10(number)) - 1)
    return number // unit * unit


def size_text(num_bytes: float) -> str:
    """`2.0 TB`, `47 GB`, `350 kB`: two digits or more, in units of 1,000."""
    for unit, name in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if num_bytes >= unit:
            return f"{num_bytes / unit:,.{0 if num_bytes >= 10 * unit else 1}f} {name}"
    return f"{num_bytes / 1e3:,.{0 if num_bytes >= 1e4 else 1}f} kB"
