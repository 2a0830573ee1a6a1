"""Who may advise whom: directed graphs over agents' names. An edge (a, b) says that a may advise b."""

from __future__ import annotations

__all__ = ["complete"]

from collections.abc import Iterable

import networkx as nx


def complete(names: Iterable[str]) -> nx.DiGraph[str]:
    """Returns the graph in which everybody may advise everybody else.

    >>> sorted(complete(["a", "b"]).edges)
    [('a', 'b'), ('b', 'a')]
    """
    return nx.complete_graph(list(names), create_using=nx.DiGraph)
