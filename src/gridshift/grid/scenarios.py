"""Load scenarios: what is drawn, from which named random stream, and the arrays that come out."""

import hashlib
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from gridshift.arguments import expect, number, whole_number
from gridshift.arrays import Complex, Real
from gridshift.errors import ScenarioError
from gridshift.grid.network import Network

Spread = Literal["fixed", "drawn", "mixed"]
NARROWEST = 0.05
"""Lower end of a drawn spread (paper, section IV)."""


@dataclass(frozen=True, kw_only=True)
class Injections:
    """Demands of R scenarios, per unit, positive when consumed. Everything else is at base."""

    load_p: Real
    """(R, L)"""
    load_q: Real
    """(R, L)"""

    @property
    def num_rows(self) -> int:
        return len(self.load_p)

    @property
    def load_power(self) -> Complex:
        """(R, L)"""
        return self.load_p + 1j * self.load_q

    def rows(self, which: slice | np.ndarray) -> "Injections":
        """The chosen scenarios."""
        return Injections(load_p=self.load_p[which], load_q=self.load_q[which])


def stream(
    case: str, role: str, *, outage: str = "", draw: int = 0, seed: int = 0
) -> np.random.Generator:
    """A random generator that belongs to a name: the same name always gives the same numbers.

    Args:
        case: name of the grid.
        role: what the numbers are for, for instance 'training', 'context' or 'test'.
        outage: text of the outage, empty for the base topology.
        draw: number of the repetition within one seed.
        seed: root seed of the study.

    Raises:
        ScenarioError: a seed that is not a whole number of at least 0.
    """
    seed = whole_number(seed, "the seed", ScenarioError, least=0)
    name = "\x1f".join((case, role, outage, str(draw))).encode()
    words = np.frombuffer(hashlib.sha256(name).digest(), np.uint32)
    return np.random.default_rng(np.random.SeedSequence([seed, *words.tolist()]))


def nominal_loads(network: Network, num_rows: int = 1) -> Injections:
    """Every load at its nominal demand, `num_rows` times.

    Raises:
        ScenarioError: fewer than one row.
    """
    whole_number(num_rows, "the number of scenarios", ScenarioError)
    power = np.tile(network.load_power, (num_rows, 1))
    return Injections(load_p=power.real.copy(), load_q=power.imag.copy())


def sample_loads(
    network: Network,
    rng: np.random.Generator,
    num_rows: int,
    *,
    spread: float = 0.2,
    regime: Spread = "mixed",
) -> Injections:
    """Demands with independent uniform factors 1 + U[-s, s] on every p and every q.

    The spread s of a row is `spread` ('fixed'), uniform in [0.05, spread] ('drawn'), or the
    first for the first half of the rows and the second for the others, shuffled ('mixed'):
    test rows of the paper are drawn, training and context rows are mixed (section IV).

    Raises:
        ScenarioError: a spread that is negative or not finite, fewer than one row, or a `rng` that
            is no generator.
    """
    expect(rng, np.random.Generator, "rng", ScenarioError)
    if number(spread, "spread", ScenarioError, example=0.2) < 0:
        raise ScenarioError(
            f"spread {spread} must be a finite number of at least 0, for instance 0.2"
        )
    whole_number(num_rows, "the number of scenarios", ScenarioError)
    if regime not in get_args(Spread):
        raise ScenarioError(f"no spread {regime!r}; choose one of {', '.join(get_args(Spread))}")
    width = np.full(num_rows, float(spread))
    drawn = rng.uniform(min(NARROWEST, spread), spread, num_rows)
    if regime == "drawn":
        width = drawn
    elif regime == "mixed":
        half = rng.permutation(num_rows) < num_rows - num_rows // 2
        width = np.where(half, width, drawn)
    shape = (num_rows, network.num_loads)
    factor_p = 1 + width[:, None] * rng.uniform(-1, 1, shape)
    factor_q = 1 + width[:, None] * rng.uniform(-1, 1, shape)
    return Injections(
        load_p=network.load_power.real * factor_p, load_q=network.load_power.imag * factor_q
    )
