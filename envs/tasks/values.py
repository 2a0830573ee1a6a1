"""The nine kinds of values that tasks take and give: how each is written, read, drawn, guessed and perturbed.

Values are immutable, so that no task can change what another one holds. No text of a value has a line break or a ``;``.
Knows nothing about tasks.

    kind      value                                         text
    INTEGER   int, at most 12 digits                        -7
    TEXT      str, printable ASCII without " and ;          abba
    BOOLEAN   bool                                          yes
    INTEGERS  tuple of int                                  3 -1 4
    TEXTS     tuple of str without spaces                   cat dog
    GRID      tuple of rows, each a tuple of int            1 0 / 0 2
    GRAPH     Graph, nodes are 0 to 99 or one letter        a-b b-c d
    MAPPING   tuple of (str or int, int), sorted by key     ant:3 bee:1
    PAIR      tuple of two int                              12 18

An empty text, list, graph or mapping is written ``""``.
"""

from __future__ import annotations

__all__ = [
    "BOOLEAN",
    "GRAPH",
    "GRID",
    "INTEGER",
    "INTEGERS",
    "KINDS",
    "LEVELS",
    "LONGEST",
    "MAPPING",
    "PAIR",
    "TEXT",
    "TEXTS",
    "Graph",
    "Kind",
    "OutOfDomain",
    "mapping",
]

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from itertools import combinations, pairwise
from random import Random
from string import ascii_lowercase
from typing import Any

from decentral.envs.tasks.graph import Graph, Node, node_order
from decentral.errors import DecentralError, short

LEVELS = 10
LONGEST = 2000
"""No text of a value has more characters; a longer one is not read at all."""
LARGEST = 10**12 - 1
ITEMS = 64
"""A list or mapping has at most this many; a graph at most as many edges, a grid rows of at most 16, at most 16."""
_SIDE = 16
_EMPTY = '""'
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,11}")
_WORD = re.compile(r"[!#-:<-~]{1,40}")
_KEY = re.compile(r"[!#-9<-~]{1,40}")
_TEXT = re.compile(r"(?:[!#-:<-~](?:[ !#-:<-~]{0,198}[!#-:<-~])?)?")
_NODE = re.compile(r"0|[1-9][0-9]?|[a-z]")
_BOUNDS = (9, 15, 25, 50, 99, 199, 399, 999, 2999, 9999)
"""Of an integer, by level."""
_SMALL_BOUNDS = (9, 9, 12, 15, 20, 30, 40, 60, 80, 99)
"""Of an integer among others, by level."""
_NEGATIVE_FROM = 2
"""Lists have no negative integers below this level."""
_ANIMALS = "ant bat bee cat cow dog eel elk emu fox hen owl pig ram rat yak"
_PLANTS = "ash bay elm fig fir ivy lily oak palm pear pine plum rose rye"
_THINGS = (
    "arm bag bed bell boat book box bus car coat cup door drum fan flag gate hat jar key kite lamp map net oar pan"
)
_WORDS = tuple(f"{_ANIMALS} {_PLANTS} {_THINGS} pen pot ring road rope sail shoe star tent toy van wall".split())


class OutOfDomain(DecentralError, ValueError):
    """A value that a map does not take, or a text that is no value."""


