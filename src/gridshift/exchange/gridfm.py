"""Data sets of solved cases as gridfm parquet: written by `GridfmFiles`.

The tables, their columns and units are those of gridfm-datakit (`utils/column_names.py`), one file
for each 200 cases. What its columns can't say exactly:

- Generators are those that hold a voltage; all other supply is a negative demand, as gridfm knows
  no generator at a PQ bus.
- r, x, b, tap and shift are the branch's pi model (`grid/pi_model.py`); the eight Y columns are
  always exact.
- A limit that the grid doesn't give is infinite, a rating 0, an angle limit 360 degrees.
"""

from collections.abc import Callable
from pathlib import Path
from threading import Lock

import numpy as np
import scipy.sparse as sp

from gridshift.arrays import Bool, Complex, Int, Real
from gridshift.errors import StorageError
from gridshift.exchange.parquet_like import Columns, FilesAlike, encode, write_pieces
from gridshift.exchange.solved_part import SolvedPart
from gridshift.grid.network import BusKind, Network
from gridshift.grid.pi_model import pi_model
from gridshift.storage import write_text

PARTITION = 200
"""Cases in a file."""
TABLES = ("bus_data", "gen_data", "branch_data", "y_bus_data", "runtime_data")
SCENARIO = ("scenario", "load_scenario_idx")
BY_BUS = ("Pd", "Qd", "Pg", "Qg", "Vm", "Va")
BY_GEN = ("p_mw", "q_mvar")
BY_BRANCH = ("pf", "qf", "pt", "qt")
ADMITTANCES = tuple(f"Y{at}_{part}" for at in ("ff", "ft", "tf", "tt") for part in "ri")


class GridfmFiles:
    """Writes the tables of a data set into a folder; several parts may be written at once."""

    def __init__(self, folder: Path, network: Network):
        self._folder = folder / "raw"
        self.paths = tuple(self._folder / f"{table}.parquet" for table in TABLES)
        """The tables, each a folder of partitions."""
        self._alike: dict[tuple[str, int], FilesAlike] = {}
        self._lock = Lock()
        self._entries = _Entries(network)
        self._fixed = {
            "bus_data": _bus_columns(network),
            "gen_data": _gen_columns(network),
            "branch_data": _branch_columns(network),
        }

    def write(self, part: SolvedPart) -> None:
        """Write the files of a part, which fills a partition or is the last one.

        Raises:
            StorageError: they can't be written.
        """
        found = part.quantities
        by_bus = (found.demand_p, found.demand_q, found.bus_p, found.bus_q, found.magnitude,
                  found.angle)  # fmt: skip
        flows = (found.from_p, found.from_q, found.to_p, found.to_q)
        branch: dict[str, Real] = dict(zip(BY_BRANCH, flows, strict=True))
        self._write(part, "bus_data", dict(zip(BY_BUS, by_bus, strict=True)))
        self._write(part, "gen_data", dict(zip(BY_GEN, (found.gen_p, found.gen_q), strict=True)))
        if not part.alike:
            columns = topology_columns(part.grids, part.grid, part.on)
            branch |= {name: values[part.topology] for name, values in columns.items()}
        self._write(part, "branch_data", branch)
        if part.alike:
            self._write(part, "y_bus_data", {})
        else:
            self._write_varied_admittances(part)
        number = np.arange(part.first, part.first + part.num_cases)
        seconds = np.full(part.num_cases, part.seconds)
        runtime = {"scenario": number, "load_scenario_idx": part.drawn.astype(float), "ac": seconds}
        plain = [*runtime]
        self._like("runtime_data", part, lambda: FilesAlike(runtime, plain=plain)).write(
            self._path(part, "runtime_data"), runtime
        )

    def finish(self, num_cases: int) -> None:
        """Write how many cases there are."""
        write_text(self._folder / "n_scenarios.txt", str(num_cases))

    def _write(self, part: SolvedPart, table: str, varying: dict[str, Real]) -> None:
        """Write a table of which these columns, (N, n) each, differ from case to case."""
        number = np.arange(part.first, part.first + part.num_cases)
        labels = dict(zip(SCENARIO, (number, part.drawn.astype(float)), strict=True))

        def first() -> FilesAlike:
            # of one case, in the order of the file; those that vary hold anything
            fixed = self._entries.columns if table == "y_bus_data" else self._fixed[table]
            size = len(next(iter(fixed.values())))
            columns: dict[str, np.ndarray] = {k: np.repeat(v, size) for k, v in labels.items()}
            for name, values in fixed.items():
                given = varying.get(name)
                columns[name] = np.tile(values, part.num_cases) if given is None else given.ravel()
            return FilesAlike(columns, plain=[*varying], repeated=SCENARIO)

        alike = self._like(table, part, first)
        alike.write(self._path(part, table), {**labels, **varying})

    def _like(self, table: str, part: SolvedPart, first: Callable[[], FilesAlike]) -> FilesAlike:
        key = (table, part.num_cases)
        with self._lock:
            if key not in self._alike:
                self._alike[key] = first()
            return self._alike[key]

    def _write_varied_admittances(self, part: SolvedPart) -> None:
        """The bus admittance matrices of topologies that differ, without entries that are 0."""
        values = self._entries.values(part.two_ports)[part.topology]
        case, entry = np.nonzero(values)
        chosen = values[case, entry]
        columns = {
            "scenario": part.first + case,
            "load_scenario_idx": part.drawn[case].astype(float),
            "index1": self._entries.row[entry], "index2": self._entries.column[entry],
            "G": chosen.real.copy(), "B": chosen.imag.copy(),
        }  # fmt: skip
        content = encode(columns, plain=("G", "B"), repeated=())
        write_pieces(self._path(part, "y_bus_data"), [content])

    def _path(self, part: SolvedPart, table: str) -> Path:
        number = part.first // PARTITION
        folder = self._folder / f"{table}.parquet" / f"scenario_partition={number}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot write {folder}: {error.strerror or error}") from error
        return folder / "part-0.parquet"


