"""From what teachers favour to the distribution that an action is drawn from, in closed form.

Pure functions over (A,) arrays of legal actions: ``own`` is the agent's own distribution, ``favour`` is
``credibility.preference``. Source: CCKS, arXiv 2606.12281, and our variant of it.
"""

from __future__ import annotations

__all__ = ["follow", "majority", "tilt", "veto"]

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from decentral.agents.credibility import View

Floats = NDArray[np.float64]


def veto(own: Floats, favour: Floats) -> Floats:
    """Returns the distribution of a draw that is made again, once, if it fell on a least favoured action.

    These are the ``A // 3 + 1`` least favoured, but never all: ``p(a) = own(a) [a not in V] + own(V) own(a)``.

    >>> veto(np.array([0.25, 0.25, 0.25, 0.25]), np.array([3.0, 2.0, 1.0, 0.0])).tolist()
    [0.375, 0.375, 0.125, 0.125]
    """
    count = min(len(own) // 3 + 1, len(own) - 1)
    vetoed = np.zeros(len(own), dtype=bool)
    vetoed[np.argsort(favour, kind="stable")[:count]] = True
    return np.asarray(own * ~vetoed + own[vetoed].sum() * own)


def tilt(own: Floats, favour: Floats, strength: float) -> Floats:
    """Returns ``own * exp(strength * favour)``, normalised.

    >>> tilt(np.array([0.5, 0.5]), np.array([0.5, -0.5]), np.log(3)).round(3).tolist()
    [0.75, 0.25]
    """
    raw = own * np.exp(np.minimum(strength * (favour - favour[own > 0].max()), 0.0))
    return np.asarray(raw / raw.sum())


def follow(teachers: Sequence[View]) -> Floats:
    """Returns all probability on the likeliest action of the most certain teacher."""
    best = min(teachers, key=lambda one: one.entropy).probabilities
    return _only(int(best.argmax()), len(best))


def majority(teachers: Sequence[View]) -> Floats:
    """Returns all probability on the action that most teachers like best; ties go to the larger sum."""
    table = np.stack([one.probabilities for one in teachers])
    votes = np.bincount(table.argmax(1), minlength=table.shape[1])
    return _only(int((votes + table.sum(0) / (2 * len(table) + 1)).argmax()), table.shape[1])


def _only(action: int, count: int) -> Floats:
    found = np.zeros(count)
    found[action] = 1.0
    return found
