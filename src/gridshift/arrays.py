"""Array aliases and the letters that docstrings use for axes.

| letter | axis |
|---|---|
| R | rows: scenarios of one batch |
| B | buses |
| L | loads |
| G | generators |
| E | branches |
| X | entries of the surrogate's input x |
| Y | entries of the surrogate's output y |

Inside the library, powers, admittances and currents are per unit on `Network.base_mva`, angles are
radians, reals are float64. A name that carries a unit (`p_mw`, `va_deg`) is the exception.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]
Complex = NDArray[np.complex128]
Int = NDArray[np.int64]
Bool = NDArray[np.bool_]


def make_read_only(of: Any) -> None:
    """Let nobody write to the arrays that are fields of this dataclass."""
    for value in vars(of).values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
