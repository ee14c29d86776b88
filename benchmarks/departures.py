"""Cases that aren't what compensation is made for: other loads, noise, wrong end buses."""

from collections.abc import Callable

import numpy as np

from gridshift.adapt.compensation import at_buses
from gridshift.adapt.datasets import Dataset, generate
from gridshift.grid.contingency import outage_text
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.grid.scenarios import LoadScenarios, named_rng
from gridshift.learn.compensation import Touched
from gridshift.trial.cases import draw


def solved(
    network: Network, role: str, num: int, seed: int, *, spread: float = 0.2,
    change: Callable[[Network, LoadScenarios, int], LoadScenarios] | None = None,
    of: str = "context",
) -> Dataset:  # fmt: skip
    """The rows of `gridshift adapt`, those of role `of` with their loads changed."""
    regime = "drawn" if role == "test" else "mixed"
    loads = draw(network, role, num, spread=spread, regime=regime, seed=seed)
    if change is not None and role == of:
        loads = change(network, loads, seed)
    return generate(network, loads, min_rows=(num + 1) // 2)


def scaled(network: Network, loads: LoadScenarios, seed: int, *, factor: float) -> LoadScenarios:
    return LoadScenarios(load_p=factor * loads.load_p, load_q=factor * loads.load_q)


def in_step(network: Network, loads: LoadScenarios, seed: int) -> LoadScenarios:
    """One factor of ±20 % for all loads of a row, and ±2 % of their own."""
    rng = named_rng(network.name, "common factor", outage=outage_text(network.outaged), seed=seed)
    common = 1 + rng.uniform(-0.2, 0.2, (loads.num_rows, 1))
    own = 1 + rng.uniform(-0.02, 0.02, (2, *loads.load_p.shape))
    power = network.load_power
    return LoadScenarios(load_p=power.real * common * own[0], load_q=power.imag * common * own[1])


def half_at_rest(network: Network, loads: LoadScenarios, seed: int) -> LoadScenarios:
    """Every other load at its nominal demand."""
    load_p, load_q = loads.load_p.copy(), loads.load_q.copy()
    load_p[:, ::2], load_q[:, ::2] = network.load_power.real[::2], network.load_power.imag[::2]
    return LoadScenarios(load_p=load_p, load_q=load_q)


def noisy(
    network: Network, role: str, num: int, seed: int, *, share: float, of_value: bool
) -> Dataset:
    """Context outputs with normal noise: a share of their standard deviation, or of their value."""
    data = solved(network, role, num, seed)
    if role == "test":
        return data
    rng = named_rng(network.name, "noise", outage=outage_text(network.outaged), seed=seed)
    size = np.abs(data.y) if of_value else data.y.std(0)
    y = data.y + share * size * rng.standard_normal(data.y.shape)
    return Dataset(
        x=data.x, y=y, layout=data.layout, network=network, status_counts=data.status_counts
    )


def misled(network: Network, seed: int, *, how: str) -> Touched:
    """The buses of a single line outage, told wrongly."""
    intact = network.intact
    (line,) = network.outaged
    right = _ends(intact, line)
    rng = named_rng(intact.name, "wrong buses", outage=line, seed=seed)
    others = np.setdiff1d(np.arange(intact.num_buses), right)
    layout = Layout.of(network)
    if how == "no buses at all":
        return Touched()
    if how == "a neighbour too":
        near = np.setdiff1d(intact.admittance[[right[1]]].indices, right)
        joined = [right, (right[1], int(rng.choice(near if len(near) else others)))]
    elif how == "one wrong":
        joined = [(right[0], int(rng.choice(others)))]
    else:
        lines = [_ends(intact, name) for name in intact.elements if name.startswith("line")]
        lines = [ends for ends in lines if not set(ends) & set(right)]
        joined = [lines[rng.integers(len(lines))]]
    joined = [(min(ends), max(ends)) for ends in joined]
    return at_buses(layout, np.unique(joined), joined)


def _ends(network: Network, line: str) -> tuple[int, int]:
    (branch,) = network.elements[line]
    return int(network.branch_from[branch]), int(network.branch_to[branch])
