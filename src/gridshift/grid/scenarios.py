"""Load scenarios: what is drawn, from which named random stream, and the arrays that come out."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from gridshift.arguments import expect, number, whole_number
from gridshift.arrays import Complex, Int, Real
from gridshift.errors import ScenarioError
from gridshift.grid.network import Network
from gridshift.memory import require_memory

Spread = Literal["fixed", "drawn", "mixed"]
NARROWEST = 0.05
"""Lower end of a drawn spread (paper, section IV)."""
KEPT_BYTES = 1 << 28
"""Scenarios that are kept, not drawn anew for every use; drawing takes a third of solving."""


@dataclass(frozen=True, kw_only=True)
class LoadScenarios:
    """Demands of R scenarios, per unit, positive when consumed. Everything else is at base."""

    load_p: Real
    """(R, L)"""
    load_q: Real
    """(R, L)"""

    @property
    def num_rows(self) -> int:
        """R, the number of scenarios."""
        return len(self.load_p)

    @property
    def load_power(self) -> Complex:
        """(R, L)"""
        return self.load_p + 1j * self.load_q

    def rows(self, which: slice | np.ndarray) -> "LoadScenarios":
        """The chosen scenarios."""
        return LoadScenarios(load_p=self.load_p[which], load_q=self.load_q[which])

    def of_loads(self, which: Int) -> "LoadScenarios":
        """The same scenarios for these loads alone."""
        return LoadScenarios(load_p=self.load_p[:, which], load_q=self.load_q[:, which])


def demands(network: Network, loads: LoadScenarios) -> tuple[Real, Real]:
    """(R, L) active and reactive demands, p.u., as the kernels read them.

    Raises:
        ScenarioError: arrays whose shape does not fit the network, or no scenarios at all.
    """
    expect(network, Network, "the grid", ScenarioError)
    expect(loads, LoadScenarios, "scenarios", ScenarioError)
    given = np.asarray(loads.load_p), np.asarray(loads.load_q)
    expected = (len(given[0]) if given[0].ndim else 0, network.num_loads)
    for name, demand in zip(("load_p", "load_q"), given, strict=True):
        if demand.shape != expected or demand.dtype.kind not in "fiu":
            raise ScenarioError(
                f"{name} has shape {demand.shape} and type {demand.dtype}; {network.name} needs "
                f"real numbers (rows, {network.num_loads})"
            )
    load_p, load_q = (np.ascontiguousarray(demand, np.float64) for demand in given)
    return load_p, load_q


def named_rng(
    case: str, role: str, *, outage: str = "", draw: int = 0, seed: int = 0
) -> np.random.Generator:
    """A random generator that belongs to a name: the same name always gives the same numbers.

    Args:
        role: what the numbers are for, for instance 'training', 'context' or 'test'.
        draw: number of the repetition within one seed.

    Raises:
        ScenarioError: a seed that is not a whole number of at least 0.
    """
    seed = whole_number(seed, "the seed", ScenarioError, least=0)
    name = "\x1f".join((case, role, outage, str(draw))).encode()
    words = np.frombuffer(hashlib.sha256(name).digest(), np.uint32)
    return np.random.default_rng(np.random.SeedSequence([seed, *words.tolist()]))


def nominal_loads(network: Network, num_rows: int = 1) -> LoadScenarios:
    """Every load at its nominal demand, `num_rows` times.

    Raises:
        ScenarioError: fewer than one row.
    """
    num_rows = whole_number(num_rows, "the number of scenarios", ScenarioError)
    power = np.tile(network.load_power, (num_rows, 1))
    return LoadScenarios(load_p=power.real.copy(), load_q=power.imag.copy())


def sample_loads(
    network: Network,
    rng: np.random.Generator,
    num_rows: int,
    *,
    spread: float = 0.2,
    regime: Spread = "mixed",
) -> LoadScenarios:
    """Demands with independent uniform factors 1 + U[-s, s] on every p and every q.

    The spread s of a row is `spread` ('fixed'), uniform in [0.05, spread] ('drawn';
    `spread` itself where that is below 0.05), or the
    first for the first half of the rows and the second for the others, shuffled ('mixed'):
    test rows of the paper are drawn, training and context rows are mixed (section IV).

    Raises:
        ScenarioError: a spread that is negative or not finite, fewer than one row, or a `rng` that
            is no generator.
        MemoryNeededError: more rows than fit into memory.
    """
    expect(rng, np.random.Generator, "rng", ScenarioError)
    num_rows = _checked(num_rows, spread, regime)
    drawn = 8 * (4 * network.num_loads + 4) * num_rows
    require_memory(drawn, f"{num_rows:,} scenarios of {network.name}", count=num_rows)
    width = _widths(rng, num_rows, spread, regime)
    load_p = _factors(rng, width, network.num_loads)
    load_q = _factors(rng, width, network.num_loads)
    load_p *= network.load_power.real
    load_q *= network.load_power.imag
    return LoadScenarios(load_p=load_p, load_q=load_q)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scenarios:
    """What `sample_loads` would draw, drawn when rows are asked for: any number of them fits."""

    network: Network
    widths: Real
    """(R,) spread of each row."""
    state: Mapping[str, Any]
    """Of the random stream before the first load's factors."""
    kept: Int | None = None
    """Loads that are handed out, None for all."""

    @property
    def num_rows(self) -> int:
        """R, the number of scenarios."""
        return len(self.widths)

    def rows(self, which: slice) -> LoadScenarios:
        """The chosen scenarios, a run of rows without gaps."""
        first, last, step = which.indices(self.num_rows)
        assert step == 1
        width, num_loads = self.widths[first:last], self.network.num_loads
        power = self.network.load_power

        def factors(behind: int) -> Real:
            """Each factor takes one number of the stream."""
            bits = np.random.PCG64()
            bits.state = self.state  # pyright: ignore[reportAttributeAccessIssue]
            bits.advance((behind + first) * num_loads)
            return _factors(np.random.Generator(bits), width, num_loads)

        drawn = LoadScenarios(
            load_p=power.real * factors(0), load_q=power.imag * factors(self.num_rows)
        )
        return drawn if self.kept is None else drawn.of_loads(self.kept)

    def of_loads(self, which: Int) -> "Scenarios":
        """The same rows for these loads alone."""
        assert self.kept is None
        return replace(self, kept=which)


