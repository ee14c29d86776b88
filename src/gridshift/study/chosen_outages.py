"""Which outages a study looks at, and which it leaves out and says so."""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gridshift.arguments import shown
from gridshift.errors import GridshiftWarning, OutageError
from gridshift.grid.after_outage import after_outage, buses_of
from gridshift.grid.contingency import (
    demand_at,
    enumerate_outages,
    generation_at,
    outage_text,
)
from gridshift.grid.network import Network
from gridshift.grid.outage_list import PAIRS, Contingency, select_contingencies
from gridshift.study.description import nearest
from gridshift.study.listed_outages import LISTED, each_once, with_rates
from gridshift.study.screening import ScreenConfig
from gridshift.study.setting import Setting

if TYPE_CHECKING:
    from gridshift.study.groups import Area

MANY_PAIRS = 10_000
"""Pairs of lines from which only those are studied that an estimate ranks first."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Outages to study."""

    contingencies: list[Contingency]
    splitting: tuple[dict[str, Any], ...] = ()
    """Those left out because they cut demand off, by MW."""
    notes: tuple[str, ...] = ()
    """What else is left out, in sentences."""


def chosen_outages(setting: Setting) -> Chosen:
    """The outages that the configuration asks for.

    Raises:
        OutageError: neither a known kind nor a readable file of outages of this grid.
    """
    config, network = setting.config, setting.network
    num_lines = len(enumerate_outages(network)) if config.contingencies == PAIRS else 0
    if config.area is None and num_lines * (num_lines - 1) // 2 > MANY_PAIRS:
        from gridshift.grid.pair_estimate import worst_pairs

        found = worst_pairs(setting.limited(network), config.most_pairs)
        pairs = [Contingency(outage=outage) for outage in found.outages]
        listed, notes = _with_own(network, config, pairs), (found.told,)
    else:
        with warnings.catch_warnings(record=True) as met:
            warnings.simplefilter("always", GridshiftWarning)
            listed = asked_for(network, config)
        notes = tuple(str(one.message) for one in met)
    if config.area is not None:
        listed = _in_area(setting, listed)
    if not config.refuse_splits:
        return Chosen(contingencies=listed, notes=notes)
    splits = [split for split in (_split(network, one) for one in listed) if split]
    left_out = {split["outage"] for split in splits}
    splits.sort(key=lambda split: (-split["mw_cut_off"], -split["mw_generation_cut_off"]))
    kept = [one for one in listed if outage_text(one.outage) not in left_out]
    return Chosen(contingencies=kept, splitting=tuple(splits), notes=notes)


def asked_for(network: Network, config: ScreenConfig) -> list[Contingency]:
    """Outages that a configuration and its study file name, whatever their area.

    Raises:
        OutageError: neither a known kind nor a readable file of outages of this grid.
    """
    if config.contingencies != LISTED:
        return _with_own(network, config, select_contingencies(network, config.contingencies))
    own = _with_own(network, config, [])
    if not own:
        told = "'listed' stands for the outages that a study file lists"
        raise OutageError(f"{told}; give it one with outages.elements or outages.common_mode")
    return own


def _with_own(
    network: Network, config: ScreenConfig, listed: Iterable[Contingency]
) -> list[Contingency]:
    """With the outages that the study file lists itself, and failure rates from its table."""
    if config.study is None:
        return [*listed]
    from gridshift.study.study_file import read_study_file

    study = read_study_file(config.study)
    both = each_once([*listed, *study.listed(network)])
    if (table := study.outages.failure_rates) is None:
        return both
    rates, studied = study.failure_rates(network, table), {one.outage for one in both}
    if unused := [outage_text(outage) for outage in rates if outage not in studied]:
        some = ", ".join(unused[:5]) + (", ..." if len(unused) > 5 else "")
        told = f"rates in {table} of outages that are not studied, and so not used: {some}"
        warnings.warn(GridshiftWarning(told), stacklevel=2)
    return with_rates(both, rates)


def _in_area(setting: Setting, listed: list[Contingency]) -> list[Contingency]:
    """Those all of whose elements stand in the study's area with one end at least."""
    from gridshift.study.groups import areas_of

    config, network = setting.config, setting.network
    described: Mapping[str, Area] = {}
    if config.study is not None:
        from gridshift.study.study_file import read_study_file

        described = read_study_file(config.study).uncertainty.areas
    areas = areas_of(network, described)
    if config.area not in areas:
        told = f"no area {shown(config.area)}{nearest(str(config.area), sorted(areas))}"
        raise OutageError(f"{told} ({network.name})")
    inside = {*areas[config.area].tolist()}
    where = {
        label: not inside.isdisjoint(buses_of(network, label))
        for label in {label for one in listed for label in one.outage}
    }
    kept = [one for one in listed if all(where[label] for label in one.outage)]
    if not kept:
        raise OutageError(f"none of {len(listed):,} outages is in area {shown(config.area)}")
    if config.contingencies == PAIRS and len(kept) > MANY_PAIRS:
        raise OutageError(
            f"area {shown(config.area)} has {len(kept):,} pairs of lines; more than {MANY_PAIRS:,} "
            "are ranked by an estimate for the whole grid alone: leave the area out"
        )
    return kept


def _split(network: Network, one: Contingency) -> dict[str, Any] | None:
    """What an outage cuts off, if there is demand among it."""
    buses = after_outage(network, one.outage).cut_off
    mw = demand_at(network, buses)
    return None if mw <= 0 else {
        "outage": outage_text(one.outage),
        "cut_off": [network.bus_labels[b] for b in buses],
        "mw_cut_off": mw,
        "mw_generation_cut_off": generation_at(network, buses),
    }  # fmt: skip
