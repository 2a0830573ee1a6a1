"""Meet: agents on a grid who see only near cells must all stand in one cell at the same time.

Everyone knows its own cell, counted from 1 eastward and southward, and where the others are if they are near. Agents
that swap cells pass each other. Walls stand in the same place in every episode of a level and are felt, not seen: a
move into one is not legal. A convention solves every level, such as "go to the centre and stay".
"""

from __future__ import annotations

__all__ = ["LEVELS", "Meet", "env", "scratch"]

import itertools
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete, MultiDiscrete
from gymnasium.utils import seeding
from pettingzoo import ParallelEnv

from decentral.envs.games.lines import NAMES, pick
from decentral.errors import ConfigError

Cell = tuple[int, int]
"""(x, y) from 0, x to the east and y to the south."""

MOVES: dict[str, Cell] = {"north": (0, -1), "south": (0, 1), "east": (1, 0), "west": (-1, 0), "stay": (0, 0)}
STEPS = tuple(MOVES.values())


class Rules(msgspec.Struct, frozen=True):
    """What makes a level hard."""

    grid: tuple[str, ...]
    """Rows from the north; ``#`` is a wall. At most 9 by 9, so that a coordinate is one digit."""
    view: int
    """The others are seen up to this many columns and rows away."""
    rounds: int
    """The time there is."""


RING = (".......", "..#.#..", ".#...#.", ".......", ".#...#.", "..#.#..", ".......")
ROOMS = ("....#....",) * 3 + (".........", "###...###", ".........") + ("....#....",) * 3
RULES = (
    Rules((".....",) * 5, view=2, rounds=8),
    Rules((".....",) * 5, view=1, rounds=6),
    Rules((".......",) * 7, view=2, rounds=10),
    Rules(RING, view=1, rounds=12),
    Rules(ROOMS, view=1, rounds=14),
)
LEVELS = len(RULES)


def env(level: int = 0, agents: int = 2) -> Meet:
    """Makes the game for 2 to 4 agents. Raises ConfigError for another number of agents or an unknown level."""
    if agents not in range(2, len(NAMES) + 1):
        raise ConfigError(
            f"agents = {agents!r} cannot meet: the game is for 2 to {len(NAMES)} agents; take one of these"
        )
    return Meet(pick("meet", RULES, level), agents)


def scratch(observation: str) -> str:
    """Returns where the others stand, in the coordinates of the grid.

    >>> scratch("you 2 3 bob 2 east 1 north")
    'bob at 4 2'
    """
    words = observation.split()
    x, y = int(words[1]), int(words[2])
    found: dict[str, Cell | None] = {}
    for before, word in itertools.pairwise(words):
        if word in NAMES:
            name = word
            found[name] = (x, y)
        elif word == "unseen":
            found[name] = None
        elif word in MOVES:
            (dx, dy), (ox, oy) = MOVES[word], found[name] or (x, y)
            found[name] = (ox + int(before) * dx, oy + int(before) * dy)
    return " ".join(f"{name} at {cell[0]} {cell[1]}" if cell else f"{name} unseen" for name, cell in found.items())


class MeetView:
    """Reads as ``you 2 3 bob 2 east 1 north`` or ``you 2 3 bob unseen``."""

    def __init__(self, agents: tuple[str, ...], view: int) -> None:
        self.others = {agent: tuple(other for other in agents if other != agent) for agent in agents}
        self.view = view

    def observe(self, agent: str, observation: npt.NDArray[np.int64]) -> str:
        """Returns the agent's cell, then for each other its offset, ``here`` or ``unseen``."""
        x, y, *codes = observation.tolist()
        words = [f"you {x + 1} {y + 1}"]
        for other, (a, b) in zip(self.others[agent], zip(codes[::2], codes[1::2])):
            words.append(f"{other} {self._offset(a - 1 - self.view, b - 1 - self.view) if a else 'unseen'}")
        return " ".join(words)

    def actions(self, agent: str, mask: npt.NDArray[np.int8] | None) -> Mapping[str, int]:
        """Returns the moves that no wall stops."""
        return {word: action for action, word in enumerate(MOVES) if mask is None or mask[action]}

    @staticmethod
    def _offset(dx: int, dy: int) -> str:
        across = f"{abs(dx)} {'east' if dx > 0 else 'west'}" if dx else ""
        along = f"{abs(dy)} {'south' if dy > 0 else 'north'}" if dy else ""
        return " ".join(part for part in (across, along) if part) or "here"


