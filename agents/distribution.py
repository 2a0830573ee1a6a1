"""The policy's distribution over the tokens that may come next, in one place for rollout, scoring and training.

Softmax after temperature, restricted to the allowed tokens. Pure functions over tensors.
"""

from __future__ import annotations

__all__ = ["entropy", "pick", "restricted"]

from collections.abc import Sequence

import torch
from torch import Tensor

Ids = tuple[int, ...]


def restricted(logits: Tensor, allowed: Sequence[Ids | None], temperature: float) -> tuple[Tensor, Tensor | None]:
    """Returns log-probabilities over the allowed tokens of each row, and which tokens these are.

    Args:
        logits: (N, V).
        allowed: N tuples of token ids, or none for the whole vocabulary; all rows alike.
        temperature: divides the logits.

    Returns:
        (N, K) log-probabilities in float32, -inf beyond a row's own number of tokens, and the (N, K) token ids they
        belong to; no ids where the whole vocabulary is allowed (K = V).
    """
    logits = logits.float() / temperature
    if allowed[0] is None:
        return logits.log_softmax(-1), None
    rows = [ids or () for ids in allowed]
    width = max(len(ids) for ids in rows)
    padded = torch.tensor([[*ids, *[-1] * (width - len(ids))] for ids in rows], device=logits.device)
    chosen = logits.gather(1, padded.clamp(min=0)).masked_fill(padded < 0, -torch.inf)
    return chosen.log_softmax(-1), padded


def entropy(logp: Tensor) -> Tensor:
    """Returns the (N,) entropies in nats of (N, K) log-probabilities, of which some may be -inf."""
    return -(logp.exp() * logp.masked_fill(logp == -torch.inf, 0.0)).sum(-1)


def pick(logp: Tensor, draws: Tensor) -> Tensor:
    """Returns the (N,) columns that (N,) uniform draws fall on, by the inverse of the cumulative distribution."""
    total = logp.double().exp().cumsum(-1)
    column = (total <= draws[:, None] * total[:, -1:]).sum(-1)
    last = (logp > -torch.inf).long().cumsum(-1).argmax(-1)
    return torch.minimum(column, last)
