"""Credit: from the returns of episodes to the advantage of every sampled token.

A chain of pure functions over arrays. Each takes the plays and the advantage so far and returns the next; later
methods add links. Knows nothing about tokens' texts, models or losses.
"""

from __future__ import annotations

__all__ = ["Credit", "Plays", "chain", "group_advantage", "normalise"]

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Plays:
    """One agent's episodes of one update, E of them, with N sampled tokens; faulted ones are already gone."""

    returns: Floats
    """(E,) the agent's own return."""
    groups: Ints
    """(E,) episodes with one number started from the same environment, level and seed."""
    episode: Ints
    """(N,) index into the first two."""
    turn: Ints
    """(N,) the agent's turn in its episode."""


Credit = Callable[[Plays, Floats], Floats]
"""(plays, (N,) advantage so far) -> (N,) advantage."""


def chain(*links: Credit) -> Credit:
    """Composes links, first to last."""

    def credit(plays: Plays, advantage: Floats) -> Floats:
        for link in links:
            advantage = link(plays, advantage)
        return advantage

    return credit


def normalise(returns: Floats, groups: Ints) -> Floats:
    """Returns (E,) ``(r - mean) / (std + 1e-6)`` within each group, population std; GRPO (arXiv 2402.03300, eq. 3).

    A group of one, or of equal returns, gets 0.

    >>> normalise(np.array([1.0, 0.0, 5.0]), np.array([7, 7, 8])).round(3).tolist()
    [1.0, -1.0, 0.0]
    """
    _, index, count = np.unique(groups, return_inverse=True, return_counts=True)
    mean = np.bincount(index, returns) / count
    centred = returns - mean[index]
    std = np.sqrt(np.bincount(index, centred**2) / count)
    return np.where(std[index] > 1e-12, centred / (std[index] + 1e-6), 0.0)


def group_advantage(plays: Plays, advantage: Floats) -> Floats:
    """Adds each episode's group-normalised return to every one of its tokens."""
    return advantage + normalise(plays.returns, plays.groups)[plays.episode]