class Meet(ParallelEnv):  # type: ignore[misc]
    """The game. Reward: 1 to each agent when all stand in one cell, which ends it; the time limit truncates it.

    Observation: (x, y), then for every other agent its offset plus view + 1 in both directions, or (0, 0) unseen.
    """

    metadata: dict[str, Any] = {"name": "meet", "render_modes": ["ansi"], "is_parallelizable": True}  # noqa: RUF012
    render_mode = "ansi"
    success_rule = "all have met"

    def __init__(self, rules: Rules, agents: int) -> None:
        self.rules = rules
        self.possible_agents = list(NAMES[:agents])
        self.agents: list[str] = []
        self.text_view = MeetView(NAMES[:agents], rules.view)
        self.cells = [(x, y) for y, row in enumerate(rules.grid) for x, mark in enumerate(row) if mark != "#"]
        self.masks = {
            (x, y): np.array([(x + dx, y + dy) in self.cells for dx, dy in STEPS], dtype=np.int8) for x, y in self.cells
        }
        for mask in self.masks.values():
            mask.flags.writeable = False  # they are handed out in infos
        sides = [len(rules.grid[0]), len(rules.grid)] + [2 * rules.view + 2] * 2 * (agents - 1)
        self._observation_spaces = {agent: MultiDiscrete(sides) for agent in self.possible_agents}
        self._action_spaces = {agent: Discrete(len(MOVES)) for agent in self.possible_agents}
        self.random = seeding.np_random(None)[0]
        self.where: dict[str, Cell] = {}
        self.round = 0
        self.met = False

    def observation_space(self, agent: str) -> MultiDiscrete:
        """Returns the agent's own space, always the same object."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        """Returns the agent's own space, always the same object."""
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Puts the agents on different free cells; ``options`` are not used."""
        if seed is not None:
            self.random = seeding.np_random(seed)[0]
        self.agents = list(self.possible_agents)
        places = self.random.choice(len(self.cells), size=len(self.agents), replace=False)
        self.where = {agent: self.cells[place] for agent, place in zip(self.agents, places)}
        self.round, self.met = 0, False
        return self._observe(), self._infos(dict.fromkeys(self.agents, ""))

    def step(self, actions: dict[str, int]) -> tuple[dict[str, Any], ...]:
        """Moves everyone at once; a move into a wall is a stay with the feedback ``blocked``."""
        feedback = {}
        for agent in self.agents:
            (x, y), (dx, dy) = self.where[agent], STEPS[actions[agent]]
            legal = bool(self.masks[x, y][actions[agent]])
            feedback[agent] = "" if legal else "blocked"
            if legal:
                self.where[agent] = (x + dx, y + dy)
        self.round += 1
        self.met = len(set(self.where.values())) == 1
        late = not self.met and self.round >= self.rules.rounds
        if self.met or late:
            feedback = dict.fromkeys(self.agents, "met" if self.met else "late")
        every = self.agents
        results = (
            self._observe(),
            dict.fromkeys(every, float(self.met)),
            dict.fromkeys(every, self.met),
            dict.fromkeys(every, late),
            self._infos(feedback),
        )
        if self.met or late:
            self.agents = []
        return results

    def instructions(self, agent: str) -> str:
        """Returns what the agent is told once."""
        return f"you are {agent} meet {' '.join(self.text_view.others[agent])}"

    def success(self, agent: str) -> float:
        """Returns 1 if all have met."""
        return float(self.met)

    def render(self) -> str:
        """Returns the grid, an agent as its initial and several in one cell as ``*``."""
        marks = dict.fromkeys(self.cells, ".")
        for agent, cell in self.where.items():
            marks[cell] = agent[0].upper() if marks[cell] == "." else "*"
        rows = [" ".join(marks.get((x, y), "#") for x in range(len(row))) for y, row in enumerate(self.rules.grid)]
        return "\n".join([f"round {self.round} of {self.rules.rounds}{', met' if self.met else ''}", *rows])

    def _observe(self) -> dict[str, Any]:
        view, seen = self.rules.view, {}
        for agent in self.agents:
            x, y = self.where[agent]
            codes = [x, y]
            for other in self.text_view.others[agent]:
                dx, dy = self.where[other][0] - x, self.where[other][1] - y
                near = max(abs(dx), abs(dy)) <= view
                codes += [dx + view + 1, dy + view + 1] if near else [0, 0]
            seen[agent] = np.array(codes, dtype=np.int64)
        return seen

    def _infos(self, feedback: dict[str, str]) -> dict[str, dict[str, Any]]:
        return {
            agent: {"feedback": text, "action_mask": self.masks[self.where[agent]]} for agent, text in feedback.items()
        }
