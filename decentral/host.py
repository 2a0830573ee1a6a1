"""The host: it plays the environment's copies, phase by phase, and asks the agents for their actions.

It is the environment, not a centre: it sees actions and outcomes, and tells each agent only its own turns, rewards and
outcomes. What an agent sends is checked like anything from outside. Knows no engine: it is given a link per agent.

A phase is committed in this order: every agent's checkpoint is on disk (Updated), the phase's line is in
``phases.jsonl``, ``state.json`` is replaced. If anything is lost before that, the phase is started over as its next
attempt.
"""

from __future__ import annotations

__all__ = ["Host", "main"]

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NoReturn

import msgspec

from decentral import messages as say
from decentral.agents.mind import Ended, Phase, Request
from decentral.envs.fleet import Episode, Finished, Fleet
from decentral.envs.game import Game
from decentral.envs.names import make
from decentral.envs.turn import Outcome, Turn
from decentral.errors import EnvError, LinkError
from decentral.folder import RunFolder
from decentral.journal import Journal, read
from decentral.links import Link, Router
from decentral.plan import episodes, phases
from decentral.process import Life, live
from decentral.records import Table, Transcript, episode_line, phase_line, summary
from decentral.roster import Gone, Roster
from decentral.threads import Work
from decentral.waits import beside, within

_BEAT = 0.5
"""Seconds between two signs of life."""
_PARTING = 2.0
"""Seconds in which the environment's copies are closed: one of them may be stuck."""
_LONGEST = 2**16
"""Characters of a free action that are read at all."""


class _Batch(msgspec.Struct, frozen=True):
    """Turns that an agent was sent and has not answered."""

    number: int
    turns: dict[int, Turn]
    """Episode -> turn."""


