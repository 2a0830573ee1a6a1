"""An agent's process around its mind: it hears the host, lets the mind work, keeps its checkpoints and its figures.

The loop owns the links and stays awake; every call of the mind goes to the worker, one after the other. The weights
follow the host's word: a phase is played with the checkpoint of the committed iteration, so an update whose phase was
started over is undone by loading. What peers ask is answered between the mind's own work, or declined while it loads or
updates; their answers are awaited for a while before the mind acts.
"""

from __future__ import annotations

__all__ = ["Node", "main", "mind_of"]

import asyncio
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from decentral import messages as say
from decentral.agents import make_mind
from decentral.agents.advice import Answer, Question
from decentral.agents.mind import Metrics, Mind, Phase
from decentral.checkpoint import Checkpoints, write_folder
from decentral.envs.names import load
from decentral.envs.turn import Turn
from decentral.errors import ModelError
from decentral.exchange import Exchange, Figures
from decentral.folder import RunFolder
from decentral.journal import Journal
from decentral.links import Dealer, Link, ZmqPeers
from decentral.neighbours import neighbours, talk
from decentral.process import Life, live
from decentral.threads import Work
from decentral.waits import Stopped, beside, within

_BEAT = 0.5
"""Seconds between two signs of life."""
_PATIENCE = 4
"""The host may be silent for this many deadlines: others may be late, lost, and late again before it stops the run."""


class Node:
    """One agent of a run."""

    def __init__(
        self,
        name: str,
        make: Callable[[], Mind],
        folder: Path,
        world: Link[say.FromHost],
        talk: Callable[..., Exchange],
        control: Link[say.FromSupervisor],
        work: Work,
        deadline: float | None,
        fix: str = "",
        terms: Mapping[str, str] = {},
    ) -> None:
        """
        Args:
            folder: the agent's own.
            deadline: seconds of any wait, None for no clock.
            fix: what to do about a silent host; by default it names the file with its errors.
            terms: what the agent was started with, where the host's supervisor did not start it.
        """
        self.name = name
        self._make = make
        self._folder = folder
        self._world = world
        self._control = control
        self._work = work
        self._patience = None if deadline is None else _PATIENCE * deadline
        self._checkpoints = Checkpoints(folder / "checkpoints")
        self._figures = Journal(folder / "metrics.jsonl")
        self._events = Journal(folder / "events.jsonl")
        self._advice = Journal(folder / "advice.jsonl")
        self._mind: Mind | None = None
        self._fix = fix or f"see {folder.parent.parent / 'host' / 'stderr.txt'}"
        self._terms = dict(terms)
        self._exchange = talk(answer=self._answer, event=self._events.event)
        self._exchange.busy = True
        self._journals = (self._figures, self._events, self._advice)
        self._at: int | None = None
        self._phase: Phase | None = None
        self._status = say.Status(name)

    async def run(self) -> NoReturn:
        """Serves the host until Stop (raises Stopped), or until it is cancelled.

        Raises ModelError if the mind cannot be made, RunError if the folder cannot be written, and DeadlineError if the
        host is silent for too long.
        """
        try:
            await beside(self._serve(), self._exchange.serve(), self._beat(), self._obey())
        finally:
            for journal in self._journals:
                journal.close()
        raise AssertionError("an agent's loop has no end")

    async def _serve(self) -> None:
        self._events.event("started")
        for journal in self._journals:
            if journal.mended:
                self._events.event("mended", file=journal.path.name)
        self._say(busy="loading")
        mind = self._mind = await self._work(self._make)
        self._say(busy="", updates=mind.updates)
        await self._world.send(say.Hello(self.name, terms=self._terms))
        while True:
            await self._hear(mind, await within(self._patience, self._world.recv(), self._silence))

    def _silence(self) -> str:
        return f"{self.name} waited {self._patience:g} s for the host: {self._fix}"

    async def _hear(self, mind: Mind, message: say.FromHost) -> None:
        match message:
            case say.Welcome(session):
                self._phase = None
                await self._world.send(say.Hello(self.name, session, self._terms))
            case say.Begin(phase, iteration):
                await self._settle(mind, iteration)
                await self._work(mind.begin, phase)
                self._exchange.renew()
                self._phase = phase
                self._say(phase=phase)
            case say.Commit(iteration):
                await self._work(self._checkpoints.prune, iteration)
            case say.Finish(iteration):
                await self._settle(mind, iteration)
                await self._export(mind)
                await self._world.send(say.Finished(mind.updates))
                self._say(busy="done")
            case say.Turns() | say.Over() | say.Close() if message.phase != self._phase:
                pass  # of a phase that was started over
            case say.Turns(phase, batch, requests):
                self._say(busy="acting")
                if questions := await self._work(mind.ask, requests):
                    actions = await self._work(mind.act, requests, await self._exchange.ask(questions))
                else:
                    actions = await self._work(mind.act, requests)
                self._say(busy="")
                answers = tuple((request.episode, action) for request, action in zip(requests, actions, strict=True))
                await self._world.send(say.Actions(phase, batch, answers))
            case say.Over(_, ended):
                await self._work(mind.end, ended)
            case say.Close(phase):
                if phase.kind == "train":
                    await self._update(mind, phase)
                await self._world.send(say.Updated(phase, mind.updates))

    async def _settle(self, mind: Mind, iteration: int) -> None:
        """Brings the mind to the committed iteration; a new agent's first state is checkpoint 0."""
        if self._at == iteration:
            return
        self._say(busy="loading")
        if self._at is None and iteration == 0 and 0 not in self._checkpoints.saved():
            await self._work(self._checkpoints.save, 0, mind.save)
        else:
            await self._work(mind.load, self._checkpoints.path(iteration))
            self._events.event("loaded", iteration=iteration, instead_of=self._at)
        self._at = iteration
        self._say(busy="", updates=mind.updates)

    async def _update(self, mind: Mind, phase: Phase) -> None:
        self._say(busy="updating")
        metrics: Metrics = await self._work(mind.update)
        self._at = phase.iteration + 1
        await self._work(self._checkpoints.save, self._at, mind.save)
        line = {"iteration": phase.iteration, "attempt": phase.attempt, "updates": mind.updates}
        for record in mind.records():
            self._advice.write({**record, **line})
        self._advice.sync()
        self._figures.write({**metrics, **_flat(self._exchange.figures()), **line})
        self._figures.sync()
        self._say(busy="", updates=mind.updates, metrics=metrics)

    async def _export(self, mind: Mind) -> None:
        self._say(busy="exporting")
        try:
            await self._work(write_folder, self._folder / "model", mind.export)
        except ModelError as error:
            self._events.event("nothing exported", why=str(error))
        self._say(busy="")

    # -- beside the mind's work -----------------------------------------------------------------------------------

    async def _answer(self, peer: str, questions: tuple[Question, ...]) -> tuple[Answer, ...]:
        assert self._mind is not None, "an agent without a mind is busy"
        return await self._work(self._mind.answer, questions)

    async def _obey(self) -> None:
        while not isinstance(await self._control.recv(), say.Stop):
            continue
        raise Stopped

    async def _beat(self) -> NoReturn:
        while True:
            await self._control.send(self._status)
            await asyncio.sleep(_BEAT)

    def _say(self, **changes: object) -> None:
        self._status = msgspec.structs.replace(self._status, **changes)
        self._exchange.busy = self._status.busy not in ("", "acting")


