"""One node's talk with its peers: it asks those who may advise it, and answers those whom it may advise.

Owns who may ask and how much, what is too old, what every peer costs, and that nothing a peer sends, or fails to send,
stops or fills this node. Knows nothing about models: ``answer`` makes the answers, and whoever asked scores them.
"""

from __future__ import annotations

__all__ = ["Exchange", "Figures"]

import asyncio
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import NoReturn

from decentral.agents.advice import FRAME, Answer, Question, answer_bytes, check_answer, check_question, question_bytes
from decentral.errors import AdviceError, LinkError, said
from decentral.journal import Dropped
from decentral.links import Peers
from decentral.messages import MAX_PEER, VERSION, Advice, Ask, Decoder, Peer, encode

_MOST_BAD = 100
"""So many bad frames of a peer are read between two calls of `renew`; its further frames are dropped unread."""
_MOST_LATE = 3
"""After so many Asks in a row without Advice in time, a peer is left alone: patience costs everybody.

One that was never heard, or was left alone before, is so after the first.
"""
_LONGEST_REST = 64
"""Calls of `renew` after which a peer that was left alone again and again is tried once more."""
_SESSIONS = 64
"""Sessions, and late Asks, that are remembered of each peer."""
_RUSH = 64
"""Frames that are read before the loop's other tasks have a turn: a flood holds nobody up."""


@dataclass
class Figures:
    """What passed between a node and one peer since `Exchange.renew`."""

    asks_out: int = 0
    """Ask frames sent."""
    questions_out: int = 0
    advice_in: int = 0
    """Advice frames that came in time."""
    answered: int = 0
    """Answers in them that passed every check and are no declines."""
    declined: int = 0
    """Answers in them that are declines, or were made so because they failed a check."""
    late: int = 0
    """Ask frames without Advice before the patience ended."""
    latency_s: float = 0.0
    """From Ask to Advice, summed over ``advice_in``; measured here, and nothing is decided by it."""
    asks_in: int = 0
    """Ask frames that were new, whatever became of them."""
    questions_in: int = 0
    advice_out: int = 0
    """Advice frames sent."""
    refused: int = 0
    """Advice frames among these that declined without a look at the questions: busy, or more than this peer may ask."""
    dropped: int = 0
    """Frames that were dropped, or had an answer that failed a check."""
    bytes_out: int = 0
    bytes_in: int = 0


@dataclass
class _Open:
    """An Ask that waits for its Advice."""

    questions: tuple[Question, ...]
    done: asyncio.Event = field(default_factory=asyncio.Event)
    answers: tuple[Answer, ...] = ()
    since: float = field(default_factory=perf_counter)


@dataclass
class _Peer:
    """What is known of a peer; nothing in it grows with what the peer sends."""

    figures: Figures = field(default_factory=Figures)
    asked: int = 0
    """Numbers of Asks that were used."""
    open: dict[int, _Open] = field(default_factory=dict)
    late: deque[int] = field(default_factory=lambda: deque(maxlen=_SESSIONS))
    """Numbers of Asks that nobody waits for any more."""
    misses: int = 0
    """How many of them came in a row."""
    heard: bool = False
    """Whether its last Advice came in time, and it was not left alone since."""
    rest: int = 0
    """How many calls of `Exchange.renew` it was last left alone for, twice as many each time; 0: never, or heard."""
    resting: int = 0
    """How many of them are left."""
    sessions: dict[int, int] = field(default_factory=dict)
    """Its sessions and the last number of each, the newest last."""
    questions: int = 0
    """How many it has asked since `Exchange.renew`."""
    answering: bool = False

    @property
    def alone(self) -> bool:
        """Whether it is not to be asked now."""
        given_up = self.misses >= (_MOST_LATE if self.heard else 1)
        return given_up or self.resting > 0 or self.figures.dropped >= _MOST_BAD

    def renew(self) -> None:
        """Starts a phase."""
        if self.resting:
            self.resting -= 1
        elif self.misses and self.alone:
            self.heard = False
            self.rest = self.resting = min(2 * self.rest or 1, _LONGEST_REST)
        self.figures = Figures()
        self.questions = self.misses = 0

    def fresh(self, session: int, number: int) -> bool:
        """Says whether an Ask is newer than all others of its session, and notes it."""
        last = self.sessions.pop(session, -1)
        self.sessions[session] = max(last, number)
        if len(self.sessions) > _SESSIONS:
            del self.sessions[next(iter(self.sessions))]
        return number > last


