"""The host's agents: who is there, who owes an answer and since when. Knows nothing about phases or environments.

Host and agent greet each other before anything else. A new host has a new session and says Welcome until each agent has
answered with Hello; an agent's new process says Hello with an empty session. So either side notices that the other was
replaced, even if nobody else has told it.
"""

from __future__ import annotations

__all__ = ["Gone", "Roster"]

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NoReturn

from decentral.errors import DeadlineError
from decentral.journal import Dropped, Journal
from decentral.links import Link
from decentral.messages import FromAgent, FromSupervisor, Hello, Lost, Message, Stop, Welcome
from decentral.terms import disagreement
from decentral.waits import Stopped, beside, within

_GREETING = 0.5
"""Seconds between two Welcomes to an agent that has not answered."""


class Gone(Exception):
    """An agent was lost while it was needed."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name} {why}")
        self.name = name
        self.why = why


class Roster:
    """The agents on the world link, each with its link."""

    def __init__(
        self,
        links: Mapping[str, Link[FromAgent]],
        control: Link[FromSupervisor],
        events: Journal,
        deadline: float | None,
        fix: Callable[[Sequence[str]], str],
        terms: Mapping[str, str] = {},
    ) -> None:
        """
        Args:
            deadline: seconds to wait for an answer, None for no clock.
            fix: says what a person can do about agents that do not answer.
            terms: what an agent must have been started with; see `decentral.terms`.
        """
        self.names = tuple(links)
        self._links = links
        self._control = control
        self._events = events
        self._deadline = deadline
        self._fix = fix
        self._terms = dict(terms)
        self._unlike: dict[str, str] = {}
        self._session = uuid.uuid4().hex
        self._there: set[str] = set()
        self._owed: dict[str, tuple[float, str]] = {}
        self._inbox: asyncio.Queue[tuple[str, FromAgent | Lost]] = asyncio.Queue()
        self._turn = {name: asyncio.Semaphore() for name in links}
        """Of each agent one message waits in the inbox; the others wait in its link, which holds only so many."""
        self._dropped = {name: Dropped(partial(events.event, "dropped message", name=name)) for name in links}

    @property
    def waiting(self) -> tuple[str, ...]:
        """The agents that owe an answer, or that have yet to greet."""
        return tuple(name for name in self.names if name in self._owed or name not in self._there)

    async def read(self) -> None:
        """Listens to one and all, for as long as it is not cancelled. Raises Stopped if the supervisor says Stop."""
        await beside(self._obey(), *(self._listen(name, link) for name, link in self._links.items()))

    async def gather(self) -> None:
        """Waits until every agent is there, with nothing owed. Raises DeadlineError."""
        self._owed.clear()
        pulse = None if self._deadline is None else _GREETING
        start = time.monotonic()
        while missing := [name for name in self.names if name not in self._there]:
            if self._deadline is not None and time.monotonic() - start > self._deadline:
                raise DeadlineError(self._sentence(missing, "to be ready", self._deadline))
            for name in missing:
                await self._welcome(name)
            try:
                async with asyncio.timeout(pulse):
                    while not self._there.issuperset(missing):
                        await self._step()
            except TimeoutError:
                continue
            except Gone as gone:
                self._events.event("lost", name=gone.name, why=gone.why)

    async def send(self, name: str, message: Message) -> None:
        await self._links[name].send(message)

    def owes(self, name: str, what: str) -> None:
        """Notes that an agent must answer; ``what`` completes "waited 120 s for bob ..."."""
        self._owed[name] = (time.monotonic(), what)

    def paid(self, name: str) -> None:
        """Notes that it has answered."""
        self._owed.pop(name, None)

    async def next(self) -> tuple[str, FromAgent]:
        """Returns the next message of an agent that is there. Raises Gone, or DeadlineError for an overdue answer."""
        if self._deadline is None or not self._owed:
            return await self._one()
        since = min(since for since, _ in self._owed.values())
        return await within(max(0.0, since + self._deadline - time.monotonic()), self._one(), self._overdue)

    def refuse(self, name: str, why: str) -> None:
        """Counts a message that is dropped, and logs it if it is one of a few."""
        self._dropped[name](why)

    async def _obey(self) -> NoReturn:
        while True:
            message = await self._control.recv()
            if isinstance(message, Stop):
                raise Stopped
            self._inbox.put_nowait((message.name, message))

    async def _listen(self, name: str, link: Link[FromAgent]) -> NoReturn:
        while True:
            await self._turn[name].acquire()
            self._inbox.put_nowait((name, await link.recv()))

    async def _one(self) -> tuple[str, FromAgent]:
        while True:
            message = await self._step()
            if message is not None:
                return message

    async def _step(self) -> tuple[str, FromAgent] | None:
        """Takes one message; greetings and losses are dealt with here."""
        name, message = await self._inbox.get()
        if isinstance(message, Lost):
            self._leave(name, message.why)
            return None
        self._turn[name].release()
        if isinstance(message, Hello):
            if message.name != name:
                self.refuse(name, f"Hello of {message.name[:80]!r}")
            elif message.session == self._session:
                unlike = self._unlike[name] = disagreement(self._terms, message.terms)
                if unlike:
                    self.refuse(name, f"Hello with {unlike}")
                else:
                    self._there.add(name)
            else:
                await self._welcome(name)
                self._leave(name, "came back as a new process")
        elif name not in self._there:
            self.refuse(name, f"{type(message).__name__} before Hello")
        else:
            return name, message
        return None

    async def _welcome(self, name: str) -> None:
        await self.send(name, Welcome(self._session, self._terms))

    def _leave(self, name: str, why: str) -> None:
        if name in self._there:
            self._there.discard(name)
            self.paid(name)
            raise Gone(name, why)

    def _overdue(self) -> str:
        name = min(self._owed, key=lambda who: self._owed[who][0])
        return self._sentence([name], self._owed[name][1], self._deadline or 0.0)

    def _sentence(self, names: list[str], what: str, seconds: float) -> str:
        known = ((name, self._unlike.get(name) or self._links[name].flaw) for name in names)
        flaws = "; ".join(f"{name}: {flaw}" for name, flaw in known if flaw)
        return (
            f"waited {seconds:g} s for {', '.join(names)} {what}{f' ({flaws})' if flaws else ''}: {self._fix(names)}, "
            "or raise `deadline` if it is only slow"
        )