class Kind(ABC):
    """A kind of values. There is one object of each; two kinds are the same only if they are the same object."""

    name: str
    """As messages say it, e.g. ``integers``."""

    @abstractmethod
    def check(self, value: Any) -> None:
        """Raises OutOfDomain if ``value`` is not of this kind, or larger than the kind's bounds."""

    @abstractmethod
    def show(self, value: Any) -> str:
        """Returns the text of a value: one line, at most ``LONGEST`` characters."""

    @abstractmethod
    def read(self, text: str) -> Any:
        """Returns the value of a stripped text of bounded length. Raises OutOfDomain, or lets ``check`` refuse it."""

    @abstractmethod
    def draw(self, random: Random, level: int) -> Any:
        """Returns a value whose size grows with ``level``, 0 to 9."""

    @abstractmethod
    def guess(self, random: Random, value: Any) -> Any:
        """Returns what someone answers who knows the kind and about the size of ``value``, but not the task."""

    @abstractmethod
    def near(self, random: Random, value: Any) -> Any:
        """Returns a value that is as like ``value`` as can be without being equal."""

    @abstractmethod
    def size(self, value: Any) -> int:
        """Returns how large a value is: digits, letters, items, cells, nodes and edges."""

    def parse(self, text: str) -> Any:
        """Returns the value that ``show`` wrote as ``text``. Takes any text, and raises OutOfDomain for most."""
        if len(text) > LONGEST:
            raise OutOfDomain(f"a text of {len(text)} characters is not of kind {self.name}; write at most {LONGEST}")
        value = self.read(text.strip())
        self.check(value)
        return value

    def __repr__(self) -> str:
        return self.name

    def _refuse(self, value: Any, why: str) -> OutOfDomain:
        return OutOfDomain(f"{short(value)} is not of kind {self.name}: it has to be {why}")


class _Integer(Kind):
    name = "integer"

    def check(self, value: Any) -> None:
        if type(value) is not int or not -LARGEST <= value <= LARGEST:
            raise self._refuse(value, f"an int between -{LARGEST} and {LARGEST}")

    def show(self, value: int) -> str:
        return str(value)

    def read(self, text: str) -> int:
        return _integer(text)

    def draw(self, random: Random, level: int) -> int:
        top = _BOUNDS[level]
        low = top // 4 if level else 0
        return low + int(random.random() * (top - low + 1))

    def guess(self, random: Random, value: int) -> int:
        found = int(random.random() * (min(max(4, 2 * abs(value)), LARGEST) + 1))
        return -found if value < 0 else found

    def near(self, random: Random, value: int) -> int:
        return value + 1 if value < 0 or (value < LARGEST and random.random() < 0.5) else value - 1

    def size(self, value: int) -> int:
        return len(str(abs(value)))


class _Text(Kind):
    name = "text"

    def check(self, value: Any) -> None:
        if type(value) is not str or not _TEXT.fullmatch(value):
            raise self._refuse(value, 'at most 200 printable ASCII characters but " and ;, without outer spaces')

    def show(self, value: str) -> str:
        return value or _EMPTY

    def read(self, text: str) -> str:
        if not text:
            raise OutOfDomain(f"nothing is not of kind {self.name}; write {_EMPTY} for an empty one")
        return "" if text == _EMPTY else text

    def draw(self, random: Random, level: int) -> str:
        return _letters(random, 3 + level)

    def guess(self, random: Random, value: str) -> str:
        return _letters(random, len(value) or 1)

    def near(self, random: Random, value: str) -> str:
        at = int(random.random() * len(value))
        other = "b" if value[at : at + 1] == "a" else "a"
        return value[:at] + other + value[at + 1 :]

    def size(self, value: str) -> int:
        return len(value)


class _Boolean(Kind):
    name = "boolean"

    def check(self, value: Any) -> None:
        if type(value) is not bool:
            raise self._refuse(value, "a bool")

    def show(self, value: bool) -> str:
        return "yes" if value else "no"

    def read(self, text: str) -> bool:
        if text not in ("yes", "no"):
            raise OutOfDomain(f"{short(text)} is not of kind {self.name}; write yes or no")
        return text == "yes"

    def draw(self, random: Random, level: int) -> bool:
        return random.random() < 0.5

    def guess(self, random: Random, value: bool) -> bool:
        return random.random() < 0.5

    def near(self, random: Random, value: bool) -> bool:
        return not value

    def size(self, value: bool) -> int:
        return 1


