"""Which rows of a ragged batch are run together, so that little is padded. Knows nothing about models."""

from __future__ import annotations

__all__ = ["bands"]

from collections.abc import Sequence

_FORWARD = 128
"""Tokens that one more forward pass is taken to cost beside its own; a guess, not measured per model or device."""


def bands(lengths: Sequence[int]) -> list[list[int]]:
    """Divides rows, by index, into batches that cost least: rows times the longest, and a fixed price per batch.

    >>> bands([10, 9, 500, 10]), bands([10, 9, 12, 10])
    ([[0, 1, 3], [2]], [[0, 1, 2, 3]])
    """
    if max(lengths) * len(lengths) - sum(lengths) <= _FORWARD:
        return [list(range(len(lengths)))]
    order = sorted(range(len(lengths)), key=lambda i: (lengths[i], i))
    ends = [i + 1 for i in range(len(order)) if i + 1 == len(order) or lengths[order[i]] < lengths[order[i + 1]]]
    best: dict[int, tuple[int, int]] = {0: (0, 0)}
    """End of a band -> (the least cost up to there, where its last band begins)."""
    for end in ends:
        width = lengths[order[end - 1]]
        best[end] = min((cost + (end - start) * width + _FORWARD, start) for start, (cost, _) in best.items())
    found = []
    end = len(order)
    while end:
        start = best[end][1]
        found.append(sorted(order[start:end]))
        end = start
    return found[::-1]
