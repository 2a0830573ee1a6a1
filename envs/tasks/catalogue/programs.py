"""Small programs: a list or a text is run by a machine that always stops. Nothing is ever evaluated by Python."""

from __future__ import annotations

from itertools import pairwise

from decentral.envs.tasks.catalogue.draws import letters_of, numbers_below, until
from decentral.envs.tasks.task import task
from decentral.envs.tasks.values import INTEGER, INTEGERS, PAIR, TEXT, OutOfDomain

LARGEST = 1_000_000
"""From each number up to this one, ``count_collatz`` stops; the longest way has 524 steps."""
_MOVES = {"l": (-1, 0), "r": (1, 0), "d": (0, -1), "u": (0, 1)}


@task(
    takes=INTEGERS,
    gives=INTEGERS,
    draw=until(INTEGERS.draw, lambda numbers: any(number % 2 == 0 for number in numbers[1:])),
    says="Push each on a stack, but add an even one to the top if there is a top; list the stack from the bottom.",
)
def stack_sums(numbers: tuple[int, ...]) -> tuple[int, ...]:
    stack: list[int] = []
    for number in numbers:
        if number % 2 or not stack:
            stack.append(number)
        else:
            stack[-1] += number
    return tuple(stack)


@task(
    takes=INTEGERS,
    gives=INTEGERS,
    draw=until(INTEGERS.draw, lambda numbers: any(number % 3 for number in numbers[:-1])),
    says="Start at the first number: list it, then go right by (it mod 3) + 1, until past the end.",
)
def jump(numbers: tuple[int, ...]) -> tuple[int, ...]:
    found, place = [], 0
    while place < len(numbers):
        found.append(numbers[place])
        place += numbers[place] % 3 + 1
    return tuple(found)


@task(takes=INTEGER, gives=INTEGERS, says="While the number is not 0, list it and halve it, rounding down.")
def halvings(number: int) -> tuple[int, ...]:
    if number < 0:
        raise OutOfDomain(f"{number} never becomes 0 by halving: it must be at least 0")
    return tuple(number >> by for by in range(number.bit_length()))


@task(
    takes=INTEGERS,
    gives=INTEGERS,
    draw=until(numbers_below(3, at_least=4), lambda numbers: any(a == b for a, b in pairwise(numbers))),
    says="Push each on a stack, but if it equals the top, remove the top instead; list the stack from the bottom.",
)
def cancel(numbers: tuple[int, ...]) -> tuple[int, ...]:
    stack: list[int] = []
    for number in numbers:
        if stack and stack[-1] == number:
            stack.pop()
        else:
            stack.append(number)
    return tuple(stack)


@task(
    takes=TEXT,
    gives=PAIR,
    draw=letters_of("lrud"),
    says="Start at 0 0; l takes 1 from the first number, r adds 1, d and u do so with the second; others do nothing.",
)
def robot(text: str) -> tuple[int, int]:
    right = up = 0
    for letter in text:
        across, along = _MOVES.get(letter, (0, 0))
        right, up = right + across, up + along
    return right, up


@task(
    takes=TEXT,
    gives=INTEGER,
    draw=letters_of("abc"),
    says="Start from 1; a adds 3, b doubles, and any other character subtracts 1.",
)
def register(text: str) -> int:
    found = 1
    for letter in text:
        found = found + 3 if letter == "a" else 2 * found if letter == "b" else found - 1
    return found


@task(
    takes=INTEGERS, gives=INTEGER, says="Start from 0; add each number if the result so far is even, else subtract it."
)
def add_or_subtract(numbers: tuple[int, ...]) -> int:
    found = 0
    for number in numbers:
        found = found - number if found % 2 else found + number
    return found


@task(takes=PAIR, gives=PAIR, says="Three times, replace the pair by its second number and its sum.")
def fibonacci(pair: tuple[int, int]) -> tuple[int, int]:
    first, second = pair
    for _ in range(3):
        first, second = second, first + second
    return first, second


@task(
    takes=PAIR,
    gives=INTEGERS,
    says="While the second number is not 0, list it, and replace the pair by it and the first mod it.",
)
def euclid(pair: tuple[int, int]) -> tuple[int, ...]:
    first, second = pair
    if min(pair) < 0:
        raise OutOfDomain(f"{pair} has a negative number: both must be at least 0")
    found = []
    while second:
        found.append(second)
        first, second = second, first % second
    return tuple(found)


@task(
    takes=INTEGER,
    gives=INTEGER,
    says="Until it is 1, halve it if it is even, else triple it and add 1; count these steps.",
)
def count_collatz(number: int) -> int:
    if not 1 <= number <= LARGEST:
        raise OutOfDomain(f"{number} is not counted down to 1: it must be between 1 and {LARGEST}")
    found = 0
    while number != 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        found += 1
    return found
