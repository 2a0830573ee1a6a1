"""Level-based foraging as text: agents on a grid load food whose level those who load at once must reach together.

Reads as ``you 2; food 3 at 1 up 2 left; agent_1 1 at 2 right``: levels, then places seen from the agent. An
observation is all that is read, so nothing beyond the sight is told; food stands in one order for all who see it.
"""

from __future__ import annotations

__all__ = ["Foraging", "env"]

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from decentral.envs.adapters.gymnasium import Team, make
from decentral.errors import ConfigError

ACTIONS = ("stay", "up", "down", "left", "right", "load")
"""In the order of lbforaging's Action."""


def env(id: str, max_episode_steps: int | None = None, **options: Any) -> Foraging:
    """Makes for example ``Foraging-8x8-2p-2f-coop-v3``; the options are those of ForagingEnv. Raises ConfigError."""
    if options.get("grid_observation"):
        raise ConfigError(f"{id!r} with grid_observation shows pictures, which have no text here; leave it out")
    made = make(id, **options)
    raw = made.unwrapped
    if type(raw).__name__ != "ForagingEnv":
        raise ConfigError(f"{id!r} is no lbforaging ForagingEnv; play it as gymnasium/{id}")
    if max_episode_steps is not None:  # gymnasium.make would keep it to itself, and the environment its own 50
        raw._max_episode_steps = max_episode_steps
    return Foraging(made)


class ForagingView:
    """Reads observations of (row, column, level) for each food, then for each player, the agent first."""

    def __init__(self, agents: list[str], foods: int, sight: int, leveled: bool) -> None:
        self.others = {agent: [other for other in agents if other != agent] for agent in agents}
        self.foods = 3 * foods
        self.size = 3 if leveled else 2
        self.sight = sight

    def observe(self, agent: str, observation: npt.NDArray[np.float32]) -> str:
        """Returns the agent's level, then what it sees."""
        numbers = [int(number) for number in observation.tolist()]
        foods = [numbers[i : i + 3] for i in range(0, self.foods, 3)]
        (row, column, *level), *others = [
            numbers[i : i + self.size] for i in range(self.foods, len(numbers), self.size)
        ]
        foods, others = self._near(foods, row, column), self._near(others, row, column)
        # the array says who is who only by order, so not where somebody is left out
        names = self.others[agent] if len(others) == len(self.others[agent]) else ["player"] * len(others)
        parts = [" ".join(map(str, ("you", *level)))]
        for name, (down, right, *level) in [*(("food", food) for food in foods), *zip(names, others)]:
            parts.append(" ".join(map(str, (name, *level, "at", _offset(down, right)))))
        return "; ".join(parts)

    def actions(self, agent: str, mask: npt.NDArray[np.int8] | None) -> Mapping[str, int]:
        """Returns the actions that would not come to the same as stay."""
        return {word: action for action, word in enumerate(ACTIONS) if mask is None or mask[action]}

    def _near(self, things: list[list[int]], row: int, column: int) -> list[list[int]]:
        """Returns what is in sight, as seen from there."""
        # near the top and the left, the array shows players up to twice the sight away, but food not
        seen = [[y - row, x - column, *level] for y, x, *level in things if y >= 0]
        return [one for one in seen if max(abs(one[0]), abs(one[1])) <= self.sight]


class Foraging(Team):
    """The game. An episode in which food is left over is truncated: the environment itself calls it terminated."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        raw = self.raw
        self.text_view = ForagingView(self.possible_agents, raw.max_num_food, raw.sight, raw._observe_agent_levels)

    def infos(self, info: Any) -> list[dict[str, Any]]:
        """Returns the actions that are valid for each."""
        valid = self.raw._valid_actions
        return [{**info, "action_mask": _mask(valid[player])} for player in self.raw.players]

    def late(self) -> bool:
        """Says whether food is left over."""
        return bool(self.raw.field.any())

    def instructions(self, agent: str) -> str:
        """Returns what the agent is told once."""
        partial = self.raw.sight < max(self.raw.field_size) - 1
        whom = f"You see {self.raw.sight} cells far; the" if partial else "The"
        return (
            f"You are {agent}. Stand next to food and load: you get it if the levels, the numbers after names, of all "
            f"who load it at once reach its own. {whom} team wins with all food loaded."
        )

    def success(self, agent: str) -> float:
        """Returns the share of all food, by level, that the team has loaded: the sum of the agents' usual returns."""
        return 1 - float(self.raw.field.sum()) / max(float(self.raw._food_spawned), 1)


def _mask(valid: list[Any]) -> npt.NDArray[np.int8]:
    mask = np.zeros(len(ACTIONS), dtype=np.int8)
    mask[[action.value for action in valid]] = 1
    return mask


def _offset(down: int, right: int) -> str:
    along = f"{abs(down)} {'down' if down > 0 else 'up'}" if down else ""
    across = f"{abs(right)} {'right' if right > 0 else 'left'}" if right else ""
    return " ".join(part for part in (along, across) if part) or "here"
