"""Loops and nothing else; the only place that imports numba. Callers check, kernels don't."""

# pyright: reportAttributeAccessIssue=false

import numba
from numba.core import config

from gridshift.caches import kernel_folder

FOLDER = kernel_folder(numba.__version__)
"""Where compiled code is kept, decided before a kernel is defined; None if it can't be."""


def compiled(kernel):
    """The kernel, to be compiled when first called, without the interpreter's lock, and kept."""
    usual, config.CACHE_DIR = config.CACHE_DIR, str(FOLDER or "")
    try:
        return numba.njit(nogil=True, cache=FOLDER is not None, error_model="numpy")(kernel)
    finally:
        config.CACHE_DIR = usual
