"""How far an agent trusts each peer, learnt from what came of its advice.

For an advised action, ``x = advantage * (teacher's probability - own) / behaviour probability`` is an unbiased estimate
of how the agent's return would change if it moved toward the teacher's distribution. The turns of an episode share what
came of it, so the mean over them is one observation. Trust is the probability, under a normal approximation, that the
change is for the better.
"""

from __future__ import annotations

__all__ = ["CLIP", "Trust"]

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

_FADE = 0.99
"""What an observation counts after each later one: some 100 episodes are remembered."""
_PRIOR = 8.0
"""Imagined observations of mean 0 and variance 1, before any."""
CLIP = 10.0
"""What is found of one turn counts no more than this, either way."""
_MOST = 4.0
"""Standard errors beyond which trust does not move, so that it can come back."""


_NOTHING = (0.0, 0.0, 0.0, 0.0)


class Trust:
    """A number from 0 to 1 per peer; 0.5 for one of whom nothing is known."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[float, float, float, float]] = {}
        """Per peer the faded number of observations, the same faded twice, their sum, and the sum of their squares."""

    def update(self, peer: str, found: Iterable[Sequence[float]]) -> None:
        """Takes what was found about a peer in the turns of each episode, see the module; each is cut off at 10."""
        count, twice, total, squares = self._sums.get(peer, _NOTHING)
        for episode in found:
            x = sum(min(CLIP, max(-CLIP, one)) for one in episode) / len(episode)
            count, twice = _FADE * count + 1, _FADE**2 * twice + 1
            total, squares = _FADE * total + x, _FADE * squares + x * x
        self._sums[peer] = (count, twice, total, squares)

    def of(self, peers: Sequence[str]) -> NDArray[np.float64]:
        """Returns (J,) the trust in peers."""
        return np.array([self._of(peer) for peer in peers], dtype=np.float64)

    def _of(self, peer: str) -> float:
        count, twice, total, squares = self._sums.get(peer, _NOTHING)
        size = count + _PRIOR
        mean = total / size
        variance = max((squares + _PRIOR) / size - mean * mean, 1e-9)
        score = mean / math.sqrt(variance * (twice + _PRIOR)) * size
        return (1 + math.erf(min(_MOST, max(-_MOST, score)) / math.sqrt(2))) / 2

    def state(self) -> dict[str, list[float]]:
        """Returns what ``restore`` needs."""
        return {peer: list(sums) for peer, sums in self._sums.items()}

    def restore(self, state: Mapping[str, Sequence[float]]) -> None:
        """Takes what ``state`` returned."""
        self._sums = {peer: (float(a), float(b), float(c), float(d)) for peer, (a, b, c, d) in state.items()}
