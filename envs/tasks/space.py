"""The space of composites of base tasks: counted, numbered and sampled without listing it.

A composite here has base tasks as parts: SEQUENTIAL any chain; SORT a chain of different tasks; SELECT such a chain and
a set of distractors, each with the types of one of the steps, half of all parts rounded down; PARALLEL a set.
Knows nothing about instances; only ``distinct_maps`` runs tasks.
"""

from __future__ import annotations

__all__ = ["SIZES", "Space", "distinct_maps"]

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb
from random import Random
from typing import Any

from decentral.envs.tasks import ordering, parallel, sequential
from decentral.envs.tasks.task import Map
from decentral.envs.tasks.values import LEVELS, Kind, OutOfDomain
from decentral.errors import ConfigError

SIZES = {
    "seq": sequential.SIZES,
    "par": parallel.SIZES,
    "sort": ordering.SORT_SIZES,
    "select": ordering.SELECT_SIZES,
}
"""The fewest and the most parts of a composite, by operator."""
_INPUTS = 64

Used = tuple[int, ...]
"""The types of the steps so far, as places in ``Space.types``, sorted."""


class Space:
    """All composites of some base tasks."""

    def __init__(self, base: Sequence[Map]) -> None:
        self.base = tuple(base)
        grouped: dict[tuple[Kind, Kind], list[Map]] = {}
        for task in self.base:
            grouped.setdefault((task.takes, task.gives), []).append(task)
        self.types = list(grouped)
        self.groups = list(grouped.values())
        self._known: dict[Any, int] = {}

    def cells(self, parts: int, operators: Sequence[str] = tuple(SIZES)) -> list[tuple[str, int]]:
        """Returns every (operator, size) of at most ``parts`` parts."""
        return [
            (operator, size)
            for operator in operators
            for size in range(SIZES[operator][0], min(parts, SIZES[operator][1]) + 1)
        ]

    def count(self, operator: str, size: int) -> int:
        """Returns how many composites of ``operator`` have ``size`` parts.

        For SEQUENTIAL this is 1^T A^(size-1) 1, where A_ij says whether task i gives what task j takes. Raises
        ConfigError for a size that the operator does not have.
        """
        low, high = SIZES[operator]
        if not low <= size <= high:
            raise ConfigError(f"size {size} of {operator}(...) does not exist: choose {low} to {high}")
        if operator == "par":
            return comb(len(self.base), size)
        others = _others(operator, size)
        return self._ways(None, size - others, others, None if operator == "seq" else ())

    def at(self, operator: str, size: int, index: int) -> str:
        """Returns the id of a composite by its number. Raises ConfigError for a number below 0 or too large."""
        count = self.count(operator, size)
        if not 0 <= index < count:
            raise ConfigError(f"{operator} of {size} parts has no number {index}: there are {count}, from 0 on")
        if operator == "par":
            return _id(operator, _combination(self.base, size, index), ())
        others = _others(operator, size)
        used: Used | None = None if operator == "seq" else ()
        steps: list[Map] = []
        for left in range(size - others, 0, -1):
            for group, after, each in self._choices(steps[-1].gives if steps else None, left, others, used):
                free = [task for task in self.groups[group] if used is None or task not in steps]
                if index < len(free) * each:
                    place, index = divmod(index, each)
                    steps.append(free[place])
                    used = after
                    break
                index -= len(free) * each
        return _id(operator, steps, _combination(self._distractors(steps), others, index))

    def ids(self, operator: str, size: int) -> Iterator[str]:
        """Yields the ids of all composites of ``operator`` and ``size``, found by trying all: for small spaces."""
        if operator == "par":
            yield from (_id(operator, parts, ()) for parts in combinations(self.base, size))
            return
        others = _others(operator, size)
        for steps in self._chains(size - others, repeat=operator == "seq"):
            for chosen in combinations(self._distractors(steps), others):
                yield _id(operator, steps, chosen)

    def draw(self, random: Random, cells: Sequence[tuple[str, int]]) -> str:
        """Returns the id of a composite drawn uniformly from all of these (operator, size)."""
        index = random.randrange(sum(self.count(*cell) for cell in cells))
        for operator, size in cells:
            if index < self.count(operator, size):
                break
            index -= self.count(operator, size)
        return self.at(operator, size, index)

    def _ways(self, kind: Kind | None, left: int, others: int, used: Used | None) -> int:
        """Returns in how many ways a chain that has come to ``kind`` can go on by ``left`` steps.

        ``used`` is None where a task may come twice. A way includes the choice of the distractors.
        """
        if not left:
            if not others:
                return 1
            assert used is not None
            return comb(sum(len(self.groups[group]) for group in {*used}) - len(used), others)
        key = kind, left, others, used
        if key not in self._known:
            self._known[key] = sum(
                (len(self.groups[group]) - (used or ()).count(group)) * each
                for group, _, each in self._choices(kind, left, others, used)
            )
        return self._known[key]

    def _choices(
        self, kind: Kind | None, left: int, others: int, used: Used | None
    ) -> Iterator[tuple[int, Used | None, int]]:
        """Yields the groups of which the next step can be, what is used then, and how many ways each task opens."""
        for group, (takes, gives) in enumerate(self.types):
            if (kind is None or kind is takes) and (used or ()).count(group) < len(self.groups[group]):
                after = None if used is None else tuple(sorted((*used, group)))
                yield group, after, self._ways(gives, left - 1, others, after)

    def _chains(self, size: int, *, repeat: bool, start: tuple[Map, ...] = ()) -> Iterator[tuple[Map, ...]]:
        if len(start) == size:
            yield start
            return
        for task in self.base:
            if (not start or start[-1].gives is task.takes) and (repeat or task not in start):
                yield from self._chains(size, repeat=repeat, start=(*start, task))

    def _distractors(self, steps: Sequence[Map]) -> list[Map]:
        types = {(step.takes, step.gives) for step in steps}
        return [task for task in self.base if (task.takes, task.gives) in types and task not in steps]


