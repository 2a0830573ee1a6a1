"""Values: what is written is read back, what is drawn is of its kind, and no text does more than be refused."""

from __future__ import annotations

from random import Random
from statistics import fmean
from string import ascii_lowercase
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decentral.envs.tasks.graph import Graph
from decentral.envs.tasks.values import (
    BOOLEAN,
    GRAPH,
    GRID,
    INTEGER,
    INTEGERS,
    ITEMS,
    KINDS,
    LARGEST,
    LEVELS,
    LONGEST,
    MAPPING,
    PAIR,
    TEXT,
    TEXTS,
    Kind,
    OutOfDomain,
    mapping,
)

WORD_LETTERS = [chr(code) for code in range(33, 127) if chr(code) not in '";']
INTEGER_VALUES = st.integers(-LARGEST, LARGEST)
WORDS = st.text(WORD_LETTERS, min_size=1, max_size=9)
NODES = st.integers(0, 99) | st.sampled_from(ascii_lowercase)
CELLS = st.integers(-999, 999)
KEYS = INTEGER_VALUES | st.text([one for one in WORD_LETTERS if one not in ":0123456789"], min_size=1, max_size=9)
VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    INTEGER: INTEGER_VALUES,
    TEXT: st.text([*WORD_LETTERS, " "], max_size=200).map(str.strip),
    BOOLEAN: st.booleans(),
    INTEGERS: st.lists(INTEGER_VALUES, max_size=9).map(tuple),
    TEXTS: st.lists(WORDS, max_size=9).map(tuple),
    GRID: st.integers(1, 5).flatmap(
        lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width).map(tuple), min_size=1, max_size=5).map(
            tuple
        )
    ),
    GRAPH: st.builds(
        lambda edges, nodes: Graph.of([(a, b) for a, b in edges if a != b], nodes),
        st.lists(st.tuples(NODES, NODES), max_size=9),
        st.lists(NODES, max_size=9),
    ),
    MAPPING: st.dictionaries(KEYS, INTEGER_VALUES, max_size=9).map(mapping),
    PAIR: st.tuples(INTEGER_VALUES, INTEGER_VALUES),
}
kinds = pytest.mark.parametrize("kind", KINDS, ids=str)


@kinds
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_what_is_shown_is_read_back_and_perturbed_to_something_else(kind: Kind, data: st.DataObject) -> None:
    value = data.draw(VALUES[kind])
    kind.check(value)
    text = kind.show(value)
    assert kind.parse(text) == kind.parse(f"  {text}\n") == value
    assert len(text) <= LONGEST
    assert "\n" not in text
    assert ";" not in text
    random = Random(data.draw(st.integers(0, 9)))
    near = kind.near(random, value)
    assert near != value
    kind.check(near)
    kind.check(kind.guess(random, value))
    hash(value)


@kinds
def test_draws_are_of_the_kind_repeat_by_seed_and_grow_with_the_level(kind: Kind) -> None:
    sizes = []
    for level in range(LEVELS):
        drawn = [kind.draw(Random(seed), level) for seed in range(30)]
        for seed, value in enumerate(drawn):
            kind.check(value)
            assert value == kind.draw(Random(seed), level)
        assert len(set(drawn)) > (2 if kind is not BOOLEAN else 1)
        sizes.append(fmean(kind.size(value) for value in drawn))
    if kind is not BOOLEAN:
        assert sizes == sorted(sizes)
        assert sizes[-1] > 1.5 * sizes[0]


@kinds
def test_guesses_are_seldom_right(kind: Kind) -> None:
    random = Random(0)
    values = [kind.draw(random, level) for level in range(LEVELS) for _ in range(20)]
    right = fmean(kind.guess(random, value) == value for value in values)
    assert right < (0.65 if kind is BOOLEAN else 0.1)


@kinds
@given(text=st.text(max_size=40) | st.text("0123456789-/: ab\"'{}[]()\ud800", max_size=40))
@settings(max_examples=80, deadline=None)
def test_any_text_is_a_value_of_the_kind_or_refused(kind: Kind, text: str) -> None:
    try:
        value = kind.parse(text)
    except OutOfDomain:
        return
    kind.check(value)
    assert kind.parse(kind.show(value)) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (INTEGER, "007"),
        (INTEGER, "-0"),
        (INTEGER, "+1"),
        (INTEGER, "1_0"),
        (INTEGER, "١"),
        (INTEGER, "1" * 13),
        (INTEGER, "0x10"),
        (INTEGERS, ""),
        (INTEGERS, "1, 2"),
        (INTEGERS, "1 " * (ITEMS + 1)),
        (TEXT, ""),
        (TEXT, "a\nb"),
        (TEXT, "é"),
        (TEXT, "a" * 201),
        (BOOLEAN, "True"),
        (GRID, "1 2 / 3"),
        (GRID, "1 /"),
        (GRID, '""'),
        (GRAPH, "a-a"),
        (GRAPH, "a-b-c"),
        (GRAPH, "ab"),
        (MAPPING, "a:1 a:2"),
        (MAPPING, "a"),
        (MAPPING, ":1"),
        (PAIR, "1"),
        (PAIR, "1 2 3"),
    ],
)
def test_a_text_that_is_not_exactly_a_value_is_refused(kind: Kind, text: str) -> None:
    with pytest.raises(OutOfDomain):
        kind.parse(text)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (INTEGER, True),
        (INTEGER, LARGEST + 1),
        (INTEGER, 1.0),
        (TEXT, " a"),
        (TEXT, 'a"'),
        (BOOLEAN, 1),
        (INTEGERS, [1, 2]),
        (INTEGERS, (1, True)),
        (TEXTS, ("a b",)),
        (TEXTS, ("",)),
        (GRID, ((1, 2), (3,))),
        (GRID, ((1000,),)),
        (GRID, ()),
        (GRAPH, Graph(nodes=("b", "a"), edges=())),
        (GRAPH, Graph(nodes=("a",), edges=(("a", "b"),))),
        (GRAPH, Graph.of([("a", "a")])),
        (MAPPING, {"a": 1}),
        (MAPPING, (("b", 1), ("a", 1))),
        (MAPPING, (("5", 1),)),
        (PAIR, (1, 2, 3)),
    ],
)
def test_a_value_that_could_not_be_written_is_refused(kind: Kind, value: Any) -> None:
    with pytest.raises(OutOfDomain, match="has to be"):
        kind.check(value)


def test_two_graphs_of_the_same_nodes_and_edges_are_equal() -> None:
    one = Graph.of([("b", "a"), (3, "a"), ("a", "b")], nodes=["z"])
    assert one == Graph.of([("a", "b"), ("a", 3)], nodes=["z", "b"])
    assert GRAPH.show(one) == "3-a a-b z"
    assert sorted(map(str, one.networkx().nodes)) == ["3", "a", "b", "z"]


def test_the_order_of_a_mapping_in_an_answer_does_not_matter() -> None:
    assert MAPPING.parse("b:1 2:5 a:-3") == ((2, 5), ("a", -3), ("b", 1))
