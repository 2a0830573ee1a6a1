"""SEQUENTIAL: one map after another; all intermediate results are to be answered.

Source: RACES, arXiv 2606.12373, section 3.2.
"""

from __future__ import annotations

__all__ = ["SIZES", "Sequential"]

from collections.abc import Sequence
from random import Random
from typing import Any

from decentral.envs.tasks.chain import need_chain, need_size, run_chain
from decentral.envs.tasks.task import Map, Task

SIZES = (2, 12)


class Sequential(Map):
    """A chain of maps, itself a map. A part that is sequential is replaced by its own parts."""

    family = "seq"
    parts: tuple[Map, ...]

    def __init__(self, parts: Sequence[Task]) -> None:
        """Raises ConfigError if the parts are too few or many, or do not form a chain."""
        flat: list[Task] = []
        for part in parts:
            flat += part.parts if isinstance(part, Sequential) else [part]
        self.name = f"seq({','.join(part.name for part in flat)})"
        need_size(self.name, len(flat), SIZES)
        self.parts = need_chain(self.name, flat)
        self.takes = self.parts[0].takes
        self.gives = self.parts[-1].gives
        self.answers = tuple(part.gives for part in self.parts)
        self.describe = " ".join(part.describe for part in self.parts)
        lines = [f"{number}) {part.describe}" for number, part in enumerate(self.parts, 1)]
        self._head = "\n".join(["Do the steps in turn and answer every result, divided by ;", *lines])

    def apply(self, value: Any) -> Any:
        return self.solve(value)[-1]

    def draw(self, random: Random, level: int) -> Any:
        return self.parts[0].draw(random, level)

    def prompt(self, value: Any) -> str:
        return f"{self._head}\n> {self.takes.show(value)}"

    def solve(self, value: Any) -> tuple[Any, ...]:
        return run_chain(self.parts, value)

    def grade(self, value: Any, reference: tuple[Any, ...], found: Sequence[Any]) -> float:
        """Returns the share of the longest prefix of right answers."""
        count = len(reference)
        wrong = (place for place in range(count) if found[place] != reference[place])
        return next(wrong, count) / count

    def steps(self, value: Any) -> int:
        """Returns the steps of all parts together."""
        return sum(part.steps(taken) for part, taken in zip(self.parts, (value, *self.solve(value))))