def distinct_maps(base: Sequence[Map], parts: int) -> int:
    """Returns how many SEQUENTIAL maps of 2 to ``parts`` parts differ in what they give for 64 inputs.

    All maps of one kind get the same inputs, of all levels; one that takes none of them is not counted.
    """
    found: set[int] = set()

    def follow(kind: Kind, values: tuple[Any, ...], length: int, start: Kind) -> None:
        for task in base:
            if task.takes is kind:
                results = tuple(_applied(task, value) for value in values)
                if any(result is not None for result in results):
                    if length:
                        found.add(hash((start.name, task.gives.name, results)))
                    if length + 1 < parts:
                        follow(task.gives, results, length + 1, start)

    for kind in {task.takes for task in base}:
        random = Random(0)
        follow(kind, tuple(kind.draw(random, number % LEVELS) for number in range(_INPUTS)), 0, kind)
    return len(found)


def _applied(task: Map, value: Any) -> Any:
    if value is None:
        return None
    try:
        return task.apply(value)
    except OutOfDomain:
        return None


def _others(operator: str, size: int) -> int:
    return size // 2 if operator == "select" else 0


def _combination(tasks: Sequence[Map], size: int, index: int) -> list[Map]:
    """Returns the subset of a number, in the order in which ``itertools.combinations`` makes them."""
    chosen: list[Map] = []
    for place, task in enumerate(tasks):
        if len(chosen) == size:
            break
        having = comb(len(tasks) - place - 1, size - len(chosen) - 1)
        if index < having:
            chosen.append(task)
        else:
            index -= having
    return chosen


def _id(operator: str, steps: Sequence[Map], others: Sequence[Map]) -> str:
    bar = f"|{','.join(other.name for other in others)}" if others else ""
    return f"{operator}({','.join(step.name for step in steps)}{bar})"
