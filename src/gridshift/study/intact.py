"""The intact grid under the scenarios of a study, which every outage is compared with."""

from dataclasses import replace
from typing import Any

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


def intact_row(setting: Setting) -> OutageRow:
    """The intact grid under all scenarios of the study, solved exactly: as an outage of nothing."""
    config = replace(
        setting.config, method=EXACT, precision=None, ignore_below=None, certify=None
    )  # fmt: skip
    exact = replace(setting, method=None, surrogate=None, config=config, threads=config.num_workers)
    return screen_outages(exact, [()])[0]


def told_of_intact(row: OutageRow) -> dict[str, Any]:
    """What a summary tells of the intact grid."""
    return {name: getattr(row, name) for name in TOLD}
