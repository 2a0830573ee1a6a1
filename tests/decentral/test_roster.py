"""Whoever is on the host's list: none of them can fill its memory or its disk."""

from __future__ import annotations

import asyncio
from pathlib import Path

from decentral import messages as say
from decentral.agents.mind import Phase
from decentral.journal import Journal, read
from decentral.links import Link, pair
from decentral.roster import Roster
from decentral.waits import beside

NAMES = ("ann", "ben")


def test_a_flood_waits_in_its_link_and_hides_nobody(tmp_path: Path) -> None:
    async def test() -> None:
        ends = {name: pair("host", name) for name in NAMES}
        decoder = say.Decoder[say.FromAgent](say.FromAgent, say.MAX_WORLD)
        _, control = pair("supervisor", "host")
        roster = Roster(
            {name: Link(ours, decoder, print) for name, (ours, _) in ends.items()},
            Link(control, say.Decoder[say.FromSupervisor](say.FromSupervisor, say.MAX_CONTROL), print),
            Journal(tmp_path / "events.jsonl"),
            None,
            str,
        )

        async def play() -> None:
            for _ in range(3000):
                await ends["ann"][1].send(say.encode(say.Updated(Phase("train", 0), 1), 100))
            for name in NAMES:
                await ends[name][1].send(say.encode(say.Hello(name, roster._session), 100))
            await asyncio.sleep(0.05)
            assert roster._inbox.qsize() <= len(NAMES)
            await roster.gather()
            assert roster.waiting == ()

        async with asyncio.timeout(20):
            await beside(play(), roster.read())

    asyncio.run(test())
    dropped = [line["count"] for line in read(tmp_path / "events.jsonl")[0]]
    assert dropped[-1] == 2048
    assert len(dropped) == 12
