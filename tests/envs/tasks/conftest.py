from __future__ import annotations

from typing import Any

import pytest

from decentral.envs.tasks.task import Mapped, task
from decentral.envs.tasks.values import INTEGER, INTEGERS, TEXT, OutOfDomain


@task(takes=INTEGERS, gives=INTEGERS, says="Reverse the list.")
def reverse(values: tuple[int, ...]) -> Any:
    return values[::-1]


@task(takes=INTEGERS, gives=INTEGERS, says="Double each number.")
def double(values: tuple[int, ...]) -> Any:
    return tuple(2 * value for value in values)


@task(takes=INTEGERS, gives=INTEGERS, says="Leave out the first number.")
def rest(values: tuple[int, ...]) -> Any:
    return values[1:]


@task(takes=INTEGERS, gives=INTEGER, says="Add all numbers.")
def total(values: tuple[int, ...]) -> Any:
    return sum(values)


@task(takes=INTEGERS, gives=INTEGER, says="Give the largest number.")
def largest(values: tuple[int, ...]) -> Any:
    if not values:
        raise OutOfDomain("an empty list has no largest number; give one")
    return max(values)


@task(takes=INTEGER, gives=INTEGERS, says="List the digits.")
def digits(value: int) -> Any:
    return tuple(map(int, str(abs(value))))


@task(takes=TEXT, gives=TEXT, says="Write it backwards.")
def backwards(value: str) -> Any:
    return value[::-1]


@pytest.fixture(scope="session")
def toys() -> dict[str, Mapped]:
    """A small catalogue, in this order."""
    return {one.name: one for one in (reverse, double, rest, total, largest, digits, backwards)}
