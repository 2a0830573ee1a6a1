from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from decentral import messages as say
from decentral.agents.advice import Answer, Question, pack_probabilities
from decentral.agents.mind import Ended, Metrics, Phase, Request
from decentral.envs.turn import Outcome, Turn
from decentral.errors import DeadlineError, ModelError, RunError
from decentral.exchange import Exchange
from decentral.journal import read
from decentral.links import Link, MemoryPeers, pair
from decentral.node import Node
from decentral.threads import Direct, Worker
from decentral.waits import Stopped, beside

TURN = Turn("ann", 0, "hello", legal=("left", "right"))
Test = Callable[["World"], Awaitable[None]]


class Counter:
    """A mind whose weights are the number of updates; it writes down what it is asked."""

    def __init__(self) -> None:
        self.weights = 0
        self.calls: list[str] = []

    @property
    def updates(self) -> int:
        return self.weights

    def begin(self, phase: Phase) -> None:
        self.calls.append(f"begin {phase.kind} {phase.iteration} {phase.attempt}")

    def ask(self, requests: Sequence[Request]) -> Mapping[str, tuple[Question, ...]]:
        return {}

    def answer(self, questions: Sequence[Question]) -> tuple[Answer, ...]:
        self.calls.append("answer")
        return tuple(Answer(pack_probabilities([1.0, 0.0])) for _ in questions)

    def records(self) -> list[dict[str, Any]]:
        return []

    def act(self, requests: Sequence[Request], answers: Mapping[str, Sequence[Answer]] = {}) -> list[str]:
        self.calls.append("act")
        return ["left" for _ in requests]

    def end(self, ended: Sequence[Ended]) -> None:
        self.calls.append("end")

    def update(self) -> Metrics:
        self.calls.append("update")
        self.weights += 1
        return {"loss": 0.5}

    def save(self, folder: Path) -> None:
        (folder / "weights").write_text(str(self.weights))

    def load(self, folder: Path) -> None:
        self.calls.append(f"load {folder.name}")
        self.weights = int((folder / "weights").read_text())

    def export(self, folder: Path) -> None:
        (folder / "model.txt").write_text(str(self.weights))


class World:
    """A node, seen from its host."""

    def __init__(self, path: Path, *, deadline: float | None = None, make: Callable[[], Any] | None = None) -> None:
        self.mind = Counter()
        self.path = path
        self.make = make or (lambda: self.mind)
        self.deadline = deadline
        (path / "checkpoints").mkdir(parents=True, exist_ok=True)

    def run(self, test: Test) -> None:
        asyncio.run(self._run(test))

    async def _run(self, test: Test) -> None:
        ours, theirs = pair("host", "ann")
        self.host = Link(ours, say.Decoder[say.FromAgent](say.FromAgent, say.MAX_WORLD), print)
        supervisor, control = pair("supervisor", "ann")
        self.supervisor = Link(supervisor, say.Decoder[say.FromProcess](say.FromProcess, say.MAX_CONTROL), print)
        doors: dict[str, MemoryPeers] = {}
        self.peer = MemoryPeers("ben", doors)
        node = Node(
            "ann",
            self.make,
            self.path,
            Link(theirs, say.Decoder[say.FromHost](say.FromHost, say.MAX_WORLD), print),
            partial(
                Exchange,
                "ann",
                MemoryPeers("ann", doors),
                teachers=(),
                askers=("ben",),
                session=1,
                patience=lambda: asyncio.sleep(0),
                most_questions=10,
            ),
            Link(control, say.Decoder[say.FromSupervisor](say.FromSupervisor, say.MAX_CONTROL), print),
            Direct() if self.deadline is None else Worker("ann"),
            self.deadline,
        )
        async with asyncio.timeout(20):
            await beside(test(self), node.run())

    async def greet(self, session: str = "s") -> None:
        assert await self.host.recv() == say.Hello("ann")
        await self.host.send(say.Welcome(session))
        assert await self.host.recv() == say.Hello("ann", session)

    async def play(self, phase: Phase, iteration: int) -> say.FromAgent:
        """A phase of one turn; returns the answer to Close."""
        await self.host.send(say.Begin(phase, iteration))
        await self.host.send(say.Turns(phase, 1, (Request(5, 5, TURN),)))
        assert await self.host.recv() == say.Actions(phase, 1, ((5, "left"),))
        await self.host.send(say.Over(phase, (Ended(5, 5, Outcome("ann", 1.0, 1, success=1.0)),)))
        await self.host.send(say.Close(phase))
        return await self.host.recv()

    def saved(self) -> list[str]:
        return sorted(path.name for path in (self.path / "checkpoints").iterdir())

    def told(self, event: str) -> list[dict[str, Any]]:
        return [line for line in read(self.path / "events.jsonl")[0] if line["event"] == event]


