"""Between machines: who speaks follows from a key, and who has none gets nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import Any

import pytest
import zmq
import zmq.asyncio

from decentral.curve import CurveDealer, CurvePeers, CurveRouter
from decentral.errors import LinkError
from decentral.links import Dealer

Keys = dict[str, tuple[str, bytes]]
KEYS: Keys = {name: (public.decode(), secret) for name in ("host", "ada", "bob", "eve")
              for public, secret in [zmq.curve_keypair()]}  # fmt: skip
ANY = "tcp://127.0.0.1:*"


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decentral.curve._KNOCK", 0.01)


class Stage:
    """A host that knows ada and bob; everybody has a context of their own, as on machines of their own."""

    def __init__(self, ends: ExitStack) -> None:
        self.ends = ends
        self.refused: list[str] = []
        self.router = self.host(ANY)
        self.address = self.router._socket.last_endpoint.decode()

    def context(self) -> zmq.asyncio.Context:
        context = zmq.asyncio.Context()
        self.ends.callback(context.destroy, linger=0)
        return context

    def host(self, endpoint: str) -> CurveRouter:
        guests = {name: KEYS[name][0] for name in ("ada", "bob")}
        greeting = "hello of {}".format
        router = CurveRouter(
            self.context(),
            endpoint,
            KEYS["host"][1],
            guests,
            1000,
            self.refused.append,
            lambda name: greeting(name).encode(),
        )
        self.ends.callback(router.close)
        return router

    def dealer(self, who: str, server: str = "host") -> CurveDealer:
        dealer = CurveDealer(self.context(), self.address, KEYS[who][1], KEYS[server][0], 1000)
        self.ends.callback(dealer.close)
        return dealer


def run(test: Callable[[Stage], Awaitable[None]]) -> None:
    async def limited() -> None:
        with ExitStack() as ends:
            async with asyncio.timeout(20):
                await test(Stage(ends))

    asyncio.run(limited())


async def silent(wait: Awaitable[object], seconds: float = 0.1) -> bool:
    try:
        await asyncio.wait_for(wait, seconds)
    except TimeoutError:
        return True
    return False


async def back(stage: Stage) -> CurveRouter:
    """Starts the host again where it was."""
    while True:
        with suppress(LinkError):  # the port is free a moment later
            return stage.host(stage.address)
        await asyncio.sleep(0.01)


def test_a_known_key_speaks_and_is_answered() -> None:
    async def test(stage: Stage) -> None:
        ada, channel = stage.dealer("ada"), stage.router.channel("ada")
        assert await channel.recv() == b"hello of ada"
        await channel.send(b"welcome")
        assert await ada.recv() == b"welcome"
        await ada.send(b"left")
        assert await channel.recv() == b"left"
        assert (stage.router.dropped, stage.refused) == (0, [])

    run(test)


def test_an_unknown_key_gets_nothing_and_is_told_of() -> None:
    async def test(stage: Stage) -> None:
        eve = stage.dealer("eve")
        while not stage.refused:
            await asyncio.sleep(0.01)
        await eve.send(b"let me in")
        await stage.router.send("ada", b"for ada")
        assert await silent(eve.recv())
        assert "127.0.0.1 with an unknown key" in stage.refused[0]
        assert stage.router.dropped == 0
        assert not stage.router._routes

    run(test)


def test_a_stranger_is_not_even_refused_in_words() -> None:
    """ZeroMQ would tell a client of a refusal; here its handshake just ends."""

    async def test(stage: Stage) -> None:
        context = stage.context()
        socket = context.socket(zmq.DEALER)
        monitor = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_SUCCEEDED)
        socket.curve_secretkey, socket.curve_publickey = KEYS["eve"][1], KEYS["eve"][0].encode()
        socket.curve_serverkey = KEYS["host"][0].encode()
        socket.connect(stage.address)
        while not stage.refused:
            await asyncio.sleep(0.01)
        assert await silent(monitor.recv_multipart())
        socket.disable_monitor()

    run(test)


def test_without_a_key_or_with_the_hosts_false_one_nobody_comes_in() -> None:
    async def test(stage: Stage) -> None:
        bare = Dealer(stage.context(), stage.address, "ada", 1000)
        await bare.send(b"")
        stage.dealer("ada", server="eve")  # whoever answers there is not whom ada means
        assert await silent(stage.router.recv("ada"))
        assert not stage.router._routes

    run(test)


def test_a_known_key_that_claims_anothers_name_is_itself() -> None:
    """ZeroMQ lets a client choose its address; it must not lead another's frames away."""

    async def test(stage: Stage) -> None:
        ada = stage.dealer("ada")
        assert await stage.router.recv("ada") == b"hello of ada"
        socket = stage.context().socket(zmq.DEALER)
        socket.routing_id = b"ada"
        socket.curve_secretkey, socket.curve_publickey = KEYS["bob"][1], KEYS["bob"][0].encode()
        socket.curve_serverkey = KEYS["host"][0].encode()
        socket.connect(stage.address)
        await socket.send(b"")
        assert await stage.router.recv("bob") == b"hello of bob"
        await socket.send(b"I am ada")
        assert await stage.router.recv("bob") == b"I am ada"
        await stage.router.send("ada", b"for ada alone")
        assert await ada.recv() == b"for ada alone"
        assert await silent(socket.recv())

    run(test)


