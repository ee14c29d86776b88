"""The solved cases of a trial: a context to adapt to, and a test that no method has seen."""

import time
from functools import cached_property
from typing import Any

import numpy as np

from gridshift.adapt.base import Base
from gridshift.adapt.context import Context
from gridshift.adapt.datasets import Dataset, generate, require_rows
from gridshift.adapt.method import Method
from gridshift.arrays import Real
from gridshift.grid.contingency import outage_text
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.grid.scenarios import LoadScenarios, Spread, named_rng, nominal_loads, sample_loads
from gridshift.learn.splits import evenly_spaced
from gridshift.threads import Threads

NUM_TIMED = 2048
"""Rows, repeated ones, on which predictions for a few held-out cases are timed."""


class Cases:
    """Context and test of one topology, drawn from streams of their own and solved when needed.

    Context rows have mixed spread, test rows drawn spread (section IV of the paper). Each is solved
    once, on one thread, for all trials that share it.

    Args:
        num_context: scenarios solved for the context.
        num_test: scenarios solved for the test.
        spread: spread of the loads.
        solver: keyword arguments of `solve`.

    Raises:
        MemoryNeededError: they don't fit into memory.
    """

    def __init__(
        self, network: Network, *, num_context: int = 400, num_test: int = 1000,
        spread: float = 0.2, seed: int = 0, **solver: Any,
    ):  # fmt: skip
        self.network, self.num_context, self.num_test = network, num_context, num_test
        self.spread, self.seed, self.solver = spread, seed, solver
        for role, number in (("context", num_context), ("test", num_test)):
            require_rows(network, number, f"{role} scenarios")

    @classmethod
    def held_out(cls, context: Context, layout: Layout, share: float, *, data_s: float) -> "Cases":
        """Solved cases that there are already: a share of them is the test, the rest the context.

        Args:
            context: the cases; which of them are held out is spread evenly over their order.
            share: part that is held out, of at least two cases.
            data_s: what all of them cost, s.
        """
        data = Dataset(
            x=context.x, y=context.y, layout=layout, network=context.network,
            status_counts={"solved": context.num_solves},
        )  # fmt: skip
        held = evenly_spaced(len(data), share)
        cases = cls(context.network, num_context=int((~held).sum()), num_test=int(held.sum()))
        cases.context, cases.test, cases.data_s = data.rows(~held), data.rows(held), data_s
        cases.timed_x = np.resize(cases.test.x, (NUM_TIMED, context.x.shape[1]))
        return cases

    @cached_property
    def context(self) -> Dataset:
        """Solved cases to adapt to.

        Raises:
            ScenarioError: most of the scenarios have no solution.
        """
        with Threads(1):
            generate(self.network, nominal_loads(self.network, 2), min_rows=0, **self.solver)
            began = time.perf_counter()  # kernels are compiled by now
            data = self._solved(self.loads("context", self.num_context, "mixed"))
            self.data_s = time.perf_counter() - began
        return data

    @cached_property
    def data_s(self) -> float:
        """What drawing and solving the context took, s."""
        _ = self.context
        return self.data_s

    @cached_property
    def test_loads(self) -> LoadScenarios:
        """The scenarios of the test."""
        return self.loads("test", self.num_test, "drawn")

    @cached_property
    def test(self) -> Dataset:
        """Solved cases to measure on; raises as `context`."""
        with Threads(1):
            return self._solved(self.test_loads)

    @cached_property
    def timed_x(self) -> Real:
        """(R, X) inputs on which predictions are timed."""
        return self.test.x

    def given_to(self, method: Method, base: Base) -> Context:
        """What this method is told of the topology: the context if it has a use for solved cases.

        Raises:
            ContextError: too few scenarios for what the method needs, or a negative number.
        """
        method.check_num_context(self.num_context)
        if not method.uses_solved_cases or self.num_context == 0:
            return Context.empty(self.network, base)
        return Context.of(self.context)

    def loads(self, role: str, num_rows: int, regime: Spread) -> LoadScenarios:
        """Scenarios of the topology's own stream for a role."""
        return draw(
            self.network, role, num_rows, spread=self.spread, regime=regime, seed=self.seed
        )  # fmt: skip

    def _solved(self, loads: LoadScenarios) -> Dataset:
        return generate(self.network, loads, min_rows=(loads.num_rows + 1) // 2, **self.solver)


def draw(
    network: Network, role: str, num_rows: int, *, spread: float, regime: Spread, seed: int
) -> LoadScenarios:
    """Scenarios of a topology's own stream for this role, to be solved and packed.

    Raises:
        MemoryNeededError: they don't fit into memory.
    """
    require_rows(network, num_rows, f"{role} scenarios")
    rng = named_rng(network.name, role, outage=outage_text(network.outaged), seed=seed)
    return sample_loads(network, rng, num_rows, spread=spread, regime=regime)
