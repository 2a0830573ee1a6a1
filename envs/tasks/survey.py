"""A survey: composites drawn uniformly, what each gate rejects, and what passes again on fresh seeds.

Knows nothing about how gates decide.
"""

from __future__ import annotations

__all__ = ["Survey", "survey"]

from collections import Counter
from collections.abc import Sequence
from random import Random

import msgspec

from decentral.envs.tasks.gates import Report, check
from decentral.envs.tasks.ids import build
from decentral.envs.tasks.space import Space

_ADMISSION = 0.8
"""How much tighter limits are for what is to pass again."""


class Survey(msgspec.Struct, frozen=True):
    """Counts by operator, and the reports of what passed only once."""

    drawn: dict[str, int]
    rejected: dict[str, dict[str, int]]
    """By the first gate that was not passed, then by operator."""
    admitted: int
    again: tuple[Report, ...]
    """Of those admitted, what failed on fresh seeds."""


def survey(space: Space, cells: Sequence[tuple[str, int]], count: int, *, seed: int, seeds: int) -> Survey:
    """Draws ``count`` composites of these (operator, size) and checks each on ``seeds`` instances per level."""
    random = Random(seed)
    base = {task.name: task for task in space.base}
    drawn: Counter[str] = Counter()
    rejected: dict[str, Counter[str]] = {}
    again = []
    for _ in range(count):
        task = build(space.draw(random, cells), base)
        drawn[task.family] += 1
        first = check(task, range(seeds), scale=_ADMISSION)
        if not first.ok:
            rejected.setdefault(first.failures[0].gate, Counter())[task.family] += 1
            continue
        second = check(task, range(seeds, 2 * seeds))
        if not second.ok:
            again.append(second)
    admitted = count - sum(here.total() for here in rejected.values())
    return Survey(dict(drawn), {gate: dict(here) for gate, here in rejected.items()}, admitted, tuple(again))
