"""Sets and mappings: what occurs, how often, and under which key. A list stands for a set."""

from __future__ import annotations

from collections import Counter

from decentral.envs.tasks.catalogue.draws import numbers_below, until
from decentral.envs.tasks.graph import Node
from decentral.envs.tasks.task import task
from decentral.envs.tasks.values import INTEGER, INTEGERS, MAPPING, TEXT, TEXTS, mapping

Items = tuple[tuple[Node, int], ...]


@task(
    takes=INTEGERS,
    gives=INTEGERS,
    draw=until(numbers_below(4, at_least=3), lambda numbers: len(set(numbers)) < len(numbers)),
    says="Keep only the first of equal numbers.",
)
def unique(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(numbers))


@task(
    takes=INTEGERS,
    gives=INTEGERS,
    draw=numbers_below(6, at_least=4),
    says="List once, in ascending order, each number that occurs at least twice.",
)
def repeated(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(number for number, count in Counter(numbers).items() if count > 1))


@task(takes=INTEGERS, gives=MAPPING, draw=numbers_below(4), says="Map each number to how often it occurs.")
def count_numbers(numbers: tuple[int, ...]) -> Items:
    return mapping(Counter(numbers))


@task(takes=MAPPING, gives=INTEGERS, says="List the values in the order of their keys.")
def list_values(items: Items) -> tuple[int, ...]:
    return tuple(value for _, value in items)


@task(takes=TEXT, gives=MAPPING, says="Map each letter a to z in the text to how often it occurs.")
def count_letters(text: str) -> Items:
    return mapping(Counter(character for character in text if "a" <= character <= "z"))


@task(takes=TEXTS, gives=MAPPING, says="Map each first character to the summed length of the texts that begin with it.")
def lengths_by_initial(texts: tuple[str, ...]) -> Items:
    found: Counter[Node] = Counter()
    for text in texts:
        found[text[0]] += len(text)
    return mapping(found)


@task(takes=MAPPING, gives=MAPPING, says="Double every value.")
def double_values(items: Items) -> Items:
    return tuple((key, 2 * value) for key, value in items)


@task(takes=MAPPING, gives=MAPPING, says="Remove every entry that has the smallest value.")
def drop_smallest(items: Items) -> Items:
    smallest = min((value for _, value in items), default=0)
    return tuple((key, value) for key, value in items if value > smallest)


@task(takes=MAPPING, gives=TEXTS, says="List the keys by rising value; keys of equal value keep their order.")
def keys_by_value(items: Items) -> tuple[str, ...]:
    return tuple(str(key) for key, _ in sorted(items, key=lambda item: item[1]))


@task(takes=MAPPING, gives=INTEGER, says="Start from 0 and add the value of every entry.")
def sum_values(items: Items) -> int:
    return sum(value for _, value in items)
