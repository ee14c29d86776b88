"""Loops and nothing else; the only place that imports numba. Callers check, kernels don't."""
