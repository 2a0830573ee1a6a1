"""How many frames agents send each other in an episode, by topology and number: scripted agents, the real exchange.

Every agent asks all who may advise it, in every round. Knows nothing about models.
"""

from __future__ import annotations

__all__ = ["TOPOLOGIES", "messages"]

import asyncio
from collections.abc import Sequence
from typing import Any

from decentral.agents.advice import Answer, Question, pack_probabilities
from decentral.exchange import Exchange
from decentral.graphs.topology import from_text
from decentral.links import MemoryPeers

TOPOLOGIES = ("complete", "ring", "regular:4", "small_world:4:0.2")
ROUNDS = 8
LEGAL = ("north", "south", "east", "west", "stay")
_TURNS = 1000
"""Turns of the loop that an answer may take."""


def messages(topologies: Sequence[str] = TOPOLOGIES, counts: Sequence[int] = (2, 4, 8, 16)) -> list[dict[str, Any]]:
    """Returns ``{"topology", "agents", "per_episode", "bytes_per_episode"}`` of every topology that exists for a count.

    ``per_episode``: frames that all agents together send in an episode of 8 rounds, asks and advice. A group's
    episodes that run side by side share their frames, so a run sends fewer.
    """
    found = []
    for topology in topologies:
        for count in counts:
            names = [f"agent{number}" for number in range(count)]
            try:
                graph = from_text(topology, names)
            except ValueError:
                continue
            teachers = {name: sorted(graph.predecessors(name)) for name in names}
            frames, size = asyncio.run(_episode(teachers))
            found.append({"topology": topology, "agents": count, "per_episode": frames, "bytes_per_episode": size})
    return found


async def _episode(teachers: dict[str, list[str]]) -> tuple[int, int]:
    """Plays an episode's rounds; returns the frames and the bytes that were sent."""
    doors: dict[str, MemoryPeers] = {}
    exchanges = {
        name: Exchange(
            name,
            MemoryPeers(name, doors),
            teachers=mine,
            askers=[other for other, theirs in teachers.items() if name in theirs],
            answer=_answer,
            event=lambda *_, **__: None,
            session=number,
            patience=_patience,
            most_questions=ROUNDS,
        )
        for number, (name, mine) in enumerate(teachers.items())
    }
    serving = [asyncio.create_task(exchange.serve()) for exchange in exchanges.values()]
    for round_ in range(ROUNDS):
        question = Question(0, round_, (("observation", "you 2 3 others unseen"),), LEGAL, bytes(64))
        asked = (exchange.ask(dict.fromkeys(teachers[name], (question,))) for name, exchange in exchanges.items())
        await asyncio.gather(*asked)
    for task in serving:
        task.cancel()
    await asyncio.gather(*serving, return_exceptions=True)
    figures = [theirs for exchange in exchanges.values() for theirs in exchange.figures().values()]
    return sum(one.asks_out + one.advice_out for one in figures), sum(one.bytes_out for one in figures)


async def _answer(_: str, questions: Sequence[Question]) -> tuple[Answer, ...]:
    even = pack_probabilities([1 / len(LEGAL)] * len(LEGAL))
    return tuple(Answer(even, 0.5, bytes(64), one.round) for one in questions)


async def _patience() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)
