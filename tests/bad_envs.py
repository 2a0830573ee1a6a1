"""Environments that cannot be trained on, each for one reason, and one with actions that only case tells apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

__all__ = ["go_or_go", "no_legal_action", "not_a_number", "raises_in_step"]


class Pick(ParallelEnv[str, Any, Any]):
    """Two agents pick 0 or 1, three times, and are paid for the same pick."""

    metadata = {"name": "pick_v0"}  # noqa: RUF012

    def __init__(self) -> None:
        self.possible_agents = ["ann", "ben"]
        self.agents: list[str] = []
        self.seen = spaces.Box(-1.0, 3.0, (1,), np.float32)
        self.picks = spaces.Discrete(2)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self.seen

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self.picks

    def look(self) -> np.ndarray[Any, Any]:
        return np.array([self.time], dtype=np.float32)

    def info(self) -> dict[str, Any]:
        return {}

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self.agents, self.time = list(self.possible_agents), 0
        return {name: self.look() for name in self.agents}, {name: self.info() for name in self.agents}

    def step(self, actions: dict[str, int]) -> tuple[Any, ...]:
        self.time += 1
        live, over = self.agents, self.time == 3
        self.agents = [] if over else live
        return (
            {name: self.look() for name in live},
            dict.fromkeys(live, float(len(set(actions.values())) == 1)),
            dict.fromkeys(live, over),
            dict.fromkeys(live, False),
            {name: self.info() for name in live},
        )


class _Raises(Pick):
    def step(self, actions: dict[str, int]) -> tuple[Any, ...]:
        if self.time == 1:
            raise RuntimeError("the floor\ngave way")
        return super().step(actions)


class _NotANumber(Pick):
    def look(self) -> np.ndarray[Any, Any]:
        return super().look() + (np.nan if self.time == 1 else 0)


class _NoLegalAction(Pick):
    def info(self) -> dict[str, Any]:
        return {"action_mask": np.full(2, self.time != 1, dtype=np.int8)}


class _View:
    def observe(self, agent: str, observation: Any) -> str:
        return f"time {observation[0]:g}"

    def actions(self, agent: str, mask: Any | None) -> dict[str, int]:
        return {"Go": 0, "go": 1}


class _GoOrGo(Pick):
    text_view = _View()


def raises_in_step() -> ParallelEnv[str, Any, Any]:
    return _Raises()


def not_a_number() -> ParallelEnv[str, Any, Any]:
    return _NotANumber()


def no_legal_action() -> ParallelEnv[str, Any, Any]:
    return _NoLegalAction()


def go_or_go() -> ParallelEnv[str, Any, Any]:
    return _GoOrGo()
