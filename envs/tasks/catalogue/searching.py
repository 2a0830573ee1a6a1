"""Sorting and searching."""

from __future__ import annotations

from bisect import bisect_left
from heapq import nlargest
from itertools import accumulate

from decentral.envs.tasks.catalogue.draws import numbers_below, until
from decentral.envs.tasks.task import task
from decentral.envs.tasks.values import INTEGER, INTEGERS, TEXT, TEXTS, OutOfDomain

_unsorted = until(INTEGERS.draw, lambda numbers: numbers != tuple(sorted(numbers)))


@task(takes=INTEGERS, gives=INTEGERS, draw=_unsorted, says="Sort in ascending order.")
def sort(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(numbers))


@task(
    takes=INTEGERS,
    gives=INTEGERS,
    draw=numbers_below(10),
    says="Replace each number by how many in the list are smaller than it.",
)
def ranks(numbers: tuple[int, ...]) -> tuple[int, ...]:
    order = sorted(numbers)
    return tuple(bisect_left(order, number) for number in numbers)


@task(
    takes=INTEGERS,
    gives=INTEGERS,
    draw=_unsorted,
    says="Go once from left to right, and swap neighbours whenever the left one is larger.",
)
def bubble(numbers: tuple[int, ...]) -> tuple[int, ...]:
    row = list(numbers)
    for at in range(len(row) - 1):
        if row[at] > row[at + 1]:
            row[at], row[at + 1] = row[at + 1], row[at]
    return tuple(row)


@task(
    takes=INTEGERS, gives=INTEGERS, draw=_unsorted, says="Replace each number by the largest of it and all before it."
)
def running_maxima(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(accumulate(numbers, max))


@task(
    takes=TEXTS,
    gives=TEXTS,
    draw=until(TEXTS.draw, lambda texts: texts != tuple(sorted(texts))),
    says="Sort the texts alphabetically.",
)
def sort_texts(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(texts))


@task(
    takes=INTEGERS,
    gives=INTEGER,
    draw=numbers_below(10),
    says="Count the pairs in which a number is larger than a later one.",
)
def inversions(numbers: tuple[int, ...]) -> int:
    return sum(number > later for at, number in enumerate(numbers) for later in numbers[at + 1 :])


@task(
    takes=INTEGERS,
    gives=INTEGERS,
    draw=until(INTEGERS.draw, lambda numbers: numbers != tuple(sorted(numbers, reverse=True))),
    says="Sort in descending order.",
)
def sort_down(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(numbers, reverse=True))


@task(takes=INTEGERS, gives=INTEGER, says="Add the two largest numbers.")
def top_two(numbers: tuple[int, ...]) -> int:
    if len(numbers) < 2:
        raise OutOfDomain(f"a list of {len(numbers)} has no two largest numbers: give at least 2")
    return sum(nlargest(2, numbers))


@task(
    takes=INTEGERS,
    gives=INTEGER,
    draw=numbers_below(10),
    says="Give the place, counted from 1, of the first largest number.",
)
def place_of_largest(numbers: tuple[int, ...]) -> int:
    if not numbers:
        raise OutOfDomain("an empty list has no largest number: give at least 1")
    return numbers.index(max(numbers)) + 1


@task(
    takes=TEXTS,
    gives=TEXTS,
    draw=until(TEXTS.draw, lambda texts: texts != tuple(sorted(texts, key=len))),
    says="Sort by length, short first; equally long ones keep their order.",
)
def sort_by_length(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(texts, key=len))


@task(takes=TEXTS, gives=TEXT, says="Give the longest text reversed, the first one if several are longest.")
def longest_reversed(texts: tuple[str, ...]) -> str:
    if not texts:
        raise OutOfDomain("an empty list has no longest text: give at least 1")
    return max(texts, key=len)[::-1]