def _bus_columns(network: Network) -> Columns:
    """(B,) columns of one case."""
    count, kind = network.num_buses, network.bus_kind
    return {
        "bus": np.arange(count), **dict.fromkeys(BY_BUS, np.zeros(count)),
        "PQ": (kind == BusKind.PQ) * 1.0, "PV": (kind == BusKind.PV) * 1.0,
        "REF": (kind == BusKind.SLACK) * 1.0, "vn_kv": network.bus_kv,
        "min_vm_pu": np.nan_to_num(network.bus_v_min, nan=0.0),
        "max_vm_pu": np.nan_to_num(network.bus_v_max, nan=np.inf, posinf=np.inf),
        "GS": network.bus_shunt.real.copy(), "BS": network.bus_shunt.imag.copy(),
    }  # fmt: skip


def _gen_columns(network: Network) -> Columns:
    """(G,) columns of one case; the grid has no costs of generators."""
    count, mva = len(network.gen_bus), network.base_mva
    zero = np.zeros(count)
    return {
        "idx": np.arange(count) * 1.0, "bus": network.gen_bus.astype(np.int64),
        "p_mw": zero, "q_mvar": zero,
        "min_p_mw": network.gen_p_min * mva, "max_p_mw": network.gen_p_max * mva,
        "min_q_mvar": network.gen_q_min * mva, "max_q_mvar": network.gen_q_max * mva,
        "cp0_eur": zero, "cp1_eur_per_mw": zero, "cp2_eur_per_mw2": zero,
        "in_service": zero + 1,
        "is_slack_gen": (network.bus_kind[network.gen_bus] == BusKind.SLACK) * 1.0,
    }  # fmt: skip


def _branch_columns(network: Network) -> Columns:
    """(E,) columns of one case; those of the topology are the grid's own."""
    count = network.num_branches
    found = topology_columns(
        network.branch_y[None], np.zeros(1, np.int64), network.branch_in_service[None]
    )
    own = {name: values[0] for name, values in found.items()}
    rating = np.where(network.branch_rated, network.branch_rating.min(1) * network.base_mva, 0.0)
    return {
        "idx": np.arange(count) * 1.0,
        "from_bus": network.branch_from.astype(np.int64),
        "to_bus": network.branch_to.astype(np.int64),
        **dict.fromkeys(BY_BRANCH, np.zeros(count)),
        **{name: own[name] for name in ("r", "x", "b", *ADMITTANCES, "tap", "shift")},
        "ang_min": np.full(count, -360.0), "ang_max": np.full(count, 360.0), "rate_a": rating,
        "br_status": own["br_status"],
    }  # fmt: skip


def topology_columns(grids: Complex, grid: Int, on: Bool) -> dict[str, Real]:
    """(T, E) columns of the branches of each topology.

    Those out of service keep their r, x, b, tap and shift; their admittances are 0.

    Args:
        grids: (K, E, 4) admittances of the branches of each grid, as if in service.
        grid: (T,) grid of each topology.
        on: (T, E) branches in service.
    """
    flat = np.ascontiguousarray(grids).reshape(-1, 4)
    model = pi_model(flat)
    z, parts = model.impedance, flat.view(float)
    charging = np.where(model.exact, (model.shunt_from + model.shunt_to).imag, 0)
    kept = {
        "r": z.real, "x": z.imag, "b": charging, "tap": np.abs(model.tap),
        "shift": np.rad2deg(np.angle(model.tap)),
    }  # fmt: skip
    admittances = {name: parts[:, at] for at, name in enumerate(ADMITTANCES)}
    shape = grids.shape[:2]
    found: dict[str, Real] = {
        **{name: values.reshape(shape)[grid] for name, values in kept.items()},
        **{name: values.reshape(shape)[grid] * on for name, values in admittances.items()},
        "br_status": on.astype(float),
    }
    return found


class _Entries:
    """The entries of a bus admittance matrix, in the order of rows, and what adds up in them."""

    row: Int
    column: Int

    def __init__(self, network: Network):
        start, end, buses = network.branch_from, network.branch_to, np.arange(network.num_buses)
        rows = np.concatenate([np.stack([start, start, end, end], 1).ravel(), buses])
        columns = np.concatenate([np.stack([start, end, start, end], 1).ravel(), buses])
        places, entry = np.unique(rows * len(buses) + columns, return_inverse=True)
        self.row, self.column = places // len(buses), places % len(buses)
        num = len(entry) - len(buses)
        one = np.ones(len(entry))
        adds = sp.csr_array((one, (np.arange(len(entry)), entry)), shape=(len(entry), len(places)))
        self._of_branches, of_buses = adds[:num], adds[num:]
        self._shunts = network.bus_shunt @ of_buses
        y = np.where(network.branch_in_service[:, None], network.branch_y, 0)
        own = self.values(y[None])[0]
        there = own != 0
        self.columns: Columns = {
            "index1": self.row[there], "index2": self.column[there],
            "G": own.real[there].copy(), "B": own.imag[there].copy(),
        }  # fmt: skip

    def values(self, two_ports: Complex) -> Complex:
        """(T, n) entries for topologies whose branches have admittances (T, E, 4)."""
        return two_ports.reshape(len(two_ports), -1) @ self._of_branches + self._shunts
