"""Pieces of a study that can be worked on apart, by whom and in whatever order."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from gridshift.grid.contingency import Outage, outage_text
from gridshift.grid.statistics import SCENARIO_BYTES
from gridshift.study.outage import count_scenarios, screen_outages
from gridshift.study.row import OutageRow
from gridshift.study.screening import ScreenConfig
from gridshift.study.setting import BLOCK, Setting
from gridshift.study.store import task_key
from gridshift.trial.exact import EXACT
from gridshift.version import VERSION

FORMAT = 9
"""Raised whenever stored rows change their meaning; older ones are then recomputed."""
TOGETHER = 16
"""Outages at most whose topologies are prepared together: a multiple of Newton's lanes."""
GROUPS = 4
"""Groups at least for each worker, so that none waits long for the others at the end."""
GROUP_BYTES = 1 << 26
"""What is kept of the scenarios of a group."""
BUS_ROWS = 1 << 28
"""Scenarios times buses of a run that is worked on apart: some seconds of one core."""
NOT_OF_A_ROW = (
    "grid", "study", "contingencies", "area", "beside", "refuse_splits", "most_pairs", "workers",
    "ratings", "season",
)  # fmt: skip
"""What no row depends on, or that is known from elsewhere: the grid and its scenarios."""


class Piece(NamedTuple):
    """What one worker does at a time: some outages, or a run of the scenarios of one."""

    outages: tuple[Outage, ...]
    rows: tuple[int, int] | None = None
    """First scenario and the one behind the last; None: all, which finishes the outages."""


def runs(setting: Setting) -> list[tuple[int, int]]:
    """Runs of scenarios that are worked on apart, if one outage has very many; none otherwise.

    They depend on the study alone, so that what was counted is found again by everybody.
    """
    config, num_rows = setting.config, setting.loads.num_rows
    if config.method != EXACT or config.precision is not None:
        return []
    size = max(1, BUS_ROWS // setting.network.num_buses // BLOCK) * BLOCK
    if num_rows <= size:
        return []
    return [(first, min(first + size, num_rows)) for first in range(0, num_rows, size)]


def grouped(config: ScreenConfig, outages: Sequence[Outage], workers: int) -> list[Piece]:
    """Outages put together to pieces, as many as keep all workers busy."""
    size = 1
    if config.method == EXACT:
        even = len(outages) // (GROUPS * workers)
        size = max(1, min(num_together(config.num_scenarios), even))
    return [Piece(tuple(outages[first : first + size])) for first in range(0, len(outages), size)]


def num_together(num_scenarios: int) -> int:
    """Outages at most in a piece, for what is kept of their scenarios."""
    return max(1, min(TOGETHER, GROUP_BYTES // ((SCENARIO_BYTES + 16) * num_scenarios)))


def keys(setting: Setting, piece: Piece) -> list[str]:
    """Under which what comes out of a piece is kept: one of each outage."""
    more = {} if piece.rows is None else {"rows": list(piece.rows)}
    return [task_key(task) for task in tasks(setting, piece.outages, **more)]


def work(setting: Setting, piece: Piece) -> list[OutageRow] | list[dict[str, Any]]:
    """Rows of the piece's outages; of a run of scenarios what was counted."""
    if piece.rows is None:
        return screen_outages(setting, piece.outages)
    return [count_scenarios(setting, outage, slice(*piece.rows)) for outage in piece.outages]


def study_digest(setting: Setting) -> str:
    """Hexadecimal digest of all that a study's rows have in common."""
    return task_key(next(tasks(setting, [()])))


def tasks(setting: Setting, outages: Sequence[Outage], **more: Any) -> Iterator[dict[str, Any]]:
    """Everything that the row of each outage depends on."""
    common = asdict(setting.config) | dict.fromkeys(NOT_OF_A_ROW)
    common |= {
        "format": FORMAT,
        "version": VERSION,
        "name": setting.network.name,
        "network": setting.network.digest,
        "limits": setting.network.limits_digest if setting.config.q_limits else "",
        "slack": setting.network.slack_digest if setting.config.distributed_slack else "",
        "controls": repr(setting.network.controls) if setting.config.controls else "",
        "scenarios": setting.digest,
        "rated": str(setting.config.table_of_ratings()),
        "surrogate": None if setting.surrogate is None else setting.surrogate.digest,
        **more,
    }
    return (common | {"outage": outage_text(outage)} for outage in outages)
