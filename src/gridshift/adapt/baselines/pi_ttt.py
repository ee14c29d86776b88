"""Test-time training: gradient steps that make predictions satisfy the power flow equations.

No labels: the loss is the power mismatch of predicted voltages under the new topology's
admittances, for inputs that nobody solves (Dogoulis, Alizadeh, Kubler and Cordy, arXiv 2511.22343,
known to us by its abstract; its penalties on operating limits are left out, the data having none).
What moves is an affine map behind the backbone, v and theta + K (A z + c): for a linear head that
is its weight and bias within what its outputs z span, and for any other backbone the same.
Generation is not predicted but follows from the voltages.

Coordinates decide. With K the identity, on the physical outputs or on the whitened ones, fifty
steps of Adam lower the mismatch of case118 without line:34 by a factor of 2 to 6 and leave the
error where it was or double it: voltages move where powers are stiff, not where they are wrong.
With K the inverse Jacobian at the mean prediction, A z + c is a power, the loss is to first order
|mismatch + A z + c|^2 with z white, and plain gradient descent converges in some ten steps.
"""

from dataclasses import dataclass, replace

import numpy as np

from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.surrogate import Surrogate
from gridshift.arrays import Real
from gridshift.errors import GridshiftError
from gridshift.grid.equations import jacobian
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.grid.scenarios import named_rng, sample_loads
from gridshift.learn.whitening import Affine


@dataclass(frozen=True, kw_only=True)
class StepsConfig:
    """How the affine map behind the backbone is found."""

    num_steps: int = 50
    """Steps that are kept; each lowers the loss."""
    num_rows: int = 400
    """Inputs drawn for the topology; none of them is solved."""
    step: float = 0.5
    """First step, as a multiple of the gradient: what solves the linearised problem for white z."""

    def __post_init__(self) -> None:
        if self.num_steps < 0 or self.num_rows < 1 or not 0 < self.step < np.inf:
            raise GridshiftError(
                f"{self.num_steps} steps of {self.step:g} on {self.num_rows} rows; give at least 0 "
                "steps, a positive first step and one row"
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class BalancedPredictor:
    """Voltages of a corrected surrogate, and the generation that belongs to them."""

    voltages: Predictor
    network: Network
    layout: Layout
    losses: tuple[float, ...]
    """Of the frozen surrogate, then after each step kept."""

    def predict(self, x: Real) -> Real:
        """(R, Y) outputs of inputs (R, X)."""
        return self.layout.with_implied_generation(self.network, x, self.voltages.predict(x))


def adapt_pi_ttt(
    surrogate: Surrogate, context: Context, *, config: StepsConfig = StepsConfig()
) -> BalancedPredictor:
    """The surrogate, corrected on inputs of the topology's own that are not solved.

    Raises:
        GridshiftError: the Jacobian is singular, for instance because buses are cut off.
    """
    from gridshift.adapt.baselines.power_balance import lower_mismatch

    network, layout, base = context.network, surrogate.layout, surrogate.transform
    assert isinstance(base, Affine)
    x = _unlabelled(surrogate, network, config.num_rows)
    z, start = surrogate.predict_whitened(x), surrogate.predict(x)
    back = _mismatch_to_outputs(network, layout, layout.unpack_voltage(x, start))
    weight, bias, losses = lower_mismatch(
        network, layout, x, start=start, z=z, back=back, num_steps=config.num_steps,
        first_step=config.step,
    )  # fmt: skip
    unwhitener = np.diag(base.unwhitener) if base.unwhitener.ndim == 1 else base.unwhitener
    corrected = replace(
        base,
        shift=base.shift + back @ bias,
        unwhitener=unwhitener + back @ weight,
        whitener=np.empty(0),
    )
    voltages = surrogate.with_transform(corrected)
    return BalancedPredictor(voltages=voltages, network=network, layout=layout, losses=losses)


def _mismatch_to_outputs(network: Network, layout: Layout, voltage: np.ndarray) -> Real:
    """(Y, M) K: change of v and theta by a change of specified powers, or of itself."""
    magnitude, angle = np.abs(voltage).mean(0), np.angle(voltage).mean(0)
    by_state = jacobian(network, magnitude * np.exp(1j * angle)).toarray()
    try:
        moved = np.linalg.inv(by_state)
    except np.linalg.LinAlgError:
        raise GridshiftError(
            f"the power flow Jacobian of {network.name} without {','.join(network.outaged)} is "
            "singular; list the outages that keep the grid connected with 'gridshift cases "
            f"{network.name} --outages'"
        ) from None
    angles = np.concatenate([network.pv, network.pq])
    matrix = np.zeros((layout.num_outputs, len(by_state)))
    theta, v = layout.y_slices["theta"], layout.y_slices["v"]
    matrix[theta.start + np.searchsorted(layout.non_slack, angles)] = moved[: len(angles)]
    matrix[v.start + np.searchsorted(layout.pq, network.pq)] = moved[len(angles) :]
    return matrix


def _unlabelled(surrogate: Surrogate, network: Network, num_rows: int) -> Real:
    """(R, X) inputs of the topology's own stream."""
    config, outage = surrogate.config, ",".join(network.outaged)
    rng = named_rng(network.name, "unlabelled", outage=outage, seed=config.seed)
    loads = sample_loads(network, rng, num_rows, spread=config.spread)
    return surrogate.layout.pack_inputs(network, loads)
