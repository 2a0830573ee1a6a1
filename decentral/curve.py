"""How frames travel between machines: ZeroMQ over TCP with CURVE keys. Knows no message but that it has a size.

Who speaks follows from the key of the connection, which nobody else has, and from nothing that is said: no name is
sent, so none can be claimed. A stranger's handshake ends without an answer. Only the binding end knows who may come in;
the connecting end knows the other's public key, and so whom it speaks with.
"""

from __future__ import annotations

__all__ = ["CurveDealer", "CurvePeers", "CurveRouter"]

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Mapping
from typing import NoReturn

import zmq
import zmq.asyncio
from zmq.utils import z85

from decentral.errors import LinkError
from decentral.links import Channel, Inbox, open_socket
from decentral.messages import MAX_PEER

_KNOCK = 0.5
"""Seconds between two signs of a connecting end that it is there."""
_HANDSHAKE_MS = 5000
"""How long a connection may take to show its key."""
_HEARTBEAT_MS, _HEARTBEAT_TIMEOUT_MS = 5000, 20000
"""How often a silent connection is tried, and when it counts as broken."""
_RECONNECT_MS = 5000
"""The longest pause before a connection is tried again."""
_FORMER = 64
"""Former connections that are remembered of each party."""
_DOMAIN = b"decentral"
_ENVELOPE = 64
"""Bytes that CURVE adds to a frame, at most."""


class _Guard:
    """Tells ZeroMQ whose connections to let in, by key (https://rfc.zeromq.org/spec/27), for one context."""

    def __init__(self, context: zmq.asyncio.Context, guests: Mapping[str, str], refused: Callable[[str], None]) -> None:
        self._names = {key.encode(): name for name, key in guests.items()}
        self._refused = refused
        self._socket: zmq.asyncio.Socket = context.socket(zmq.REP)
        self._socket.bind("inproc://zeromq.zap.01")
        self._task = asyncio.create_task(self._answer())

    async def _answer(self) -> NoReturn:
        while True:
            version, request, _, address, _, mechanism, *keys = await self._socket.recv_multipart()
            name = self._names.get(z85.encode(keys[0])) if mechanism == b"CURVE" and keys else None
            if name is None:
                self._refused(f"a connection from {address.decode('ascii', 'replace')} with an unknown key")
            # 300: ZeroMQ tells a stranger nothing; it would tell him of a 400
            code = b"300" if name is None else b"200"
            await self._socket.send_multipart([version, request, code, b"", (name or "").encode(), b""])

    def close(self) -> None:
        self._task.cancel()
        self._socket.close()


class CurveDealer:
    """The connecting end. It reconnects by itself; what is said while there is no connection is lost."""

    def __init__(self, context: zmq.asyncio.Context, endpoint: str, secret: bytes, server: str, max_bytes: int) -> None:
        """``server``: the public key of the other end."""
        self._socket = _connect(context, zmq.DEALER, endpoint, secret, server, max_bytes)
        self._knocking = asyncio.create_task(self._knock())

    async def send(self, frame: bytes) -> None:
        await _offer(self._socket, frame)

    async def recv(self) -> bytes:
        return (await self._socket.recv_multipart())[-1]

    def close(self) -> None:
        self._knocking.cancel()
        self._socket.close()

    async def _knock(self) -> NoReturn:
        while True:
            await self.send(b"")
            await asyncio.sleep(_KNOCK)


class CurveRouter:
    """The binding end of many channels, one for each of ``guests``. Its sends never wait.

    An empty frame says that its sender is there. The first one of a connection gives it the place of its party, and
    the party's reader is handed ``greeting(name)``: what was under way on an earlier connection may be lost.
    """

    def __init__(
        self,
        context: zmq.asyncio.Context,
        endpoint: str,
        secret: bytes,
        guests: Mapping[str, str],
        max_bytes: int,
        refused: Callable[[str], None],
        greeting: Callable[[str], bytes],
    ) -> None:
        """``guests``: name -> public key. Raises LinkError if it cannot listen at ``endpoint``."""
        self.dropped = 0
        self._greeting = greeting
        self._inboxes = {name: Inbox(max_bytes) for name in guests}
        self._routes: dict[str, bytes] = {}
        self._former: dict[str, deque[bytes]] = {name: deque(maxlen=_FORMER) for name in guests}
        self._socket = _listen(context, zmq.ROUTER, endpoint, secret, max_bytes)
        self._guard = _Guard(context, guests, refused)
        self._pump = asyncio.create_task(self._sort())

    def channel(self, name: str) -> Channel:
        """Returns the channel to one of the guests."""
        return _Routed(self, name)

    def close(self) -> None:
        self._pump.cancel()
        self._guard.close()
        self._socket.close()

    async def send(self, name: str, frame: bytes) -> None:
        """Sends to a party, if it is there."""
        if name in self._routes:
            with contextlib.suppress(zmq.Again):
                await self._socket.send_multipart([self._routes[name], frame])

    async def recv(self, name: str) -> bytes:
        """Waits for a frame of a party."""
        return await self._inboxes[name].get()

    async def _sort(self) -> NoReturn:
        while True:
            route, *_, frame = await self._socket.recv_multipart(copy=False)
            if not self._take(_name(frame), route.bytes, frame.bytes):
                self.dropped += 1

    def _take(self, name: str, route: bytes, frame: bytes) -> bool:
        current = self._routes.get(name)
        if frame:
            return route == current and self._inboxes[name].put(frame)
        if route == current:
            return True
        if route in self._former[name]:
            return False
        if current is not None:
            self._former[name].append(current)
        self._routes[name] = route
        return self._inboxes[name].put(self._greeting(name))


