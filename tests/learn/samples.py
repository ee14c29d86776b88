"""Random rows with correlated columns of different sizes, as outputs of a power flow are."""

import numpy as np
from hypothesis import strategies as st

seeds = st.integers(0, 2**32 - 1)
widths = st.integers(2, 12)


def correlated_rows(seed: int, width: int, num_rows: int | None = None) -> np.ndarray:
    """Rows whose standard deviations span 0.05 to 5, far above the regularisation of 1e-6."""
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(width, width)) / np.sqrt(width) + 0.5 * np.eye(width)
    scale = 10 ** rng.uniform(-1, 0.5, width)
    rows = rng.normal(size=(num_rows or 20 * width, width))
    return rows @ mixing * scale + rng.normal(size=width)
