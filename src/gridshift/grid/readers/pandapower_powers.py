"""What draws or gives power in a pandapower network, element by element, as `runpp` counts it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gridshift.arguments import some_of
from gridshift.arrays import Complex, Real
from gridshift.grid.readers.element_powers import ElementPowers, joined
from gridshift.grid.readers.pandapower_arrays import Assembled
from gridshift.grid.readers.pandapower_tables import SHARES

LOADS = ("load", "asymmetric_load")
FIXED = ("sgen", "asymmetric_sgen", "storage", "motor", "ward", "xward")
"""Tables of constant power that are neither loads nor generators of a `Network`."""
_HOLD_A_VOLTAGE = ("gen", "ext_grid", "xward", "dcline")
"""Told about when left out even if they give no power: they hold a voltage."""


def load_powers(grid: Assembled) -> ElementPowers:
    """Loads in service; asymmetric ones by the sum of their phases, as `runpp` does."""
    return joined([_powers(grid, kind, _CONSTANT[kind]) for kind in LOADS])


def load_shares(grid: Assembled, labels: Sequence[str]) -> tuple[Complex, Complex]:
    """(L,) shares of constant current and of constant impedance, of P and (imaginary) of Q."""
    current, impedance = np.zeros((2, len(labels)), complex)
    if not grid.net._options["voltage_depend_loads"] or not len(grid.net.load):
        return current, impedance
    table = grid.net.load[list(SHARES)].to_numpy(float) / 100
    row_of = {f"load:{i}": row for row, i in enumerate(grid.net.load.index)}
    for row, label in enumerate(labels):
        if label in row_of:
            z_p, i_p, z_q, i_q = table[row_of[label]]
            current[row], impedance[row] = complex(i_p, i_q), complex(z_p, z_q)
    return current, impedance


def averaged_shares(grid: Assembled) -> Iterator[str]:
    """Sentences on buses where pandapower applies the mean share of the loads to all power."""
    tables = [_powers(grid, kind, _CONSTANT[kind]) for kind in (*LOADS, *FIXED)]
    found = joined(tables)
    current, impedance = load_shares(grid, found.labels)
    shares = np.stack([current, impedance], 1)
    odd = []
    for bus in np.unique(found.bus[(shares != 0).any(1) & (found.bus >= 0)]):
        there = shares[(found.bus == bus) & (found.power != 0)]
        if len(there) and (there != there[0]).any():
            odd.append(found.at[int(np.flatnonzero(found.bus == bus)[0])])
    if odd:
        yield (
            f"{some_of(odd)}: each load keeps its own shares of constant current and "
            "impedance; pandapower applies their mean to all that the bus draws"
        )


def fixed_powers(grid: Assembled) -> ElementPowers:
    """What else has constant power, in service."""
    return joined([_powers(grid, kind, _CONSTANT[kind]) for kind in FIXED])


def left_out(grid: Assembled) -> ElementPowers:
    """Every element in service at a bus that is not energised: its power at 1 p.u."""
    tables = [_powers(grid, kind, power) for kind, power in _AT_ONE.items()]
    tables.append(_generators(grid))
    found = joined(tables)
    kind = np.array([label.partition(":")[0] for label in found.labels])
    return found.only((found.bus < 0) & ((found.power != 0) | np.isin(kind, _HOLD_A_VOLTAGE)))


def _powers(grid: Assembled, kind: str, power: Callable[[Any], Complex]) -> ElementPowers:
    table = grid.net[kind]
    table = table[table.in_service.to_numpy(bool)] if len(table) else table
    if not len(table):
        return joined([])
    bus = table.bus.to_numpy().astype(np.int64)
    return ElementPowers(
        labels=[f"{kind}:{i}" for i in table.index],
        bus=grid.bus_of[bus],
        at=[f"bus:{b}" for b in bus],
        power=power(table),
    )


def _generators(grid: Assembled) -> ElementPowers:
    """Generators and ends of dclines, which pandapower adds to the table of generators."""
    net = grid.net
    ends = [f"dcline:{i}.{end}" for i in net.dcline.index for end in ("to", "from")]
    num_gens = len(net.gen) - len(ends)
    labels = np.array([f"gen:{i}" for i in net.gen.index[:num_gens]] + ends, object)
    found = _powers(grid, "gen", lambda gen: gen.p_mw.to_numpy(float) * _scaling(gen) + 0j)
    on = net.gen.in_service.to_numpy(bool) if len(net.gen) else np.zeros(0, bool)
    return ElementPowers(labels=labels[on].tolist(), bus=found.bus, at=found.at, power=found.power)


def _scaling(table: Any) -> Real:
    return table.scaling.to_numpy(float)


def _column(table: Any, p: str, q: str) -> Complex:
    return table[p].to_numpy(float) + 1j * table[q].to_numpy(float)


def _scaled(table: Any) -> Complex:
    return _column(table, "p_mw", "q_mvar") * _scaling(table)


def _phases(table: Any) -> Complex:
    a, b, c = (_column(table, f"p_{phase}_mw", f"q_{phase}_mvar") for phase in "abc")
    return (a + b + c) * _scaling(table)


def _motor(table: Any) -> Complex:
    """Source: pandapower's documentation of motors, electric model."""
    loading = table.loading_percent.to_numpy(float) / 100 * _scaling(table)
    p = table.pn_mech_mw.to_numpy(float) / (table.efficiency_percent.to_numpy(float) / 100)
    return p * loading * (1 + 1j * np.tan(np.arccos(table.cos_phi.to_numpy(float))))


_CONSTANT: dict[str, Callable[[Any], Complex]] = {
    "load": lambda table: -_scaled(table),
    "asymmetric_load": lambda table: -_phases(table),
    "sgen": _scaled,
    "asymmetric_sgen": _phases,
    "storage": lambda table: -_scaled(table),
    "motor": lambda table: -_motor(table),
    "ward": lambda table: -_column(table, "ps_mw", "qs_mvar"),
    "xward": lambda table: -_column(table, "ps_mw", "qs_mvar"),
}
"""Constant power of each table's elements, MVA, positive when produced."""


def _with_impedance(table: Any) -> Complex:
    return -_column(table, "ps_mw", "qs_mvar") - _column(table, "pz_mw", "qz_mvar")


_AT_ONE: dict[str, Callable[[Any], Complex]] = _CONSTANT | {
    "ward": _with_impedance,
    "xward": _with_impedance,
    "shunt": lambda table: -_column(table, "p_mw", "q_mvar") * table.step.to_numpy(float),
    "ext_grid": lambda table: np.full(len(table), np.nan + 0j),
}
"""The same at 1 p.u. with what draws power by its impedance."""