class Exchange:
    """Asks and answers over one door. `serve` has to run beside everything else; `ask` may then be called at will."""

    def __init__(
        self,
        name: str,
        door: Peers,
        *,
        teachers: Sequence[str],
        askers: Sequence[str],
        answer: Callable[[str, tuple[Question, ...]], Awaitable[tuple[Answer, ...]]],
        event: Callable[..., object],
        session: int,
        patience: Callable[[], Awaitable[object]],
        most_questions: int,
    ) -> None:
        """
        Args:
            name: whose exchange it is.
            teachers: whom it may ask.
            askers: who may ask it.
            answer: is given an asker and its questions, which passed every check; returns an answer for each. What it
                raises declines them.
            event: is called with an event's name and details, for a journal.
            session: differs from that of any earlier process of this node; hard to guess, where strangers may knock.
            patience: returns when an `ask` has waited long enough.
            most_questions: that one peer may ask between two calls of `renew`.
        """
        self.busy = False
        """While it is set, every Ask is declined at once."""
        self._name = name
        self._door = door
        self._teachers = frozenset(teachers)
        self._askers = frozenset(askers)
        self._answer = answer
        self._event = event
        self._session = session
        self._patience = patience
        self._most_questions = most_questions
        self._peers = {peer: _Peer() for peer in dict.fromkeys([*teachers, *askers])}
        self._told: dict[tuple[str, str], Dropped] = {}
        self._decode = Decoder[Peer](Peer, MAX_PEER)

    def figures(self) -> dict[str, Figures]:
        """Returns what passed between this node and each peer since `renew`."""
        return {name: replace(peer.figures) for name, peer in self._peers.items()}

    def counts(self) -> dict[tuple[str, str], int]:
        """Returns how often, in all, something was dropped or missed: (peer, why) -> times; strangers are ''."""
        return {key: told.count for key, told in self._told.items()}

    def renew(self) -> None:
        """Starts a phase: budgets are full, figures are 0, and every peer is heard and asked again.

        Only who was left alone for its silence rests for a phase, and for twice as many each time it is silent still.
        """
        for peer in self._peers.values():
            peer.renew()

    # -- asking ---------------------------------------------------------------------------------------------------

    async def ask(self, questions: Mapping[str, tuple[Question, ...]]) -> dict[str, tuple[Answer, ...]]:
        """Asks teachers and returns their answers, one for each question, once all are there or the patience ends.

        What did not come in time, or failed a check, is a decline. A question that breaks the rules of advice.py is not
        sent, and is declined too. Raises AdviceError if somebody is no teacher of this node.
        """
        strangers = sorted(questions.keys() - self._teachers)
        if strangers:
            raise AdviceError(
                f"{self._name} may not ask {', '.join(strangers)}; ask {', '.join(sorted(self._teachers))}"
            )
        answers = {peer: [Answer()] * len(asked) for peer, asked in questions.items()}
        talks = asyncio.gather(*(self._talk(peer, asked, answers[peer]) for peer, asked in questions.items()))
        patience = asyncio.ensure_future(self._patience())
        try:
            done, _ = await asyncio.wait((talks, patience), return_when=asyncio.FIRST_COMPLETED)
            for ended in done:
                ended.result()
        finally:
            talks.cancel()
            patience.cancel()
            await asyncio.gather(talks, patience, return_exceptions=True)
        return {peer: tuple(given) for peer, given in answers.items()}

    async def _talk(self, name: str, questions: Sequence[Question], answers: list[Answer]) -> None:
        """Asks one teacher, one frame after the other, since a peer answers one at a time."""
        peer = self._peers[name]
        for rows in _frames(questions, self._sound(name, questions)):
            if peer.alone:
                return
            opened = _Open(tuple(questions[row] for row in rows))
            number, peer.asked = peer.asked, peer.asked + 1
            peer.open[number] = opened
            peer.figures.asks_out += 1
            peer.figures.questions_out += len(rows)
            try:
                await self._send(name, encode(Ask(self._session, number, opened.questions), MAX_PEER))
                await opened.done.wait()
            finally:
                if peer.open.pop(number, None) is not None:
                    peer.late.append(number)
                    peer.misses += 1
                    peer.figures.late += 1
                    self._tell("late peer", name, "no advice in time")
                for row, answer in zip(rows, opened.answers):
                    answers[row] = answer

    def _sound(self, name: str, questions: Sequence[Question]) -> Iterator[int]:
        for row, question in enumerate(questions):
            try:
                check_question(question)
            except AdviceError as error:
                self._tell("question not sent", name, "unfit question", said=said(error))
            else:
                yield row

    # -- hearing --------------------------------------------------------------------------------------------------

    async def serve(self) -> NoReturn:
        """Reads the door for ever. Raises nothing because of what a peer sent; only what ``event`` or the door does."""
        try:
            async with asyncio.TaskGroup() as replies:
                for count in itertools.count(1):
                    await self._hear(*await self._door.recv(), replies)
                    if count % _RUSH == 0:
                        await asyncio.sleep(0)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        raise AssertionError("a door has no end")

    async def _hear(self, sender: str, frame: bytes, replies: asyncio.TaskGroup) -> None:
        peer = self._peers.get(sender)
        if peer is None:
            self._tell("dropped message", "", "a stranger", name=sender[:80], bytes=len(frame))
            return
        peer.figures.bytes_in += len(frame)
        if peer.figures.dropped >= _MOST_BAD:
            self._drop(sender, "unread after too many bad ones", frame)
            return
        try:
            message = self._decode(frame)
        except LinkError as error:
            self._drop(sender, _flaw(frame), frame, said(error))
            return
        match message:
            case Ask():
                await self._asked(sender, peer, message, frame, replies)
            case Advice():
                self._advised(sender, peer, message, frame)

    async def _asked(self, sender: str, peer: _Peer, ask: Ask, frame: bytes, replies: asyncio.TaskGroup) -> None:
        if sender not in self._askers:
            self._drop(sender, "not one who may ask", frame)
            return
        if not peer.fresh(ask.session, ask.number):
            self._drop(sender, "an old Ask", frame)
            return
        if not ask.questions:
            self._drop(sender, "an Ask without a question", frame)
            return
        peer.figures.asks_in += 1
        peer.figures.questions_in += len(ask.questions)
        if self.busy or peer.answering or peer.questions + len(ask.questions) > self._most_questions:
            peer.figures.refused += 1
            await self._reply(sender, encode(Advice(ask.session, ask.number), MAX_PEER))
            return
        try:
            for question in ask.questions:
                check_question(question)
        except AdviceError as error:
            self._drop(sender, "an unfit question", frame, said(error))
            return
        peer.questions += len(ask.questions)
        peer.answering = True
        replies.create_task(self._advise(sender, peer, ask))

    async def _advise(self, sender: str, peer: _Peer, ask: Ask) -> None:
        try:
            answers = await self._answer(sender, ask.questions)
            frame = encode(Advice(ask.session, ask.number, answers), MAX_PEER)
        except Exception as error:  # noqa: BLE001  a peer chose what this worked on: it costs advice, never the node
            self._tell("no answer", sender, "it could not be made", said=f"{type(error).__name__}: {said(error)}")
            frame = encode(Advice(ask.session, ask.number), MAX_PEER)
        finally:
            peer.answering = False
        await self._reply(sender, frame)

    def _advised(self, sender: str, peer: _Peer, advice: Advice, frame: bytes) -> None:
        ours = advice.session == self._session
        opened = peer.open.pop(advice.number, None) if ours else None
        if opened is None:
            if ours and advice.number in peer.late:
                peer.late.remove(advice.number)
                self._tell("dropped message", sender, "late Advice", name=sender, bytes=len(frame))
            else:
                old = ours and 0 <= advice.number < peer.asked
                self._drop(sender, "an old Advice" if old else "an Advice that was not asked for", frame)
            return
        peer.misses = peer.rest = 0
        peer.heard = True
        peer.figures.advice_in += 1
        peer.figures.latency_s += perf_counter() - opened.since
        opened.answers = tuple(self._checked(sender, opened.questions, advice.answers, frame))
        answered = sum(bool(answer.probabilities) for answer in opened.answers)
        peer.figures.answered += answered
        peer.figures.declined += len(opened.questions) - answered
        opened.done.set()

    def _checked(
        self, sender: str, questions: Sequence[Question], answers: Sequence[Answer], frame: bytes
    ) -> Iterable[Answer]:
        """Returns one answer for each question; what fails a check is a decline."""
        if answers and len(answers) != len(questions):
            self._drop(sender, "a wrong number of answers", frame)
        if len(answers) != len(questions):
            return [Answer()] * len(questions)
        checked = []
        errors = []
        for question, answer in zip(questions, answers, strict=True):
            try:
                check_answer(question, answer)
                checked.append(answer)
            except AdviceError as error:
                checked.append(Answer())
                errors.append(error)
        if errors:
            self._drop(sender, "an unfit answer", frame, said(errors[0]))
        return checked

    # -- both -----------------------------------------------------------------------------------------------------

    async def _reply(self, peer: str, frame: bytes) -> None:
        self._peers[peer].figures.advice_out += 1
        await self._send(peer, frame)

    async def _send(self, peer: str, frame: bytes) -> None:
        self._peers[peer].figures.bytes_out += len(frame)
        await self._door.send(peer, frame)

    def _drop(self, peer: str, why: str, frame: bytes, said: str = "") -> None:
        """Counts a bad frame of a peer."""
        self._peers[peer].figures.dropped += 1
        self._tell("dropped message", peer, why, name=peer, bytes=len(frame), said=said)

    def _tell(self, event: str, peer: str, why: str, **detail: object) -> None:
        """Counts, and now and then tells. ``why`` is one of few sentences, so that the counters stay few."""
        told = self._told.get((peer, why))
        if told is None:
            told = self._told[peer, why] = Dropped(partial(self._event, event))
        told(why, **{"name": peer, **detail})


def _flaw(frame: bytes) -> str:
    """Says in a word why a frame is no message."""
    if len(frame) > MAX_PEER:
        return "oversized"
    return "unreadable" if frame[:1] == bytes([VERSION]) else "of another version"


def _frames(questions: Sequence[Question], rows: Iterable[int]) -> Iterator[list[int]]:
    """Sorts rows into frames, in order, so that neither the Ask nor the longest Advice is too large."""
    frame: list[int] = []
    size = FRAME
    for row in rows:
        question = questions[row]
        more = max(question_bytes(question), answer_bytes(len(question.legal)))
        if frame and size + more > MAX_PEER:
            yield frame
            frame, size = [], FRAME
        frame.append(row)
        size += more
    if frame:
        yield frame
