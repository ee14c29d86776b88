"""What keeps a MATPOWER case from being read, every problem named with its row and bus.

A value that neither the power flow nor the limits and ratings of a study use keeps nothing from
being read: set-points at PQ buses, reactive power at PV buses, rows out of service, costs.
"""

import warnings
from collections.abc import Iterator

import numpy as np

from gridshift.arguments import some_of
from gridshift.arrays import Bool, Real
from gridshift.errors import GridshiftWarning
from gridshift.grid.network import Network
from gridshift.grid.readers.matpower_tables import Tables

LARGEST_NUMBER = 2**53
"""Of a bus: beyond it, doubles skip whole numbers."""


def problems_of(tables: Tables) -> list[str]:
    """Everything that keeps these tables from being read, one line each."""
    return [
        *_bus_problems(tables),
        *_reference_problems(tables),
        *_power_problems(tables),
        *_branch_problems(tables),
    ]


def _valid_number(numbers: Real) -> Bool:
    return (numbers >= 1) & (numbers <= LARGEST_NUMBER) & (numbers == np.floor(numbers))


def _named(tables: Tables, table: str, bad: Bool) -> str:
    """The rows of a table where `bad` is set, with their buses: `branch:3 (bus 4 to 9)`."""
    columns, rows = getattr(tables, table), np.flatnonzero(bad)
    shown = []
    for row in rows[:5]:
        if table == "bus":
            shown.append(f"bus:{columns['BUS_I'][row]:.17g} (row {row + 1})")
        elif table == "gen":
            shown.append(f"gen:{row + 1} (bus {columns['GEN_BUS'][row]:.17g})")
        else:
            ends = f"{columns['F_BUS'][row]:.17g} to {columns['T_BUS'][row]:.17g}"
            shown.append(f"{table}:{row + 1} (bus {ends})")
    return ", ".join(shown) + (f" and {len(rows) - 5} more" if len(rows) > 5 else "")


def _bus_problems(tables: Tables) -> Iterator[str]:
    bus, on = tables.bus, tables.bus_on

    def named(bad: Bool) -> str:
        return _named(tables, "bus", bad)

    odd = ~_valid_number(bus["BUS_I"])
    if odd.any():
        yield f"{named(odd)}: bus numbers are whole, from 1 to {LARGEST_NUMBER}"
    values, count = np.unique(bus["BUS_I"][~odd], return_counts=True)
    again = np.isin(bus["BUS_I"], values[count > 1])
    if again.any():
        yield f"{named(again)}: number used more than once"
    bad = ~np.isin(bus["BUS_TYPE"], (1, 2, 3, 4))
    if bad.any():
        yield f"{named(bad)}: type must be 1, 2, 3 or 4"
    for name in ("PD", "QD", "GS", "BS", "VA"):
        bad = on & ~np.isfinite(bus[name])
        if bad.any():
            yield f"{named(bad)}: {name} is not a finite number"
    bad = on & ~((bus["VM"] > 0) & np.isfinite(bus["VM"]))
    if bad.any():
        yield f"{named(bad)}: VM must be a positive number"
    bad = on & ~((bus["VMIN"] <= bus["VMAX"]) & (bus["VMAX"] > 0))
    if bad.any():
        yield (
            f"{named(bad)}: VMIN to VMAX is no range of voltages; -Inf and Inf say that there is "
            "no limit"
        )
    reference = bus["BUS_TYPE"] == 3
    if not reference.any():
        yield "has no slack: no bus of mpc.bus is of type 3"
    elif not (tables.kind == 3).any():
        yield f"has no slack: no generator in service at reference {named(reference)}"


def _reference_problems(tables: Tables) -> Iterator[str]:
    ends = (("F_BUS", "from bus"), ("T_BUS", "to bus"))
    for table, columns in (
        ("gen", (("GEN_BUS", "bus"),)), ("branch", ends), ("dcline", ends)
    ):  # fmt: skip
        for column, what in columns:
            numbers = getattr(tables, table)[column]
            odd = ~_valid_number(numbers)
            if odd.any():
                yield (
                    f"{_named(tables, table, odd)}: {what} is no bus number; those are whole, "
                    f"from 1 to {LARGEST_NUMBER}"
                )
            unknown = ~odd & (tables.row_of(numbers) < 0)
            if unknown.any():
                yield f"{_named(tables, table, unknown)}: {what} is not in mpc.bus"


