"""Outages: parse, enumerate, tell which split the grid, rank by loading."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from gridshift.arguments import expect, how_many, outage_labels, shown, some_of, whole_number
from gridshift.arrays import Complex, Int
from gridshift.errors import OutageError
from gridshift.grid.after_outage import after_outage, knows, other_elements
from gridshift.grid.equations import branch_loading
from gridshift.grid.kernels.graph import unreachable
from gridshift.grid.network import BusKind, Network
from gridshift.grid.powerflow import RowStatus, nominal, solve
from gridshift.grid.scenarios import named_rng, sample_loads

Outage = tuple[str, ...]
"""Labels of the elements that are out, by kind and then by number; `()` is the intact grid."""

OutageKind = Literal["lines", "trafos", "all", "generators", "static", "buses", "loads", "shunts"]
KINDS: dict[str, tuple[str, ...]] = {
    "lines": ("line", "branch"),
    "trafos": ("trafo", "trafo3w"),
    "all": (),
}
"""Kinds of branches that each choice takes in, none meaning all; MATPOWER files know branches
only."""
OTHER_KINDS = ("generators", "static", "buses", "loads", "shunts")


def label_order(label: str) -> tuple[str, int, str]:
    """Sorting key of an element's label: by kind, then by number."""
    kind, _, number = label.partition(":")
    return (kind, int(number), "") if number.isdecimal() else (kind, -1, number)


def make_outage(labels: Sequence[str]) -> Outage:
    """The outage of these elements: each once, sorted by kind and then by number.

    Raises:
        OutageError: something else than a collection of labels.
    """
    return tuple(sorted(set(outage_labels(labels)), key=label_order))


def outage_text(outage: Sequence[str]) -> str:
    """Text form of an outage, `line:9,line:28`; `parse_outage` reads it back."""
    return ",".join(make_outage(outage))


def parse_outage(
    network: Network, text: str | Sequence[str], *, branches_alone: bool = True
) -> Outage:
    """The outage that a text like `line:9,line:28` names; spaces and a repeated name don't matter.

    A sequence of labels, `["line:9", "line:28"]`, is checked in the same way.

    Args:
        branches_alone: False takes `gen:2`, `static:7`, `bus:7`, `load:3`, `shunt:4` as well.

    Raises:
        OutageError: no element, one that the grid doesn't have, or one already out of service;
            all problems of the text in one message.
    """
    if isinstance(text, str):
        labels = [part for part in re.split(r"[,\s]+", text.strip()) if part]
    else:
        labels = outage_labels(text)
    problems = _problems(network, labels, branches_alone)
    if problems:
        raise OutageError("; ".join(problems))
    return make_outage(labels)


def _problems(network: Network, labels: list[str], branches_alone: bool) -> list[str]:
    if not labels:
        example = next(iter(network.elements), "line:0")
        return [f"an outage names at least one element, for instance {example}"]
    problems = []
    unknown = [label for label in labels if label not in network.elements]
    if not branches_alone:
        unknown = [label for label in unknown if not knows(network, label)]
    others = [label for label in unknown if branches_alone and knows(network, label)]
    unknown = [label for label in unknown if label not in others]
    if others:
        problems.append(f"{', '.join(others)}: only lines and transformers can be out here; "
                        "'gridshift screen' takes other elements out")  # fmt: skip
    if unknown:
        told = f"no element {', '.join(unknown)} in {network.name}; "
        told += f"list them with 'gridshift cases {network.name} --outages'"
        if not all(":" in label for label in unknown):
            told += "; names and rates in a list stand behind semicolons"
        problems.append(told)
    known = [label for label in labels if label in network.elements]
    already = [label for label in known if not _in_service(network, label)]
    if already:
        problems.append(f"{', '.join(already)} already out of service in {network.name}")
    return problems


def _in_service(network: Network, label: str) -> bool:
    return bool(network.branch_in_service[list(network.elements[label])].any())


def candidate_elements(network: Network, kind: OutageKind = "lines") -> list[str]:
    """Elements of a kind that are in service, in the source's order."""
    if kind in OTHER_KINDS:
        return other_elements(network, kind)
    if not isinstance(kind, str) or kind not in KINDS:
        known = ", ".join((*KINDS, *OTHER_KINDS))
        raise OutageError(f"no kind of elements {shown(kind)}; choose from {known}")
    wanted = KINDS[kind]
    return [
        label
        for label in network.elements
        if (not wanted or label.partition(":")[0] in wanted) and _in_service(network, label)
    ]


def enumerate_outages(network: Network, kind: OutageKind = "lines", size: int = 1) -> list[Outage]:
    """All outages of `size` elements of a kind, those that split the grid included."""
    size = whole_number(size, "the number of elements of an outage", OutageError)
    candidates = candidate_elements(network, kind)
    if len(candidates) < size:
        raise OutageError(
            f"{network.name} has {how_many(len(candidates), 'element')} of kind '{kind}' in "
            f"service; outages of {size} were asked for"
        )
    return [make_outage(labels) for labels in combinations(candidates, size)]


