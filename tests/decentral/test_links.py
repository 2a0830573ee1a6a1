from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
import zmq
import zmq.asyncio

from decentral import messages as say
from decentral.errors import DeadlineError, LinkError
from decentral.links import Channel, Dealer, Link, MemoryPeers, Peers, Router, ZmqPeers, pair
from decentral.waits import beside, within


@asynccontextmanager
async def sockets() -> AsyncIterator[tuple[zmq.asyncio.Context, str]]:
    context = zmq.asyncio.Context()
    with tempfile.TemporaryDirectory(prefix="dec-") as folder:
        try:
            yield context, f"ipc://{folder}"
        finally:
            context.destroy(linger=0)


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(20):
            await test()

    asyncio.run(limited())


async def _speak(host: Channel, agent: Channel) -> None:
    """Both ways, in order, past what cannot be read."""
    refused: list[str] = []
    at_host = Link(host, say.Decoder[say.FromAgent](say.FromAgent, say.MAX_WORLD), refused.append)
    at_agent = Link(agent, say.Decoder[say.FromHost](say.FromHost, say.MAX_WORLD), refused.append)
    await at_agent.send(say.Hello("ann"))
    assert await at_host.recv() == say.Hello("ann")
    for number in range(20):
        await host.send(b"noise")
        await at_host.send(say.Commit(number))
    assert [await at_agent.recv() for _ in range(20)] == [say.Commit(number) for number in range(20)]
    assert at_agent.dropped == len(refused) == 20
    await at_host.send(say.Hello("ann"))  # the host's end cannot make an agent read what only agents say
    await at_host.send(say.Commit(20))
    assert await at_agent.recv() == say.Commit(20)
    assert at_agent.dropped == 21


def test_a_memory_pair_speaks() -> None:
    run(lambda: _speak(*pair("host", "ann")))


def test_a_router_and_a_dealer_speak() -> None:
    async def test() -> None:
        async with sockets() as (context, place):
            router = Router(context, f"{place}/world", ["ann", "ben"], say.MAX_WORLD)
            await _speak(router.channel("ann"), Dealer(context, f"{place}/world", "ann", say.MAX_WORLD))
            router.close()

    run(test)


def test_a_router_drops_strangers_never_waits_for_the_lost_and_takes_back_who_returns() -> None:
    async def test() -> None:
        async with sockets() as (context, place):
            router = Router(context, f"{place}/world", ["ann"], say.MAX_WORLD)
            ann = router.channel("ann")
            for _ in range(3000):  # more than any queue holds
                await ann.send(b"to nobody")
            stranger = Dealer(context, f"{place}/world", "eve", say.MAX_WORLD)
            await stranger.send(b"let me in")
            for life in (b"first", b"second"):
                dealer = Dealer(context, f"{place}/world", "ann", say.MAX_WORLD)
                await dealer.send(life)
                assert await ann.recv() == life
                await ann.send(b"answer to " + life)
                assert await dealer.recv() == b"answer to " + life
            assert router.dropped == 1
            router.close()

    run(test)


def test_a_dealer_finds_a_host_that_was_started_again() -> None:
    async def test() -> None:
        async with sockets() as (context, place):
            dealer = Dealer(context, f"{place}/world", "ann", say.MAX_WORLD)
            for life in (b"1", b"2"):
                router = Router(context, f"{place}/world", ["ann"], say.MAX_WORLD)
                channel = router.channel("ann")
                while True:  # what was on its way to the old one is lost
                    await dealer.send(life)
                    with suppress(TimeoutError):
                        assert await asyncio.wait_for(channel.recv(), 0.2) == life
                        break
                router.close()

    run(test)


def test_an_oversized_frame_does_not_arrive() -> None:
    async def test() -> None:
        async with sockets() as (context, place):
            router = Router(context, f"{place}/world", ["ann"], 1000)
            dealer = Dealer(context, f"{place}/world", "ann", 1000)
            await dealer.send(b"x" * 10**7)
            await asyncio.sleep(0.2)
            again = Dealer(context, f"{place}/world", "ann", 1000)
            await again.send(b"small")
            assert await router.channel("ann").recv() == b"small"
            router.close()

    run(test)


async def _knock(ann: Peers, ben: Peers) -> None:
    await ann.send("ben", b"x" * 10**7)
    await asyncio.sleep(0.2)  # the connection is cut and made again
    await ann.send("ben", b"hello")
    assert await ben.recv() == ("ann", b"hello")
    await ben.send("ann", b"hello yourself")
    assert await ann.recv() == ("ben", b"hello yourself")


def test_peers_in_memory() -> None:
    doors: dict[str, MemoryPeers] = {}
    run(lambda: _knock(MemoryPeers("ann", doors), MemoryPeers("ben", doors)))


def test_peers_between_processes() -> None:
    async def test() -> None:
        async with sockets() as (context, place):
            doors = {name: f"{place}/{name}" for name in ("ann", "ben")}
            await _knock(
                ZmqPeers(context, "ann", doors["ann"], {"ben": doors["ben"]}),
                ZmqPeers(context, "ben", doors["ben"], {"ann": doors["ann"]}),
            )

    run(test)


def test_nobody_waits_at_the_door_of_a_peer_that_is_gone() -> None:
    async def test() -> None:
        doors: dict[str, MemoryPeers] = {}
        ann, ben = MemoryPeers("ann", doors), MemoryPeers("ben", doors)
        ben.close()
        await ann.send("ben", b"hello")
        async with sockets() as (context, place):
            door = ZmqPeers(context, "ann", f"{place}/ann", {"ben": f"{place}/ben"})
            for _ in range(3000):  # more than any queue holds
                await door.send("ben", b"hello")

    run(test)


def test_a_flood_at_a_door_is_dropped_not_kept() -> None:
    async def test() -> None:
        doors: dict[str, MemoryPeers] = {}
        ann, ben = MemoryPeers("ann", doors), MemoryPeers("ben", doors)
        for _ in range(5000):
            await ann.send("ben", b"x")
        assert ben._inbox.qsize() < 5000

    run(test)


def test_a_deadline_names_whom_it_waited_for() -> None:
    async def test() -> None:
        with pytest.raises(DeadlineError, match="waited for ben"):
            await within(0.01, asyncio.Event().wait(), lambda: "waited for ben")

    run(test)


def test_what_runs_beside_ends_with_the_main_task_and_fails_it() -> None:
    async def test() -> None:
        ended = []

        async def other() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(1)

        async def fails() -> None:
            raise LinkError("no")

        assert await beside(asyncio.sleep(0, "done"), other(), asyncio.sleep(0)) == "done"
        with pytest.raises(LinkError):
            await beside(other(), other(), fails())
        assert len(ended) == 3

    run(test)


def test_what_waits_for_its_reader_is_bounded_in_bytes() -> None:
    async def test() -> None:
        async with sockets() as (context, place):
            router = Router(context, f"{place}/a", ["ann"], 1000)
            ann = Dealer(context, f"{place}/a", "ann", 1000)
            for _ in range(10):
                await ann.send(b"x" * 1000)
            while router.dropped < 6:
                await asyncio.sleep(0.01)
            channel = router.channel("ann")
            for _ in range(4):
                await channel.recv()
            await ann.send(b"there is room again")
            assert await channel.recv() == b"there is room again"
            router.close()

    run(test)