def _power_problems(tables: Tables) -> Iterator[str]:
    """Of generators and dclines: only what is used, by the kind of their bus."""
    gen, line, sources = tables.gen, tables.dcline, tables.sources
    for table, status in (("gen", gen["GEN_STATUS"]), ("dcline", line["BR_STATUS"])):
        bad = np.isnan(status)
        if bad.any():
            yield f"{_named(tables, table, bad)}: the status is not a number"
    kind, is_gen = tables.kind[sources.bus], np.arange(len(sources.bus)) < sources.num_gens
    held = (kind != 1) & sources.deciding()
    wrong = {
        "PG is not a finite number": is_gen & (kind != 3) & ~np.isfinite(sources.p),
        "QG is not a finite number": is_gen & (kind == 1) & ~np.isfinite(sources.q),
        "VG must be a positive number": is_gen & held & ~_positive(sources.v),
    }
    for what, which in wrong.items():
        if which.any():
            bad = np.zeros(len(gen["PG"]), bool)
            bad[np.flatnonzero(tables.gen_on)[which[: sources.num_gens]]] = True
            yield f"{_named(tables, 'gen', bad)}: {what}"
    for name in ("PF", "LOSS0", "LOSS1"):
        bad = tables.dcline_on & ~np.isfinite(line[name])
        if bad.any():
            yield f"{_named(tables, 'dcline', bad)}: {name} is not a finite number"
    bad = np.flatnonzero(~is_gen & held & ~_positive(sources.v))
    if len(bad):
        shown = ", ".join(
            f"{sources.labels[i]} (bus {tables.bus['BUS_I'][sources.bus[i]]:.17g})" for i in bad[:5]
        )
        yield f"{shown}: the set-point of the voltage must be a positive number"


def _positive(values: Real) -> Bool:
    return (values > 0) & np.isfinite(values)


def _branch_problems(tables: Tables) -> Iterator[str]:
    branch, on = tables.branch, tables.branch_on
    wrong = {"BR_STATUS must be 0 or 1": ~np.isin(branch["BR_STATUS"], (0, 1))}
    for name in ("BR_R", "BR_X", "BR_B", "TAP", "SHIFT"):
        wrong[f"{name} is not a finite number"] = on & ~np.isfinite(branch[name])
    # MATPOWER's optimal power flow squares RATE_A, so that a sign means nothing to it.
    wrong["RATE_A must not be negative; 0 says that there is no limit"] = on & (
        branch["RATE_A"] < 0
    )
    wrong["RATE_A is not a number"] = on & np.isnan(branch["RATE_A"])
    wrong["from and to bus are the same; write a shunt as GS and BS of the bus"] = on & (
        branch["F_BUS"] == branch["T_BUS"]
    )
    wrong["no impedance (BR_R = BR_X = 0); merge its two buses"] = (
        on & (branch["BR_R"] == 0) & (branch["BR_X"] == 0)
    )
    for what, bad in wrong.items():
        if bad.any():
            yield f"{_named(tables, 'branch', bad)}: {what}"


def network_problems(network: Network) -> list[str]:
    """What shows in the finished network only: islands without reference, and overflow.

    MATPOWER wants the buses of an island without reference to be of type 4.
    """
    found = []
    buses = network.cut_off_buses()
    if len(buses):
        shown = some_of([network.bus_labels[b] for b in buses])
        found.append(f"{shown}: no path to a reference bus; give the island one, or make it type 4")
    per_unit = {
        "demand": (network.load_labels, network.load_power),
        "scheduled generation": (network.gen_labels, network.gen_p),
        "injection": (network.bus_labels, network.bus_fixed),
        "shunt": (network.bus_labels, network.bus_shunt),
        "admittance": (network.branch_labels, network.branch_y),
    }
    for what, (labels, values) in per_unit.items():
        finite = np.isfinite(values)
        rows = np.flatnonzero(~(finite.all(axis=1) if finite.ndim > 1 else finite))
        if len(rows):
            shown = ", ".join(labels[row] for row in rows[:5])
            found.append(f"{shown}: {what} is beyond 1e308 p.u.")
    return found


def warn_of_surprises(tables: Tables, name: str, stacklevel: int) -> None:
    """Warns of what MATPOWER does in silence: a dcline that makes power, a set-point not used."""
    gains = tables.dcline_on & (tables.dcline_loss < 0)
    if gains.any():
        mw = -tables.dcline_loss[gains].sum()
        warnings.warn(
            f"{name}: {_named(tables, 'dcline', gains)} deliver {mw:.6g} MW more than they take, "
            "because LOSS0 + LOSS1 * PF is negative",
            GridshiftWarning,
            stacklevel=stacklevel + 1,
        )
    sources = tables.sources
    last = np.zeros(len(tables.kind))
    deciding = sources.deciding()
    last[sources.bus[deciding]] = sources.v[deciding]
    ignored = (tables.kind[sources.bus] != 1) & (sources.v != last[sources.bus])
    if ignored.any():
        rows = np.unique(sources.bus[ignored])
        held = [f"bus:{tables.bus['BUS_I'][row]:.17g} ({last[row]:g})" for row in rows]
        warnings.warn(
            f"{name}: generators at one bus have different set-points; the last one counts, as in "
            f"MATPOWER: {some_of(held)}",
            GridshiftWarning,
            stacklevel=stacklevel + 1,
        )