class _Routed:
    """One party's channel of a `CurveRouter`."""

    def __init__(self, router: CurveRouter, name: str) -> None:
        self._router = router
        self._name = name

    async def send(self, frame: bytes) -> None:
        await self._router.send(self._name, frame)

    async def recv(self) -> bytes:
        return await self._router.recv(self._name)

    def close(self) -> None:
        pass


class CurvePeers:
    """The door of a node: a bound socket to hear with, for the keys of its peers, a connected one per peer to speak.

    They push and pull, and route nothing: a peer that chose an address on a routing socket could end the process.
    """

    def __init__(
        self,
        context: zmq.asyncio.Context,
        endpoint: str,
        secret: bytes,
        others: Mapping[str, tuple[str, str]],
        refused: Callable[[str], None],
        max_bytes: int = MAX_PEER,
    ) -> None:
        """``others``: name -> (address, public key). Raises LinkError if it cannot listen at ``endpoint``."""
        self._ear = _listen(context, zmq.PULL, endpoint, secret, max_bytes)
        self._guard = _Guard(context, {name: key for name, (_, key) in others.items()}, refused)
        self._mouths = {
            name: _connect(context, zmq.PUSH, address, secret, key, max_bytes)
            for name, (address, key) in others.items()
        }

    async def send(self, to: str, frame: bytes) -> None:
        await _offer(self._mouths[to], frame)

    async def recv(self) -> tuple[str, bytes]:
        while True:
            with contextlib.suppress(zmq.Again):  # a new connection wakes the socket before any frame has come
                frame = (await self._ear.recv_multipart(copy=False))[-1]
                return _name(frame), frame.bytes

    def close(self) -> None:
        self._guard.close()
        self._ear.close()
        for mouth in self._mouths.values():
            mouth.close()


def _name(frame: zmq.Frame) -> str:
    """Whose connection a frame came on, as the guard told ZeroMQ."""
    return str(frame.get("User-Id"))


def _open(context: zmq.asyncio.Context, kind: int, endpoint: str, secret: bytes, max_bytes: int) -> zmq.asyncio.Socket:
    socket = open_socket(context, kind, max_bytes + _ENVELOPE)
    socket.setsockopt(zmq.CURVE_SECRETKEY, secret)
    socket.setsockopt(zmq.CURVE_PUBLICKEY, zmq.curve_public(secret))
    socket.setsockopt(zmq.HEARTBEAT_IVL, _HEARTBEAT_MS)
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, _HEARTBEAT_TIMEOUT_MS)
    socket.setsockopt(zmq.IPV6, "[" in endpoint)
    return socket


def _connect(
    context: zmq.asyncio.Context, kind: int, endpoint: str, secret: bytes, server: str, max_bytes: int
) -> zmq.asyncio.Socket:
    socket = _open(context, kind, endpoint, secret, max_bytes)
    socket.setsockopt(zmq.CURVE_SERVERKEY, server.encode())
    socket.setsockopt(zmq.IMMEDIATE, 1)  # nothing is kept for an end that is not there
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, _RECONNECT_MS)
    socket.connect(endpoint)
    return socket


async def _offer(socket: zmq.asyncio.Socket, frame: bytes) -> None:
    with contextlib.suppress(zmq.Again):
        await socket.send(frame, zmq.NOBLOCK)


def _listen(
    context: zmq.asyncio.Context, kind: int, endpoint: str, secret: bytes, max_bytes: int
) -> zmq.asyncio.Socket:
    socket = _open(context, kind, endpoint, secret, max_bytes)
    socket.setsockopt(zmq.CURVE_SERVER, 1)
    socket.setsockopt(zmq.ZAP_DOMAIN, _DOMAIN)
    socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)  # without its guard it lets nobody in
    socket.setsockopt(zmq.HANDSHAKE_IVL, _HANDSHAKE_MS)
    try:
        socket.bind(endpoint)
    except zmq.ZMQError as error:
        socket.close()
        raise LinkError(
            f"cannot listen at {endpoint}: {zmq.strerror(error.errno or 0)}; free that port, or give an address of "
            "this machine as `bind` in the network file"
        ) from error
    return socket
