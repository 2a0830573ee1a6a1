"""An undirected graph as a value: frozen, hashable, equal to any other of the same nodes and edges.

Knows nothing about tasks, and of networkx only how to become one of its graphs.
"""

from __future__ import annotations

__all__ = ["Graph", "Node", "node_order"]

from collections.abc import Iterable
from typing import Any

import msgspec

Node = int | str


def node_order(node: Node) -> tuple[bool, Node]:
    """Sorts nodes: integers first, then letters."""
    return isinstance(node, str), node


class Graph(msgspec.Struct, frozen=True):
    """Nodes in order, and every edge once, its smaller node first, in order. Made by ``of``; has no loops."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[Node, Node], ...]

    @classmethod
    def of(cls, edges: Iterable[tuple[Node, Node]], nodes: Iterable[Node] = ()) -> Graph:
        """Returns the graph of these edges, and of further nodes, in any order.

        >>> Graph.of([("b", "a")], nodes=["c"])
        Graph(nodes=('a', 'b', 'c'), edges=(('a', 'b'),))
        """
        pairs = {(a, b) if node_order(a) < node_order(b) else (b, a) for a, b in edges}
        every = {*nodes, *(node for pair in pairs for node in pair)}
        order = sorted(pairs, key=lambda pair: (node_order(pair[0]), node_order(pair[1])))
        return cls(tuple(sorted(every, key=node_order)), tuple(order))

    def networkx(self) -> Any:
        """Returns a new ``networkx.Graph``, its nodes and edges in order."""
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self.edges)
        return graph
