"""The intact grid under the scenarios of a study, which every outage is compared with."""

from dataclasses import dataclass, replace

from gridshift.study.outage import screen_outages
from gridshift.study.row import OutageRow
from gridshift.study.setting import Setting
from gridshift.trial.exact import EXACT

TOLD = (
    "severity", "unsolved", "violation_probability", "violation_low", "violation_high",
    "standard_error", "any_voltage", "any_overload", "any_emergency", "emergency_branch",
    "emergency_probability", "under_bus", "under_probability", "over_bus",
    "over_probability", "worst_bus", "worst_bus_probability", "worst_branch",
    "worst_branch_probability", "worst_voltage", "worst_loading", "num_scenarios",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Intact:
    """The intact grid, solved exactly."""

    row: OutageRow
    """As that of an outage of nothing."""
    told: dict
    """What a summary tells of it."""


def intact_grid(setting: Setting) -> Intact:
    """The intact grid under all scenarios of the study."""
    config = replace(
        setting.config, method=EXACT, precision=None, ignore_below=None, certify=None
    )  # fmt: skip
    exact = replace(setting, method=None, surrogate=None, config=config, threads=config.num_workers)
    (row,) = screen_outages(exact, [()])
    return Intact(row=row, told={name: getattr(row, name) for name in TOLD})
