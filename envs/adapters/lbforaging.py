"""Level-based foraging as text: agents on a grid load food whose level those who load at once must reach together.

Reads as ``you 2; food 3 at 1 up 2 left; agent_1 1 at 2 right``: levels, then places seen from the agent. An
observation is all that is read, so nothing beyond the sight is told; food stands in one order for all who see it.
"""

from __future__ import annotations

__all__ = ["Foraging", "env"]

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from decentral.envs.adapters.gymnasium import Team, make
from decentral.errors import ConfigError

ACTIONS = ("stay", "up", "down", "left", "right", "load")
"""In the order of lbforaging's Action."""

Thing = tuple[str, int, bool]
"""What a thing is called, where in an observation its row and column stand, and whether its level comes after."""


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
        size = 3 if leveled else 2
        self.me = 3 * foods
        self.foods: list[Thing] = [("food", at, True) for at in range(0, self.me, 3)]
        places = range(self.me + size, self.me + size * len(agents), size)
        self.others: dict[str, list[Thing]] = {
            agent: [(other, at, leveled) for other, at in zip((one for one in agents if one != agent), places)]
            for agent in agents
        }
        self.strangers: list[Thing] = [("player", at, leveled) for at in places]
        self.leveled = leveled
        self.sight = sight

    def observe(self, agent: str, observation: npt.NDArray[np.float32]) -> str:
        """Returns the agent's level, then what it sees."""
        numbers, others = observation.tolist(), self.others[agent]
        players = self._near(numbers, others)
        if len(players) < len(others):  # the array says who is who only by order, so not where somebody is left out
            players = self._near(numbers, self.strangers)
        you = f"you {int(numbers[self.me + 2])}" if self.leveled else "you"
        return "; ".join([you, *self._near(numbers, self.foods), *players])

    def actions(self, agent: str, mask: npt.NDArray[np.int8] | None) -> Mapping[str, int]:
        """Returns the actions that would not come to the same as stay."""
        return _table(None if mask is None else mask.tobytes())

    def _near(self, numbers: list[float], things: list[Thing]) -> list[str]:
        """Returns what of some things is in sight."""
        # near the top and the left, the array shows players up to twice the sight away, but food not
        me, sight, seen = self.me, self.sight, []
        row, column = numbers[me], numbers[me + 1]
        for name, at, leveled in things:
            down, right = numbers[at] - row, numbers[at + 1] - column
            if numbers[at] >= 0 and -sight <= down <= sight and -sight <= right <= sight:
                seen.append(_seen(name, numbers[at + 2] if leveled else None, down, right))
        return seen


class Foraging(Team):
    """The game. An episode in which food is left over is truncated: the environment itself calls it terminated."""

    success_rule = "share of the food loaded, by level"

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        raw = self.raw
        self.text_view = ForagingView(self.possible_agents, raw.max_num_food, raw.sight, raw._observe_agent_levels)

    def infos(self, info: Any) -> list[dict[str, Any]]:
        """Returns the actions that are valid for each."""
        valid = self.raw._valid_actions
        return [
            {**info, "action_mask": MASKS[sum([1 << action._value_ for action in valid[player]])]}
            for player in self.raw.players
        ]

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


def _mask(bits: int) -> npt.NDArray[np.int8]:
    """Returns the mask in which action i is legal if bit i is set; all share it, so nobody may write to it."""
    mask = np.array([bits >> i & 1 for i in range(len(ACTIONS))], dtype=np.int8)
    mask.flags.writeable = False
    return mask


MASKS = [_mask(bits) for bits in range(1 << len(ACTIONS))]


@lru_cache(maxsize=len(MASKS) + 1)
def _table(mask: bytes | None) -> Mapping[str, int]:
    return {word: action for action, word in enumerate(ACTIONS) if mask is None or mask[action]}


@lru_cache(maxsize=2**14)
def _seen(name: str, level: float | None, down: float, right: float) -> str:
    """Returns for example ``food 1 at 2 down 3 left``; all numbers are whole."""
    along = f"{abs(int(down))} {'down' if down > 0 else 'up'}" if down else ""
    across = f"{abs(int(right))} {'right' if right > 0 else 'left'}" if right else ""
    named = name if level is None else f"{name} {int(level)}"
    return f"{named} at {' '.join(part for part in (along, across) if part) or 'here'}"
