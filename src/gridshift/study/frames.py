"""A study as pandas tables: a row for each outage, and for each outage and bus or branch."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gridshift.arrays import Int, Real
from gridshift.grid.names import described, described_outage
from gridshift.grid.network import Network
from gridshift.grid.statistics import rated_branches
from gridshift.memory import require_memory
from gridshift.study.risk import wilson
from gridshift.study.row import OutageRow
from gridshift.study.verdict import branch_probability, bus_probability, largest_rises

if TYPE_CHECKING:
    import pandas as pd

    from gridshift.study.screening import Screening


def outages_frame(study: "Screening") -> "pd.DataFrame":
    """The ranking, worst first: every value of a row that is no array, named `column_key`.

    `described` names the elements with their ends and voltages, `severity_change` is against the
    intact grid, `largest_rise` the largest rise of the probability of a violation at one bus
    or branch. A share of scenarios `x` comes with its 95 % interval, `x_low` and `x_high`.
    """
    import pandas as pd

    columns = []
    rises = largest_rises(study.rows, study.intact_row)
    for rank, (row, rise) in enumerate(zip(study.rows, rises, strict=True), 1):
        values: dict[str, Any] = {"rank": rank, "outage": row.outage}
        values["described"] = described_outage(study.network, row.outage)
        for name, value in row.short().items():
            if isinstance(value, dict):
                values |= {f"{name}_{key}": inner for key, inner in value.items()}
            else:
                values[name] = ", ".join(value) if isinstance(value, list) else value
        for name in ("any_voltage", "any_overload"):
            share = getattr(row, name)
            sure = wilson(share, row.num_scenarios if share == share else 0)
            values |= {f"{name}_low": sure.low, f"{name}_high": sure.high}
        lost = row.lost_supply
        values["mw_at_risk"] = row.mw_at_risk
        values["severity_change"] = np.nan if lost else row.severity - study.intact["severity"]
        values["largest_rise"] = rise.size
        for place in ("worst_bus", "worst_branch"):
            label = getattr(row, place)
            values[f"{place}_described"] = described(study.network, label) if label else ""
        columns.append(values)
    return pd.DataFrame(columns)


def buses_frame(study: "Screening") -> "pd.DataFrame":
    """A row for each outage and bus: probability of a voltage outside limits, and the voltages.

    Voltages `min`, `p5`, `mean`, `p95`, `max` in p.u. and kV; `under` and `over` are the two parts
    of `probability`; `worst` is the share of scenarios in which no bus has a worse voltage. With
    reactive limits `at_q_max` and `at_q_min` are the shares with its generators at one.
    Changes are against the intact grid. NaN at buses that the outage cuts off.
    """
    network, intact = study.network, study.intact_row
    rows = _studied(study, "bus_voltage_mean")
    at = np.arange(network.num_buses)
    table = _Table(rows, at, column="bus", labels=network.bus_labels)
    table.repeat("name", _names(study, network.bus_labels))
    table.repeat("kv", network.bus_kv)
    table.add("probability", bus_probability)
    table.add("probability_change", lambda row: bus_probability(row) - bus_probability(intact))
    for name in ("under", "over", "worst"):
        table.add(name, lambda row, name=name: getattr(row, f"bus_{name}"))
    if study.config.q_limits:
        for name in ("at_q_max", "at_q_min"):
            table.add(name, lambda row, name=name: getattr(row, f"bus_{name}"))
    kv = np.where(network.bus_kv > 0, network.bus_kv, np.nan)
    for name in ("min", "p5", "mean", "p95", "max"):
        values = table.add(f"{name}_pu", lambda row, name=name: getattr(row, f"bus_voltage_{name}"))
        table.columns[f"{name}_kv"] = (values.reshape(len(table.rows), len(at)) * kv).ravel()
    table.add("mean_change_pu", lambda row: row.bus_voltage_mean - intact.bus_voltage_mean)
    return table.frame()


def branches_frame(study: "Screening") -> "pd.DataFrame":
    """A row for each outage and rated branch: probability of an overload, and the loadings.

    `probability` is that of a loading beyond the normal rating, `emergency_probability` beyond the
    emergency rating, NaN without one.

    Loadings `mean`, `p95`, `p99`, `max` in per cent of the rating and in kA at the branch's first
    end; where ratings are apparent powers, kA at 1 p.u. voltage. Changes are against the intact
    grid. A transformer with three windings has three branches of the same label.
    """
    network, intact = study.limited, study.intact_row
    at = rated_branches(network)
    labels = [network.branch_labels[b] or f"branch {b}" for b in at]
    table = _Table(_studied(study, "branch_loading"), at, column="branch", labels=labels)
    table.repeat("name", _names(study, labels))
    buses = np.array(network.bus_labels, object)
    ends = (network.branch_from[at], network.branch_to[at])
    table.repeat("from_bus", buses[ends[0]])
    table.repeat("to_bus", buses[ends[1]])
    table.repeat("kv", np.maximum(network.bus_kv[ends[0]], network.bus_kv[ends[1]]))
    ka = rating_ka(network)[at]
    table.repeat("rating_ka", ka)
    table.add("probability", lambda row: row.branch_overload_probability[at])
    table.add("probability_change",
              lambda row: (branch_probability(row) - branch_probability(intact))[at])  # fmt: skip
    table.add("emergency_probability", lambda row: row.branch_emergency_probability[at])
    for name in ("mean", "p95", "p99", "max"):
        field = "branch_loading" + (f"_{name}" if name != "mean" else "")
        values = table.add(f"{name}_percent", lambda row, f=field: 100 * getattr(row, f)[at])
        table.columns[f"{name}_ka"] = (values.reshape(len(table.rows), len(at)) * ka / 100).ravel()
    table.add("worst", lambda row: row.branch_worst[at])
    table.add("mean_change_percent",
              lambda row: 100 * (row.branch_loading - intact.branch_loading)[at])  # fmt: skip
    return table.frame()


def controls_frame(study: "Screening") -> "pd.DataFrame":
    """A row for each outage and control of a study with controls: how often it `moved` from its
    `start`, and was `at_end`, its first or last position; shares of scenarios, NaN where it is out
    of service. `first` and `last` are these positions, as the source counts."""
    controls = study.network.controls
    labels = [one.label for one in controls]
    table = _Table(_studied(study, "control_moved"), np.arange(len(controls)), column="control",
                   labels=labels)  # fmt: skip
    table.repeat("name", _names(study, labels))
    ends = np.array([(one.start, *one.range) for one in controls]).reshape(-1, 3)
    for name, at in zip(("start", "first", "last"), ends.T, strict=True):
        called = [float(one.called(p)) for one, p in zip(controls, at.tolist(), strict=True)]
        table.repeat(name, np.array(called))
    for name in ("moved", "at_end"):
        table.add(name, lambda row, name=name: getattr(row, f"control_{name}"))
    return table.frame()


def rating_ka(network: Network) -> Real:
    """(E,) rating at the first end that has one, kA; NaN for none.

    A rating by apparent power counts as the current at 1 p.u. voltage.
    """
    rating = network.branch_rating * network.base_mva
    usable = np.isfinite(rating) & network.branch_rated[:, None]
    kv = np.stack([network.bus_kv[network.branch_from], network.bus_kv[network.branch_to]], 1)
    ka = np.where(usable, rating, np.nan) / (np.sqrt(3) * np.where(kv > 0, kv, np.nan))
    return np.where(np.isnan(ka[:, 0]), ka[:, 1], ka[:, 0])


def _studied(study: "Screening", array: str) -> list[OutageRow]:
    """Rows that have an array of this name."""
    return [row for row in study.rows if len(getattr(row, array))]


def _names(study: "Screening", labels: Sequence[str]) -> "np.ndarray":
    return np.array([study.network.names.get(label, "") for label in labels], object)


class _Table:
    """Columns of a frame over outages and places, every value where it belongs."""

    MOST_COLUMNS = 24

    def __init__(self, rows: list[OutageRow], at: Int, *, column: str, labels: Sequence[str]):
        import pandas as pd

        size = len(rows) * len(at)
        require_memory(8 * self.MOST_COLUMNS * size, f"a table of {size:,} rows")
        self.rows, self.num = rows, len(at)
        self.columns: dict[str, object] = {}
        outages, codes = [row.outage for row in rows], np.arange(len(rows), dtype=np.int32)
        self.columns["outage"] = pd.Categorical.from_codes(np.repeat(codes, self.num), outages)
        self.repeat(column, np.array(labels, object))

    def repeat(self, name: str, values: "np.ndarray") -> None:
        """A column with a value for each place, texts as categories."""
        import pandas as pd

        if values.dtype == object:
            codes, kinds = pd.factorize(values)
            tiled = np.tile(codes, len(self.rows))
            self.columns[name] = pd.Categorical.from_codes(tiled, kinds)
        else:
            self.columns[name] = np.tile(values, len(self.rows))

    def add(self, name: str, of: Callable[[OutageRow], Real]) -> Real:
        """A column with a value for each outage and place."""
        parts = [np.asarray(of(row), float) for row in self.rows]
        values = np.concatenate(parts) if parts else np.empty(0)
        self.columns[name] = values
        return values

    def frame(self) -> "pd.DataFrame":
        import pandas as pd

        return pd.DataFrame(self.columns)
