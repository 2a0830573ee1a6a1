"""Who may ask whom in a run: the topology of its config, among team-mates, as far as an agent asks or can answer.

Also makes an agent's end of that talk.
"""

from __future__ import annotations

__all__ = ["neighbours", "talk"]

import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import networkx as nx

from decentral.bad_teachers import BadTeacher
from decentral.config import Config
from decentral.envs.names import load
from decentral.errors import ConfigError
from decentral.exchange import Exchange
from decentral.folder import RunFolder
from decentral.graphs.topology import TOPOLOGIES, from_text
from decentral.links import Peers

_ANSWER = ("learning", "frozen", "scripted")


def neighbours(config: Config, names: Sequence[str]) -> nx.DiGraph[str]:
    """Returns the graph of a run whose edge (a, b) says that a may advise b; b asks no one else.

    Raises ConfigError if the topology is none, or names agents that the environment does not have.
    """
    text = config.topology
    try:
        built_in = text.partition(":")[0] in TOPOLOGIES
        graph = from_text(text, list(names)) if built_in or ":" not in text else load(text, "topology")(list(names))
    except ValueError as error:
        raise ConfigError(f"topology = {text!r}: {error}") from error
    if not isinstance(graph, nx.DiGraph) or not set(graph) <= set(names):
        raise ConfigError(
            f"topology = {text!r} gave {graph!r}, which is no networkx.DiGraph over {', '.join(names)}: let its edges "
            "(a, b) say that a may advise b"
        )
    team = {agent: name for name, members in config.teams.items() for agent in members}
    agents = {name: config.agent_config(name) for name in names}
    found: nx.DiGraph[str] = nx.DiGraph()
    found.add_nodes_from(names)
    found.add_edges_from(
        (a, b)
        for a, b in graph.edges
        if a != b
        and team.get(a) == team.get(b)
        and agents[a].kind in _ANSWER
        and agents[b].kind == "learning"
        and agents[b].advice.rule != "none"
    )
    return found


def talk(name: str, folder: RunFolder, door: Peers, patience: Callable[[], Awaitable[None]]) -> Callable[..., Exchange]:
    """Returns what makes an agent's exchange with its peers over a door to them, given ``answer`` and ``event``.

    Raises ConfigError.
    """
    config, graph = folder.config, neighbours(folder.config, folder.agents)
    advice = config.agent_config(name).advice
    if advice.teacher != "honest":
        door = BadTeacher(door, advice.teacher, config.seed)
    return partial(
        Exchange,
        name,
        door,
        teachers=tuple(graph.predecessors(name)),
        askers=tuple(graph.successors(name)),
        session=secrets.randbits(62),
        patience=patience,
        most_questions=advice.answers,
    )
