"""Solved scenarios as pairs (x, y), and their file."""

import json
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gridshift.arguments import how_many
from gridshift.arrays import Real
from gridshift.errors import ScenarioError, StorageError
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.grid.powerflow import solve
from gridshift.grid.scenarios import LoadScenarios
from gridshift.memory import require_memory
from gridshift.storage import replacing


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Solved rows of one topology. Rows that failed are not here; they are counted."""

    x: Real
    """(R, X)"""
    y: Real
    """(R, Y)"""
    layout: Layout
    network: Network
    status_counts: dict[str, int]
    """Rows per status of the solves behind it, 'solved' and failed ones."""

    def __len__(self) -> int:
        return len(self.x)

    @property
    def num_solves(self) -> int:
        """Solves that were paid for, failed ones included."""
        return sum(self.status_counts.values())

    def rows(self, which: slice | np.ndarray) -> "Dataset":
        """The chosen rows; the counts remain those of the whole."""
        return replace(self, x=self.x[which], y=self.y[which])

    def save(self, path: str | Path) -> None:
        """Write an npz file, all of it or nothing.

        Raises:
            StorageError: the file cannot be written.
        """
        about = {
            "grid": self.network.name,
            "network_digest": self.network.digest,
            "layout_digest": self.layout.digest,
            "status_counts": self.status_counts,
        }
        with replacing(path) as part, part.open("wb") as file:
            np.savez(file, x=self.x, y=self.y, about=np.array(json.dumps(about)))

    @classmethod
    def load(cls, path: str | Path, network: Network) -> "Dataset":
        """Read a file written by `save` for this network.

        Raises:
            StorageError: the file cannot be read, is no such file, or is of another topology.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                about = json.loads(str(file["about"]))
                x, y = file["x"], file["y"]
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error.strerror}") from error
        except (EOFError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise StorageError(f"{path} is not a data set of gridshift, or is damaged") from error
        layout = Layout.of(network)
        belongs = (about["network_digest"], about["layout_digest"])
        if belongs != (network.digest, layout.digest):
            raise StorageError(
                f"{path} holds rows of {about['grid']} in another state than the {network.name} "
                "given; solve them anew"
            )
        return cls(x=x, y=y, layout=layout, network=network, status_counts=about["status_counts"])


def require_rows(
    network: Network, num_rows: int, what: str = "scenarios", *, times: int = 1
) -> None:
    """Pass if so many scenarios can be drawn, solved and packed as x and y.

    At the peak each takes three times what its loads, voltages, x and y take: measured with
    tracemalloc on grids of 14, 118 and 300 buses, the training on them included.

    Args:
        what: what they are, in the plural, for the message.
        times: how many such sets there are at once.

    Raises:
        MemoryNeededError: they don't fit into memory.
    """
    layout = Layout.of(network)
    values = network.num_loads + network.num_buses + layout.num_inputs + layout.num_outputs
    each = f" for each of {times} workers" if times > 1 else ""
    require_memory(
        times * 3 * 8 * values * num_rows, f"{num_rows:,} {what} of {network.name}{each}",
        count=num_rows,
    )  # fmt: skip


def generate(
    network: Network, loads: LoadScenarios, *, min_rows: int = 1, **solver: Any
) -> Dataset:
    """Solve the scenarios on this topology and keep the rows that have a solution.

    Args:
        min_rows: solved rows without which the result is of no use.
        solver: keyword arguments of `gridshift.grid.powerflow.solve`.

    Raises:
        ScenarioError: fewer than `min_rows` rows have a solution.
        MemoryNeededError: the scenarios don't fit into memory.
    """
    require_rows(network, loads.num_rows)
    solution = solve(network, loads, **solver)
    counts, solved = solution.counts(), solution.solved
    if solved.sum() < min_rows:
        outage = f" without {','.join(network.outaged)}" if network.outaged else ""
        told = ", ".join(f"{number} {status}" for status, number in counts.items())
        because = f" ({solution.reason})" if solution.reason else ""
        raise ScenarioError(
            f"{solved.sum()} of {how_many(len(solved), 'scenario')} of {network.name}{outage} "
            "have a solution "
            f"and {min_rows} are needed: {told}{because}; try a smaller spread"
        )
    layout, kept = Layout.of(network), loads.rows(solved)
    return Dataset(
        x=layout.pack_inputs(network, kept),
        y=layout.pack_outputs(network, kept, solution.voltage[solved]),
        layout=layout,
        network=network,
        status_counts=counts,
    )
