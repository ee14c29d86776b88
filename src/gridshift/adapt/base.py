"""`Base`: what a way to adapt starts from."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Self

from gridshift.adapt.surrogate_config import SurrogateConfig
from gridshift.errors import SurrogateMismatchError
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network


@dataclass(frozen=True, kw_only=True, eq=False)
class Base:
    """Made once for a grid, and never changed by adapting.

    `Surrogate` is one that was trained; a published method with a model of its own brings its own;
    `Base.untrained` is for methods that use nothing that was trained.
    """

    grid: str
    """Name of the grid."""
    grid_digest: str
    """Digest of the network as read; outages of it belong to the base too."""
    layout: Layout
    config: SurrogateConfig
    """Spread, seed and training that were asked for."""
    record: dict[str, Any]
    """What it cost and what came of it: `num_rows`, `num_solves`, `data_s`, `train_s`, `mae`; empty
    if nothing was trained."""

    @classmethod
    def untrained(cls, network: Network, config: SurrogateConfig) -> "Base":
        """The grid of a topology, its layout and a configuration, without any training."""
        intact = network.intact
        return Base(
            grid=intact.name,
            grid_digest=intact.digest,
            layout=Layout.of(intact),
            config=config,
            record={},
        )

    @property
    def mae(self) -> float:
        """Mean absolute error over all entries of y on fresh rows of the topology trained on."""
        return self.record["mae"]

    @property
    def digest(self) -> str:
        """Hexadecimal digest that tells this base from others: of what it was trained with."""
        parts = (type(self).__name__, repr(self.config), self.record)
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def check(self, network: Network) -> None:
        """Pass if the network is a topology of this grid.

        Raises:
            SurrogateMismatchError: it is of another grid, or of another state of it.
        """
        check_grid(network, self.grid, self.layout.num_buses, self.grid_digest)

    def on(self, network: Network) -> Self:
        """The same for this topology, where what was trained takes the topology's graph."""
        return self


def check_grid(network: Network, grid: str, num_buses: int, digest: str) -> None:
    """Pass if the network is a topology of the grid that a surrogate was trained for.

    Raises:
        SurrogateMismatchError: naming both grids.
    """
    given = network.intact.digest
    if given != digest:
        raise SurrogateMismatchError(
            f"the surrogate was trained for {grid} ({num_buses} buses, digest {digest[:8]}) and "
            f"does not fit {network.name} ({network.num_buses} buses, digest {given[:8]}); "
            f"train one with 'gridshift train {network.name} --out DIR'"
        )
