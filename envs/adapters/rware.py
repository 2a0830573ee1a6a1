"""The robotic warehouse as text: robots bring the shelves that are wanted to a goal, and put them back into a rack.

Reads as ``at 3 4 up in rack; with wanted shelf; goal 6 back 1 right; shelf left``. Robots turn and go forward, so
places are told as the robot faces; the cell is counted from the top left. An observation is all that is read besides
the map. Left out is what bears on no move: shelves that are not wanted, except under, or in the way of, a robot.
"""

from __future__ import annotations

__all__ = ["Warehouse", "env"]

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from decentral.envs.adapters.gymnasium import Team, make
from decentral.errors import ConfigError, suggest

ACTIONS = {word: action for action, word in enumerate(("wait", "forward", "left", "right", "toggle"))}
"""In the order of rware's Action."""
HEADINGS = ("up", "right", "down", "left")
STEPS = ((0, -1), (1, 0), (0, 1), (-1, 0))
"""(x, y) of the headings."""
TURNS = ("forward", "right", "back", "left")
"""How a heading lies to the robot's own, by the quarters between them."""
QUARTERS = (0, 2, 3, 1)
"""The places of rware's up, down, left, right in HEADINGS."""


def env(id: str, **options: Any) -> Warehouse:
    """Makes for example ``rware-tiny-2ag-v2``; the options are those of rware's Warehouse. Raises ConfigError.

    ``reward_type`` is ``individual``, ``global`` or ``two_stage``.
    """
    if isinstance(kind := options.get("reward_type"), str):  # with a text for it, rware would never pay anything
        options["reward_type"] = _reward_type(kind)
    made = make(id, **options)
    raw = made.unwrapped
    if type(raw).__name__ != "Warehouse":
        raise ConfigError(f"{id!r} is no rware Warehouse; play it as gymnasium/{id}")
    if raw.msg_bits or not raw.fast_obs:
        raise ConfigError(
            f"{id!r} has msg_bits = {raw.msg_bits} or observes pictures, which have no text here; take 0 and the "
            f"flattened observations, or play it as gymnasium/{id}"
        )
    return Warehouse(made)


class WarehouseView:
    """Reads (x, y, loaded, heading, on an aisle), then (robot, its heading, shelf, wanted) of every cell in range."""

    def __init__(self, agents: list[str], raw: Any) -> None:
        self.named = {agents[0]: agents[1], agents[1]: agents[0]} if len(agents) == 2 else {}
        """Whom a robot sees, if it can tell."""
        self.range = raw.sensor_range
        self.height: int
        self.width: int
        self.height, self.width = raw.grid_size
        self.goals: list[tuple[int, int]] = raw.goals
        self.scale = (self.width - 1, self.height - 1) if raw.normalised_coordinates else (1, 1)

    def observe(self, agent: str, observation: npt.NDArray[np.float32]) -> str:
        """Returns where the robot is and what it carries, then what it sees."""
        x, y = (round(float(at) * scale) for at, scale in zip(observation[:2], self.scale))
        loaded, aisle = bool(observation[2]), bool(observation[7])
        heading = QUARTERS[int(observation[3:7].argmax())]
        side, reach = 2 * self.range + 1, self.range
        cells = np.rot90(observation[8:].reshape(side, side, 7), heading).tolist()  # the first row is ahead
        under, seen = "", []
        for row, line in enumerate(cells):
            for column, (robot, *faces, shelf, wanted) in enumerate(line):
                ahead, right = reach - row, column - reach
                what = "wanted shelf" if wanted else "shelf"
                if not (ahead or right):
                    under = what if shelf else ""
                    continue
                if robot:
                    turn = TURNS[(QUARTERS[faces.index(1)] - heading) % 4]
                    seen.append(f"{self.named.get(agent, 'robot')} {_offset(ahead, right)} facing {turn}")
                if wanted or (shelf and loaded and abs(ahead) + abs(right) == 1):
                    seen.append(f"{what} {_offset(ahead, right)}")
        parts = [f"at {x} {y} {HEADINGS[heading]}{'' if aisle else ' in rack'}"]
        if under:
            parts.append(f"{'with' if loaded else 'under'} {under}")
        if loaded and under == "wanted shelf":
            parts.append(f"goal {self._goal(x, y, heading)}")
        walls = [turn for i, turn in enumerate(TURNS) if not self._inside(x, y, (heading + i) % 4)]
        if walls:
            seen.append(f"wall {' and '.join(walls)}")
        return "; ".join(parts + seen)

    def actions(self, agent: str, mask: Any | None) -> Mapping[str, int]:
        """Returns all five: the environment forbids none."""
        return ACTIONS

    def _goal(self, x: int, y: int, heading: int) -> str:
        """Returns the way to the nearest goal, of equally near ones to the first."""
        dx, dy = min(((gx - x, gy - y) for gx, gy in self.goals), key=lambda way: abs(way[0]) + abs(way[1]))
        (fx, fy), (rx, ry) = STEPS[heading], STEPS[(heading + 1) % 4]
        return _offset(dx * fx + dy * fy, dx * rx + dy * ry)

    def _inside(self, x: int, y: int, heading: int) -> bool:
        dx, dy = STEPS[heading]
        return 0 <= x + dx < self.width and 0 <= y + dy < self.height


class Warehouse(Team):
    """The game. Its only end is the time limit, so an episode is truncated, though the environment calls it terminated.

    It has no notion of success: deliveries go on for as long as there is time. An agent's usual return counts its own,
    so ``success_return`` in the config sets a target for them.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.text_view = WarehouseView(self.possible_agents, self.raw)

    def late(self) -> bool:
        """Says yes."""
        return True

    def instructions(self, agent: str) -> str:
        """Returns what the agent is told once."""
        reach = self.raw.sensor_range
        return (
            f"You are {agent}, a robot that sees {reach} cell{'s' if reach > 1 else ''} far; left and right turn you. "
            "Toggle under a wanted shelf to lift it, bring it to the goal, then toggle in an empty rack cell to put it "
            "back. Every delivery pays; loaded, you cannot enter a cell with a shelf."
        )


def _reward_type(name: str) -> Any:
    kinds = importlib.import_module("rware.warehouse").RewardType.__members__
    if name.upper() not in kinds:
        known = [kind.lower() for kind in kinds]
        raise ConfigError(f"reward_type {name!r} does not exist{suggest(name, known)}; take one of {', '.join(known)}")
    return kinds[name.upper()]


def _offset(ahead: int, right: int) -> str:
    along = f"{abs(ahead)} {'forward' if ahead > 0 else 'back'}" if ahead else ""
    across = f"{abs(right)} {'right' if right > 0 else 'left'}" if right else ""
    return " ".join(part for part in (along, across) if part) or "here"
