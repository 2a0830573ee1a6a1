"""A Parallel environment for tests: every observation and reward of an agent is a secret that can be searched for."""

from __future__ import annotations

import os
import random
import sys
import time
from typing import Any

from gymnasium import spaces
from pettingzoo import ParallelEnv

AGENTS = ("ann", "ben")
STEP = {"ann": 0.123456789, "ben": 0.987654321}
"""The reward of a step in which both go left."""


class View:
    def observe(self, agent: str, observation: Any) -> str:
        return f"secret-{agent}-{observation}"

    def actions(self, agent: str, mask: Any | None) -> dict[str, int]:
        return {"left": 0, "right": 1}


class Arena(ParallelEnv):
    """Both go left or right for some rounds; it is a success if they were left together at least once.

    ``delay``: seconds of a step. ``crash``: in the step of this round it raises ("raise"), calls sys.exit ("exit") or
    ends the process ("die"), as ``by`` says; in so many episodes as ``odds`` says.
    """

    metadata = {"name": "arena_v0"}  # noqa: RUF012
    text_view = View()

    def __init__(
        self, rounds: int = 3, delay: float = 0.0, crash: int = -1, by: str = "raise", odds: float = 1.0
    ) -> None:
        self.possible_agents = list(AGENTS)
        self.agents: list[str] = []
        self._rounds, self._delay, self._crash, self._by, self._odds = rounds, delay, crash, by, odds
        self.closed = False

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Discrete(10**6)

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Discrete(2)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[str, int], dict[str, Any]]:
        self._draw = random.Random(seed)
        self.agents = list(AGENTS)
        self._round, self._met = 0, False
        return self._observe(), {name: {} for name in AGENTS}

    def step(self, actions: dict[str, int]) -> tuple[Any, ...]:
        time.sleep(self._delay)
        if self._round == self._crash and self._draw.random() < self._odds:
            if self._by == "exit":
                sys.exit()
            if self._by == "die":
                os._exit(0)
            raise ZeroDivisionError(f"the arena fell down on {', '.join(f'secret-{name}' for name in AGENTS)}")
        self._round += 1
        left = all(action == 0 for action in actions.values())
        self._met |= left
        over = self._round >= self._rounds
        names = list(self.agents)
        if over:
            self.agents = []
        rewards = {name: STEP[name] * left for name in names}
        return (
            self._observe(),
            rewards,
            dict.fromkeys(names, over),
            dict.fromkeys(names, False),
            {name: {} for name in names},
        )

    def close(self) -> None:
        self.closed = True

    def success(self, agent: str) -> float:
        return float(self._met)

    def _observe(self) -> dict[str, int]:
        return {name: self._draw.randrange(10**6) for name in AGENTS}


def env(**options: Any) -> Arena:
    return Arena(**options)