class _Integers(Kind):
    name = "integers"

    def check(self, value: Any) -> None:
        if (
            type(value) is not tuple
            or len(value) > ITEMS
            or not all(type(item) is int and -LARGEST <= item <= LARGEST for item in value)
        ):
            raise self._refuse(value, f"a tuple of at most {ITEMS} ints of at most 12 digits")

    def show(self, value: tuple[int, ...]) -> str:
        return " ".join(map(str, value)) or _EMPTY

    def read(self, text: str) -> tuple[int, ...]:
        return tuple(map(_integer, _items(text)))

    def draw(self, random: Random, level: int) -> tuple[int, ...]:
        return _small(random, level, 2 + level)

    def guess(self, random: Random, value: tuple[int, ...]) -> tuple[int, ...]:
        return _like(random, value, len(value) or 1)

    def near(self, random: Random, value: tuple[int, ...]) -> tuple[int, ...]:
        return _one_changed(random, value, INTEGER) if value else (0,)

    def size(self, value: tuple[int, ...]) -> int:
        return len(value)


class _Texts(Kind):
    name = "texts"

    def check(self, value: Any) -> None:
        if (
            type(value) is not tuple
            or len(value) > ITEMS
            or not all(type(item) is str and _WORD.fullmatch(item) for item in value)
            or sum(map(len, value)) + len(value) > LONGEST
        ):
            raise self._refuse(
                value, f'a tuple of at most {ITEMS} texts of 1 to 40 printable ASCII characters but space, " and ;'
            )

    def show(self, value: tuple[str, ...]) -> str:
        return " ".join(value) or _EMPTY

    def read(self, text: str) -> tuple[str, ...]:
        return tuple(_items(text))

    def draw(self, random: Random, level: int) -> tuple[str, ...]:
        return tuple(random.choices(_WORDS, k=2 + level))

    def guess(self, random: Random, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(
            random.choice(_WORDS) if len(item) > 2 else _letters(random, len(item)) for item in value or ("word",)
        )

    def near(self, random: Random, value: tuple[str, ...]) -> tuple[str, ...]:
        return _one_changed(random, value, TEXT) if value else ("a",)

    def size(self, value: tuple[str, ...]) -> int:
        return len(value)


class _Grid(Kind):
    name = "grid"

    def check(self, value: Any) -> None:
        if (
            type(value) is not tuple
            or not 1 <= len(value) <= _SIDE
            or not all(type(row) is tuple and 1 <= len(row) <= _SIDE and len(row) == len(value[0]) for row in value)
            or not all(type(cell) is int and -999 <= cell <= 999 for row in value for cell in row)
        ):
            raise self._refuse(
                value, f"a tuple of 1 to {_SIDE} tuples of 1 to {_SIDE} ints of at most 3 digits, all of one length"
            )

    def show(self, value: tuple[tuple[int, ...], ...]) -> str:
        return " / ".join([" ".join(map(str, row)) for row in value])

    def read(self, text: str) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(map(_integer, row.split())) for row in text.split("/"))

    def draw(self, random: Random, level: int) -> tuple[tuple[int, ...], ...]:
        rows, columns = 2 + level // 2, 2 + (level + 1) // 2
        return _rows(random.choices(range(10 if level else 5), k=rows * columns), columns)

    def guess(self, random: Random, value: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
        cells = [cell for row in value for cell in row]
        return _rows(_like(random, cells, len(cells)), len(value[0]))

    def near(self, random: Random, value: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
        row, column = int(random.random() * len(value)), int(random.random() * len(value[0]))
        cell = value[row][column]
        changed = (*value[row][:column], cell - 1 if cell > 0 else cell + 1, *value[row][column + 1 :])
        return (*value[:row], changed, *value[row + 1 :])

    def size(self, value: tuple[tuple[int, ...], ...]) -> int:
        return len(value) * len(value[0])


class _Graph(Kind):
    name = "graph"

    def check(self, value: Any) -> None:
        if (
            type(value) is not Graph
            or len(value.nodes) > ITEMS
            or len(value.edges) > ITEMS
            or not all(_is_node(node) for node in value.nodes)
            or any(a == b for a, b in value.edges)
            or Graph.of(value.edges, value.nodes) != value
        ):
            raise self._refuse(value, f"a Graph.of at most {ITEMS} edges and nodes, 0 to 99 or a to z, without loops")

    def show(self, value: Graph) -> str:
        linked = {node for edge in value.edges for node in edge}
        alone = [str(node) for node in value.nodes if node not in linked]
        return " ".join([*(f"{a}-{b}" for a, b in value.edges), *alone]) or _EMPTY

    def read(self, text: str) -> Graph:
        nodes: list[Node] = []
        edges: list[tuple[Node, Node]] = []
        for item in _items(text):
            first, dash, second = item.partition("-")
            if dash:
                edges.append((_node(first), _node(second)))
            else:
                nodes.append(_node(first))
        return Graph.of(edges, nodes)

    def draw(self, random: Random, level: int) -> Graph:
        return _graph(random, 3 + level, 2 + level + int(random.random() * (2 + level // 3)))

    def guess(self, random: Random, value: Graph) -> Graph:
        return _graph(random, max(2, min(len(value.nodes), len(ascii_lowercase))), max(1, len(value.edges)))

    def near(self, random: Random, value: Graph) -> Graph:
        if len(value.nodes) < 2:
            return Graph.of([("a", "b")])
        one, other = random.sample(value.nodes, 2)
        edge = (one, other) if node_order(one) < node_order(other) else (other, one)
        if edge in value.edges or len(value.edges) == ITEMS:
            edge = edge if edge in value.edges else value.edges[0]
            return Graph.of([kept for kept in value.edges if kept != edge], value.nodes)
        return Graph.of([*value.edges, edge], value.nodes)

    def size(self, value: Graph) -> int:
        return len(value.nodes) + len(value.edges)


class _Mapping(Kind):
    name = "mapping"

    def check(self, value: Any) -> None:
        if (
            type(value) is not tuple
            or len(value) > ITEMS
            or not all(type(item) is tuple and len(item) == 2 for item in value)
            or not all(_is_key(key) and type(of) is int and -LARGEST <= of <= LARGEST for key, of in value)
            or any(node_order(a[0]) >= node_order(b[0]) for a, b in pairwise(value))
            or sum(len(str(key)) + len(str(of)) + 2 for key, of in value) > LONGEST
        ):
            raise self._refuse(
                value,
                f'a tuple of at most {ITEMS} pairs of a key (an int, or a text that is none, without space, " ; :) and '
                "an int, sorted, each key once; make it by mapping(dict)",
            )

    def show(self, value: tuple[tuple[Node, int], ...]) -> str:
        return " ".join([f"{key}:{of}" for key, of in value]) or _EMPTY

    def read(self, text: str) -> tuple[tuple[Node, int], ...]:
        found: list[tuple[Node, int]] = []
        for item in _items(text):
            key, _, of = item.rpartition(":")
            found.append((int(key) if _INTEGER.fullmatch(key) else key, _integer(of)))
        return tuple(sorted(found, key=lambda pair: node_order(pair[0])))

    def draw(self, random: Random, level: int) -> tuple[tuple[Node, int], ...]:
        count = 2 + level
        return mapping(zip(random.sample(_WORDS, count), _small(random, level, count)))

    def guess(self, random: Random, value: tuple[tuple[Node, int], ...]) -> tuple[tuple[Node, int], ...]:
        numbers = _like(random, [of for _, of in value], len(value))
        return tuple((key, of) for (key, _), of in zip(value, numbers)) or (("a", 0),)

    def near(self, random: Random, value: tuple[tuple[Node, int], ...]) -> tuple[tuple[Node, int], ...]:
        if not value:
            return (("a", 0),)
        at = int(random.random() * len(value))
        key, of = value[at]
        return (*value[:at], (key, INTEGER.near(random, of)), *value[at + 1 :])

    def size(self, value: tuple[tuple[Node, int], ...]) -> int:
        return len(value)


class _Pair(Kind):
    name = "pair"

    def check(self, value: Any) -> None:
        if type(value) is not tuple or len(value) != 2:
            raise self._refuse(value, "a tuple of two ints")
        INTEGER.check(value[0])
        INTEGER.check(value[1])

    def show(self, value: tuple[int, int]) -> str:
        return f"{value[0]} {value[1]}"

    def read(self, text: str) -> tuple[int, ...]:
        return tuple(map(_integer, text.split()))

    def draw(self, random: Random, level: int) -> tuple[int, int]:
        return INTEGER.draw(random, level), INTEGER.draw(random, level)

    def guess(self, random: Random, value: tuple[int, int]) -> tuple[int, int]:
        return INTEGER.guess(random, value[0]), INTEGER.guess(random, value[1])

    def near(self, random: Random, value: tuple[int, int]) -> tuple[int, int]:
        return _one_changed(random, value, INTEGER)

    def size(self, value: tuple[int, int]) -> int:
        return INTEGER.size(value[0]) + INTEGER.size(value[1])


INTEGER = _Integer()
TEXT = _Text()
BOOLEAN = _Boolean()
INTEGERS = _Integers()
TEXTS = _Texts()
GRID = _Grid()
GRAPH = _Graph()
MAPPING = _Mapping()
PAIR = _Pair()
KINDS: tuple[Kind, ...] = (INTEGER, TEXT, BOOLEAN, INTEGERS, TEXTS, GRID, GRAPH, MAPPING, PAIR)


def mapping(pairs: Mapping[Any, int] | Iterable[tuple[Any, int]]) -> tuple[tuple[Node, int], ...]:
    """Returns the value of kind MAPPING with these keys; ``dict(value)`` is the way back.

    >>> mapping({"bee": 1, "ant": 3})
    (('ant', 3), ('bee', 1))
    """
    return tuple(sorted(dict(pairs).items(), key=lambda pair: node_order(pair[0])))


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise OutOfDomain(f"{short(text)} is no integer of at most 12 digits; write one such as -7")
    return int(text)


def _node(text: str) -> Node:
    if not _NODE.fullmatch(text):
        raise OutOfDomain(f"{short(text)} is no node; write 0 to 99 or one letter a to z")
    return text if text.isalpha() else int(text)


def _is_node(node: Any) -> bool:
    if type(node) is str:
        return len(node) == 1 and "a" <= node <= "z"
    return type(node) is int and 0 <= node <= 99


def _is_key(key: Any) -> bool:
    if type(key) is str:
        return _KEY.fullmatch(key) is not None and not _INTEGER.fullmatch(key)
    return type(key) is int and -LARGEST <= key <= LARGEST


def _items(text: str) -> list[str]:
    return [] if text == _EMPTY else text.split() or [text]


def _letters(random: Random, count: int) -> str:
    """Draws from fewer letters than there are places, so that some come twice."""
    return "".join(random.choices(random.sample(ascii_lowercase, min(26, 1 + 2 * count // 3)), k=count))


def _small(random: Random, level: int, count: int) -> tuple[int, ...]:
    top = _SMALL_BOUNDS[level]
    return tuple(random.choices(range(0 if level < _NEGATIVE_FROM else -top // 3, top + 1), k=count))


def _like(random: Random, values: Iterable[int], count: int) -> tuple[int, ...]:
    """Draws ``count`` integers between the smallest and the largest of ``values``, or 0 and 1."""
    every = (*values, 0, 1)
    return tuple(random.choices(range(min(every), max(every) + 1), k=count))


def _one_changed(random: Random, value: tuple[Any, ...], kind: Kind) -> tuple[Any, ...]:
    at = int(random.random() * len(value))
    return (*value[:at], kind.near(random, value[at]), *value[at + 1 :])


def _rows(cells: Iterable[int], columns: int) -> tuple[tuple[int, ...], ...]:
    flat = tuple(cells)
    return tuple(flat[at : at + columns] for at in range(0, len(flat), columns))


def _graph(random: Random, nodes: int, edges: int) -> Graph:
    names = ascii_lowercase[:nodes]
    pairs = list(combinations(names, 2))
    return Graph.of(random.sample(pairs, min(edges, len(pairs))), names)
