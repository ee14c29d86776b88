"""A study in parts that know nothing of each other, and its results from what they wrote."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridshift.arguments import how_many
from gridshift.errors import StorageError
from gridshift.grid.contingency import outage_text
from gridshift.grid.outage_list import Contingency
from gridshift.study.chosen_outages import Chosen
from gridshift.study.listed_outages import RATES
from gridshift.study.pieces import NOT_OF_A_ROW, study_digest
from gridshift.study.row import NAN
from gridshift.study.screening import Screening
from gridshift.study.setting import Setting
from gridshift.study.shared import SHARED, TOLD, share, shared_setting, told_of
from gridshift.study.store import Store
from gridshift.study.sweep import ready, study
from gridshift.study.swept import Progress, Shard, Swept, swept
from gridshift.study.text import differences
from gridshift.threads import Threads

if TYPE_CHECKING:
    from gridshift.adapt.base import Base


@dataclass(frozen=True, kw_only=True)
class ShardDone:
    """What a shard of a study came to."""

    shard: Shard
    num_outages: int
    """Of the whole study."""
    num_pieces: int
    """Shards of the study that have something to do at most."""
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
        folder: where rows go; shards may share it, at the same time too.

    Raises:
        StorageError: the folder cannot be written.
    """
    store = Store(folder)
    with Threads(1):
        setting, _ = ready(setting, surrogate)
        _require_own(store.folder, setting)
        share(setting, store.folder, shards=shard.of, chosen=asdict(chosen))
        outages = [one.outage for one in chosen.contingencies]
        found = swept(setting, outages, store, progress, shard=shard)
    return ShardDone(
        shard=shard, num_outages=len(outages), num_pieces=found.num_pieces,
        finished=len(found.rows), resumed=found.resumed,
    )  # fmt: skip


def merge(
    folders: Sequence[str | Path],
    *,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> Screening:
    """The study whose shards wrote to these folders; table, summary and report as of one run.

    Args:
        out: where table, summary and report go; by default the first folder.

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
    studies = {home: _studies(home) for home in homes}
    for home, found in studies.items():
        if not found:
            raise StorageError(
                f"there is no shard of a study in {home}; run 'gridshift screen ... --shard 1/2 "
                f"--out {home}' and so on first (a study without --shard needs no merge: its own "
                "command goes on where it was stopped)"
            )
    common = set.intersection(*({*found} for found in studies.values()))
    if not common:
        (one, *_), (other, *_) = (found.values() for found in (*studies.values(),)[:2])
        raise StorageError(
            f"{homes[0]} and {homes[1]} hold shards of different studies: "
            f"{_differences(one, other)}"
        )
    first = studies[homes[0]]
    began = {one: (homes[0] / SHARED / one / TOLD).stat().st_mtime for one in first}
    return max(common, key=lambda one: began[one])


def _studies(home: Path) -> dict[str, dict[str, Any]]:
    """What is told of the studies in a folder that were begun in shards, by digest."""
    found = {p.parent.name: told_of(home, p.parent.name) for p in home.glob(f"{SHARED}/*/{TOLD}")}
    return {digest: told for digest, told in found.items() if "chosen" in told}


def _differences(one: dict[str, Any], other: dict[str, Any]) -> str:
    """In what two studies differ, in words."""
    if one["grid_digest"] != other["grid_digest"]:
        return f"{one['grid']} and {other['grid']} aren't the same grid"
    told = differences(one["config"], other["config"], of_no_account=NOT_OF_A_ROW)
    return told or "other scenarios, ratings or surrogates"


def _require_own(folder: Path, setting: Setting) -> None:
    """Pass if a folder holds shards of no other study."""
    digest = study_digest(setting)
    for other, told in _studies(folder).items():
        if other != digest:
            mine = {"grid_digest": setting.network.digest, "grid": setting.network.name}
            own = mine | {"config": asdict(setting.config)}
            raise StorageError(
                f"{folder} holds shards of another study: {_differences(told, own)}; choose "
                "another folder"
            )


def _chosen(told: dict[str, Any]) -> Chosen:
    listed = [
        Contingency(
            outage=tuple(one["outage"]),
            name=one["name"],
            **{name: NAN if one[name] is None else one[name] for name in RATES},
        )
        for one in told["contingencies"]
    ]
    return Chosen(
        contingencies=listed, splitting=tuple(told["splitting"]), notes=tuple(told["notes"])
    )


SHOWN = 3
"""Outages at most that a message names of each shard."""


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
        f"rows of {how_many(len(found.missing), 'outage')} are missing; run these shards again "
        "with the same "
        f"command, --shard {'; '.join(each)}"
    )
