"""House: two agents in a house say to each other, in free text, where they are and where to meet.

The environment of the rollout benchmark for models that know English: every answer is free text. Both succeed if what
they say last names the same single room.
"""

from __future__ import annotations

__all__ = ["House", "env"]

from typing import Any

from gymnasium.spaces import Text
from gymnasium.utils import seeding
from pettingzoo import ParallelEnv

from decentral.envs.actions import Free

ROOMS = ("kitchen", "garden", "cellar", "attic", "hall", "library", "garage", "bathroom", "bedroom", "balcony")
NAMES = ("ada", "bob")
ROUNDS = 3
TOKENS = 48


def env() -> House:
    """Makes the game."""
    return House()


class HouseView:
    """Reads as plain sentences."""

    def observe(self, agent: str, observation: str) -> str:
        """Returns the observation, which is a text."""
        return observation

    def actions(self, agent: str, mask: Any | None) -> Free:
        """Returns that anything may be said."""
        return Free(TOKENS)


class House(ParallelEnv):  # type: ignore[misc]
    """The game. Reward: 1 to both if their last words name the same room and no other."""

    metadata: dict[str, Any] = {"name": "house", "render_modes": [], "is_parallelizable": True}  # noqa: RUF012
    render_mode = None

    def __init__(self) -> None:
        self.possible_agents = list(NAMES)
        self.agents: list[str] = []
        self.text_view = HouseView()
        self._texts = {name: Text(4096, min_length=0) for name in NAMES}
        self.random = seeding.np_random(None)[0]
        self.rooms: dict[str, str] = {}
        self.doors: dict[str, list[str]] = {}
        self.said: dict[str, str] = {}
        self.round = 0

    def observation_space(self, agent: str) -> Text:
        """Returns the agent's own space, always the same object."""
        return self._texts[agent]

    def action_space(self, agent: str) -> Text:
        """Returns the agent's own space, always the same object."""
        return self._texts[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
        """Draws where everyone is and what doors there are; ``options`` are not used."""
        if seed is not None:
            self.random = seeding.np_random(seed)[0]
        self.agents = list(NAMES)
        self.round = 0
        self.said = {}
        order = [str(room) for room in self.random.permutation(ROOMS)]
        self.rooms = dict(zip(NAMES, order))
        self.doors = {name: order[2 + 2 * i : 4 + 2 * i] for i, name in enumerate(NAMES)}
        return self._observe(), {name: {} for name in NAMES}

    def step(self, actions: dict[str, str]) -> tuple[dict[str, Any], ...]:
        """Hears what both say."""
        self.said = {name: str(actions[name]) for name in NAMES}
        self.round += 1
        over = self.round >= ROUNDS
        reward = float(over and self._agreed)
        results: tuple[dict[str, Any], ...] = (
            self._observe(),
            dict.fromkeys(NAMES, reward),
            dict.fromkeys(NAMES, over),
            dict.fromkeys(NAMES, False),
            {name: {} for name in NAMES},
        )
        if over:
            self.agents = []
        return results

    def instructions(self, agent: str) -> str:
        """Returns what the agent is told once."""
        other = NAMES[1 - NAMES.index(agent)].capitalize()
        return (
            f"You are {agent.capitalize()}. You and {other} are in a house and want to meet in one room. "
            "Answer with one or two short sentences."
        )

    def success(self, agent: str) -> float:
        """Returns 1 if both named the same room last."""
        return float(self._agreed)

    @property
    def _agreed(self) -> bool:
        named = [{room for room in ROOMS if room in text.lower()} for text in self.said.values()]
        return len(named) == len(NAMES) and len(named[0]) == 1 and named[0] == named[1]

    def _observe(self) -> dict[str, str]:
        return {name: self._see(name) for name in NAMES}

    def _see(self, agent: str) -> str:
        other = NAMES[1 - NAMES.index(agent)]
        here = f"You are in the {self.rooms[agent]}. There are doors to the {' and the '.join(self.doors[agent])}."
        if not self.said:
            return f"{here} Tell {other.capitalize()} where you are and where you want to meet."
        return f'{here} {other.capitalize()} said: "{self.said[other]}" In which room do you meet?'
