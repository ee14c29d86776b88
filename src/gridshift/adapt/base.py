"""`Base`: what a way to adapt starts from."""

from typing import Any, Protocol

from gridshift.adapt.layout import Layout
from gridshift.adapt.surrogate_config import SurrogateConfig
from gridshift.grid.network import Network


class Base(Protocol):
    """Trained once, on the intact grid or on several topologies, and never changed by adapting.

    `Surrogate` is one; a published method with a model of its own brings its own.
    """

    @property
    def grid(self) -> str:
        """Name of the grid."""
        ...

    @property
    def layout(self) -> Layout: ...

    @property
    def config(self) -> SurrogateConfig:
        """Spread, seed and training that were asked for."""
        ...

    @property
    def record(self) -> dict[str, Any]:
        """What it cost: `num_rows`, `num_solves`, `data_s` and `train_s`."""
        ...

    @property
    def mae(self) -> float:
        """Mean absolute error over all entries of y on fresh rows of the intact grid."""
        ...

    def check(self, network: Network) -> None:
        """Pass if the network is a topology of this grid.

        Raises:
            SurrogateMismatchError: it is of another grid, or of another state of it.
        """
        ...
