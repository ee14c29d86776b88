"""Loops and nothing else; the only place that imports numba. Callers check, kernels don't."""

import numba

from gridshift.caches import kernel_folder

FOLDER = kernel_folder(numba.__version__)
"""Where compiled code is kept, decided before a kernel is defined; None if it can't be."""