def cut_off_buses(network: Network, outages: Sequence[Outage]) -> list[Int]:
    """Buses that each outage leaves without a path to any slack bus, ascending."""
    is_slack = network.bus_kind == BusKind.SLACK
    answers = []
    for outage in outages:
        if any(label not in network.elements for label in outage):
            answers.append(after_outage(network, outage).cut_off)
            continue
        on = network.branch_in_service.copy()
        on[[branch for label in outage for branch in network.elements[label]]] = False
        answers.append(unreachable(network.branch_from, network.branch_to, on, is_slack))
    return answers


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """What an outage does to the grid at nominal demand."""

    outage: Outage
    network: Network
    """The grid without the outaged elements."""
    cut_off: tuple[str, ...]
    """Labels of the buses without a path to any slack bus."""
    mw_cut_off: float
    """Nominal active demand at those buses, MW."""
    mw_generation_cut_off: float
    """Scheduled generation there, MW."""
    status: RowStatus
    """ISLANDED if buses are cut off, else how the nominal power flow ended."""
    voltage: Complex
    """(B,) nominal solution, NaN where there is none."""

    @property
    def usable(self) -> bool:
        """Whether the grid stays in one piece and has a nominal solution."""
        return self.status == RowStatus.SOLVED

    @property
    def reason(self) -> str:
        """Why the outage cannot be studied, in words; empty if it can."""
        if self.usable:
            return ""
        text = outage_text(self.outage) or "the intact grid"
        if self.status != RowStatus.ISLANDED:
            return f"{text} leaves no nominal solution ({self.status.text.replace('_', ' ')})"
        return (
            f"{text} separates {some_of(self.cut_off)} ({self.mw_cut_off:.1f} MW of demand, "
            f"{self.mw_generation_cut_off:.1f} MW of generation)"
        )


def demand_at(network: Network, buses: Int) -> float:
    """Nominal active demand at these buses, MW, whatever is generated beside it."""
    return float(network.bus_demand[buses].sum() * network.base_mva)


def generation_at(network: Network, buses: Int) -> float:
    """Scheduled active generation at these buses, MW, whatever is consumed beside it."""
    return float(network.bus_generation[buses].sum() * network.base_mva)


def assess(network: Network, outage: Outage, *, cut_off: Int | None = None) -> Assessment:
    """What an outage does at nominal demand: buses and MW cut off, and whether a solution exists.

    Args:
        outage: elements to take out; `()` assesses the grid as it is.
        cut_off: the buses that it cuts off, if `cut_off_buses` has told already.
    """
    expect(network, Network, "the grid", OutageError)
    outage = make_outage(outage)
    left = network.without(outage) if outage else network
    buses = left.cut_off_buses() if cut_off is None else cut_off
    status, voltage = RowStatus.ISLANDED, np.full(network.num_buses, np.nan, complex)
    if not len(buses):
        solution = nominal(left)
        status, voltage = RowStatus(int(solution.status[0])), solution.voltage[0]
    return Assessment(
        outage=outage,
        network=left,
        cut_off=tuple(network.bus_labels[b] for b in buses),
        mw_cut_off=demand_at(network, buses),
        mw_generation_cut_off=generation_at(network, buses),
        status=status,
        voltage=voltage,
    )


@dataclass(frozen=True, kw_only=True)
class LoadedElement:
    """One element in the ranking by loading."""

    label: str
    loading: float
    """Mean over scenarios on the intact grid, 1 at the rating."""


def rank_by_loading(
    network: Network,
    *,
    kind: OutageKind = "lines",
    num_rows: int = 1000,
    spread: float = 0.2,
    seed: int = 0,
    num: int | None = None,
) -> list[LoadedElement]:
    """Elements by mean loading, heaviest first, without those whose outage cannot be studied.

    Skipped are elements whose outage splits the grid or leaves it without a nominal solution
    (`findings`: how the paper's most loaded lines are chosen). Scenarios without a solution don't
    enter the mean.

    Args:
        num_rows: scenarios to average over.
        spread: half width of the load factors.
        num: stop after this many elements; saves their nominal solutions.

    Raises:
        OutageError: a kind or number that means nothing, or no scenario has a solution.
        ScenarioError: as in `sample_loads`.
    """
    if num is not None:
        num = whole_number(num, "the number of elements to rank", OutageError, least=0)
    return list(_heaviest(network, kind, num_rows, spread, seed, num))


def _heaviest(
    network: Network, kind: OutageKind, num_rows: int, spread: float, seed: int, num: int | None
) -> Iterator[LoadedElement]:
    rng = named_rng(network.name, "loading", seed=seed)
    loads = sample_loads(network, rng, num_rows, spread=spread)
    solution = solve(network, loads)
    if not solution.solved.any():
        raise OutageError(
            f"{network.name} has no solution in any of {how_many(num_rows, 'scenario')}, so its "
            "loading is not "
            "known; check it with 'gridshift solve'"
        )
    by_branch = branch_loading(network, solution.voltage[solution.solved]).mean(0)
    labels = candidate_elements(network, kind)
    cut_off = cut_off_buses(network, [(label,) for label in labels])
    loading = {label: float(by_branch[list(network.elements[label])].max()) for label in labels}
    splits = {label: len(buses) > 0 for label, buses in zip(labels, cut_off, strict=True)}
    left = len(labels) if num is None else num
    for label in sorted(labels, key=lambda label: -loading[label]):
        if left > 0 and not splits[label] and assess(network, (label,)).usable:
            left -= 1
            yield LoadedElement(label=label, loading=loading[label])
