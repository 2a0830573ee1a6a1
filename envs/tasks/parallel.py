"""PARALLEL: several independent tasks, all to be answered.

Source: RACES, arXiv 2606.12373, section 3.2; the reward (mean over the parts) is ours.
"""

from __future__ import annotations

__all__ = ["SIZES", "Parallel"]

from collections.abc import Sequence
from random import Random
from typing import Any

from decentral.envs.tasks.chain import need_size
from decentral.envs.tasks.task import Task

SIZES = (2, 12)


class Parallel(Task):
    """Tasks side by side, each with an input of its own. It is no map, so that nothing can follow it."""

    family = "par"

    def __init__(self, parts: Sequence[Task]) -> None:
        """Raises ConfigError if the parts are too few or many."""
        self.name = f"par({','.join(part.name for part in parts)})"
        need_size(self.name, len(parts), SIZES)
        self.parts = tuple(parts)
        self.answers = tuple(kind for part in parts for kind in part.answers)
        self.exact = all(part.exact for part in parts)

    def draw(self, random: Random, level: int) -> tuple[Any, ...]:
        return tuple(part.pose(random, level)[0] for part in self.parts)

    def prompt(self, value: tuple[Any, ...]) -> str:
        asked = [f"{number}) {part.prompt(own)}" for number, (part, own) in enumerate(zip(self.parts, value), 1)]
        return "\n".join(["Do all tasks and answer every result, divided by ;", *asked])

    def solve(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(answer for part, own in zip(self.parts, value) for answer in part.solve(own))

    def grade(self, value: tuple[Any, ...], reference: tuple[Any, ...], found: Sequence[Any]) -> float:
        """Returns the mean score of the parts."""
        total = 0.0
        start = 0
        for part, own in zip(self.parts, value):
            end = start + len(part.answers)
            total += part.grade(own, reference[start:end], found[start:end])
            start = end
        return total / len(self.parts)

    def steps(self, value: tuple[Any, ...]) -> int:
        """Returns the steps of all parts together."""
        return sum(part.steps(own) for part, own in zip(self.parts, value))
