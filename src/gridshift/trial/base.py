"""What a command or a study adapts: one place decides which base that is, and what comes first."""

from pathlib import Path

from gridshift.adapt.base import Base
from gridshift.adapt.method import Method
from gridshift.adapt.surrogate import Surrogate
from gridshift.adapt.surrogate_config import base_config
from gridshift.grid.network import Network
from gridshift.learn.training import Progress


def base_for(
    method: Method,
    network: Network,
    *,
    num_context: int,
    spread: float = 0.2,
    seed: int = 0,
    base: str | None = None,
    folder: str | Path | None = None,
    progress: Progress | None = None,
) -> Base:
    """What this method starts from on this topology; trained only if the method uses that.

    Args:
        num_context: scenarios that will be solved for the context.
        spread: spread of the loads, of the training too.
        seed: root seed, of the training too.
        base: name of the base, in `BASES`; by default the method's own.
        folder: of a stored surrogate to use instead.

    Raises:
        ContextError: the method can't work with such a context; before anything is trained.
        StorageError, SurrogateMismatchError: the folder holds no surrogate of this grid, or the
            method can't start from this base.
    """
    method.check_num_context(num_context)
    if base is not None:
        method.check_base_name(base)
    if folder is None:
        config = base_config(base or method.default_base, spread=spread, seed=seed)
        return method.start(network, config, progress=progress)
    return Surrogate.load(folder, network)
