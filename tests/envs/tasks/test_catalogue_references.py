"""Every base task against a reference solver, written from its sentence alone and by another way than the task's."""

from __future__ import annotations

import string
from collections import deque
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import pytest

from decentral.envs.tasks.graph import Graph
from decentral.envs.tasks.ids import base_tasks
from decentral.envs.tasks.values import (
    GRAPH,
    GRID,
    INTEGER,
    INTEGERS,
    LEVELS,
    MAPPING,
    PAIR,
    TEXT,
    TEXTS,
    OutOfDomain,
    mapping,
)

Integers = tuple[int, ...]
ALPHABET = string.ascii_lowercase
INPUTS = 200
EDGES: dict[Any, tuple[Any, ...]] = {
    INTEGER: (0, 1, -1, 2, -17, 100, -1000, 999_983),
    TEXT: ("", "a", "zz", "a3b1", "12:05", "aeiou"),
    INTEGERS: ((), (5,), (-5,), (0, 0), (-3, 2, -3), (4, 4, 4), (26, -1, 100)),
    TEXTS: ((), ("a",), ("bb", "aa", "bb"), ("x1", "2y")),
    GRID: (((7,),), ((1, 2, 3),), ((1,), (0,), (-2,)), ((0, 0), (0, 0))),
    GRAPH: (Graph.of([]), Graph.of([], "b"), Graph.of([], "ab"), Graph.of([(1, "a"), (2, "a"), (1, 2), (10, 9)])),
    MAPPING: ((), (("a", 1),), ((3, -2), ("x", -2), ("y", 0))),
    PAIR: ((0, 0), (0, 7), (7, 0), (-4, 6), (4, -6), (-9, -12), (30, 75)),
}
"""What compositions lead to and draws seldom do."""


def places_of(values: Integers) -> range:
    return range(len(values))


def bubble(numbers: Integers) -> Integers:
    if len(numbers) < 2:
        return numbers
    first, second, *others = numbers
    low, high = min(first, second), max(first, second)
    return (low, *bubble((high, *others)))


def insert_sorted(row: list[Any], item: Any, before: Callable[[Any, Any], bool]) -> list[Any]:
    at = len(row)
    while at and before(item, row[at - 1]):
        at -= 1
    return [*row[:at], item, *row[at:]]


def insertion_sort(items: Any, before: Callable[[Any, Any], bool] = lambda one, other: one < other) -> tuple[Any, ...]:
    return tuple(reduce(lambda row, item: insert_sorted(row, item, before), items, []))


def is_prime(number: int) -> bool:
    return number > 1 and not any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1))