class Host:
    """Plays every phase of a run that is not closed yet."""

    def __init__(
        self,
        folder: RunFolder,
        make_game: Callable[[], Game],
        links: Mapping[str, Link[say.FromAgent]],
        control: Link[say.FromSupervisor],
        work: Work,
        deadline: float | None,
        fix: Callable[[Sequence[str]], str] | None = None,
        terms: Mapping[str, str] = {},
    ) -> None:
        """
        Args:
            links: one per agent, in the environment's order.
            deadline: seconds of a wait, None for no clock.
            fix: says what to do about agents that do not answer; by default it names the files with their errors.
            terms: what an agent must have been started with, where this host's supervisor did not start it.
        """
        self._folder = folder
        self._config = folder.config
        self._state = folder.state
        self._control = control
        self._work = work
        self._deadline = deadline
        self._fleet = Fleet(make_game, folder.config.copies)
        self._episodes = Journal(folder.host / "episodes.jsonl")
        self._phases = Journal(folder.host / "phases.jsonl")
        self._events = Journal(folder.host / "events.jsonl")
        self._agents = Roster(links, control, self._events, deadline, fix or self._errors, terms)
        self._updates: dict[str, int] = {}
        self._phase: Phase | None = None
        self._table = Table(tuple(links), 0)
        self._began = 0.0
        # of the open attempt:
        self._batches: dict[str, _Batch] = {}
        self._count = 0
        self._ended: dict[str, list[Ended]] = {}
        self._players: dict[int, list[str]] = {}
        self._broken: dict[int, str] = {}
        self._fault = ""
        self._transcript = Transcript(-1)

    def _errors(self, names: Sequence[str]) -> str:
        return f"see {', '.join(str(self._folder.stderr(name)) for name in names)}"

    async def run(self) -> None:
        """Plays until the run is over and its summary written.

        Raises EnvError if the environment spoils most of a phase, DeadlineError, RunError if the folder cannot be
        written, and Stopped if the supervisor said so.
        """
        try:
            await beside(self._run(), self._agents.read(), self._beat())
        finally:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PARTING):
                    await self._work(self._fleet.close)
            for journal in (self._episodes, self._phases, self._events):
                journal.close()

    async def _run(self) -> None:
        self._events.event("started", closed=self._state.closed, iteration=self._state.iteration)
        for journal in (self._episodes, self._phases, self._events):
            if journal.mended:
                self._events.event("mended", file=journal.path.name)
        for planned in phases(self._config)[self._state.closed :]:
            while not await self._attempt(planned):
                continue
        while not await self._finish():
            continue

    # -- one phase ------------------------------------------------------------------------------------------------

    async def _attempt(self, planned: Phase) -> bool:
        """Plays and closes a phase; says whether that worked. If not, an agent was lost."""
        phase = msgspec.structs.replace(planned, attempt=self._state.attempts)
        self._commit(attempts=phase.attempt + 1)
        await self._agents.gather()
        self._reset(phase)
        try:
            await self._play(phase)
            await self._close(phase)
        except Gone as gone:
            self._events.event("lost", name=gone.name, why=gone.why, **_where(phase))
            if phase.kind == "train":
                self._commit(train_seconds=self._train_seconds())
            self._phase = None  # the clock stops until all are there again
            return False
        return True

    def _reset(self, phase: Phase) -> None:
        planned = episodes(self._config, phase)
        self._fleet.discard_open()
        self._phase = phase
        self._began = time.monotonic()
        self._table = Table(self._agents.names, len(planned))
        self._batches.clear()
        self._players.clear()
        self._broken.clear()
        self._ended = {name: [] for name in self._agents.names}
        self._fault = ""
        self._transcript = Transcript(planned[0].id)

    async def _play(self, phase: Phase) -> None:
        for name in self._agents.names:
            await self._agents.send(name, say.Begin(phase, self._state.iteration))
        await self._step(self._fleet.load, episodes(self._config, phase))
        self._record(phase)
        while not self._fleet.idle:
            await self._ask(phase)
            if not self._batches:
                raise EnvError(
                    f"{self._config.env.name} has open episodes in which nobody must act: its turns are wrong"
                )
            name, message = await self._agents.next()
            if isinstance(message, say.Actions):
                await self._take(phase, name, message)
            else:
                self._agents.refuse(name, f"{type(message).__name__} during a phase")

    async def _ask(self, phase: Phase) -> None:
        """Sends each agent that owes nothing what is over, then all turns that wait for it."""
        turns: dict[str, list[tuple[Episode, Turn]]] = {}
        for episode, turn in self._fleet.pending():
            turns.setdefault(turn.agent, []).append((episode, turn))
        for name, mine in turns.items():
            if name in self._batches:
                continue
            await self._tell(phase, name)
            self._count += 1
            self._batches[name] = _Batch(self._count, {episode.id: turn for episode, turn in mine})
            for episode, _ in mine:
                players = self._players.setdefault(episode.id, [])
                if name not in players:
                    players.append(name)
            self._agents.owes(name, f"to act in {len(mine)} episodes")
            requests = tuple(Request(episode.id, episode.group, turn) for episode, turn in mine)
            await self._agents.send(name, say.Turns(phase, self._count, requests))

    async def _take(self, phase: Phase, name: str, message: say.Actions) -> None:
        """Checks an agent's answers and steps the copies. What is missing or illegal spoils its episode only.

        Such an episode is played on with the first legal action (free turns: an empty text) and ends with a fault.
        """
        batch = self._batches.get(name)
        if batch is None or message.phase != phase or message.batch != batch.number:
            self._agents.refuse(name, f"Actions of batch {message.batch}, which is not open")
            return
        del self._batches[name]
        self._agents.paid(name)
        answers = dict(message.answers)
        moves = []
        for episode, turn in batch.turns.items():
            text = answers.pop(episode, None)
            if text is None or not _allowed(turn, text):
                self._broken.setdefault(episode, f"{name} answered {_short(text)} to a turn of {_offer(turn)}")
                text = turn.legal[0] if turn.legal else ""
            if episode == self._transcript.episode:
                self._transcript.turn(turn, text)
            moves.append((episode, name, text))
        if answers:
            self._agents.refuse(name, f"Actions for {len(answers)} episodes that nobody asked about")
        await self._step(self._move, moves)
        self._record(phase)

    def _move(self, moves: Sequence[tuple[int, str, str]]) -> None:
        for episode, name, text in moves:
            self._fleet.act(episode, name, text)

    async def _step(self, call: Callable[..., None], *args: object) -> None:
        """Lets the environment work."""
        await within(self._deadline, self._work(call, *args), self._stuck)

    def _stuck(self) -> str:
        return (
            f"waited {self._deadline:g} s for {self._config.env.name} to step {self._config.copies} copies: look for "
            f"an endless loop in it, lower `copies`, or raise `deadline` if it is only slow"
        )

    # -- what is over ---------------------------------------------------------------------------------------------

    def _record(self, phase: Phase) -> None:
        """Writes down the episodes that are over, and keeps what their agents must hear."""
        for finished in self._fleet.finished():
            number = finished.episode.id
            broken = self._broken.pop(number, "")
            fault = finished.fault or broken
            transcript = self._transcript if number == self._transcript.episode else None
            self._episodes.write(episode_line(phase, finished, fault, transcript))
            self._table.add(finished.outcomes, fault)
            for name in {**dict.fromkeys(self._players.pop(number, ())), **finished.outcomes}:
                self._ended[name].append(_ended(finished, name, broken))
            if fault:
                self._events.event("fault", episode=number, why=fault, **_where(phase))
                self._fault = self._fault or fault
                if self._table.faults * 2 > self._table.total:
                    kind = EnvError if finished.fault else LinkError
                    raise kind(f"{self._fault} (so it went in {self._table.faults} of {self._table.total} episodes)")

    async def _tell(self, phase: Phase, name: str) -> None:
        if self._ended[name]:
            ended, self._ended[name] = tuple(self._ended[name]), []
            await self._agents.send(name, say.Over(phase, ended))

    async def _close(self, phase: Phase) -> None:
        for name in self._agents.names:
            await self._tell(phase, name)
            self._agents.owes(name, "to update" if phase.kind == "train" else "to end its evaluation")
            await self._agents.send(name, say.Close(phase))
        waited = set(self._agents.names)
        while waited:
            name, message = await self._agents.next()
            if isinstance(message, say.Updated) and message.phase == phase and name in waited:
                waited.discard(name)
                self._agents.paid(name)
                self._updates[name] = message.updates
            else:
                self._agents.refuse(name, f"{type(message).__name__} while a phase is closed")
        closed = self._table.closed(phase, time.monotonic() - self._began)
        self._episodes.sync()
        self._phases.write(phase_line(closed))
        self._phases.sync()
        trained = phase.kind == "train"
        self._commit(
            closed=self._state.closed + 1,
            attempts=0,
            iteration=self._state.iteration + trained,
            train_seconds=self._train_seconds(),
        )
        self._phase = None
        for name in self._agents.names if trained else ():
            await self._agents.send(name, say.Commit(self._state.iteration))
        await self._control.send(closed)

    async def _finish(self) -> bool:
        """Lets the agents export and writes the summary; says whether that worked. If not, an agent was lost."""
        await self._agents.gather()
        try:
            for name in self._agents.names:
                self._agents.owes(name, "to export its weights")
                await self._agents.send(name, say.Finish(self._state.iteration))
            waited = set(self._agents.names)
            while waited:
                name, message = await self._agents.next()
                if isinstance(message, say.Finished):
                    waited.discard(name)
                    self._agents.paid(name)
                    self._updates[name] = message.updates
        except Gone as gone:
            self._events.event("lost", name=gone.name, why=gone.why)
            return False
        lines, _ = read(self._phases.path)
        updates = {name: self._updates[name] for name in self._agents.names}
        self._events.event("finished")
        self._folder.write_summary(summary(lines, updates, self._config.iterations, self._state.train_seconds))
        return True

    # -- state and signs of life ----------------------------------------------------------------------------------

    def _commit(self, **changes: object) -> None:
        self._state = msgspec.structs.replace(self._state, **changes)
        self._folder.write_state(self._state)

    def _train_seconds(self) -> float:
        training = self._phase is not None and self._phase.kind == "train"
        return self._state.train_seconds + (time.monotonic() - self._began if training else 0.0)

    async def _beat(self) -> NoReturn:
        while True:
            await self._control.send(
                say.Progress(
                    phase=self._phase,
                    done=self._table.done,
                    total=self._table.total,
                    iteration=self._state.iteration,
                    iterations=self._config.iterations,
                    train_seconds=self._train_seconds(),
                    waiting=self._agents.waiting,
                )
            )
            await asyncio.sleep(_BEAT)


