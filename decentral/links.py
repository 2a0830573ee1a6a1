"""How frames travel: ZeroMQ sockets between processes, queues inside one. Knows no message but that it has a size.

A `Channel` moves whole frames between two ends; a `Link` is a channel that speaks messages and never stumbles over
what it cannot read; `Peers` is one node's door to all others. The host's end is a `Router`: its sends never wait for an
agent that is gone, and an agent that comes back takes its own place again.
"""

from __future__ import annotations

__all__ = [
    "Channel",
    "Dealer",
    "Inbox",
    "Link",
    "MemoryChannel",
    "MemoryPeers",
    "Peers",
    "Router",
    "ZmqPeers",
    "open_socket",
    "pair",
]

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Protocol, TypeVar

import zmq
import zmq.asyncio

from decentral.errors import LinkError
from decentral.messages import MAX_PEER, Decoder, Message, encode

_In = TypeVar("_In")

_INBOX = 1024
"""Frames that may wait for their reader; what comes on top of them is dropped, so that no sender fills the memory."""
_LARGEST = 4
"""They may hold as many bytes as so many frames of the largest size."""


class Channel(Protocol):
    """Whole frames between two ends, in order."""

    async def send(self, frame: bytes) -> None:
        """Hands a frame over; the other end may be gone."""
        ...

    async def recv(self) -> bytes:
        """Waits for a frame."""
        ...

    def close(self) -> None:
        """Frees the end; what was sent still gets a moment to leave."""
        ...


class Link(Generic[_In]):
    """A channel that speaks messages. What it cannot read is counted, told to ``refused``, and dropped."""

    def __init__(self, channel: Channel, decoder: Decoder[_In], refused: Callable[[str], None]) -> None:
        self.dropped = 0
        self.flaw = ""
        """Why the last frame was dropped; empty if it could be read."""
        self._channel = channel
        self._decoder = decoder
        self._refused = refused

    async def send(self, message: Message) -> None:
        """Raises LinkError if the message is larger than the link allows."""
        await self._channel.send(encode(message, self._decoder.max_bytes))

    async def recv(self) -> _In:
        """Waits for a message that can be read."""
        while True:
            frame = await self._channel.recv()
            try:
                message = self._decoder(frame)
            except LinkError as error:
                self.dropped += 1
                self.flaw = str(error)
                self._refused(self.flaw)
            else:
                self.flaw = ""
                return message

    def close(self) -> None:
        self._channel.close()


# -- inside one process


class MemoryChannel:
    """One end of a `pair`. ``label`` says who sends here, for whoever watches the frames."""

    def __init__(self, label: str, inbox: asyncio.Queue[bytes], outbox: asyncio.Queue[bytes]) -> None:
        self.label = label
        self._inbox = inbox
        self._outbox = outbox

    async def send(self, frame: bytes) -> None:
        self._outbox.put_nowait(frame)

    async def recv(self) -> bytes:
        return await self._inbox.get()

    def close(self) -> None:
        pass


def pair(left: str, right: str) -> tuple[MemoryChannel, MemoryChannel]:
    """Returns the two ends of a channel inside this process, labelled by their owners."""
    there: asyncio.Queue[bytes] = asyncio.Queue()
    back: asyncio.Queue[bytes] = asyncio.Queue()
    return MemoryChannel(f"{left}->{right}", back, there), MemoryChannel(f"{right}->{left}", there, back)


# -- between processes


class Dealer:
    """The connecting end: an agent's to the host, a process's to the supervisor. It reconnects by itself."""

    def __init__(self, context: zmq.asyncio.Context, endpoint: str, name: str, max_bytes: int) -> None:
        self._socket = open_socket(context, zmq.DEALER, max_bytes)
        self._socket.setsockopt(zmq.IDENTITY, name.encode())
        self._socket.connect(endpoint)

    async def send(self, frame: bytes) -> None:
        await self._socket.send(frame)

    async def offer(self, frame: bytes) -> None:
        """Sends if there is room now: an end that is gone costs its sender no time."""
        with contextlib.suppress(zmq.Again):
            await self._socket.send(frame, zmq.NOBLOCK)

    async def recv(self) -> bytes:
        return (await self._socket.recv_multipart())[-1]

    def close(self) -> None:
        self._socket.close()


