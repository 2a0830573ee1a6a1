"""The inline engine: host and agents in one loop of this process, all work in its thread, one thing after the other.

No clock decides anything here, so a run is a function of its config and seed.
"""

from __future__ import annotations

__all__ = ["Heard", "MakeMind", "play"]

import asyncio
from collections.abc import Callable
from functools import partial

from decentral import messages as say
from decentral.agents.mind import Mind
from decentral.engines import Emit
from decentral.envs.game import Game
from decentral.folder import RunFolder
from decentral.host import Host
from decentral.journal import Dropped, Journal
from decentral.links import Link, MemoryPeers, pair
from decentral.neighbours import talk
from decentral.node import Node
from decentral.threads import Direct
from decentral.waits import beside

MakeMind = Callable[[str], Mind]

_TURNS = 200
"""Turns of the loop that advice is awaited for, in place of seconds: who answers at all has answered by then."""


class Heard:
    """A process's end of its control link: what it says becomes an event at once, and nobody tells it anything."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._decode = say.Decoder[say.FromProcess](say.FromProcess, say.MAX_CONTROL)

    async def send(self, frame: bytes) -> None:
        message = self._decode(frame)
        if not isinstance(message, say.Failed):
            self._emit(message)

    async def recv(self) -> bytes:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")

    def close(self) -> None:
        pass


async def play(folder: RunFolder, make_game: Callable[[], Game], make_mind: MakeMind, emit: Emit) -> None:
    """Plays a run until it is over. Raises what its host or an agent raises."""
    events = Journal(folder.path / "events.jsonl")
    from_agent = say.Decoder[say.FromAgent](say.FromAgent, say.MAX_WORLD)
    from_host = say.Decoder[say.FromHost](say.FromHost, say.MAX_WORLD)
    from_supervisor = say.Decoder[say.FromSupervisor](say.FromSupervisor, say.MAX_CONTROL)

    def refused(name: str) -> Dropped:
        return Dropped(partial(events.event, "dropped message", name=name))

    control = Link(Heard(emit), from_supervisor, refused("supervisor"))
    work = Direct()
    doors: dict[str, MemoryPeers] = {}
    worlds = {}
    nodes = []
    try:
        for name in folder.agents:
            ours, theirs = pair("host", name)
            worlds[name] = Link(ours, from_agent, refused(name))
            world = Link(theirs, from_host, refused("host"))
            meet = talk(name, folder, MemoryPeers(name, doors), _patience)
            nodes.append(Node(name, _bound(make_mind, name), folder.agent(name), world, meet, control, work, None))
        host = Host(folder, make_game, worlds, control, work, None)
        await beside(host.run(), *(node.run() for node in nodes))
    finally:
        events.close()


async def _patience() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)


def _bound(make_mind: MakeMind, name: str) -> Callable[[], Mind]:
    return lambda: make_mind(name)
