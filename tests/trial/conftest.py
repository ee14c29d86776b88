"""The small grid's surrogates and solved cases, and the triangle."""

from tests.adapt.conftest import (
    closed_forms,
    grid,
    outage_rows,
    surrogate,
    surrogates,
    training_rows,
)
from tests.study.conftest import triangle

__all__ = [
    "closed_forms",
    "grid",
    "outage_rows",
    "surrogate",
    "surrogates",
    "training_rows",
    "triangle",
]