def _where(phase: Phase) -> dict[str, object]:
    return {"phase": phase.kind, "iteration": phase.iteration, "attempt": phase.attempt}


def _ended(finished: Finished, name: str, broken: str) -> Ended:
    """What an agent hears: its own outcome, and of a fault no more than whose it was."""
    outcome = finished.outcomes.get(name) or Outcome(agent=name, total=0.0, turns=0)
    fault: Literal["", "environment", "agent"] = "environment" if finished.fault else "agent" if broken else ""
    return Ended(finished.episode.id, finished.episode.group, outcome, fault)


def _allowed(turn: Turn, text: str) -> bool:
    return text in turn.legal if turn.legal else len(text) <= _LONGEST


def _offer(turn: Turn) -> str:
    return f"{len(turn.legal)} legal actions" if turn.legal else "free text"


def _short(text: str | None) -> str:
    if text is None:
        return "nothing"
    return repr(text) if len(text) <= 80 else f"{text[:60]!r}... ({len(text):,} characters)"


def main(run: Path, links: Path) -> NoReturn:
    """The host's process: plays the run in the folder ``run``, meeting the others at the sockets below ``links``."""

    async def job(life: Life, folder: RunFolder) -> None:
        router = Router(life.context, life.endpoints.world, folder.agents, say.MAX_WORLD)
        decoder = say.Decoder[say.FromAgent](say.FromAgent, say.MAX_WORLD)
        worlds = {name: Link(router.channel(name), decoder, life.refused(name)) for name in folder.agents}
        config = folder.config
        host = Host(folder, lambda: make(config.env), worlds, life.control, life.work, config.deadline)
        try:
            await host.run()
        finally:
            router.close()

    live("host", run, links, job)