def prime_factors(number: int) -> Integers:
    for divisor in range(2, int(number**0.5) + 1):
        if number % divisor == 0:
            return (divisor, *prime_factors(number // divisor))
    return (number,) if number > 1 else ()


def next_prime(number: int) -> int:
    while not is_prime(number := number + 1):
        pass
    return number


def gcd(pair: tuple[int, int]) -> int:
    first, second = map(abs, pair)
    return gcd((second, first % second)) if second else first


def divisors(number: int) -> Integers:
    found = {1}
    for prime in prime_factors(number):
        found |= {divisor * prime for divisor in found}
    return tuple(sorted(found))


def in_base_2(number: int) -> str:
    return (in_base_2(number // 2) if number > 1 else "") + str(number % 2)


def bitwise(pair: tuple[int, int], rule: Callable[[int, int], int]) -> int:
    first, second = (np.binary_repr(abs(number), width=48) for number in pair)
    return int("".join(str(rule(int(a), int(b))) for a, b in zip(first, second)), 2)


def shifted(character: str, by: int) -> str:
    return ALPHABET[(ALPHABET.index(character) + by) % 26] if character in ALPHABET else character


def day(start: str, days: int) -> tuple[int, int, int]:
    year, month, of_month = str(np.datetime64(start) + np.timedelta64(days, "D")).split("-")
    return int(year), int(month), int(of_month)


def neighbours(graph: Graph, node: Any) -> set[Any]:
    return {b for a, b in graph.edges if a == node} | {a for a, b in graph.edges if b == node}


def reached(graph: Graph, start: Any) -> dict[Any, int]:
    found, waiting = {start: 0}, deque([start])
    while waiting:
        node = waiting.popleft()
        for other in neighbours(graph, node) - set(found):
            found[other] = found[node] + 1
            waiting.append(other)
    return found


def components(graph: Graph) -> set[frozenset[Any]]:
    return {frozenset(reached(graph, node)) for node in graph.nodes}


def triangles(graph: Graph) -> int:
    edges = set(graph.edges)
    return sum(edges >= {(a, b), (b, c), (a, c)} for a, b, c in combinations(graph.nodes, 3))


def without(graph: Graph, gone: set[Any]) -> Graph:
    edges = [edge for edge in graph.edges if not gone & set(edge)]
    return Graph.of(edges, [node for node in graph.nodes if node not in gone])


def regions(grid: Any) -> int:
    """Joins the labels of equal cells side by side until nothing changes."""
    cells = np.array(grid)
    labels = np.arange(cells.size).reshape(cells.shape)
    while True:
        before = labels.copy()
        for one, other in (
            ((slice(1, None), slice(None)), (slice(None, -1), slice(None))),
            ((slice(None), slice(1, None)), (slice(None), slice(None, -1))),
        ):
            lower = np.minimum(labels[one], labels[other])
            same = cells[one] == cells[other]
            labels[one] = np.where(same, lower, labels[one])
            labels[other] = np.where(same, np.minimum(lower, labels[other]), labels[other])
        if (before == labels).all():
            return len(np.unique(labels))


def rows(array: Any) -> Any:
    return tuple(tuple(int(cell) for cell in row) for row in array)


def stack_sums(numbers: Integers) -> Integers:
    starts = [at for at in places_of(numbers) if at == 0 or numbers[at] % 2 == 1]
    return tuple(sum(numbers[start:end]) for start, end in zip(starts, [*starts[1:], len(numbers)]))


def cancel(numbers: Integers) -> Integers:
    """Takes out the leftmost two equal neighbours as long as there are any."""
    for at in range(len(numbers) - 1):
        if numbers[at] == numbers[at + 1]:
            return cancel(numbers[:at] + numbers[at + 2 :])
    return numbers


def jump(numbers: Integers) -> Integers:
    return (numbers[0], *jump(numbers[numbers[0] % 3 + 1 :])) if numbers else ()


def halvings(number: int) -> Integers:
    return (number, *halvings(int(Fraction(number, 2)))) if number else ()


def register(text: str) -> int:
    if not text:
        return 1
    before = register(text[:-1])
    return {"a": before + 3, "b": before * 2}.get(text[-1], before - 1)


def add_or_subtract(numbers: Integers) -> int:
    if not numbers:
        return 0
    before = add_or_subtract(numbers[:-1])
    return before + numbers[-1] * (-1) ** (before % 2)


def euclid(pair: tuple[int, int]) -> Integers:
    return (pair[1], *euclid((pair[1], pair[0] - pair[0] // pair[1] * pair[1]))) if pair[1] else ()


def count_collatz(number: int) -> int:
    return 0 if number == 1 else 1 + count_collatz([number // 2, 3 * number + 1][number % 2])


REFERENCES: dict[str, Callable[[Any], Any]] = {
    # arithmetic
    "running_sums": lambda numbers: tuple(sum(numbers[: at + 1]) for at in places_of(numbers)),
    "total": lambda numbers: reduce(lambda one, other: one + other, numbers, 0),
    "differences": lambda numbers: tuple(numbers[at] - numbers[at - 1] for at in places_of(numbers)[1:]),
    "double_plus_one": lambda number: number + number + 1,
    "add": sum,
    "multiply": lambda pair: int(Fraction(pair[0]) * pair[1]),
    "subtract": lambda pair: -(pair[1] - pair[0]),
    "sum_and_difference": lambda pair: (sum(pair), sum((pair[0], -pair[1]))),
    "product": lambda numbers: reduce(lambda one, other: one * other % 97, numbers, 1),
    "square": lambda number: int(str(number**2)[-2:]),
    "collatz": lambda number: [number // 2, 3 * number + 1][number % 2],
    "digit_sum": lambda number: sum(string.digits.index(digit) for digit in str(number).lstrip("-")),
    # ciphers
    "spell": lambda numbers: "".join(chr(ord("a") + number - number // 26 * 26) for number in numbers),
    "caesar": lambda text: "".join(shifted(character, 1) for character in text),
    "places": lambda text: tuple(ord(x) - ord("a") + 1 if x in ALPHABET else 0 for x in text),
    "swap_neighbours": lambda text: "".join(
        text[at ^ 1] if at ^ 1 < len(text) else text[at] for at in range(len(text))
    ),
    "atbash": lambda text: "".join(chr(ord("a") + ord("z") - ord(x)) if x in ALPHABET else x for x in text),
    "trithemius": lambda text: "".join(shifted(text[at], at + 1) for at in range(len(text))),
    "rail_fence": lambda text: "".join(text[at] for odd in (1, 0) for at in range(len(text)) if at % 2 == odd),
    "caesar_back": lambda texts: tuple("".join(shifted(character, 25) for character in text) for text in texts),
    "letter_sum": lambda text: sum(ord(character) - 96 for character in text if character in ALPHABET),
    # dates
    "weekdays": lambda days: tuple(1 + (number - 7 * (number // 7)) for number in days),
    "weeks_before": lambda weeks: day("2000-01-01", -7 * weeks),
    "month_and_day": lambda days: day("2001-01-01", days % 365)[1:],
    "clock": lambda time: ":".join(str(part).zfill(2) for part in (time[0] % 24, time[1] % 60)),
    "date_after": lambda days: str(np.datetime64("2000-01-01") + days),
    "weekday_after": lambda days: ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"][
        days - days // 7 * 7
    ],
    "later": lambda time: ((time[0] + (time[1] + 50) // 60) % 24, (time[1] + 50) % 60),
    "minutes_left": lambda time: next(
        minutes for minutes in range(1, 1441) if (time[0] * 60 + time[1] + minutes) % 1440 == 0
    ),
    # graphs
    "distances": lambda graph: tuple(reached(graph, graph.nodes[0]).get(node, -1) for node in graph.nodes),
    "letter_graph": lambda text: Graph.of(
        {tuple(text[at : at + 2]) for at in range(len(text) - 1)} - {(x, x) for x in text}, text
    ),
    "component_sizes": lambda graph: insertion_sort(map(len, components(graph)), lambda one, other: one > other),
    "remove_first": lambda graph: without(graph, set(graph.nodes[:1])),
    "prune": lambda graph: without(graph, {node for node in graph.nodes if len(neighbours(graph, node)) < 2}),
    "degrees": lambda graph: mapping({node: len(neighbours(graph, node)) for node in graph.nodes}),
    "edges_less_triangles": lambda graph: len(graph.edges) - triangles(graph),
    "nodes_and_components": lambda graph: int(f"{len(graph.nodes)}0") + len(components(graph)),
    # grids
    "row_sums": lambda grid: tuple(np.array(grid).sum(axis=1).tolist()),
    "two_rows": lambda numbers: rows([numbers, reversed(numbers)]),
    "column_maxima": lambda grid: tuple(np.array(grid).max(axis=0).tolist()),
    "transpose": lambda grid: rows(np.array(grid).T),
    "fall": lambda grid: rows(
        np.array([[0] * column.count(0) + [x for x in column if x] for column in np.array(grid).T.tolist()]).T
    ),
    "turn": lambda grid: rows(np.rot90(np.array(grid), -1)),
    "mirror": lambda grid: rows(np.fliplr(np.array(grid))),
    "add_above": lambda grid: rows(np.array(grid) + np.vstack([np.zeros_like(grid[:1]), np.array(grid)[:-1]])),
    "trace": lambda grid: int(np.trace(np.array(grid))),
    "regions": regions,
    # lists
    "reverse": lambda numbers: tuple(reversed(numbers)),
    "add_places": lambda numbers: tuple(numbers[at] + at + 1 for at in places_of(numbers)),
    "rotate": lambda numbers: tuple(numbers[(at + 1) % len(numbers)] for at in places_of(numbers)),
    "neighbour_sums": lambda numbers: tuple(numbers[at - 1] + numbers[at] for at in places_of(numbers)[1:]),
    "double_each": lambda numbers: tuple(number + number for number in numbers),
    "swap_ends": lambda numbers: tuple(numbers[{0: -1, len(numbers) - 1: 0}.get(at, at)] for at in places_of(numbers)),
    "every_second": lambda numbers: tuple(numbers[at] for at in places_of(numbers) if at % 2 == 1),
    "alternate_signs": lambda numbers: tuple(numbers[at] * (-1) ** at for at in places_of(numbers)),
    "spread": lambda numbers: max((one - other for one in numbers for other in numbers), default=0),
    "length_and_sum": lambda numbers: (sum(1 for _ in numbers), sum(numbers)),
    "progression": lambda pair: tuple(pair[0] + times * pair[1] for times in range(4)),
    # logic
    "running_parity": lambda numbers: tuple(sum(numbers[: at + 1]) % 2 for at in places_of(numbers)),
    "neighbours_differ": lambda numbers: tuple((numbers[at] - numbers[at - 1]) % 2 for at in places_of(numbers)[1:]),
    "is_even": lambda numbers: tuple(int(number % 2 == 0) for number in numbers),
    "read_bits": lambda numbers: sum(2**at for at, number in enumerate(reversed(numbers)) if number % 2 == 1),
    "exclusive_or": lambda pair: bitwise(pair, lambda one, other: (one + other) % 2),
    "and_plus_double_or": lambda pair: bitwise(pair, min) + 2 * bitwise(pair, max),
    "questions": lambda pair: (int(pair[1] > pair[0]), pair[1] % 2, int(sum(pair) % 2 == 0)),
    "flip_bits": lambda number: int(in_base_2(abs(number)).translate(str.maketrans("01", "10")), 2),
    # mappings
    "unique": lambda numbers: tuple(numbers[at] for at in places_of(numbers) if numbers[at] not in numbers[:at]),
    "repeated": lambda numbers: insertion_sort({number for number in numbers if numbers.count(number) > 1}),
    "count_numbers": lambda numbers: mapping({number: numbers.count(number) for number in numbers}),
    "list_values": lambda items: tuple(dict(items)[key] for key in dict(items)),
    "count_letters": lambda text: mapping({letter: text.count(letter) for letter in ALPHABET if letter in text}),
    "lengths_by_initial": lambda texts: mapping(
        {text[0]: sum(len(other) for other in texts if other.startswith(text[0])) for text in texts}
    ),
    "double_values": lambda items: mapping({key: value + value for key, value in items}),
    "drop_smallest": lambda items: mapping(
        {key: value for key, value in items if any(other < value for _, other in items)}
    ),
    "keys_by_value": lambda items: tuple(
        str(key) for key, _ in insertion_sort(items, lambda one, other: one[1] < other[1])
    ),
    "sum_values": lambda items: sum(dict(items).values()),
    # number_theory
    "square_remainders": lambda numbers: tuple([0, 1, 4, 2, 2, 4, 1][number % 7] for number in numbers),
    "digits": lambda number: tuple(string.digits.index(digit) for digit in str(number) if digit != "-"),
    "prime_factors": prime_factors,
    "gcd": gcd,
    "lcm": lambda pair: abs(pair[0] * pair[1]) // gcd(pair) if pair != (0, 0) else 0,
    "divide": lambda pair: (pair[0] // pair[1], pair[0] - pair[0] // pair[1] * pair[1]),
    "power": lambda pair: pair[0] ** pair[1] % 100,
    "divisors": divisors,
    "next_prime": next_prime,
    "totient": lambda number: int(
        number * reduce(lambda share, prime: share * (1 - Fraction(1, prime)), set(prime_factors(number)), Fraction(1))
    ),
    "binary": lambda number: in_base_2(abs(number)),
    # programs
    "stack_sums": stack_sums,
    "jump": jump,
    "halvings": halvings,
    "cancel": cancel,
    "robot": lambda text: (text.count("r") - text.count("l"), text.count("u") - text.count("d")),
    "register": register,
    "add_or_subtract": add_or_subtract,
    "fibonacci": lambda pair: tuple((np.linalg.matrix_power([[0, 1], [1, 1]], 3) @ pair).tolist()),
    "euclid": euclid,
    "count_collatz": count_collatz,
    # searching
    "sort": insertion_sort,
    "ranks": lambda numbers: tuple(sum(other < number for other in numbers) for number in numbers),
    "bubble": bubble,
    "running_maxima": lambda numbers: tuple(max(numbers[: at + 1]) for at in places_of(numbers)),
    "sort_texts": insertion_sort,
    "inversions": lambda numbers: sum(one > other for one, other in combinations(numbers, 2)),
    "sort_down": lambda numbers: insertion_sort(numbers, lambda one, other: one > other),
    "top_two": lambda numbers: max(one + other for one, other in combinations(numbers, 2)),
    "place_of_largest": lambda numbers: next(
        at + 1 for at in places_of(numbers) if all(numbers[at] >= other for other in numbers)
    ),
    "sort_by_length": lambda texts: insertion_sort(texts, lambda one, other: len(one) < len(other)),
    "longest_reversed": lambda texts: next(
        "".join(reversed(text)) for text in texts if all(len(text) >= len(other) for other in texts)
    ),
    # strings
    "reverse_text": lambda text: "".join(reversed(text)),
    "lengths": lambda texts: tuple(sum(1 for _ in text) for text in texts),
    "sort_characters": lambda text: "".join(insertion_sort(text)),
    "run_lengths": lambda text: "".join(
        f"{text[start]}{end - start}"
        for starts in [[at for at in range(len(text)) if at == 0 or text[at] != text[at - 1]]]
        for start, end in zip(starts, [*starts[1:], len(text)])
    ),
    "rotate_text": lambda text: "".join(text[(at + 1) % len(text)] for at in range(len(text))),
    "once_each": lambda text: "".join(text[at] for at in range(len(text)) if text.index(text[at]) == at),
    "length_and_vowels": lambda text: sum(2 if character in "aeiou" else 1 for character in text),
    "different_characters": lambda text: sum(text.index(text[at]) == at for at in range(len(text))),
    "cut": lambda text: (text[:2], *REFERENCES["cut"](text[2:])) if text else (),
    "initials": lambda texts: "".join(next(iter(text)) for text in texts),
    "reverse_each": lambda texts: tuple("".join(reversed(text)) for text in texts),
    "reverse_order": lambda texts: tuple(reversed(texts)),
}


@pytest.mark.parametrize("name", sorted(base_tasks()))
def test_a_task_does_what_its_sentence_says(name: str) -> None:
    task = base_tasks()[name]
    random = Random(name)
    drawn = [draw(random, at % LEVELS) for at in range(INPUTS // 2) for draw in (task.draw, task.takes.draw)]
    compared = 0
    for value in (*drawn, *EDGES[task.takes]):
        try:
            found = task.apply(value)
        except OutOfDomain:
            continue
        assert found == REFERENCES[name](value), f"{task.describe} {task.takes.show(value)}"
        compared += 1
    assert compared > 0.7 * INPUTS


def test_every_reference_is_of_a_task() -> None:
    assert set(REFERENCES) == set(base_tasks())
