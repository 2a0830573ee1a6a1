"""Scoring of sampled tokens: their log-probability and entropy under given weights, as the rollout defined them.

Chunks are padded on the right, so plain causal order hides the padding from every real token. Knows nothing about
advantages or optimisers.
"""

from __future__ import annotations

__all__ = ["Scores", "needed", "pack", "score"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from decentral.agents.distribution import entropy, restricted
from decentral.agents.stream import Chunk

Forward = Callable[[Tensor, Tensor, Any], Tensor]
"""(ids, positions, columns) -> (B, len(columns), V) logits."""


@dataclass(frozen=True)
class Scores:
    """Per choice, in the order of the chunks and of the choices in each: (N,) each."""

    logp: Tensor
    entropy: Tensor
    uneven: Tensor
    """Kullback-Leibler divergence of the policy from equally likely tokens, in nats; 0 in free text."""


def pack(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Splits rows into batches of at most ``most`` padded tokens, longest together; returns indices.

    A row longer than ``most`` is a batch of its own; rows of no length are left out.
    """
    batches: list[list[int]] = []
    room = 0
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if lengths[i] == 0:
            break
        if room <= 0:
            batches.append([])
            room = max(1, most // lengths[i])
        batches[-1].append(i)
        room -= 1
    return batches


def needed(chunk: Chunk) -> int:
    """Returns how many tokens of a chunk must be read to score its choices."""
    return chunk.choices[-1].at if chunk.choices else 0


def score(forward: Forward, chunks: Sequence[Chunk], temperature: float, device: str = "cpu") -> Scores:
    """Scores every choice of the chunks in one forward pass.

    Args:
        forward: runs a model over (B, n) ids and positions and returns the logits of some columns.
        chunks: B chunks with at least one choice each.
        temperature: at which the choices were made.
        device: where the model is.
    """
    width = max(chunk.choices[-1].at for chunk in chunks)
    ids = torch.tensor([c.ids[:width] + [0] * (width - len(c.ids[:width])) for c in chunks], device=device)
    positions = torch.arange(width, device=device).expand(len(chunks), -1)
    columns = sorted({choice.at - 1 for chunk in chunks for choice in chunk.choices})
    place = {column: i for i, column in enumerate(columns)}
    logits = forward(ids, positions, torch.tensor(columns, device=device))
    rows = [r for r, chunk in enumerate(chunks) for _ in chunk.choices]
    choices = [choice for chunk in chunks for choice in chunk.choices]
    at = [place[choice.at - 1] for choice in choices]
    flat = logits[torch.tensor(rows, device=device), torch.tensor(at, device=device)]
    tokens = torch.tensor([chunks[r].ids[c.at] for r, c in zip(rows, choices)], device=device)
    logp = flat.new_zeros(len(choices), dtype=torch.float32)
    nats, uneven = torch.zeros_like(logp), torch.zeros_like(logp)
    for free in (False, True):
        some = torch.tensor([i for i, c in enumerate(choices) if (c.allowed is None) == free], device=device).long()
        if len(some) == 0:
            continue
        table, allowed = restricted(flat[some], [choices[i].allowed for i in some.tolist()], temperature)
        column = tokens[some] if allowed is None else (allowed == tokens[some, None]).long().argmax(-1)
        logp = logp.index_put((some,), table.gather(1, column[:, None])[:, 0])
        nats = nats.index_put((some,), entropy(table))
        if allowed is not None:
            count = (allowed >= 0).sum(-1)
            mean = table.masked_fill(allowed < 0, 0.0).sum(-1) / count
            uneven = uneven.index_put((some,), -mean - count.log())
    return Scores(logp, nats, uneven)
