import networkx as nx
import pytest

from decentral.graphs.topology import complete, from_text, regular, ring, small_world

NAMES = [f"agent_{i}" for i in range(16)]


def test_everybody_may_advise_everybody_else() -> None:
    graph = complete(["ann", "ben", "cleo"])
    assert len(graph.edges) == 6
    assert all(advisor != receiver for advisor, receiver in graph.edges)
    assert list(complete(["ann"]).edges) == []


def test_on_a_ring_everybody_has_the_two_beside() -> None:
    graph = ring(NAMES)
    assert set(graph.predecessors("agent_0")) == {"agent_1", "agent_15"}
    assert set(ring(["ann", "ben"]).edges) == {("ann", "ben"), ("ben", "ann")}
    assert list(ring(["ann"]).edges) == []


@pytest.mark.parametrize("graph", [regular(NAMES, 4), small_world(NAMES, 4, 0.2)])
def test_neighbours_advise_each_other_and_nobody_himself(graph: "nx.DiGraph[str]") -> None:
    assert set(graph) == set(NAMES)
    assert all((b, a) in graph.edges and a != b for a, b in graph.edges)
    assert graph.number_of_edges() == 16 * 4


def test_a_draw_is_repeated_by_its_seed() -> None:
    assert set(regular(NAMES, 4, seed=1).edges) == set(regular(NAMES, 4, seed=1).edges)
    assert set(regular(NAMES, 4, seed=1).edges) != set(regular(NAMES, 4, seed=2).edges)


def test_texts_stand_for_graphs() -> None:
    assert set(from_text("ring", NAMES).edges) == set(ring(NAMES).edges)
    assert from_text("regular:3", NAMES).number_of_edges() == 48
    assert from_text("small_world:4:0.1", NAMES).number_of_edges() == 64


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("star", "none of complete, ring"),
        ("regular", "none of complete, ring"),
        ("regular:x", "none of complete, ring"),
        ("regular:16", "cannot have 16 neighbours"),
        ("small_world:4:2", "no small world"),
        ("small_world:5:0.1", "an even number"),
        ("small_world:4:0.1.2", "none of complete, ring"),
    ],
)
def test_other_texts_are_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        from_text(text, NAMES)
