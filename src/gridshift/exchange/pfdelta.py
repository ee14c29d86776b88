"""Data sets of solved cases as PFΔ has them: one PowerModels file (JSON) for each case.

A case is `sample_<number>.json`, counted from 1, in `n/raw`, `n-1/raw`, ... by the number of
branches that are out. `network` holds what is given, `solution.solution` what was solved for; per
unit, radians, ids are texts from 1. A limit that the grid doesn't give is `NO_LIMIT`, since JSON
knows no infinity. As in gridfm's tables, all supply but that of generators that hold a voltage is a
negative demand.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gridshift.arrays import Bool, Complex
from gridshift.errors import GridFileError, StorageError
from gridshift.exchange.solved_part import SolvedPart
from gridshift.grid.network import Network
from gridshift.grid.pi_model import pi_model

NO_LIMIT = 1e4
"""p.u."""


class PfdeltaFiles:
    """Writes the cases of a data set into a folder; several parts may be written at once."""

    def __init__(self, folder: Path, network: Network):
        """Files of a grid in a folder.

        Raises:
            GridFileError: the grid has branches that no pi model describes.
        """
        odd = np.flatnonzero(~pi_model(network.branch_y).exact)
        if len(odd):
            labels = sorted({network.branch_labels[e] for e in odd} - {""})
            problem = f"{', '.join(labels[:5]) or 'a three-winding transformer'} is no pi model, "
            raise GridFileError(network.name, [problem + "which is all that PFΔ has; use gridfm"])
        self.paths = (folder,)
        self._network = network
        self._with_load = np.union1d(network.load_bus, np.flatnonzero(network.bus_fixed))
        self._buses, self._shunts = _buses(network), _shunts(network)
        self._gen_limits = _gen_limits(network)

    def write(self, part: SolvedPart) -> None:
        """Write the files of a part.

        Raises:
            StorageError: they can't be written.
        """
        branches = [
            _branches(self._network, part.grids[grid], on)
            for grid, on in zip(part.grid, part.on, strict=True)
        ]
        out = self._network.branch_in_service & ~part.on
        for case in range(part.num_cases):
            topology = part.topology[case]
            num_out = int(out[topology].sum())
            folder = self.paths[0] / (f"n-{num_out}" if num_out else "n") / "raw"
            path = folder / f"sample_{part.first + case + 1}.json"
            text = self._text(part, case, branches[topology])
            try:
                folder.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            except OSError as error:
                raise StorageError(f"cannot write {path}: {error.strerror or error}") from error

    def finish(self, num_cases: int) -> None:
        """Nothing is left to write: the files are the data set."""

    def _text(self, part: SolvedPart, case: int, branches: str) -> str:
        network, found, base = self._network, part.quantities, self._network.base_mva
        loads = [
            {"load_bus": bus + 1, "pd": p, "qd": q, "status": 1, "source_id": ["bus", bus + 1]}
            for bus, p, q in zip(
                self._with_load.tolist(), (found.demand_p[case, self._with_load] / base).tolist(),
                (found.demand_q[case, self._with_load] / base).tolist(), strict=True,
            )
        ]  # fmt: skip
        gen_bus = network.gen_bus
        p, q = (found.gen_p[case] / base).tolist(), (found.gen_q[case] / base).tolist()
        vm, va = found.magnitude[case].tolist(), np.deg2rad(found.angle[case]).tolist()
        gens = [
            {
                "gen_bus": bus + 1, "gen_status": 1, "pg": pg, "qg": qg, "vg": vm[bus],
                **self._gen_limits[row],
                "model": 2, "ncost": 3, "cost": [0.0, 0.0, 0.0], "mbase": base, "startup": 0.0,
                "shutdown": 0.0, "source_id": ["gen", row + 1],
            }
            for row, (bus, pg, qg) in enumerate(zip(gen_bus.tolist(), p, q, strict=True))
        ]  # fmt: skip
        flows = (found.from_p, found.from_q, found.to_p, found.to_q)
        of_branch = np.stack([values[case] / base for values in flows], axis=1).tolist()
        head = {"name": network.name, "baseMVA": base, "per_unit": True, "source_type": "gridshift",
                "source_version": "2"}  # fmt: skip
        solution = {
            "baseMVA": base, "per_unit": True,
            "bus": _numbered({"vm": m, "va": a} for m, a in zip(vm, va, strict=True)),
            "gen": _numbered({"pg": a, "qg": b} for a, b in zip(p, q, strict=True)),
            "branch": _numbered(
                dict(zip(("pf", "qf", "pt", "qt"), one, strict=True)) for one in of_branch
            ),
        }  # fmt: skip
        sections = {
            "bus": self._buses, "shunt": self._shunts, "branch": branches,
            "load": json.dumps(_indexed(loads)), "gen": json.dumps(_indexed(gens)),
            "dcline": "{}", "storage": "{}", "switch": "{}",
        }  # fmt: skip
        given = json.dumps(head)[:-1] + "".join(f', "{k}": {v}' for k, v in sections.items()) + "}"
        result = {
            "termination_status": "LOCALLY_SOLVED", "objective": 0.0, "solve_time": part.seconds,
            "solution": solution,
        }  # fmt: skip
        return f'{{"network": {given}, "solution": {json.dumps(result)}}}'


def _gen_limits(network: Network) -> list[dict[str, float]]:
    """Active and reactive limits of each generator, p.u."""
    values = {
        "pmin": network.gen_p_min, "pmax": network.gen_p_max,
        "qmin": network.gen_q_min, "qmax": network.gen_q_max,
    }  # fmt: skip
    known = [np.clip(limits, -NO_LIMIT, NO_LIMIT).tolist() for limits in values.values()]
    return [dict(zip(values, row, strict=True)) for row in zip(*known, strict=True)]


def _buses(network: Network) -> str:
    kinds = network.bus_kind.tolist()
    low = np.nan_to_num(network.bus_v_min, nan=0.0).tolist()
    high = np.nan_to_num(network.bus_v_max, nan=NO_LIMIT, posinf=NO_LIMIT).tolist()
    start = np.abs(network.v_start).tolist(), np.angle(network.v_start).tolist()
    rows = zip(kinds, network.bus_kv.tolist(), low, high, *start, strict=True)
    return json.dumps(_indexed(
        {
            "bus_i": number, "bus_type": kind, "base_kv": kv, "vmin": least, "vmax": most,
            "vm": vm, "va": va, "area": 1, "zone": 1, "name": network.bus_labels[number - 1],
            "source_id": ["bus", number],
        }
        for number, (kind, kv, least, most, vm, va) in enumerate(rows, 1)
    ))  # fmt: skip


def _shunts(network: Network) -> str:
    y = network.bus_shunt
    return json.dumps(_indexed(
        {
            "shunt_bus": bus + 1, "gs": y[bus].real, "bs": y[bus].imag, "status": 1,
            "source_id": ["bus", bus + 1],
        }
        for bus in np.flatnonzero(y).tolist()
    ))  # fmt: skip


def _branches(network: Network, branch_y: Complex, on: Bool) -> str:
    """The branches of one topology, with admittances (E, 4) as if all were in service."""
    model = pi_model(branch_y)
    z = model.impedance
    columns = {
        "f_bus": network.branch_from + 1, "t_bus": network.branch_to + 1, "br_r": z.real,
        "br_x": z.imag, "g_fr": model.shunt_from.real, "b_fr": model.shunt_from.imag,
        "g_to": model.shunt_to.real, "b_to": model.shunt_to.imag, "tap": np.abs(model.tap),
        "shift": np.angle(model.tap), "br_status": on.astype(int),
        "transformer": np.abs(model.tap - 1) > 1e-9,
        "rate_a": np.where(network.branch_rated, network.branch_rating.min(1), NO_LIMIT),
        "angmin": np.full(len(on), -2 * np.pi), "angmax": np.full(len(on), 2 * np.pi),
    }  # fmt: skip
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return json.dumps(_indexed(
        {**dict(zip(columns, row, strict=True)), "source_id": ["branch", number]}
        for number, row in enumerate(rows, 1)
    ))  # fmt: skip


def _numbered(items: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {str(number): item for number, item in enumerate(items, 1)}


def _indexed(items: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {str(number): {"index": number, **item} for number, item in enumerate(items, 1)}