class Router:
    """The binding end of many channels, one for each of ``names``; frames of anybody else are dropped."""

    def __init__(self, context: zmq.asyncio.Context, endpoint: str, names: Iterable[str], max_bytes: int) -> None:
        self.dropped = 0
        self._inboxes: Mapping[bytes, Inbox] = {n.encode(): Inbox(max_bytes) for n in names}
        self._socket = open_socket(context, zmq.ROUTER, max_bytes)
        self._socket.setsockopt(zmq.ROUTER_HANDOVER, 1)
        self._socket.bind(endpoint)
        self._pump = asyncio.create_task(self._sort())

    def channel(self, name: str) -> Channel:
        """Returns the channel to one of the names."""
        return _Routed(self._socket, name.encode(), self._inboxes[name.encode()])

    def close(self) -> None:
        self._pump.cancel()
        self._socket.close()

    async def _sort(self) -> None:
        while True:
            sender, *_, frame = await self._socket.recv_multipart()
            inbox = self._inboxes.get(sender)
            if inbox is None or not inbox.put(frame):
                self.dropped += 1


class Inbox:
    """The frames of one sender, of at most ``max_bytes`` each, that wait for their reader."""

    def __init__(self, max_bytes: int) -> None:
        self._room = _LARGEST * max_bytes
        self._queue: asyncio.Queue[bytes] = asyncio.Queue(_INBOX)

    def put(self, frame: bytes) -> bool:
        """Takes a frame, and says whether there was room for it."""
        if self._queue.full() or len(frame) > self._room:
            return False
        self._room -= len(frame)
        self._queue.put_nowait(frame)
        return True

    async def get(self) -> bytes:
        frame = await self._queue.get()
        self._room += len(frame)
        return frame


class _Routed:
    """One name's channel of a `Router`, which owns the socket."""

    def __init__(self, socket: zmq.asyncio.Socket, name: bytes, inbox: Inbox) -> None:
        self._socket = socket
        self._name = name
        self._inbox = inbox

    async def send(self, frame: bytes) -> None:
        with contextlib.suppress(zmq.Again):
            await self._socket.send_multipart([self._name, frame])

    async def recv(self) -> bytes:
        return await self._inbox.get()

    def close(self) -> None:
        pass


def open_socket(context: zmq.asyncio.Context, kind: int, max_bytes: int) -> zmq.asyncio.Socket:
    """Returns a socket that refuses larger frames."""
    socket: zmq.asyncio.Socket = context.socket(kind)
    socket.setsockopt(zmq.MAXMSGSIZE, max_bytes)
    socket.setsockopt(zmq.LINGER, 1000)
    return socket


# -- the peer link


class Peers(Protocol):
    """One node's door to the others: frames from whoever may knock, with the name the sender claims."""

    async def send(self, to: str, frame: bytes) -> None:
        """Hands a frame over and waits for nobody; the peer may be gone or refuse it."""
        ...

    async def recv(self) -> tuple[str, bytes]:
        """Waits for (claimed sender, frame)."""
        ...

    def close(self) -> None:
        """Frees the door."""
        ...


class MemoryPeers:
    """The door of a node of this process; all nodes share the mapping of doors."""

    def __init__(self, name: str, doors: dict[str, MemoryPeers]) -> None:
        self._name = name
        self._doors = doors
        self._inbox: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue(_INBOX)
        doors[name] = self

    async def send(self, to: str, frame: bytes) -> None:
        door = self._doors.get(to)
        if door is not None and len(frame) <= MAX_PEER:
            with contextlib.suppress(asyncio.QueueFull):
                door._inbox.put_nowait((self._name, frame))

    async def recv(self) -> tuple[str, bytes]:
        return await self._inbox.get()

    def close(self) -> None:
        self._doors.pop(self._name, None)


class ZmqPeers:
    """The door of a node in its own process: a bound socket to hear with, a connected one per peer to speak with."""

    def __init__(
        self,
        context: zmq.asyncio.Context,
        name: str,
        endpoint: str,
        others: Mapping[str, str],
        max_bytes: int = MAX_PEER,
    ) -> None:
        self._ear = open_socket(context, zmq.ROUTER, max_bytes)
        self._ear.setsockopt(zmq.ROUTER_HANDOVER, 1)
        self._ear.bind(endpoint)
        self._mouths = {other: Dealer(context, where, name, max_bytes) for other, where in others.items()}

    async def send(self, to: str, frame: bytes) -> None:
        await self._mouths[to].offer(frame)

    async def recv(self) -> tuple[str, bytes]:
        sender, *_, frame = await self._ear.recv_multipart()
        return sender.decode("utf-8", "replace"), frame

    def close(self) -> None:
        self._ear.close()
        for mouth in self._mouths.values():
            mouth.close()
