"""Which turns an agent asks about: a gate, which may learn from what it has seen, and a budget of bytes."""

from __future__ import annotations

__all__ = ["Budget", "Gate"]

import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decentral.agents.draws import name_word

_SEEN = 512
"""Entropies that the quantile is taken of."""
_KNOWN = 4096
"""Observations whose visits are counted; the oldest is forgotten first."""


class Gate:
    """Lets turns pass by the policy's entropy, by how rarely their like was seen, all, or none."""

    def __init__(self, kind: str, quantile: float = 0.5) -> None:
        """``kind``: ``entropy``, ``visits``, ``always`` or ``never``. ``quantile``: of ``entropy``."""
        self._kind = kind
        self._quantile = quantile
        self._entropies: deque[float] = deque(maxlen=_SEEN)
        self._visits: dict[str, int] = {}

    def choose(
        self, entropies: NDArray[np.float64], observations: Sequence[str], draws: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Returns (N,) which of N turns are asked about.

        Args:
            entropies: (N,) of the policy there, in nats.
            observations: their texts.
            draws: (N,) uniform numbers.
        """
        if self._kind == "entropy":
            before = list(self._entropies) or entropies.tolist()
            self._entropies.extend(entropies.tolist())
            return np.asarray(entropies >= np.quantile(before, self._quantile))
        if self._kind == "visits":
            return np.array([draw < self._rarity(text) for text, draw in zip(observations, draws)], dtype=bool)
        return np.full(len(entropies), self._kind == "always")

    def _rarity(self, observation: str) -> float:
        """Returns ``2 ** -sqrt(n)``, n the visits so far of an observation alike but for small changes of numbers."""
        key = f"{name_word(re.sub(r'[0-9]+(?:[.][0-9]+)?', _coarse, observation)):x}"
        visits = self._visits.pop(key, 0)
        self._visits[key] = visits + 1
        if len(self._visits) > _KNOWN:
            self._visits.pop(next(iter(self._visits)))
        return float(2.0 ** -np.sqrt(visits))

    def state(self) -> dict[str, Any]:
        """Returns what ``restore`` needs."""
        return {"entropies": list(self._entropies), "visits": self._visits}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes what ``state`` returned."""
        self._entropies = deque(map(float, state["entropies"]), maxlen=_SEEN)
        self._visits = {str(key): int(count) for key, count in state["visits"].items()}


def _coarse(number: re.Match[str]) -> str:
    return f"{float(number.group()):.0e}"


class Budget:
    """How many bytes may still pass because of an agent's questions, in each episode for itself.

    So neither how episodes are batched nor what another one spent decides what is asked in one.
    """

    def __init__(self, most: int) -> None:
        """``most``: bytes of an episode."""
        self._most = most
        self._spent: dict[int, int] = {}

    def renew(self) -> None:
        """Starts anew."""
        self._spent.clear()

    def take(self, episode: int, count: int) -> bool:
        """Sets bytes of an episode aside; returns whether that many were left, else none are taken."""
        spent = self._spent.get(episode, 0) + count
        if spent > self._most:
            return False
        self._spent[episode] = spent
        return True

    def give_back(self, episode: int, count: int) -> None:
        """Returns bytes that were set aside and not needed."""
        self._spent[episode] -= count
