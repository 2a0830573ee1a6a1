"""Logic on bits: 0 is false, 1 is true, and an odd number counts as 1, an even one as 0."""

from __future__ import annotations

from itertools import accumulate, pairwise
from operator import xor

from decentral.envs.tasks.catalogue.draws import numbers_below, until
from decentral.envs.tasks.task import task
from decentral.envs.tasks.values import INTEGER, INTEGERS, PAIR


@task(
    takes=INTEGERS,
    gives=INTEGERS,
    says="Replace each number by the sum of it and all before it, mod 2.",
)
def running_parity(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(accumulate((number & 1 for number in numbers), xor))


@task(
    takes=INTEGERS,
    gives=INTEGERS,
    draw=numbers_below(10, at_least=4),
    says="List for each two neighbours 1 if exactly one is odd, else 0.",
)
def neighbours_differ(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple((left ^ right) & 1 for left, right in pairwise(numbers))


@task(
    takes=INTEGERS,
    gives=INTEGERS,
    draw=numbers_below(10),
    says="Replace each number by 0 if it is odd and by 1 if it is even.",
)
def is_even(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 - (number & 1) for number in numbers)


@task(
    takes=INTEGERS,
    gives=INTEGER,
    draw=numbers_below(2),
    says="Write 1 for each odd and 0 for each even number, and read that as a number in base 2.",
)
def read_bits(numbers: tuple[int, ...]) -> int:
    found = 0
    for number in numbers:
        found = 2 * found + (number & 1)
    return found


@task(takes=PAIR, gives=INTEGER, says="Drop the signs and give the bitwise exclusive or.")
def exclusive_or(pair: tuple[int, int]) -> int:
    return abs(pair[0]) ^ abs(pair[1])


@task(takes=PAIR, gives=INTEGER, says="Drop the signs; add the bitwise and to twice the bitwise or.")
def and_plus_double_or(pair: tuple[int, int]) -> int:
    first, second = map(abs, pair)
    return (first & second) + 2 * (first | second)


@task(
    takes=PAIR,
    gives=INTEGERS,
    says="List 1 for yes or 0 for no: the first is smaller, the second is odd, the sum is even.",
)
def questions(pair: tuple[int, int]) -> tuple[int, ...]:
    first, second = pair
    return int(first < second), second & 1, 1 - ((first ^ second) & 1)


@task(
    takes=INTEGER,
    gives=INTEGER,
    draw=until(INTEGER.draw, lambda number: number > 3),
    says="Drop the sign, write it in base 2, swap 0 and 1, and give the number that this is.",
)
def flip_bits(number: int) -> int:
    return abs(number) ^ ((1 << max(1, abs(number).bit_length())) - 1)
