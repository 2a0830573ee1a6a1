"""Losses of a draft head: how far its distribution q is from the policy's p, at one draft position or over all of them.

Pure functions over tensors; p is data. V may be a shortlist of the vocabulary, on which p then sums to less than 1.
Source: Bebop (arXiv 2606.12370), losses and the gradient of the end-to-end form.
"""

from __future__ import annotations

__all__ = ["LOSSES", "Loss", "cross_entropy", "end_to_end_tv", "kl", "one_step_tv", "overlap"]

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Loss = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""From p (N, K, V), logits of q (N, K, V), sampled tokens' columns (N, K) and mask (N, K) to a scalar. The mask is true
for the positions that count; in every row a true one is never behind a false one."""


def overlap(p: Tensor, q: Tensor) -> Tensor:
    """Returns sum_v min(p_v, q_v) = 1 - TV(p, q) over the last axis: how often rejection sampling accepts a draft.

    >>> round(overlap(torch.tensor([0.5, 0.5]), torch.tensor([0.9, 0.1])).item(), 3)
    0.6
    """
    return torch.minimum(p, q).sum(-1)


def cross_entropy(p: Tensor, logits: Tensor, taken: Tensor, mask: Tensor) -> Tensor:
    """Returns the mean of -log q(sampled token); a column of -1, a token off the shortlist, does not count."""
    logq = logits.log_softmax(-1).gather(-1, taken.clamp(min=0)[..., None])[..., 0]
    return -_mean(logq, mask & (taken >= 0))


def kl(p: Tensor, logits: Tensor, taken: Tensor, mask: Tensor) -> Tensor:
    """Returns the mean of KL(p || q), in nats."""
    return _mean((p * (p.clamp(min=1e-30).log() - logits.log_softmax(-1))).sum(-1), mask)


def one_step_tv(p: Tensor, logits: Tensor, taken: Tensor, mask: Tensor) -> Tensor:
    """Returns the mean of TV(p, q) = 1 - sum_v min(p_v, q_v)."""
    return _mean(1 - overlap(p, logits.softmax(-1)), mask)


def end_to_end_tv(p: Tensor, logits: Tensor, taken: Tensor, mask: Tensor) -> Tensor:
    """Returns the mean over rows of 1 - E[accepted] / k, E[accepted] = sum_j prod_{i<=j} (1 - TV_i) over k positions.

    The gradient is Bebop's closed form: dTV/dz_v = -q_v ([q_v <= p_v] - S), S = sum_v [q_v <= p_v] q_v, weighted by
    W_m = (1/k) prod_{i<m} alpha_i S_m with S_m = 1 + alpha_{m+1} S_{m+1}.
    """
    value: Tensor = _EndToEnd.apply(p, logits, mask)  # type: ignore[no-untyped-call]
    return value


class _EndToEnd(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, p: Tensor, logits: Tensor, mask: Tensor) -> Tensor:
        q = logits.softmax(-1)
        alpha = torch.where(mask, overlap(p, q), 0.0)
        ctx.save_for_backward(p, q, alpha, mask)
        return (1 - alpha.cumprod(-1).sum(-1) / _depth(mask)).mean()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[None, Tensor, None]:
        p, q, alpha, mask = ctx.saved_tensors
        below = (q <= p).to(q.dtype)
        slope = -q * (below - (below * q).sum(-1, keepdim=True))
        return None, grads[0] * _weights(alpha, mask)[..., None] * slope / len(q), None


def _weights(alpha: Tensor, mask: Tensor) -> Tensor:
    """Returns dL/dTV of every position, (N, K), from its acceptance ``alpha``, which is 0 where the mask is false."""
    behind = torch.ones_like(alpha)  # S_m: what a further accepted position m would be worth
    for m in range(alpha.shape[-1] - 2, -1, -1):
        behind[:, m] = 1 + alpha[:, m + 1] * behind[:, m + 1]
    before = torch.cat([torch.ones_like(alpha[:, :1]), alpha[:, :-1]], -1).cumprod(-1)
    return torch.where(mask, before * behind / _depth(mask)[:, None], 0.0)


def _depth(mask: Tensor) -> Tensor:
    return mask.sum(-1).clamp(min=1)


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, values, 0.0).sum() / mask.sum().clamp(min=1)


LOSSES: dict[str, Loss] = {"ce": cross_entropy, "kl": kl, "tv": one_step_tv, "e2e": end_to_end_tv}
"""By the names that the command line takes."""
