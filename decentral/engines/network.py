"""The network engine: host and agents on machines of their own, each started by its owner's hand.

Nobody supervises them. An agent ends when it has answered the host's Finish; a lost one may come back within the host's
deadline, and a lost host within a few of the agents', and the open phase is then played again.
"""

from __future__ import annotations

__all__ = ["agent", "host"]

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from functools import partial

import zmq.asyncio

from decentral import messages as say
from decentral.curve import CurveDealer, CurvePeers, CurveRouter
from decentral.engines import Emit
from decentral.engines.inline import Heard
from decentral.envs.names import make
from decentral.errors import ConfigError
from decentral.folder import RunFolder
from decentral.host import Host
from decentral.journal import Dropped, Journal
from decentral.keys import public_key
from decentral.links import Link
from decentral.neighbours import neighbours, talk
from decentral.network import Network
from decentral.node import Node, mind_of
from decentral.terms import disagreement, terms
from decentral.threads import Worker
from decentral.waits import Stopped, within

_LINGER_MS = 1000
"""How long what was sent may take to leave when a process ends."""


class _Owner(Heard):
    """The owner's end of a control link: what is said becomes an event, and who is done is told to stop."""

    def __init__(self, emit: Emit) -> None:
        super().__init__(self._hear)
        self._tell = emit
        self._done = asyncio.Event()

    def _hear(self, event: say.Event) -> None:
        self._tell(event)
        if isinstance(event, say.Status) and event.busy == "done":
            self._done.set()

    async def recv(self) -> bytes:
        await self._done.wait()
        return say.encode(say.Stop(), say.MAX_CONTROL)


async def host(folder: RunFolder, network: Network, secret: bytes, emit: Emit) -> None:
    """Plays a run as its host until it is over. Raises what `Host.run` does, and LinkError."""
    config, me = folder.config, network.host

    def fix(names: Sequence[str]) -> str:
        return (
            f"have the owner of {', '.join(names)} start `decentral agent` with this host's address {me.address} and "
            f"the keys of its network file, then go on with `decentral host --resume {folder.path}`"
        )

    with contextlib.ExitStack() as ends:
        context, work, refused = _process("host", folder, ends)
        keys = {name: network.agents[name].key for name in folder.agents}
        router = CurveRouter(context, me.door, secret, keys, say.MAX_WORLD, refused("a stranger"), _greeting)
        ends.callback(router.close)
        decoder = say.Decoder[say.FromAgent](say.FromAgent, say.MAX_WORLD)
        worlds = {name: Link(router.channel(name), decoder, refused(name)) for name in folder.agents}
        control = _control(emit, refused("owner"))
        ours = terms(config, folder.agents)
        await Host(folder, lambda: make(config.env), worlds, control, work, config.deadline, fix, ours).run()


async def agent(name: str, folder: RunFolder, network: Network, secret: bytes, emit: Emit) -> None:
    """Plays a run as one of its agents until the host says that it is over.

    Raises what `Node.run` does; DeadlineError if the host is not heard within the deadline, ConfigError if it plays by
    other settings, and LinkError.
    """
    config, me = folder.config, network.agents[name]
    ours = terms(config, folder.agents)
    fix = (
        f"it is not up at {network.host.address}, has another key than the network file says, or does not know {name} "
        f"by the key {public_key(secret)}; ask its owner, then go on with "
        f"`decentral agent {name} --resume {folder.path}`"
    )
    with contextlib.ExitStack() as ends:
        context, work, refused = _process(name, folder, ends)
        graph = neighbours(config, folder.agents)
        met = {*graph.predecessors(name), *graph.successors(name)}
        others = {peer: (network.agents[peer].address, network.agents[peer].key) for peer in met}
        door = CurvePeers(context, me.door, secret, others, refused("a stranger"))
        ends.callback(door.close)
        channel = CurveDealer(context, network.host.address, secret, network.host.key, say.MAX_WORLD)
        ends.callback(channel.close)
        world = Link(channel, say.Decoder[say.FromHost](say.FromHost, say.MAX_WORLD), refused("host"))
        await _agree(name, world, ours, config.deadline, fix)
        node = Node(
            name,
            lambda: mind_of(name, folder),
            folder.agent(name),
            world,
            talk(name, folder, door, lambda: asyncio.sleep(config.patience)),
            _control(emit, refused("owner")),
            work,
            config.deadline,
            fix,
            ours,
        )
        with contextlib.suppress(Stopped):
            await node.run()


async def _agree(name: str, world: Link[say.FromHost], ours: dict[str, str], deadline: float, fix: str) -> None:
    """Waits for the host's first word, and compares what it plays by. Raises DeadlineError, ConfigError."""

    def silence() -> str:
        heard = f"nothing it can read ({world.flaw})" if world.flaw else "nothing"
        return f"{name} heard {heard} from the host for {deadline:g} s: {fix}"

    async def welcome() -> say.Welcome:
        while not isinstance(message := await world.recv(), say.Welcome):
            continue
        return message

    heard = await within(deadline, welcome(), silence)
    unlike = disagreement(ours, heard.terms)
    if unlike:
        await world.send(say.Hello(name, heard.session, ours))  # so that the host can say why it waits
        raise ConfigError(f"the host plays with {unlike} as {name} does: start {name} with the host's settings")


def _process(
    name: str, folder: RunFolder, ends: contextlib.ExitStack
) -> tuple[zmq.asyncio.Context, Worker, Callable[[str], Dropped]]:
    """Opens what a process needs, to be closed with ``ends``; the last makes what a link tells of dropped frames."""
    events = Journal(folder.path / "events.jsonl")
    ends.callback(events.close)
    context = zmq.asyncio.Context()
    ends.callback(context.destroy, linger=_LINGER_MS)
    work = Worker(name)
    ends.callback(work.close)
    return context, work, lambda sender: Dropped(partial(events.event, "dropped message", name=sender))


def _control(emit: Emit, refused: Dropped) -> Link[say.FromSupervisor]:
    return Link(_Owner(emit), say.Decoder[say.FromSupervisor](say.FromSupervisor, say.MAX_CONTROL), refused)


def _greeting(name: str) -> bytes:
    """What a new connection counts as: an agent that is there and has nothing open."""
    return say.encode(say.Hello(name), say.MAX_WORLD)