def test_training_updates_saves_and_writes_figures_and_evaluation_does_not(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.greet()
        assert await world.play(Phase("eval", 0), 0) == say.Updated(Phase("eval", 0), 0)
        assert world.saved() == ["00000"]
        for iteration in range(3):
            phase = Phase("train", iteration)
            assert await world.play(phase, iteration) == say.Updated(phase, iteration + 1)
            await world.host.send(say.Commit(iteration + 1))
        await world.host.send(say.Finish(3))
        assert await world.host.recv() == say.Finished(3)
        assert world.saved() == ["00002", "00003"]
        assert (tmp_path / "model" / "model.txt").read_text() == "3"
        figures, _ = read(tmp_path / "metrics.jsonl")
        assert figures[1].items() >= {"iteration": 1, "attempt": 0, "updates": 2, "loss": 0.5}.items()
        assert world.mind.calls.count("update") == 3
        assert not [call for call in world.mind.calls if call.startswith("load")]

    World(tmp_path).run(test)


def test_an_update_whose_phase_is_started_over_is_undone(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.greet()
        await world.play(Phase("train", 0), 0)
        assert world.mind.weights == 1
        assert await world.play(Phase("train", 0, 1), 0) == say.Updated(Phase("train", 0, 1), 1)
        assert world.mind.calls.count("load 00000") == 1
        assert world.mind.weights == 1

    World(tmp_path).run(test)


def test_a_new_process_goes_on_with_the_committed_weights(tmp_path: Path) -> None:
    async def first(world: World) -> None:
        await world.greet()
        for iteration in range(3):  # the third is not committed
            await world.play(Phase("train", iteration), iteration)

    async def second(world: World) -> None:
        await world.greet()
        assert await world.play(Phase("train", 2, 1), 2) == say.Updated(Phase("train", 2, 1), 3)
        assert world.mind.calls[0] == "load 00002"

    World(tmp_path).run(first)
    World(tmp_path).run(second)


def test_a_checkpoint_that_is_missing_is_named(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.greet()
        await world.host.send(say.Begin(Phase("train", 7), 7))
        await world.host.recv()

    with pytest.raises(RunError, match="checkpoint 7 is missing"):
        World(tmp_path).run(test)


def test_what_belongs_to_an_attempt_that_was_given_up_is_ignored(tmp_path: Path) -> None:
    old, new = Phase("train", 0), Phase("train", 0, 1)

    async def test(world: World) -> None:
        await world.greet()
        await world.host.send(say.Begin(new, 0))
        await world.host.send(say.Turns(old, 3, (Request(5, 5, TURN),)))
        await world.host.send(say.Over(old, ()))
        await world.host.send(say.Close(old))
        assert await world.play(new, 0) == say.Updated(new, 1)
        await world.host.send(say.Welcome("another host"))
        assert await world.host.recv() == say.Hello("ann", "another host")
        await world.host.send(say.Turns(new, 4, (Request(5, 5, TURN),)))  # before Begin
        await world.host.send(say.Finish(1))
        assert await world.host.recv() == say.Finished(1)
        assert world.mind.calls.count("act") == 1

    World(tmp_path).run(test)


def test_whatever_a_peer_sends_is_counted_logged_and_dropped(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.greet()
        for number in range(100):
            await world.peer.send("ann", say.encode(say.Begin(Phase("train", number), 0), 1000))
            await world.peer.send("ann", bytes([say.VERSION]) + b"garbage")
        await world.play(Phase("train", 0), 0)

    World(tmp_path).run(test)
    lines = World(tmp_path).told("dropped message")
    assert {line["count"] for line in lines} >= {1, 2, 4, 8, 16, 32, 64}
    assert len(lines) < 20
    assert all(line["name"] == "ben" for line in lines)


def test_an_agent_reports_itself(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.greet()
        await world.play(Phase("train", 0), 0)
        while True:
            status = await world.supervisor.recv()
            assert isinstance(status, say.Status)
            if status.metrics:
                break
        assert status.updates == 1
        assert status.phase == Phase("train", 0)

    World(tmp_path).run(test)


def test_an_agent_without_weights_exports_nothing_and_says_so(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        def export(folder: Path) -> None:
            raise ModelError("no weights")

        world.mind.export = export  # type: ignore[method-assign]
        await world.greet()
        await world.host.send(say.Finish(0))
        assert await world.host.recv() == say.Finished(0)
        assert not (tmp_path / "model").exists()
        assert world.told("nothing exported")[0]["why"] == "no weights"

    World(tmp_path).run(test)


def test_a_mind_that_cannot_be_made_ends_the_process_with_its_error(tmp_path: Path) -> None:
    def make() -> None:
        raise ModelError("no such model")

    with pytest.raises(ModelError, match="no such model"):
        World(tmp_path, make=make).run(lambda world: asyncio.sleep(5))


def test_stop_ends_it(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        await world.supervisor.send(say.Stop())
        await asyncio.sleep(5)

    with pytest.raises(Stopped):
        World(tmp_path).run(test)


def test_a_silent_host_ends_it_by_name(tmp_path: Path) -> None:
    with pytest.raises(DeadlineError, match=r"ann waited 0\.4 s for the host: see .*host/stderr\.txt"):
        World(tmp_path, deadline=0.1).run(lambda world: asyncio.sleep(5))


def test_the_links_stay_awake_while_the_mind_works(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        def act(requests: Sequence[Request]) -> list[str]:
            import time

            time.sleep(1.2)
            return ["left"]

        world.mind.act = act  # type: ignore[method-assign]
        await world.greet()
        phase = Phase("train", 0)
        await world.host.send(say.Begin(phase, 0))
        await world.host.send(say.Turns(phase, 1, (Request(5, 5, TURN),)))
        heard = [await world.supervisor.recv() for _ in range(3)]
        assert [status.busy for status in heard if isinstance(status, say.Status)].count("acting") >= 1
        await world.host.recv()

    World(tmp_path, deadline=10).run(test)
