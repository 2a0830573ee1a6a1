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
        self.cells = [_cells(self.range, heading) for heading in range(4)]
        self.walls: dict[tuple[int, int, int], str] = {}
        """(x, y, heading) -> what is said of the walls there."""

    def observe(self, agent: str, observation: npt.NDArray[np.float32]) -> str:
        """Returns where the robot is and what it carries, then what it sees."""
        numbers = observation.tolist()
        x, y = (round(at * scale) for at, scale in zip(numbers, self.scale))
        loaded, aisle = numbers[2], numbers[7]
        heading = QUARTERS[numbers.index(1, 3) - 3]
        under, seen = "", []
        for at, beside, where in self.cells[heading]:
            robot, shelf, wanted = numbers[at], numbers[at + 5], numbers[at + 6]
            what = "wanted shelf" if wanted else "shelf"
            if where == "here":
                under = what if shelf else ""
                continue
            if robot:
                turn = TURNS[(QUARTERS[numbers.index(1, at + 1) - at - 1] - heading) % 4]
                seen.append(f"{self.named.get(agent, 'robot')} {where} facing {turn}")
            if wanted or (shelf and loaded and beside):
                seen.append(f"{what} {where}")
        parts = [f"at {x} {y} {HEADINGS[heading]}{'' if aisle else ' in rack'}"]
        if under:
            parts.append(f"{'with' if loaded else 'under'} {under}")
        if loaded and under == "wanted shelf":
            parts.append(f"goal {self._goal(x, y, heading)}")
        if walls := self._walls(x, y, heading):
            seen.append(walls)
        return "; ".join(parts + seen)

    def actions(self, agent: str, mask: Any | None) -> Mapping[str, int]:
        """Returns all five: the environment forbids none."""
        return ACTIONS

    def _goal(self, x: int, y: int, heading: int) -> str:
        """Returns the way to the nearest goal, of equally near ones to the first."""
        dx, dy = min(((gx - x, gy - y) for gx, gy in self.goals), key=lambda way: abs(way[0]) + abs(way[1]))
        (fx, fy), (rx, ry) = STEPS[heading], STEPS[(heading + 1) % 4]
        return _offset(dx * fx + dy * fy, dx * rx + dy * ry)

    def _walls(self, x: int, y: int, heading: int) -> str:
        """Returns where one cell further is no cell, or nothing."""
        text = self.walls.get((x, y, heading))
        if text is None:
            turns = [turn for i, turn in enumerate(TURNS) if not self._inside(x, y, (heading + i) % 4)]
            text = self.walls[x, y, heading] = f"wall {' and '.join(turns)}" if turns else ""
        return text

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


def _cells(reach: int, heading: int) -> list[tuple[int, bool, str]]:
    """Returns where in an observation each cell stands, whether it is beside the robot, and what its place is called.

    In the order in which a robot of this heading reads them: the first row is ahead.
    """
    side = 2 * reach + 1
    turned = np.rot90(8 + 7 * np.arange(side**2).reshape(side, side), heading).tolist()
    return [
        (at, abs(reach - row) + abs(column - reach) == 1, _offset(reach - row, column - reach))
        for row, line in enumerate(turned)
        for column, at in enumerate(line)
    ]


def _offset(ahead: int, right: int) -> str:
    along = f"{abs(ahead)} {'forward' if ahead > 0 else 'back'}" if ahead else ""
    across = f"{abs(right)} {'right' if right > 0 else 'left'}" if right else ""
    return " ".join(part for part in (along, across) if part) or "here"
