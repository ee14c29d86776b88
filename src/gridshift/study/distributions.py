"""Distributions of the factors that a study multiplies powers by."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from gridshift.arguments import shown
from gridshift.arrays import Real
from gridshift.study.description import UncertaintyError, finite

# scipy.stats takes half a second to import, so it is left to the functions that draw.


@dataclass(frozen=True, kw_only=True)
class Distribution(ABC):
    """Factors that multiply a power; a class for each kind, checked when made.

    Raises:
        UncertaintyError: a parameter that is no finite number, or one that means nothing.
    """

    positive: ClassVar[tuple[str, ...]] = ()
    """Parameters that must be greater than 0; `low` must be less than `high` wherever they are."""

    def __post_init__(self) -> None:
        for f in fields(self):
            if f.type is float:
                object.__setattr__(self, f.name, finite(getattr(self, f.name), f.name))
        self._check()

    def _check(self) -> None:
        """Raise if parameters don't suit each other."""
        for name in self.positive:
            value = getattr(self, name)
            if value <= 0:
                raise UncertaintyError((name,), f"{value:g} must be greater than 0")
        low, high = getattr(self, "low", -math.inf), getattr(self, "high", math.inf)
        if low >= high:
            told = f"{high:g} must be greater than low, which is {low:g}"
            raise UncertaintyError(("high",), told)

    @abstractmethod
    def quantiles(self, u: Real) -> Real:
        """Values below which the share `u` of the distribution lies, of the same shape."""


@dataclass(frozen=True, kw_only=True)
class OfScipy(Distribution):
    """One that scipy knows."""

    @abstractmethod
    def scipy(self) -> Any:
        """The distribution as scipy knows it."""

    def quantiles(self, u: Real) -> Real:
        """As of every distribution."""
        return self.scipy().ppf(u)


@dataclass(frozen=True, kw_only=True)
class Fixed(Distribution):
    """Always the same."""

    value: float = 1.0

    def quantiles(self, u: Real) -> Real:
        """The value, for every share u (...)."""
        return np.full(u.shape, self.value)


@dataclass(frozen=True, kw_only=True)
class Uniform(OfScipy):
    """Equally likely between `low` and `high`."""

    low: float
    high: float

    def scipy(self) -> Any:
        """With `low` and `high`."""
        from scipy import stats

        return stats.uniform(self.low, self.high - self.low)


@dataclass(frozen=True, kw_only=True)
class Normal(OfScipy):
    """Gaussian, without bounds."""

    positive = ("sd",)
    sd: float
    mean: float = 1.0

    def scipy(self) -> Any:
        """With `mean` and `sd`."""
        from scipy import stats

        return stats.norm(self.mean, self.sd)


@dataclass(frozen=True, kw_only=True)
class TruncatedNormal(OfScipy):
    """Gaussian given that it lies between `low` and `high`; `mean` and `sd` are those before."""

    positive = ("sd",)
    sd: float
    low: float
    high: float
    mean: float = 1.0

    def scipy(self) -> Any:
        """Its bounds are counted in deviations from the mean."""
        from scipy import stats

        low, high = ((bound - self.mean) / self.sd for bound in (self.low, self.high))
        return stats.truncnorm(low, high, self.mean, self.sd)


@dataclass(frozen=True, kw_only=True)
class Lognormal(OfScipy):
    """Positive, with a Gaussian logarithm; `mean` and `sd` are those of the factor itself."""

    positive = ("sd", "mean")
    sd: float
    mean: float = 1.0

    def scipy(self) -> Any:
        """Its width is that of the logarithm."""
        from scipy import stats

        width = math.sqrt(math.log1p((self.sd / self.mean) ** 2))
        return stats.lognorm(width, scale=self.mean * math.exp(-(width**2) / 2))


@dataclass(frozen=True, kw_only=True)
class Beta(OfScipy):
    """Beta distribution with shapes `a` and `b`, stretched to `low` ... `high`: wind and sun."""

    positive = ("a", "b")
    a: float
    b: float
    low: float = 0.0
    high: float = 1.0

    def scipy(self) -> Any:
        """On `low` to `high`."""
        from scipy import stats

        return stats.beta(self.a, self.b, self.low, self.high - self.low)


@dataclass(frozen=True, kw_only=True)
class Empirical(Distribution):
    """Each of these factors, as likely as it is frequent."""

    values: tuple[float, ...]

    def _check(self) -> None:
        if not isinstance(self.values, list | tuple | np.ndarray) or not len(self.values):
            raise UncertaintyError(
                ("values",), f"{shown(self.values)}; give a list of at least one factor"
            )
        found = tuple(finite(value, "values") for value in self.values)
        object.__setattr__(self, "values", found)

    def quantiles(self, u: Real) -> Real:
        """The listed value below which the shares u (...) of the list lie."""
        rows = np.minimum((u * len(self.values)).astype(np.int64), len(self.values) - 1)
        return np.sort(self.values)[rows]


DISTRIBUTIONS: dict[str, type[Distribution]] = {
    "fixed": Fixed,
    "uniform": Uniform,
    "normal": Normal,
    "truncated_normal": TruncatedNormal,
    "lognormal": Lognormal,
    "beta": Beta,
    "empirical": Empirical,
}
