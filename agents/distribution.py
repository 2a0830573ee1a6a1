"""The policy's distribution over the tokens that may come next, in one place for rollout, scoring and training.

Softmax after temperature, restricted to the allowed tokens. Pure functions over tensors.
"""

from __future__ import annotations

__all__ = ["entropy", "pick", "probabilities", "restricted", "tempered"]

from collections.abc import Sequence

import torch
from torch import Tensor

Ids = tuple[int, ...]

_BELOW_ONE = 1 - 2**-52
"""Keeps the largest draw off the end of the cumulative weights."""


def restricted(logits: Tensor, allowed: Sequence[Ids | None], temperature: float) -> tuple[Tensor, Tensor | None]:
    """Returns log-probabilities over the allowed tokens of each row, and which tokens these are.

    Args:
        logits: (N, V).
        allowed: N tuples of token ids, or none for the whole vocabulary; all rows alike.
        temperature: see ``tempered``.

    Returns:
        (N, K) log-probabilities in float32, -inf beyond a row's own number of tokens, and the (N, K) token ids they
        belong to; no ids where the whole vocabulary is allowed (K = V).
    """
    logits = logits.float()
    if allowed[0] is None:
        return tempered(logits, temperature).log_softmax(-1), None
    rows = [ids or () for ids in allowed]
    width = max(len(ids) for ids in rows)
    padded = torch.tensor([[*ids, *[-1] * (width - len(ids))] for ids in rows], device=logits.device)
    chosen = logits.gather(1, padded.clamp(min=0)).masked_fill(padded < 0, -torch.inf)
    return tempered(chosen, temperature).log_softmax(-1), padded


def tempered(logits: Tensor, temperature: float) -> Tensor:
    """Returns (..., V) logits divided by the temperature; at 0, all but the first largest are -inf."""
    if temperature > 0:
        return logits if temperature == 1 else logits / temperature
    best = logits.argmax(-1, keepdim=True)
    return torch.full_like(logits, -torch.inf).scatter(-1, best, 0.0)


def probabilities(logp: Tensor) -> Tensor:
    """Returns exp of (..., K) log-probabilities; a softmax, because ``exp`` is 20 times slower where it underflows."""
    return logp.softmax(-1)


def entropy(logp: Tensor, p: Tensor | None = None) -> Tensor:
    """Returns the (...,) entropies in nats of (..., K) log-probabilities, some maybe -inf; ``p`` if it is known."""
    p = probabilities(logp) if p is None else p
    return -(p * logp.masked_fill(logp == -torch.inf, 0.0)).sum(-1)


def pick(weights: Tensor, draws: Tensor) -> Tensor:
    """Returns the (N,) columns that (N,) uniform draws fall on, by the inverse of the cumulative (N, K) weights."""
    cumulative = weights.cumsum(-1, dtype=torch.float64)
    place = draws[:, None] * (cumulative[:, -1:] * _BELOW_ONE)
    return torch.searchsorted(cumulative, place, right=True)[:, 0]
