"""pandapower's built-in grids beside MATPOWER's case files of the same name: what differs, and why.

`matpower_table` prints the result into docs/matpower-cases.md. Both grids are read and solved by
gridshift; that each solution is its source's own is checked elsewhere.
"""

import importlib.metadata
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from gridshift.grid.network import BusKind, Network
from gridshift.grid.powerflow import nominal
from gridshift.grid.readers import builtin_names, read_grid
from gridshift.grid.readers.matlab_script import run_case
from tests.reference.matpower_equations import case_file, case_files

SAME = 1e-6
"""From here on two-ports (relative) and set-points (p.u.) differ."""
BR_B, OTHER_END = 4, [3, 1, 2, 0]

HEADER = """\

## pandapower's grids of the same names
A built-in name such as `case57` is *pandapower's* grid (version {version}), which for {different}
of {all} names is not the one in MATPOWER's case file; `gridshift cases` shows the source. Bus i of
the one is row i + 1 of mpc.bus of the other. The differences are the largest ones between bus
voltages, in p.u., complex and magnitude, both grids solved at nominal load; beside them how many
transformers, set-points and reference buses differ. "Left" is the complex difference that remains
when those are taken from MATPOWER's file and everything else from pandapower's grid: it is
rounding, so nothing else differs. Made by `python -m tests.reference.same_names`.

- **Taps at the other end.** MATPOWER's ratio stands at the from bus of the row. Where that is the
  bus with the lower base voltage, pandapower's grid has the same number as a tap of the
  high-voltage winding, at the other end. In case57 the file gives no base voltages at all;
  pandapower's are assumed, and so is which end is the high one.
- **Charging.** A transformer with BR_B > 0 is stored with a negative no-load current, and the
  installed pandapower squares it, which loses the sign: in case118 the +0.638 p.u. of row 104 act
  as -0.638, a reactor in place of a capacitor. Where BR_B < 0 (in case300) the sign is right, and
  what is left is the T model, which puts it in the middle of the transformer.
- **Set-points.** case9 has 1.0 p.u. everywhere; MATPOWER's file 1.04, 1.025 and 1.025.
- **Reference bus.** Five of RTE's grids have it elsewhere, which moves the losses; that it turns
  all angles as well is taken out of the difference.

| grid | buses | complex | magnitude | taps at the other end | charging | set-points | \
reference buses | left |
|---|---:|---:|---:|---:|---:|---:|---:|---:|"""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Of one pair of grids."""

    name: str
    num_buses: int
    voltage: float
    """Largest difference of complex bus voltages, p.u., angles counted from the same bus."""
    magnitude: float
    """The same of their magnitudes."""
    taps: int
    charging: int
    set_points: int
    references: int
    left: float
    """What remains of `voltage` with these differences taken away."""

    def __str__(self) -> str:
        counts = (self.taps, self.charging, self.set_points, self.references)
        cells = [
            self.name, self.num_buses, f"{self.voltage:.2g}", f"{self.magnitude:.2g}",
            *(count or "" for count in counts), f"{self.left:.0e}",
        ]  # fmt: skip
        return f"| {' | '.join(map(str, cells))} |"


def print_section() -> None:
    names = [p.stem for p in case_files() if p.stem in builtin_names()]
    found = [difference(name) for name in names]
    differ = [d for d in found if d.voltage > 1e-8]
    same = [d for d in found if d not in differ]
    version = importlib.metadata.version("pandapower")
    print(HEADER.format(version=version, different=len(differ), all=len(found)))
    print("\n".join(map(str, differ)))
    listed = ", ".join(d.name for d in same)
    print(f"\nThe same to {max(d.voltage for d in same):.0e} p.u.: {listed}.")


def difference(name: str) -> Difference:
    """What differs between pandapower's grid and MATPOWER's file of this name."""
    ours, theirs = read_grid(name), read_grid(case_file(name))
    assert ours.base_mva == theirs.base_mva
    pairs = _pairs(ours, theirs)
    charged = run_case(case_file(name).read_text(encoding="utf-8"))["branch"][:, BR_B] != 0
    two_ports, on = ours.branch_y.copy(), ours.branch_in_service.copy()
    taps = charging = 0
    for i, j, y in pairs:
        straight, moved = _apart(ours.branch_y[i], y), _apart(ours.branch_y[i][OTHER_END], y)
        two_ports[i], on[i] = y, theirs.branch_in_service[j]
        if straight > SAME:
            taps += moved < straight
            charging += charged[j]
            assert moved < straight or charged[j], f"{name}: {ours.branch_labels[i]}"
    kind = theirs.bus_kind
    held = ~np.isnan(theirs.bus_v_set)
    both = held & ~np.isnan(ours.bus_v_set)
    start = ours.v_start.copy()
    start[held] *= theirs.bus_v_set[held] / np.abs(start[held])
    like_theirs = replace(
        ours, branch_y=two_ports, branch_in_service=on, bus_kind=kind,
        bus_v_set=theirs.bus_v_set, v_start=start,
        bus_fixed=ours.bus_fixed + np.where(kind == BusKind.SLACK, 0, _moved_slack(ours, theirs)),
    )  # fmt: skip
    voltage, slack = nominal(theirs).require_converged().voltage[0], theirs.slack[0]
    return Difference(
        name=name,
        num_buses=ours.num_buses,
        voltage=float(np.abs(_voltage(ours, voltage, slack) - voltage).max()),
        magnitude=float(np.abs(abs(_voltage(ours, voltage, slack)) - abs(voltage)).max()),
        taps=taps,
        charging=charging,
        set_points=int((np.abs(ours.bus_v_set - theirs.bus_v_set)[both] > SAME).sum()),
        references=int(((ours.bus_kind == 3) & (kind != 3)).sum()),
        left=float(np.abs(_voltage(like_theirs, voltage, slack) - voltage).max()),
    )


def _moved_slack(ours: Network, theirs: Network) -> np.ndarray:
    """(B,) what the schedule of a bus lacks that only in `ours` is a slack bus."""
    missing = theirs.injected(theirs.load_power) - ours.injected(ours.load_power)
    return np.where(ours.bus_kind == BusKind.SLACK, missing.real, 0)


def _voltage(network: Network, like: np.ndarray, bus: int) -> np.ndarray:
    """(B,) nominal solution, its angles counted such that `bus` has the angle it has in `like`."""
    found = nominal(network).require_converged().voltage[0]
    return found * np.exp(1j * np.angle(like[bus] / found[bus]))


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).max() / np.abs(other).max())


def _pairs(ours: Network, theirs: Network) -> list[tuple[int, int, np.ndarray]]:
    """Branch of each, and the two-port of theirs from our from bus on.

    Parallel circuits are paired so that as few as can be differ: roots favour one large difference
    over two small ones.
    """
    pairs = []
    of_theirs = _by_ends(theirs)
    for ends, mine in _by_ends(ours).items():
        other = of_theirs.pop(ends)
        assert len(mine) == len(other)
        f = ours.branch_from[mine[0]]
        seen = {
            j: theirs.branch_y[j] if theirs.branch_from[j] == f else theirs.branch_y[j][::-1]
            for j in other
        }
        flip = {i: 1 if ours.branch_from[i] == f else -1 for i in mine}
        cost = [
            [
                min(_apart(y, seen[j]), _apart(y[OTHER_END], seen[j]))
                for j in other
                for y in [ours.branch_y[i][:: flip[i]]]
            ]
            for i in mine
        ]
        for row, column in zip(*linear_sum_assignment(np.sqrt(cost)), strict=True):
            i, j = mine[row], other[column]
            pairs.append((i, j, seen[j][:: flip[i]]))
    assert not of_theirs
    return pairs


def _by_ends(network: Network) -> dict[frozenset[int], list[int]]:
    found: dict[frozenset[int], list[int]] = {}
    for row, ends in enumerate(zip(network.branch_from, network.branch_to, strict=True)):
        found.setdefault(frozenset(map(int, ends)), []).append(row)
    return found


if __name__ == "__main__":
    print_section()
