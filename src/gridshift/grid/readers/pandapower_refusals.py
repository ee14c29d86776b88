"""Which elements pandapower means where it refuses a network without naming any."""

from collections.abc import Iterator

import numpy as np

from gridshift.grid.readers.pandapower_source import PANDAPOWER_ERRORS


def why_refused(part) -> list[str]:
    """The elements behind a refusal, or nothing where pandapower's own words have to do."""
    try:
        return [*_unequal_set_points(part), *_unequal_angles(part), *_empty_windings(part)]
    except PANDAPOWER_ERRORS:  # assembled too little to tell
        return []


def _unequal_set_points(part) -> Iterator[str]:
    """Generators and external grids that hold one bus, or joined ones, at two magnitudes."""
    holders = [
        (f"{kind}:{i}", int(bus), float(value))
        for kind in ("ext_grid", "gen")
        for i, bus, value, on in part[kind][["bus", "vm_pu", "in_service"]].itertuples()
        if on
    ]
    yield from _unequal(part, holders, "vm_pu")


def _unequal_angles(part) -> Iterator[str]:
    holders = [
        (f"ext_grid:{i}", int(bus), float(value))
        for i, bus, value, on in part.ext_grid[["bus", "va_degree", "in_service"]].itertuples()
        if on
    ]
    yield from _unequal(part, holders, "va_degree")


def _unequal(part, holders: list[tuple[str, int, float]], column: str) -> Iterator[str]:
    rows = part._pd2ppc_lookups["bus"]
    at: dict[int, list[tuple[str, int, float]]] = {}
    for holder in holders:
        if rows[holder[1]] >= 0:
            at.setdefault(int(rows[holder[1]]), []).append(holder)
    for together in at.values():
        values = [value for _, _, value in together]
        if not np.allclose(values, values[0]):  # pandapower's own measure
            buses = "+".join(dict.fromkeys(str(bus) for _, bus, _ in together))
            who = ", ".join(f"{label} {value:g}" for label, _, value in together[:5])
            yield f"unequal set-points {column} at bus:{buses}: {who}; make them equal"


def _empty_windings(part) -> Iterator[str]:
    """Three-winding transformers whose star equivalent has a winding without impedance."""
    from pandapower.build_branch import _calculate_sc_voltages_of_equivalent_transformers

    for i in part.trafo3w.index:
        try:
            _calculate_sc_voltages_of_equivalent_transformers(
                part.trafo3w.loc[[i]], {}, "pf", part.get("characteristic"), part
            )
        except UserWarning:
            yield (
                f"trafo3w:{i}: a winding of its star equivalent has no impedance; "
                "check its vk_percent"
            )
