"""Chains: maps of which each takes what the one before gives. What the operators have in common.

Source: RACES, arXiv 2606.12373, section 3: tasks compose iff Y_i = X_j. Knows nothing about prompts and rewards.
"""

from __future__ import annotations

__all__ = ["follows", "need_chain", "need_size", "run_chain"]

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from decentral.envs.tasks.task import Map, Task
from decentral.errors import ConfigError


def follows(parts: Sequence[Map]) -> bool:
    """Says whether each map takes the kind of value that the one before gives."""
    return all(first.gives is second.takes for first, second in pairwise(parts))


def run_chain(parts: Sequence[Map], value: Any) -> tuple[Any, ...]:
    """Returns what each map of a chain gives, the first applied to ``value``. Raises OutOfDomain."""
    results = []
    for part in parts:
        value = part.apply(value)
        results.append(value)
    return tuple(results)


def need_chain(name: str, parts: Sequence[Task]) -> tuple[Map, ...]:
    """Returns the parts of the composite ``name``. Raises ConfigError unless they are maps that form a chain."""
    maps = []
    for part in parts:
        if not isinstance(part, Map):
            raise ConfigError(
                f"{name}: {part.name} is no map of one value to one, so that nothing can follow it; use it in par(...)"
            )
        maps.append(part)
    for first, second in pairwise(maps):
        if first.gives is not second.takes:
            raise ConfigError(
                f"{name}: {first.name} gives {first.gives} and {second.name} takes {second.takes}; put a task between "
                "them that maps the one to the other"
            )
    return tuple(maps)


def need_size(name: str, count: int, sizes: tuple[int, int]) -> None:
    """Raises ConfigError if the composite ``name`` has fewer or more parts than it may."""
    if not sizes[0] <= count <= sizes[1]:
        raise ConfigError(f"{name} has {count} parts; give {sizes[0]} to {sizes[1]}")
