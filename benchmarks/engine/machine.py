"""What the machine can do: its peak of arithmetic and of reading memory, on one core."""

from typing import Any

import numpy as np

from gridshift.grid.kernels import compiled
from gridshift.grid.kernels.arithmetic import muladd
from gridshift.grid.kernels.lanes import Lanes, fill, load, store, vector_bits, width
from gridshift.peers.clock import least_cpu_seconds, pinned
from gridshift.peers.machine import describe

# pyright: basic, reportCallIssue=false, reportArgumentType=false


def measure() -> dict[str, Any]:
    """The machine, with the peak of one core: multiply-adds per ns, reading from main memory."""
    with pinned():
        peak = {kind: peak_fma_per_ns(kind) for kind in ("float64", "float32")}
        return {**describe(), "peak_fma_per_ns": peak, "read_gb_per_s": read_gb_per_s()}


@compiled
def chains(lanes, out, times):
    """Eight chains of multiply-adds in registers that depend on nothing else."""
    w = width(lanes)
    x, y = fill(lanes, 0.999), fill(lanes, 0.001)
    a0, a1, a2, a3 = load(lanes, out, 0), load(lanes, out, w), load(lanes, out, 2 * w), x
    a4, a5, a6, a7 = a0, a1, a2, a3
    for _ in range(times):
        a0, a1 = muladd(a0, x, y), muladd(a1, x, y)
        a2, a3 = muladd(a2, x, y), muladd(a3, x, y)
        a4, a5 = muladd(a4, y, x), muladd(a5, y, x)
        a6, a7 = muladd(a6, y, x), muladd(a7, y, x)
    store(out, 0, a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7)


@compiled
def read_all(lanes, values, out):
    """Sum an array by whole vectors."""
    w = width(lanes)
    a, b, c, d = fill(lanes, 0.0), fill(lanes, 0.0), fill(lanes, 0.0), fill(lanes, 0.0)
    for q in range(0, len(values) // (4 * w) * 4 * w, 4 * w):
        a = a + load(lanes, values, q)
        b = b + load(lanes, values, q + w)
        c = c + load(lanes, values, q + 2 * w)
        d = d + load(lanes, values, q + 3 * w)
    store(out, 0, a + b + c + d)


def peak_fma_per_ns(dtype: str) -> float:
    """Multiply-adds of one core per nanosecond, counted per number and not per vector."""
    wide = vector_bits() // (64 if dtype == "float64" else 32)
    lanes, times = Lanes(max(wide, 4), dtype), 300_000
    out = np.ones(64, dtype)
    seconds = least_cpu_seconds(lambda: chains(lanes, out, times), repeats=9)
    return 8 * times * lanes.width / seconds / 1e9


def read_gb_per_s(megabytes: int = 256) -> float:
    """Bandwidth of one core that reads an array far larger than any cache."""
    values = np.ones(megabytes * 2**17)
    out, lanes = np.zeros(64), Lanes(max(vector_bits() // 64, 4))
    return values.nbytes / least_cpu_seconds(lambda: read_all(lanes, values, out), repeats=5) / 1e9
