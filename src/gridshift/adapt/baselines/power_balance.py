"""Power mismatch of predicted outputs as a loss, and its descent over an affine map."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from gridshift.arrays import Real
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network

GROWTH = 1.25
"""Growth of the step after one that lowered the loss; one that didn't is taken back and halved."""


class PowerBalance:
    """Power mismatch of predicted outputs, differentiable, where buses specify their power."""

    def __init__(self, network: Network, layout: Layout, x: Real):
        admittance = network.admittance.toarray()
        scheduled = network.injected(layout.unpack_loads(x).load_power)
        self._conductance, self._susceptance = _tensor(admittance.real), _tensor(admittance.imag)
        self._p, self._q = _tensor(scheduled.real), _tensor(scheduled.imag)
        self._v_set = _tensor(x[:, layout.x_slices["v_set"]])
        self._theta_slack = _tensor(x[:, layout.x_slices["theta_slack"]])
        self._at, self._num_buses = layout.y_slices, layout.num_buses
        self._controlled, self._slack, self._pq, self._non_slack = (
            torch.from_numpy(buses)
            for buses in (layout.controlled, layout.slack, layout.pq, layout.non_slack)
        )

    def __call__(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Active mismatch (R, buses that aren't slack) and reactive (R, PQ buses) of y (R, Y)."""
        shape = (len(y), self._num_buses)
        magnitude = y.new_zeros(shape).index_copy(1, self._controlled, self._v_set)
        magnitude = magnitude.index_copy(1, self._pq, y[:, self._at["v"]])
        angle = y.new_zeros(shape).index_copy(1, self._slack, self._theta_slack)
        angle = angle.index_copy(1, self._non_slack, y[:, self._at["theta"]])
        re, im = magnitude * torch.cos(angle), magnitude * torch.sin(angle)
        i_re = re @ self._conductance.T - im @ self._susceptance.T
        i_im = re @ self._susceptance.T + im @ self._conductance.T
        p, q = re * i_re + im * i_im - self._p, im * i_re - re * i_im - self._q
        return p[:, self._non_slack], q[:, self._pq]

    def loss(self, y: Tensor) -> Tensor:
        """Mean over rows of the sum of squared mismatches, p.u.^2."""
        p, q = self(y)
        return (p.square().sum(1) + q.square().sum(1)).mean()


def lower_mismatch(
    network: Network,
    layout: Layout,
    x: Real,
    *,
    start: Real,
    z: Real,
    back: Real,
    num_steps: int,
    first_step: float,
) -> tuple[Real, Real, tuple[float, ...]]:
    """A (M, H) and c (M,) that lower the mismatch of start + back (A z + c), and all losses.

    Args:
        network: the topology whose equations the rows should satisfy.
        start: (R, Y) outputs without a correction.
        z: (R, H) what the correction is linear in.
        back: (Y, M) outputs that a unit of the correction moves.
        num_steps: most steps that are kept; each lowers the loss.
        first_step: as a multiple of the gradient.
    """
    balance, z_t, back_t, start_t = (
        PowerBalance(network, layout, x), _tensor(z), _tensor(back), _tensor(start),
    )  # fmt: skip

    def loss(parameters: Tensor) -> Tensor:
        # the last column is c, the others are A
        return balance.loss(start_t + (z_t @ parameters[:, :-1].T + parameters[:, -1]) @ back_t.T)

    none = torch.zeros(back.shape[1], z.shape[1] + 1, dtype=torch.float64)
    found, losses = _descend(loss, none, num_steps, first_step)
    return found[:, :-1].numpy(), found[:, -1].numpy(), losses


def _descend(
    loss: Callable[[Tensor], Tensor], start: Tensor, num_steps: int, first_step: float
) -> tuple[Tensor, tuple[float, ...]]:
    """Gradient descent that keeps a step only if it lowers the loss; where it ends, all losses."""
    here, step = start, first_step
    value, gradient = _value_and_gradient(loss, here)
    losses = [value]
    while len(losses) <= num_steps:
        there = here - step * gradient
        with torch.no_grad():
            lower = float(loss(there)) < value
        if not lower:
            step /= 2
            if torch.equal(there, here) or step < 1e-12 * first_step:
                break
            continue
        here, step = there, step * GROWTH
        value, gradient = _value_and_gradient(loss, here)
        losses.append(value)
    return here, tuple(losses)


def _value_and_gradient(
    loss: Callable[[Tensor], Tensor], parameters: Tensor
) -> tuple[float, Tensor]:
    leaf = parameters.clone().requires_grad_()
    value = loss(leaf)
    (gradient,) = torch.autograd.grad(value, leaf)
    return value.item(), gradient


def _tensor(array: Real) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))
