"""The small grid's surrogates and solved cases, and the triangle."""

from tests.adapt.conftest import grid, outage_rows, surrogate, surrogates, training_rows
from tests.study.conftest import triangle

__all__ = ["grid", "outage_rows", "surrogate", "surrogates", "training_rows", "triangle"]
