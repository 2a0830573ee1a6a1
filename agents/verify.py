"""Verification of drafts: which are accepted, and what comes after them. The outcome is distributed as the policy's p.

Pure functions over tensors. Source: rejection sampling as in Bebop (arXiv 2606.12370) and Leviathan et al.
(arXiv 2211.17192); a draft that was not drawn but is the likeliest (target-only) is one drawn from a q with all its
mass on it.
"""

from __future__ import annotations

__all__ = ["residual", "verify"]

import torch
from torch import Tensor

from decentral.agents.distribution import pick


def verify(
    p: Tensor, q: Tensor, drafted: Tensor, lengths: Tensor, accept: Tensor, last: Tensor
) -> tuple[Tensor, Tensor]:
    """Accepts drafts while ``accept < p(y) / q(y)``, and draws one more token.

    Args:
        p: (B, K+1, V) probabilities of the policy before every draft and after the last.
        q: (B, K, V) from which the drafts were drawn.
        drafted: (B, K) tokens; beyond a row's length, anything.
        lengths: (B,) drafts of each row, 0 to K.
        accept: (B, K) uniform draws.
        last: (B, K+1) uniform draws, of which each row uses the one where its drafts end.

    Returns:
        (B,) numbers of accepted drafts, and (B,) tokens that follow them: from p after a row's last draft if all were
        accepted, else from the residual at the rejected one.
    """
    row = torch.arange(len(p), device=p.device)
    y = drafted[..., None]
    ok = accept * q.gather(-1, y)[..., 0] < p[:, :-1].gather(-1, y)[..., 0]
    ok &= torch.arange(drafted.shape[1], device=p.device) < lengths[:, None]
    count = ok.long().cumprod(-1).sum(-1)
    place = count.clamp(max=drafted.shape[1] - 1)
    left = torch.where((count < lengths)[:, None], residual(p[row, place], q[row, place]), p[row, count])
    return count, pick(left, last[row, count])


def residual(p: Tensor, q: Tensor) -> Tensor:
    """Returns (B, V) weights max(0, p - q); p itself where p = q leaves none."""
    rest = (p - q).clamp(min=0)
    return torch.where(rest.sum(-1, keepdim=True) > 0, rest, p)
