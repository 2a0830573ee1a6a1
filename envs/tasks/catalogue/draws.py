"""Draws of inputs, for tasks whose kind's own draw gives too many that are trivial. Holds no tasks."""

from __future__ import annotations

__all__ = ["Draw", "letters_of", "numbers_below", "sparse", "until"]

from collections.abc import Callable
from itertools import combinations
from random import Random
from string import ascii_lowercase
from typing import Any

from decentral.envs.tasks.graph import Graph

Draw = Callable[[Random, int], Any]
_TRIES = 16


def until(draw: Draw, wanted: Callable[[Any], bool]) -> Draw:
    """Returns ``draw`` repeated, a bounded number of times, until a value is ``wanted``."""

    def again(random: Random, level: int) -> Any:
        for _ in range(_TRIES):
            value = draw(random, level)
            if wanted(value):
                break
        return value

    return again


def numbers_below(bound: int, at_least: int = 3) -> Draw:
    """Returns a draw of lists of numbers from 0, so few different ones that some repeat; one longer at each level."""
    return lambda random, level: tuple(random.choices(range(bound), k=at_least + level))


def letters_of(alphabet: str) -> Callable[[Random, int], str]:
    """Returns a draw of texts in these letters, one longer at each level."""
    return lambda random, level: "".join(random.choices(alphabet, k=3 + level))


def sparse(random: Random, level: int) -> Graph:
    """Draws a graph that has about as many edges as nodes, so that it has leaves, parts and now and then a triangle."""
    nodes = ascii_lowercase[: 4 + level + random.randrange(3)]
    edges = random.sample(list(combinations(nodes, 2)), len(nodes) - 1 + random.randrange(2))
    return Graph.of(edges, nodes)
