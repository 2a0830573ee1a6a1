"""Who may advise whom: directed graphs over agents' names. An edge (a, b) says that a may advise b."""

from __future__ import annotations

__all__ = ["TOPOLOGIES", "complete", "from_text", "regular", "ring", "small_world"]

from collections.abc import Sequence

import networkx as nx

TOPOLOGIES = ("complete", "ring", "regular", "small_world")


def complete(names: Sequence[str]) -> nx.DiGraph[str]:
    """Returns the graph in which everybody may advise everybody else.

    >>> sorted(complete(["a", "b"]).edges)
    [('a', 'b'), ('b', 'a')]
    """
    return nx.complete_graph(list(names), create_using=nx.DiGraph)


def ring(names: Sequence[str]) -> nx.DiGraph[str]:
    """Returns the graph in which everybody may advise the two beside them, in the order given.

    >>> sorted(ring(["a", "b", "c", "d"]).predecessors("a"))
    ['b', 'd']
    """
    return _named(nx.cycle_graph(len(names)), names)


def regular(names: Sequence[str], degree: int, seed: int = 0) -> nx.DiGraph[str]:
    """Returns a random graph in which everybody may advise ``degree`` others and is advised by the same.

    Raises ValueError if there is none.
    """
    count = len(names)
    if not 0 < degree < count or degree * count % 2:
        raise ValueError(
            f"{count} agents cannot have {degree} neighbours each: choose from 1 to {count - 1}, and so that agents "
            "times neighbours is even"
        )
    return _named(nx.random_regular_graph(degree, count, seed=seed), names)


def small_world(names: Sequence[str], degree: int, share: float, seed: int = 0) -> nx.DiGraph[str]:
    """Returns a ring of ``degree`` nearest neighbours of which a share leads elsewhere (Watts and Strogatz, 1998).

    Raises ValueError if there is none.
    """
    count = len(names)
    if not 1 < degree < count or degree % 2 or not 0 <= share <= 1:
        raise ValueError(
            f"{count} agents make no small world of {degree} neighbours, of which a share of {share} leads elsewhere: "
            f"choose an even number from 2 to {count - 1} and a share from 0 to 1"
        )
    return _named(nx.watts_strogatz_graph(count, degree, share, seed=seed), names)


def from_text(text: str, names: Sequence[str]) -> nx.DiGraph[str]:
    """Returns the graph that ``complete``, ``ring``, ``regular:K`` or ``small_world:K:P`` stands for.

    Raises ValueError if it stands for none.

    >>> from_text("regular:2", ["a", "b", "c"]).number_of_edges()
    6
    """
    match text.split(":"):
        case ["complete"]:
            return complete(names)
        case ["ring"]:
            return ring(names)
        case ["regular", degree] if degree.isdigit():
            return regular(names, int(degree))
        case ["small_world", degree, share] if degree.isdigit() and share.replace(".", "", 1).isdigit():
            return small_world(names, int(degree), float(share))
    raise ValueError("it is none of complete, ring, regular:K and small_world:K:P; write it so")


def _named(graph: nx.Graph[int], names: Sequence[str]) -> nx.DiGraph[str]:
    both = nx.relabel_nodes(graph, dict(enumerate(names))).to_directed()
    both.remove_edges_from(list(nx.selfloop_edges(both)))
    return both
