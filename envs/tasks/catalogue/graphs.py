"""Graphs: neighbours, distances and parts. Nodes are ordered: numbers first, then letters."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx

from decentral.envs.tasks.catalogue.draws import sparse
from decentral.envs.tasks.graph import Graph, Node
from decentral.envs.tasks.task import task
from decentral.envs.tasks.values import GRAPH, INTEGER, INTEGERS, MAPPING, TEXT, mapping


@task(
    takes=GRAPH,
    gives=INTEGERS,
    draw=sparse,
    says="List for each node in order its distance from the first, or -1 where there is no path.",
)
def distances(graph: Graph) -> tuple[int, ...]:
    if not graph.nodes:
        return ()
    found = nx.single_source_shortest_path_length(graph.networkx(), graph.nodes[0])
    return tuple(found.get(node, -1) for node in graph.nodes)


@task(
    takes=TEXT, gives=GRAPH, says="Make a node of each letter; link each two different letters that stand side by side."
)
def letter_graph(text: str) -> Graph:
    return Graph.of(((a, b) for a, b in pairwise(text) if a != b), text)


@task(takes=GRAPH, gives=INTEGERS, draw=sparse, says="List the sizes of the connected components, the largest first.")
def component_sizes(graph: Graph) -> tuple[int, ...]:
    return tuple(sorted(map(len, nx.connected_components(graph.networkx())), reverse=True))


@task(takes=GRAPH, gives=GRAPH, draw=sparse, says="Remove the first node and its edges.")
def remove_first(graph: Graph) -> Graph:
    return Graph.of((edge for edge in graph.edges if edge[0] != graph.nodes[0]), graph.nodes[1:])


@task(
    takes=GRAPH, gives=GRAPH, draw=sparse, says="Remove at once all nodes with at most one neighbour, and their edges."
)
def prune(graph: Graph) -> Graph:
    kept = {node for node, degree in graph.networkx().degree if degree > 1}
    return Graph.of(((a, b) for a, b in graph.edges if a in kept and b in kept), kept)


@task(takes=GRAPH, gives=MAPPING, draw=sparse, says="Map each node to its number of neighbours.")
def degrees(graph: Graph) -> tuple[tuple[Node, int], ...]:
    return mapping(dict(graph.networkx().degree))


@task(takes=GRAPH, gives=INTEGER, draw=sparse, says="Count the edges, and subtract the number of triangles.")
def edges_less_triangles(graph: Graph) -> int:
    return len(graph.edges) - int(sum(nx.triangles(graph.networkx()).values()) // 3)


@task(
    takes=GRAPH,
    gives=INTEGER,
    draw=sparse,
    says="Give ten times the number of nodes plus the number of connected components.",
)
def nodes_and_components(graph: Graph) -> int:
    return 10 * len(graph.nodes) + int(nx.number_connected_components(graph.networkx()))
