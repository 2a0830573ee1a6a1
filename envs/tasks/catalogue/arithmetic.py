"""Arithmetic: sums, products and digits."""

from __future__ import annotations

from itertools import accumulate, pairwise
from math import prod
from random import Random

from decentral.envs.tasks.catalogue.draws import until
from decentral.envs.tasks.task import task
from decentral.envs.tasks.values import INTEGER, INTEGERS, PAIR


def _two_digits(random: Random, level: int) -> int:
    """Draws at least two digits, so that there is something to add."""
    return random.randrange(10, 10 ** (2 + level // 3))


@task(takes=INTEGERS, gives=INTEGERS, says="Replace each number by the sum of it and all before it.")
def running_sums(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(accumulate(numbers))


@task(takes=INTEGERS, gives=INTEGER, says="Start from 0 and add every number.")
def total(numbers: tuple[int, ...]) -> int:
    return sum(numbers)


@task(takes=INTEGERS, gives=INTEGERS, says="List each number but the first, minus the one before it.")
def differences(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(after - before for before, after in pairwise(numbers))


@task(takes=INTEGER, gives=INTEGER, says="Double the number and add 1.")
def double_plus_one(number: int) -> int:
    return 2 * number + 1


@task(takes=PAIR, gives=INTEGER, says="Add the two numbers.")
def add(pair: tuple[int, int]) -> int:
    return pair[0] + pair[1]


@task(takes=PAIR, gives=INTEGER, says="Multiply the two numbers.")
def multiply(pair: tuple[int, int]) -> int:
    return pair[0] * pair[1]


@task(takes=PAIR, gives=INTEGER, says="Subtract the second number from the first.")
def subtract(pair: tuple[int, int]) -> int:
    return pair[0] - pair[1]


@task(takes=PAIR, gives=PAIR, says="Give the sum, and the first number minus the second.")
def sum_and_difference(pair: tuple[int, int]) -> tuple[int, int]:
    return pair[0] + pair[1], pair[0] - pair[1]


@task(
    takes=INTEGERS,
    gives=INTEGER,
    draw=until(INTEGERS.draw, all),
    says="Start from 1, multiply by every number, and take that mod 97.",
)
def product(numbers: tuple[int, ...]) -> int:
    return prod(numbers) % 97


@task(
    takes=INTEGER,
    gives=INTEGER,
    draw=until(INTEGER.draw, lambda number: number > 1),
    says="Multiply the number by itself and take that mod 100.",
)
def square(number: int) -> int:
    return number * number % 100


@task(takes=INTEGER, gives=INTEGER, says="Halve the number if it is even, else triple it and add 1.")
def collatz(number: int) -> int:
    return number // 2 if number % 2 == 0 else 3 * number + 1


@task(takes=INTEGER, gives=INTEGER, draw=_two_digits, says="Drop the sign and add the decimal digits.")
def digit_sum(number: int) -> int:
    return sum(map(int, str(abs(number))))
