"""A study in parts that know nothing of each other, and its results from what they wrote."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridshift.errors import StorageError
from gridshift.grid.contingency import outage_text
from gridshift.grid.outage_list import Contingency
from gridshift.study.chosen_outages import Chosen
from gridshift.study.screening import Screening
from gridshift.study.setting import Setting
from gridshift.study.shared import SHARED, TOLD, share, shared_setting, told_of
from gridshift.study.store import Store
from gridshift.study.sweep import ready, study
from gridshift.study.swept import Progress, Shard, Swept, swept
from gridshift.threads import Threads

if TYPE_CHECKING:
    from gridshift.adapt.base import Base

SHOWN = 3
"""Outages at most that a message names of each shard."""


@dataclass(frozen=True, kw_only=True)
class ShardDone:
    """What a shard of a study came to."""

    shard: Shard
    num_outages: int
    """Of the whole study."""
    finished: int
    """Outages with a row in the shard's folder, those of other shards that use it included."""
    resumed: int
    """Of them found finished."""


def study_shard(
    setting: Setting,
    chosen: Chosen,
    shard: Shard,
    *,
    folder: str | Path,
    surrogate: "Base | None" = None,
    progress: Progress | None = None,
) -> ShardDone:
    """Work on one of n parts of a study; `merge` makes the study of them.

    Args:
        setting: of `set_up`, the same for all shards.
        chosen: of `chosen_outages`.
        shard: which part.
        folder: where rows go; shards may share it, at the same time too.
        surrogate: as in `screen`.
        progress: as in `screen`.

    Raises:
        StorageError: the folder cannot be written.
    """
    store = Store(folder)
    with Threads(1):
        setting, _ = ready(setting, surrogate)
        share(setting, store.folder, shards=shard.of, chosen=asdict(chosen))
        outages = [one.outage for one in chosen.contingencies]
        found = swept(setting, outages, store, progress, shard=shard)
    return ShardDone(
        shard=shard, num_outages=len(outages), finished=len(found.rows), resumed=found.resumed
    )


def merge(
    folders: Sequence[str | Path],
    *,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> Screening:
    """The study whose shards wrote to these folders; table, summary and report as of one run.

    Args:
        folders: of the shards.
        out: where table, summary and report go; by default the first folder.
        progress: as in `screen`.

    Raises:
        StorageError: a folder holds no shard, or one of another study, or rows are missing; it
            tells which shards to run again.
    """
    homes = [Path(folder) for folder in folders]
    digest = _common_study(homes)
    told, *others = (told_of(home, digest) for home in homes)
    for home, other in zip(homes[1:], others, strict=True):
        if other["chosen"]["contingencies"] != told["chosen"]["contingencies"]:
            raise StorageError(f"{home} is of another list of outages than {homes[0]}")
    setting, chosen = shared_setting(homes[0], digest), _chosen(told["chosen"])
    store = Store(homes[0] if out is None else out, others=homes)
    found = swept(
        setting, [one.outage for one in chosen.contingencies], store, progress, only_found=True
    )
    if found.missing:
        raise StorageError(_missing(found, told["shards"]))
    return study(setting, chosen, surrogate=setting.surrogate, store=store, found=found)


def _common_study(homes: Sequence[Path]) -> str:
    """The digest of the study that all folders hold; of several the one that was begun last."""
    studies = {home: {p.parent.name: p for p in home.glob(f"{SHARED}/*/{TOLD}")} for home in homes}
    for home, found in studies.items():
        if not found:
            raise StorageError(
                f"there is no shard of a study in {home}; run 'gridshift screen ... --shard 1/2 "
                f"--out {home}' and so on first"
            )
    common = set.intersection(*({*found} for found in studies.values()))
    if not common:
        known = [
            f"{home}: {told['grid']} (digest {told['grid_digest'][:8]}) by gridshift "
            f"{told['version']}"
            for home, found in studies.items()
            for told in [told_of(home, max(found, key=lambda one: found[one].stat().st_mtime))]
        ]
        raise StorageError(f"these are shards of different studies: {'; '.join(known)}")
    first = studies[homes[0]]
    return max(common, key=lambda one: first[one].stat().st_mtime)


def _chosen(told: dict[str, Any]) -> Chosen:
    listed = [
        Contingency(**(one | {"outage": tuple(one["outage"])})) for one in told["contingencies"]
    ]
    return Chosen(
        contingencies=listed, splitting=tuple(told["splitting"]), notes=tuple(told["notes"])
    )


def _missing(found: Swept, of: int) -> str:
    """Which shards lack what."""
    lacking: dict[int, list[str]] = {}
    for outage, numbers in found.missing.items():
        for number in numbers:
            lacking.setdefault(number % of + 1, []).append(outage_text(outage))
    each = []
    for number, outages in sorted(lacking.items()):
        names = ", ".join(outages[:SHOWN]) + (", ..." if len(outages) > SHOWN else "")
        each.append(f"{number}/{of} ({len(outages):,}: {names})")
    return (
        f"rows of {len(found.missing):,} outages are missing; run these shards again with the same "
        f"command, --shard {'; '.join(each)}"
    )