def _flat(figures: Mapping[str, Figures]) -> Metrics:
    """Returns figures per peer, as ``bytes_out_bob``, and their sums over peers."""
    found: Metrics = {}
    for peer, theirs in figures.items():
        for what, value in dataclasses.asdict(theirs).items():
            found[what] = found.get(what, 0) + value
            found[f"{what}_{peer}"] = value
    return found


def mind_of(name: str, folder: RunFolder, ask: Callable[[Turn], str] | None = None) -> Mind:
    """Makes an agent's mind as the run's config says. Raises ConfigError, ModelError."""
    config = folder.config
    agent, peers = config.agent_config(name), neighbours(config, folder.agents)
    script = load(agent.script, "script") if agent.script else None
    teachers, askers = tuple(peers.predecessors(name)), tuple(peers.successors(name))
    return make_mind(name, agent, config.seed, script=script, ask=ask, teachers=teachers, askers=askers)


def main(name: str, run: Path, links: Path) -> NoReturn:
    """An agent's process, in the run's folder ``run``, meeting the others at the sockets below ``links``."""

    async def job(life: Life, folder: RunFolder) -> None:
        config = folder.config
        channel = Dealer(life.context, life.endpoints.world, name, say.MAX_WORLD)
        world = Link(channel, say.Decoder[say.FromHost](say.FromHost, say.MAX_WORLD), life.refused("host"))
        doors = {agent: life.endpoints.peer(number) for number, agent in enumerate(folder.agents)}
        peers = neighbours(config, folder.agents)
        met = {*peers.predecessors(name), *peers.successors(name)}
        meet = talk(
            name,
            folder,
            ZmqPeers(life.context, name, doors[name], {peer: doors[peer] for peer in met}),
            lambda: asyncio.sleep(config.patience),
        )
        node = Node(
            name,
            lambda: mind_of(name, folder),
            folder.agent(name),
            world,
            meet,
            life.control,
            life.work,
            config.deadline,
        )
        await node.run()

    live(name, run, links, job)
