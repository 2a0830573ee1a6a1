"""Lists: reordering, choosing and combining their numbers by place."""

from __future__ import annotations

from itertools import pairwise

from decentral.envs.tasks.catalogue.draws import until
from decentral.envs.tasks.task import task
from decentral.envs.tasks.values import INTEGER, INTEGERS, PAIR


@task(
    takes=INTEGERS,
    gives=INTEGERS,
    draw=until(INTEGERS.draw, lambda numbers: numbers != numbers[::-1]),
    says="Reverse the list.",
)
def reverse(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return numbers[::-1]


@task(takes=INTEGERS, gives=INTEGERS, says="Add 1 to the 1st number, 2 to the 2nd, 3 to the 3rd and so on.")
def add_places(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(number + place for place, number in enumerate(numbers, 1))


@task(takes=INTEGERS, gives=INTEGERS, says="Move the first number to the end.")
def rotate(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return numbers[1:] + numbers[:1]


@task(takes=INTEGERS, gives=INTEGERS, says="List the sum of each two neighbours, from the left.")
def neighbour_sums(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(left + right for left, right in pairwise(numbers))


@task(takes=INTEGERS, gives=INTEGERS, says="Double each number.")
def double_each(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(2 * number for number in numbers)


@task(takes=INTEGERS, gives=INTEGERS, says="Swap the first and the last number.")
def swap_ends(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return (numbers[-1], *numbers[1:-1], numbers[0]) if len(numbers) > 1 else numbers


@task(takes=INTEGERS, gives=INTEGERS, says="Keep the 2nd, 4th, 6th number and so on.")
def every_second(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return numbers[1::2]


@task(takes=INTEGERS, gives=INTEGERS, says="Change the sign of the 2nd, 4th, 6th number and so on.")
def alternate_signs(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-number if place % 2 else number for place, number in enumerate(numbers))


@task(takes=INTEGERS, gives=INTEGER, says="Subtract the smallest number from the largest; an empty list gives 0.")
def spread(numbers: tuple[int, ...]) -> int:
    return max(numbers) - min(numbers) if numbers else 0


@task(takes=INTEGERS, gives=PAIR, says="Give the number of items and their sum.")
def length_and_sum(numbers: tuple[int, ...]) -> tuple[int, int]:
    return len(numbers), sum(numbers)


@task(
    takes=PAIR,
    gives=INTEGERS,
    says="List the first number and 3 more, each larger than the one before by the second number.",
)
def progression(pair: tuple[int, int]) -> tuple[int, ...]:
    start, step = pair
    return start, start + step, start + 2 * step, start + 3 * step
