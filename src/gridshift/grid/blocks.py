"""Blocks of rows shared out among threads; kernels release the interpreter's lock."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any


def run_blocks(
    kernel: Callable, out: Any, blocks: int, threads: int, spare: list, new: Callable
) -> None:
    """Run a kernel over all blocks, which threads share: the caller and `threads - 1` others.

    Each takes a piece and comes back for the next; a piece is long against handing it over. One
    thread alone takes everything at once.
    """
    each = min(8, max(1, blocks // (16 * threads))) if threads > 1 else 1
    size = max(1, -(-blocks // (each * threads)))
    pieces = deque((b, min(b + size, blocks)) for b in range(0, blocks, size))

    def work_off() -> None:
        work = None
        while piece := taken(pieces):
            work = work or taken(spare) or new()
            kernel(work, out, *piece)
        if work:
            spare.append(work)

    helpers = min(threads, len(pieces)) - 1
    others = [_pool(threads).submit(work_off) for _ in range(helpers)] if helpers > 0 else []
    try:
        work_off()
    finally:
        pieces.clear()  # after an interrupt nobody takes another one
        for other in others:
            other.result()


def taken(items: Any) -> Any:
    """The last item, removed; None if there is none. Another thread can't come between."""
    try:
        return items.pop()
    except IndexError:
        return None


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads are kept: starting them costs more than a small batch."""
    return ThreadPoolExecutor(threads, thread_name_prefix="gridshift")
