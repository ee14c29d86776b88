"""How numbers are written for people, on the terminal and in the report."""

import math


def real(value: float | None, *, none: str = "-") -> str:
    """Three significant digits, in powers of ten outside 0.001 to 100,000."""
    if value is None or not math.isfinite(value):
        return none
    if value == 0:
        return "0"
    size = abs(value)
    if size < 1e-3 or size >= 1e5:
        return f"{value:.2e}".replace("e-0", "e-").replace("e+0", "e")
    value = float(f"{value:.3g}")  # before the digits are counted: 99.96 is 100
    return f"{value:,.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