def scenarios(
    network: Network, rng: np.random.Generator, num_rows: int, *, spread: float, regime: Spread
) -> Scenarios | LoadScenarios:
    """The rows of `sample_loads`, to be taken in blocks; kept if they are few.

    Raises:
        ScenarioError, MemoryNeededError: as in `sample_loads`.
    """
    num_rows = _checked(num_rows, spread, regime)
    if 16 * network.num_loads * num_rows <= KEPT_BYTES:
        return sample_loads(network, rng, num_rows, spread=spread, regime=regime)
    require_memory(32 * num_rows, f"{num_rows:,} scenarios of {network.name}", count=num_rows)
    widths = _widths(rng, num_rows, spread, regime)
    return Scenarios(network=network, widths=widths, state=rng.bit_generator.state)


def _checked(num_rows: int, spread: float, regime: str) -> int:
    """The number of scenarios, if what is asked for can be drawn."""
    if number(spread, "spread", ScenarioError, example=0.2) < 0:
        raise ScenarioError(
            f"spread {spread} must be a finite number of at least 0, for instance 0.2"
        )
    if regime not in get_args(Spread):
        raise ScenarioError(f"no spread {regime!r}; choose one of {', '.join(get_args(Spread))}")
    return whole_number(num_rows, "the number of scenarios", ScenarioError)


def _widths(rng: np.random.Generator, num_rows: int, spread: float, regime: str) -> Real:
    """(R,) spread of each row."""
    drawn = rng.uniform(min(NARROWEST, spread), spread, num_rows)
    if regime == "drawn":
        return drawn
    if regime == "mixed":
        half = rng.permutation(num_rows) < num_rows - num_rows // 2
        return np.where(half, float(spread), drawn)
    return np.full(num_rows, float(spread))


def _factors(rng: np.random.Generator, width: Real, num_loads: int) -> Real:
    """(R, L), made in one array: memory that is touched first costs more than the sums."""
    factors = rng.uniform(-1, 1, (len(width), num_loads))
    factors *= width[:, None]
    factors += 1
    return factors
