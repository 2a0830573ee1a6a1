"""The space: its counts, numbers and draws against trying everything on a small catalogue."""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random

import numpy as np
import pytest

from decentral.envs.tasks.ids import base_tasks, build
from decentral.envs.tasks.space import Space, distinct_maps
from decentral.envs.tasks.task import Mapped
from decentral.errors import ConfigError

Toys = dict[str, Mapped]


@pytest.fixture
def space(toys: Toys) -> Space:
    return Space(list(toys.values()))


def brute_force(toys: Toys, operator: str, size: int) -> set[str]:
    """Returns every id that can be built, of tuples of names in any order; par and distractors in one order only."""
    found = set()
    names = list(toys)
    for every in product(names, repeat=size):
        steps = every[: size - size // 2] if operator == "select" else every
        others = every[len(steps) :]
        rising = list(others if operator == "select" else every if operator == "par" else ())
        if (operator != "seq" and len(set(every)) < size) or rising != sorted(rising, key=names.index):
            continue
        try:
            found.add(build(f"{operator}({','.join(steps)}{'|' * bool(others)}{','.join(others)})", toys).name)
        except ConfigError:
            continue
    return found


@pytest.mark.parametrize(
    "cell", [("seq", 2), ("seq", 4), ("par", 3), ("sort", 2), ("sort", 4), ("select", 3), ("select", 4)]
)
def test_counts_numbers_and_listing_agree_with_brute_force(toys: Toys, space: Space, cell: tuple[str, int]) -> None:
    known = brute_force(toys, *cell)
    count = space.count(*cell)
    assert count == len(known) > 0
    assert sorted(space.at(*cell, index) for index in range(count)) == sorted(known)
    assert sorted(space.ids(*cell)) == sorted(known)


def test_sequential_is_counted_by_the_power_of_the_adjacency_matrix() -> None:
    base = list(base_tasks().values())
    adjacency = np.array([[int(first.gives is second.takes) for second in base] for first in base])
    power = adjacency
    for size in range(2, 8):
        assert Space(base).count("seq", size) == power.sum()
        power = power @ adjacency


def test_the_whole_catalogue_has_as_many_composites_as_are_listed() -> None:
    space = Space(list(base_tasks().values())[:30])
    for cell in space.cells(3):
        assert space.count(*cell) == len(set(space.ids(*cell)))


def test_draws_are_uniform_over_operators_sizes_and_numbers(space: Space) -> None:
    cells = [("seq", 2), ("sort", 2), ("select", 3)]
    total = sum(space.count(*cell) for cell in cells)
    random = Random(0)
    drawn = Counter(space.draw(random, cells) for _ in range(200 * total))
    assert len(drawn) == total
    assert max(drawn.values()) < 270
    assert min(drawn.values()) > 140


def test_numbers_and_sizes_that_do_not_exist_are_refused(space: Space) -> None:
    with pytest.raises(ConfigError, match="has no number"):
        space.at("seq", 2, space.count("seq", 2))
    with pytest.raises(ConfigError, match="size 7 of sort"):
        space.count("sort", 7)
    assert Space([]).count("select", 6) == 0


def test_large_spaces_are_numbered_without_listing_them() -> None:
    space = Space(list(base_tasks().values()))
    for operator, size in (("seq", 12), ("par", 12), ("sort", 6), ("select", 6)):
        count = space.count(operator, size)
        for index in (0, count // 3, count - 1):
            assert build(space.at(operator, size, index)).name == space.at(operator, size, index)


def test_maps_that_give_the_same_are_counted_once(toys: Toys) -> None:
    assert distinct_maps([toys["backwards"]], 2) == 1
    assert distinct_maps([toys["backwards"]], 3) == 2
    assert distinct_maps([toys["backwards"]], 5) == 2
    two = distinct_maps([toys["reverse"], toys["double"]], 2)
    assert two == len({("reverse", "reverse"), ("double", "double"), ("reverse", "double")})