def test_who_comes_back_takes_its_place_and_who_was_replaced_does_not() -> None:
    async def test(stage: Stage) -> None:
        first = stage.dealer("ada")
        assert await stage.router.recv("ada") == b"hello of ada"
        second = stage.dealer("ada")
        assert await stage.router.recv("ada") == b"hello of ada"
        await first.send(b"old")
        await first.send(b"")
        while stage.router.dropped < 2:
            await asyncio.sleep(0.01)
        assert await silent(stage.router.recv("ada"))
        await stage.router.send("ada", b"welcome")
        assert await second.recv() == b"welcome"
        assert await silent(first.recv())

    run(test)


def test_a_host_that_was_started_again_hears_who_is_there() -> None:
    async def test(stage: Stage) -> None:
        ada = stage.dealer("ada")
        assert await stage.router.recv("ada") == b"hello of ada"
        stage.router.close()
        again = await back(stage)
        assert await again.recv("ada") == b"hello of ada"
        await again.send("ada", b"welcome")
        assert await ada.recv() == b"welcome"

    run(test)


def test_what_is_said_to_nobody_is_not_kept() -> None:
    async def test(stage: Stage) -> None:
        stage.router.close()
        ada = stage.dealer("ada")
        for _ in range(3000):  # more than any queue holds
            await ada.send(b"x")
            await stage.router.send("bob", b"x")
        again = await back(stage)
        assert await again.recv("ada") == b"hello of ada"
        assert again.dropped == 0

    run(test)


def test_a_flood_is_dropped_not_kept() -> None:
    async def test(stage: Stage) -> None:
        ada = stage.dealer("ada")
        assert await stage.router.recv("ada") == b"hello of ada"
        for _ in range(10):
            await ada.send(b"x" * 1000)
        while stage.router.dropped < 6:
            await asyncio.sleep(0.01)
        assert await stage.router.recv("ada") == b"x" * 1000

    run(test)


@asynccontextmanager
async def doors(stage: Stage) -> AsyncIterator[dict[str, CurvePeers]]:
    """Ada and bob know each other; eve knows both, and they do not know her."""
    ports: dict[str, str] = {}
    for name in ("ada", "bob", "eve"):
        with zmq.Context() as context, context.socket(zmq.REP) as socket:
            ports[name] = f"tcp://127.0.0.1:{socket.bind_to_random_port('tcp://127.0.0.1')}"
    known = {"ada": ("bob",), "bob": ("ada",), "eve": ("ada", "bob")}
    found = {}
    for name, others in known.items():
        them = {other: (ports[other], KEYS[other][0]) for other in others}
        found[name] = CurvePeers(stage.context(), ports[name], KEYS[name][1], them, stage.refused.append, 1000)
        stage.ends.callback(found[name].close)
    yield found


async def _knock(door: CurvePeers, to: str) -> None:
    while True:
        await door.send(to, b"hello")
        await asyncio.sleep(0.01)


def test_peers_hear_each_other_by_the_names_of_their_keys_and_no_stranger() -> None:
    async def test(stage: Stage) -> None:
        async with doors(stage) as door:
            knocks = [asyncio.create_task(_knock(door[a], b)) for a, b in (("eve", "bob"), ("ada", "bob"))]
            for _ in range(5):
                assert await door["bob"].recv() == ("ada", b"hello")
            while not stage.refused:
                await asyncio.sleep(0.01)
            assert "unknown key" in stage.refused[0]
            for knock in knocks:
                knock.cancel()

    run(test)


class Drowsy:
    """A socket that wakes once for nothing, as ZeroMQ's do now and then when a peer connects."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self.woken = 0

    async def recv_multipart(self, **options: Any) -> Any:
        self.woken += 1
        if self.woken == 1:
            raise zmq.Again
        return await self.socket.recv_multipart(**options)

    def close(self) -> None:
        self.socket.close()


def test_a_door_waits_on_when_it_wakes_for_nothing() -> None:
    async def test(stage: Stage) -> None:
        async with doors(stage) as door:
            door["bob"]._ear = Drowsy(door["bob"]._ear)  # type: ignore[assignment]
            knock = asyncio.create_task(_knock(door["ada"], "bob"))
            assert await door["bob"].recv() == ("ada", b"hello")
            knock.cancel()

    run(test)


def test_an_address_that_is_taken_is_one_sentence() -> None:
    async def test(stage: Stage) -> None:
        with pytest.raises(LinkError, match=r"cannot listen at tcp://127.*: Address already in use; free that port"):
            stage.host(stage.address)

    run(test)
