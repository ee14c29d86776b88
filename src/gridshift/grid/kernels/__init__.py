"""Loops and nothing else; the only place that imports numba. Callers check, kernels don't."""

from gridshift.caches import prepare_kernel_cache

CACHED = prepare_kernel_cache()
"""Whether compiled code can be kept; decided before a kernel is defined."""
