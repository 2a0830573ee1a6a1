"""Credit: from the returns of episodes to the advantage of every sampled token.

A chain of pure functions over arrays. Each takes the plays and the advantage so far and returns the next; later
methods add links. Knows nothing about tokens' texts, models or losses.
"""

from __future__ import annotations

__all__ = [
    "Credit",
    "Plays",
    "centre",
    "chain",
    "credit_of",
    "group_advantage",
    "normalise",
    "to_go",
    "turn_advantage",
    "unexplained",
]

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
    rewards: Floats
    """(E, T) what the agent got after each of its turns and before the next; NaN beyond its last turn."""
    episode: Ints
    """(N,) index into the first three."""
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


def to_go(rewards: Floats, discount: float) -> Floats:
    """Returns (E, T) the rewards from each turn on, the one k turns later times ``discount ** k``; NaN stays NaN.

    >>> to_go(np.array([[1.0, 0.0, 2.0], [4.0, 3.0, np.nan]]), 0.5).tolist()
    [[1.5, 1.0, 2.0], [5.5, 3.0, nan]]
    """
    found = rewards.copy()
    for turn in reversed(range(rewards.shape[1] - 1)):
        found[:, turn] += discount * np.nan_to_num(found[:, turn + 1])
    return found


def centre(values: Floats, groups: Ints) -> Floats:
    """Returns (E, T) each turn's value less the mean of that turn over its group; NaN stays NaN.

    A turn that only one episode of a group has gets 0.
    """
    found = np.full_like(values, np.nan)
    for group in np.unique(groups):
        mine = values[groups == group]
        count = np.maximum(1, (~np.isnan(mine)).sum(axis=0))
        found[groups == group] = mine - np.nansum(mine, axis=0) / count
    return found


def unexplained(values: Floats, known: Floats) -> Floats:
    """Returns ``values`` less the multiple of ``known`` that leaves the least squares; same shape, NaN stays NaN."""
    there = ~np.isnan(values)
    size = np.square(known[there]).sum()
    return values - (values[there] * known[there]).sum() / size * known if size > 1e-12 else values


def turn_advantage(discount: float) -> Credit:
    """Returns a link that adds to every token what came after its turn, beside what was to be expected.

    What came after is the discounted reward from the turn on. To be expected is the mean of that turn over the group,
    and a multiple of the reward just before, fitted over all plays: where rewards tell how good a state is, that takes
    out most of what the turn has not caused. The rest is divided by its population standard deviation over the group.
    Where all reward comes last and episodes are equally long, a discount of 1 is ``group_advantage``.
    """

    def link(plays: Plays, advantage: Floats) -> Floats:
        rewards, groups = plays.rewards, plays.groups
        before = np.concatenate([np.zeros_like(rewards[:, :1]), rewards[:, :-1]], axis=1)
        before = np.where(np.isnan(rewards), np.nan, before)
        gap = unexplained(centre(to_go(rewards, discount), groups), centre(before, groups))
        for group in np.unique(groups):
            mine = gap[groups == group]
            std = np.sqrt(np.nanmean(np.square(mine))) if not np.isnan(mine).all() else 0.0
            gap[groups == group] = mine / (std + 1e-6) if std > 1e-9 else 0.0
        return advantage + gap[plays.episode, plays.turn]

    return link


def credit_of(discount: float | None) -> Credit:
    """Returns the chain that an agent uses."""
    return chain(group_advantage if discount is None else turn_advantage(discount))
