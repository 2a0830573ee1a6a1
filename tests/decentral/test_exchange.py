from __future__ import annotations

import asyncio
import gc
import math
import random
import tempfile
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import numpy as np
import pytest
import zmq.asyncio

from decentral import messages as say
from decentral.agents.advice import (
    MOST_LEGAL,
    MOST_OFFER,
    MOST_RATIONALE,
    Answer,
    Question,
    check_answer,
    check_question,
    clip_context,
    context_room,
    pack_embedding,
    pack_probabilities,
)
from decentral.bad_teachers import KINDS, BadTeacher
from decentral.envs.config import EnvConfig
from decentral.envs.names import games, levels, make
from decentral.errors import AdviceError, RunError
from decentral.exchange import Exchange
from decentral.links import MemoryPeers, Peers, ZmqPeers
from decentral.waits import beside

EMBEDDING = pack_embedding(np.ones(32))
INF = np.full(32, np.inf, dtype="<f2").tobytes()
GOOD = Question(3, 1, (("observation", "a door"),), ("open", "wait"), EMBEDDING)
ANSWER = Answer(pack_probabilities([0.25, 0.75]), 1.0, EMBEDDING, 1)
SESSIONS = {"ann": 11, "ben": 22, "cid": 33}
PATIENCE = 100
NOISE = bytes([say.VERSION]) + b"noise"

read = say.Decoder[say.Peer](say.Peer, say.MAX_PEER)


def frame(message: say.Peer) -> bytes:
    """Whatever size it has."""
    return say.encode(message, 10**8)


async def cycles(count: int = PATIENCE) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def halves(*numbers: float) -> bytes:
    """Numbers as they are on the wire, whatever they are."""
    return np.array(numbers, dtype="<f2").tobytes()


def even(count: int) -> bytes:
    return pack_probabilities(np.full(count, 1 / count))


async def honest(asker: str, questions: tuple[Question, ...]) -> tuple[Answer, ...]:
    for question in questions:
        check_question(question)  # nothing else may come through
    return tuple(Answer(even(len(q.legal)), float(q.episode), EMBEDDING, q.round) for q in questions)


class Team:
    """Nodes that may all advise each other, and a stranger's and a peer's bare door to do with as one likes."""

    def __init__(self, *names: str, bare: str = "", bad: dict[str, str] | None = None, **settings: Any) -> None:
        self.doors: dict[str, MemoryPeers] = {}
        self.events: list[dict[str, Any]] = []
        self.sent: list[tuple[str, str, bytes]] = []
        everybody = [*names, *([bare] if bare else [])]
        self.nodes = {}
        for name in names:
            others = [other for other in everybody if other != name]
            door: Peers = self.watched(name)
            if kind := (bad or {}).get(name):
                door = BadTeacher(door, kind, 0)
            given = {"answer": honest, "patience": cycles, "most_questions": 10**6, "askers": others, **settings}
            self.nodes[name] = Exchange(name, door, teachers=others, event=self.event, session=SESSIONS[name], **given)
        self.bare = MemoryPeers(bare, self.doors) if bare else None

    def watched(self, name: str) -> MemoryPeers:
        team = self

        class Watched(MemoryPeers):
            async def send(self, to: str, frame: bytes) -> None:
                team.sent.append((name, to, frame))
                await super().send(to, frame)

        return Watched(name, self.doors)

    def event(self, event: str, **detail: Any) -> None:
        self.events.append({"event": event, **detail})

    def knock(self, to: str, sender: str, *frames: bytes) -> None:
        """Puts frames into a door's inbox, past what a sender's own door refuses."""
        for one in frames:
            self.doors[to]._inbox.put_nowait((sender, one))

    def run(self, test: Callable[[], Awaitable[None]]) -> None:
        async def limited() -> None:
            async with asyncio.timeout(20):
                await beside(test(), *(node.serve() for node in self.nodes.values()))  # type: ignore[arg-type]

        asyncio.run(limited())


# -- what passes


def test_a_peer_is_asked_and_answers_and_only_ask_and_advice_pass() -> None:
    team = Team("ann", "ben", "cid")

    async def test() -> None:
        other = msgspec.structs.replace(GOOD, episode=9)
        answers = await team.nodes["ann"].ask({"ben": (GOOD, other), "cid": (GOOD,)})
        assert answers == {"ben": await honest("ann", (GOOD, other)), "cid": await honest("ann", (GOOD,))}

    team.run(test)
    assert [(a, b, type(read(sent))) for a, b, sent in team.sent] == [
        ("ann", "ben", say.Ask), ("ann", "cid", say.Ask), ("ben", "ann", say.Advice), ("cid", "ann", say.Advice),
    ]  # fmt: skip
    assert not team.events


def test_two_nodes_that_ask_each_other_at_once_both_get_answers() -> None:
    team = Team("ann", "ben")

    async def test() -> None:
        ann, ben = await asyncio.gather(
            team.nodes["ann"].ask({"ben": (GOOD,)}), team.nodes["ben"].ask({"ann": (GOOD,)})
        )
        assert ann["ben"] == ben["ann"] == await honest("", (GOOD,))

    team.run(test)


def test_several_rows_travel_in_one_frame() -> None:
    team = Team("ann", "ben")

    async def test() -> None:
        await team.nodes["ann"].ask({"ben": (GOOD,) * 40})

    team.run(test)
    assert len(team.sent) == 2


def long(seed: int) -> Question:
    """As large as a question may be."""
    offer = tuple(f"{i:03d}".ljust(MOST_OFFER // MOST_LEGAL, "x") for i in range(MOST_LEGAL))
    return Question(2**62 + seed, 2**62, (("action", "x"),) * 85, offer, EMBEDDING)


def test_a_batch_too_large_for_a_frame_is_split_and_comes_back_in_order() -> None:
    async def wordy(asker: str, questions: tuple[Question, ...]) -> tuple[Answer, ...]:
        sizes.append(len(questions))
        rationale = "\U0001f6aa" * (MOST_RATIONALE // 4)
        return tuple(Answer(even(len(q.legal)), q.episode % 1000 + 0.5, EMBEDDING, 2**62, rationale) for q in questions)

    for questions in (
        tuple(msgspec.structs.replace(GOOD, episode=i) for i in range(300)),
        tuple(long(i) for i in range(12)),
    ):
        team = Team("ann", "ben", answer=wordy)
        sizes: list[int] = []

        async def test() -> None:
            answers = (await team.nodes["ann"].ask({"ben": questions}))["ben"]  # noqa: B023
            assert [answer.value for answer in answers] == [q.episode % 1000 + 0.5 for q in questions]  # noqa: B023
            assert team.nodes["ann"].figures()["ben"].answered == len(questions)  # noqa: B023

        team.run(test)
        assert len(sizes) > 1
        assert sum(sizes) == len(questions)
        assert max(len(sent) for _, _, sent in team.sent) <= say.MAX_PEER
        assert not team.events


GAMES = [level for game in games() for level in levels(game)] + [
    EnvConfig(name="meet", options={"level": 4, "agents": 4})
]


@pytest.mark.parametrize("config", GAMES, ids=lambda config: f"{config.name}-{config.level}")
def test_a_question_of_a_built_in_game_and_its_answer_take_less_than_a_kilobyte(config: EnvConfig) -> None:
    game = make(config)
    sizes, segments = [], []
    for seed in range(3):
        game.reset(seed)
        draw = random.Random(seed)
        contexts: dict[str, list[Any]] = {agent: [] for agent in game.agents}
        while not game.over:
            actions = {}
            for turn in game.turns():
                context = contexts[turn.agent]
                context += [("feedback", turn.feedback), ("observation", turn.observation)]
                bare = Question(2**40, turn.round, (), turn.legal, EMBEDDING)
                question = msgspec.structs.replace(bare, context=clip_context(context, context_room(bare)))
                answer = Answer(even(len(turn.legal)), 0.3, EMBEDDING, turn.round)
                check_question(question)
                check_answer(question, answer)
                sizes.append(
                    len(frame(say.Ask(2**62, 999, (question,)))) + len(frame(say.Advice(2**62, 999, (answer,))))
                )
                segments.append((len(question.context), len([text for _, text in context if text])))
                actions[turn.agent] = draw.choice(turn.legal)
                context.append(("action", actions[turn.agent]))
            game.step(actions)
    assert 300 < max(sizes) < 1000
    assert all(told >= min(3, known) for told, known in segments)  # the last action and what came of it, too


def test_nodes_of_different_processes_ask_each_other_and_go_on_without_one_that_is_gone() -> None:
    async def test() -> None:
        context = zmq.asyncio.Context()
        with tempfile.TemporaryDirectory(prefix="dec-") as place:
            ends = {name: f"ipc://{place}/{name}" for name in ("ann", "ben", "cid")}
            nodes: dict[str, Exchange] = {}

            async def both_answered() -> None:
                while not (nodes["ann"].figures()["ben"].advice_in and nodes["ben"].figures()["ann"].advice_in):
                    await asyncio.sleep(0.005)

            for name in ("ann", "ben"):
                others = {other: end for other, end in ends.items() if other != name}
                door = ZmqPeers(context, name, ends[name], others)
                nodes[name] = Exchange(
                    name,
                    door,
                    teachers=list(others),
                    askers=list(others),
                    answer=honest,
                    event=print,
                    session=SESSIONS[name],
                    patience=both_answered,
                    most_questions=10**6,
                )

            async def talk() -> None:
                both = await asyncio.gather(
                    nodes["ann"].ask({"ben": (GOOD,), "cid": (GOOD,)}), nodes["ben"].ask({"ann": (GOOD,)})
                )
                assert both[0] == {"ben": await honest("", (GOOD,)), "cid": (Answer(),)}
                assert both[1] == {"ann": await honest("", (GOOD,))}

            await beside(talk(), *(node.serve() for node in nodes.values()))
            context.destroy(linger=0)

    async def limited() -> None:
        async with asyncio.timeout(20):
            await test()

    asyncio.run(limited())


# -- hostile askers


def ask(number: int = 0, session: int = 7, **change: Any) -> say.Ask:
    return say.Ask(session, number, (msgspec.structs.replace(GOOD, **change),))


HOSTILE_ASKS: dict[str, tuple[list[bytes], str]] = {
    "oversized": ([NOISE + b"x" * say.MAX_PEER], "oversized"),
    "wrong version": ([bytes([say.VERSION + 1]) + frame(ask())[1:]], "of another version"),
    "truncated": ([frame(ask())[:-5]], "unreadable"),
    "empty": ([b""], "of another version"),
    "another link's message": ([say.encode(say.Finish(3), 100)], "unreadable"),
    "replayed": ([frame(ask(5)), frame(ask(5))], "an old Ask"),
    "older": ([frame(ask(5)), frame(ask(4))], "an old Ask"),
    "replayed from an earlier session": ([frame(ask(5, 7)), frame(ask(0, 8)), frame(ask(5, 7))], "an old Ask"),
    "huge number": ([frame(ask()).replace(b"\xa6number\x00", b"\xa6number\xcb" + bytes(8))], "unreadable"),
    "no questions": ([frame(say.Ask(7, 0, ()))], "an Ask without a question"),
    "thousands of actions": ([frame(ask(legal=tuple(map(str, range(5000)))))], "an unfit question"),
    "thousands of questions": ([frame(say.Ask(7, 0, (Question(0, 0, (), ("a",)),) * 5000))], "an unfit question"),
    "long context": ([frame(ask(context=(("observation", "x" * 10_000),)))], "an unfit question"),
    "reasoning in the context": ([frame(ask()).replace(b"\xabobservation", b"\xa9reasoning")], "unreadable"),
    "infinite embedding": ([frame(ask(embedding=INF))], "an unfit question"),
    "an advice nobody asked for": ([frame(say.Advice(11, 0, (ANSWER,)))], "an Advice that was not asked for"),
}


@pytest.mark.parametrize("kind", HOSTILE_ASKS)
def test_a_hostile_frame_is_dropped_counted_and_named_and_an_honest_peer_still_answered(kind: str) -> None:
    frames, why = HOSTILE_ASKS[kind]
    team = Team("ann", "ben", bare="eve", most_questions=4000 if kind == "thousands of questions" else 10**6)
    if kind == "thousands of questions":
        why = ""

    async def test() -> None:
        for one in frames:
            team.knock("ann", "eve", one)
            await cycles(20)
        assert await team.nodes["ben"].ask({"ann": (GOOD,)}) == {"ann": await honest("", (GOOD,))}
        figures = team.nodes["ann"].figures()["eve"]
        if not why:  # more than its budget: declined at once
            assert (figures.refused, figures.dropped) == (1, 0)
            return
        assert team.nodes["ann"].counts() == {("eve", why): 1}
        assert figures.dropped == 1
        assert figures.bytes_in == sum(map(len, frames))
        (event,) = team.events
        assert (event["event"], event["name"], event["why"], event["count"]) == ("dropped message", "eve", why, 1)
        assert event["bytes"] == len(frames[-1])
        assert len(str(event)) < 600

    team.run(test)


def test_a_sender_that_is_no_peer_is_told_by_the_name_it_claims_and_gets_nothing() -> None:
    team = Team("ann", "ben")

    async def test() -> None:
        for number in range(1000):
            team.knock("ann", f"mallory{number}" * 1000, frame(ask(number)))
        await cycles()
        assert team.nodes["ann"].counts() == {("", "a stranger"): 1000}
        assert await team.nodes["ben"].ask({"ann": (GOOD,)}) == {"ann": await honest("", (GOOD,))}

    team.run(test)
    assert len(team.events) == 10  # the 1st, 2nd, 4th, ...
    assert team.events[0]["name"].startswith("mallory0")
    assert len(team.events[0]["name"]) == 80


def test_who_may_advise_but_not_ask_is_not_answered() -> None:
    team = Team("ann", bare="eve", askers=[])

    async def test() -> None:
        team.knock("ann", "eve", frame(ask()))
        await cycles()
        assert team.nodes["ann"].counts() == {("eve", "not one who may ask"): 1}

    team.run(test)
    assert not team.sent


def test_a_peer_that_was_started_again_is_answered_and_what_it_asked_before_is_not() -> None:
    team = Team("ann", bare="eve")

    async def test() -> None:
        for one in (ask(0, 7), ask(1, 7), ask(0, 8), ask(0, 7), ask(1, 7), ask(2, 7), ask(1, 8)):
            team.knock("ann", "eve", frame(one))
            await cycles(20)

    team.run(test)
    answered = [(m.session, m.number) for m in (read(sent) for _, _, sent in team.sent)]
    assert answered == [(7, 0), (7, 1), (8, 0), (7, 2), (8, 1)]  # nobody locks a peer out with a session of its own


def test_a_budget_is_per_peer_and_full_again_after_renew() -> None:
    team = Team("ann", "ben", "cid", most_questions=5)

    async def test() -> None:
        async def answered(asker: str, count: int) -> int:
            answers = await team.nodes[asker].ask({"ann": (GOOD,) * count})
            return sum(bool(answer.probabilities) for answer in answers["ann"])

        assert [await answered("ben", count) for count in (3, 3, 2, 1)] == [3, 0, 2, 0]
        assert await answered("cid", 5) == 5
        assert team.nodes["ann"].figures()["ben"].refused == 2
        team.nodes["ann"].renew()
        assert team.nodes["ann"].figures()["ben"].refused == 0
        assert await answered("ben", 5) == 5

    team.run(test)
    assert not team.events  # a decline is no fault


def test_a_busy_node_declines_at_once() -> None:
    async def never(asker: str, questions: tuple[Question, ...]) -> tuple[Answer, ...]:
        called.append(asker)
        return ()

    called: list[str] = []

    async def for_ever() -> None:
        await asyncio.Event().wait()

    team = Team("ann", "ben", answer=never, patience=for_ever)

    async def test() -> None:
        team.nodes["ann"].busy = True
        assert await team.nodes["ben"].ask({"ann": (GOOD, GOOD)}) == {"ann": (Answer(), Answer())}
        assert team.nodes["ben"].figures()["ann"].declined == 2

    team.run(test)
    assert not called


def test_a_second_ask_while_one_is_open_is_declined_and_reading_goes_on() -> None:
    gate = asyncio.Event()

    async def slow(asker: str, questions: tuple[Question, ...]) -> tuple[Answer, ...]:
        if asker == "eve":
            await gate.wait()
        return await honest(asker, questions)

    team = Team("ann", "ben", bare="eve", answer=slow)

    async def test() -> None:
        for number in range(3):
            team.knock("ann", "eve", frame(ask(number)))
        assert await team.nodes["ben"].ask({"ann": (GOOD,)}) == {"ann": await honest("", (GOOD,))}
        gate.set()
        await cycles(20)

    team.run(test)
    to_eve = [read(sent) for _, to, sent in team.sent if to == "eve"]
    assert [(m.number, len(m.answers)) for m in to_eve if isinstance(m, say.Advice)] == [(1, 0), (2, 0), (0, 1)]


@pytest.mark.parametrize("fault", [RuntimeError("a tensor"), AdviceError("no"), RecursionError()])
def test_what_the_answering_raises_is_a_decline_that_is_told(fault: Exception) -> None:
    async def breaks(asker: str, questions: tuple[Question, ...]) -> tuple[Answer, ...]:
        raise fault

    team = Team("ann", "ben", answer=breaks)

    async def test() -> None:
        for _ in range(2):
            assert await team.nodes["ben"].ask({"ann": (GOOD,)}) == {"ann": (Answer(),)}

    team.run(test)
    assert [(e["event"], e["name"]) for e in team.events] == [("no answer", "ben")] * 2
    assert type(fault).__name__ in team.events[0]["said"]


def test_an_error_of_the_journal_ends_serve_as_itself() -> None:
    team = Team("ann", bare="eve")

    def full(event: str, **detail: Any) -> None:
        raise RunError("the disk is full")

    team.nodes["ann"]._event = full

    async def test() -> None:
        team.knock("ann", "eve", b"noise")
        await asyncio.sleep(5)

    with pytest.raises(RunError, match="full"):
        team.run(test)


# -- hostile teachers

BAD_ANSWERS: dict[str, tuple[Answer, ...]] = {
    "wrong number of probabilities": (Answer(halves(1.0)),),
    "half a probability": (Answer(halves(0.5, 0.5)[:3]),),
    "NaN": (Answer(halves(math.nan, 1.0)),),
    "negative": (Answer(halves(-0.5, 1.5)),),
    "sum 2": (Answer(halves(1.0, 1.0)),),
    "huge value": (Answer(even(2), 1e300),),
    "infinite embedding": (Answer(even(2), None, INF, 1),),
    "long rationale": (Answer(even(2), rationale="x" * 50_000),),
    "thousands of probabilities": (Answer(even(5000)),),
    "too many answers": (ANSWER, ANSWER),
}


@pytest.mark.parametrize("kind", BAD_ANSWERS)
def test_a_bad_answer_is_a_decline_that_is_counted_and_named(kind: str) -> None:
    team = Team("ann", "ben", bare="eve")

    async def test() -> None:
        waits = asyncio.create_task(team.nodes["ann"].ask({"ben": (GOOD,), "eve": (GOOD,)}))
        await cycles(5)
        team.knock("ann", "eve", frame(say.Advice(11, 0, BAD_ANSWERS[kind])))
        assert await waits == {"ben": await honest("", (GOOD,)), "eve": (Answer(),)}
        figures = team.nodes["ann"].figures()["eve"]
        assert (figures.advice_in, figures.answered, figures.declined, figures.dropped) == (1, 0, 1, 1)

    team.run(test)
    why = "a wrong number of answers" if kind == "too many answers" else "an unfit answer"
    assert [(e["name"], e["why"]) for e in team.events] == [("eve", why)]
    assert len(str(team.events)) < 600


def test_one_bad_answer_does_not_spoil_those_beside_it() -> None:
    team = Team("ann", bare="eve")

    async def test() -> None:
        waits = asyncio.create_task(team.nodes["ann"].ask({"eve": (GOOD,) * 3}))
        await cycles(5)
        team.knock("ann", "eve", frame(say.Advice(11, 0, (ANSWER, Answer(halves(2.0, -1.0)), ANSWER))))
        assert await waits == {"eve": (ANSWER, Answer(), ANSWER)}

    team.run(test)


@pytest.mark.parametrize(
    ("advice", "why"),
    [
        (say.Advice(11, 1, (ANSWER,)), "an Advice that was not asked for"),
        (say.Advice(12, 0, (ANSWER,)), "an Advice that was not asked for"),
        (say.Advice(11, -1, (ANSWER,)), "an Advice that was not asked for"),
        (say.Advice(11, 2**64 - 1, (ANSWER,)), "an Advice that was not asked for"),
    ],
)
def test_an_advice_to_another_ask_answers_nothing(advice: say.Advice, why: str) -> None:
    team = Team("ann", bare="eve")

    async def test() -> None:
        waits = asyncio.create_task(team.nodes["ann"].ask({"eve": (GOOD,)}))
        await cycles(5)
        team.knock("ann", "eve", frame(advice))
        assert await waits == {"eve": (Answer(),)}
        assert team.nodes["ann"].counts() == {("eve", why): 1, ("eve", "no advice in time"): 1}

    team.run(test)


def test_an_advice_is_taken_once_and_only_from_whom_it_was_asked() -> None:
    team = Team("ann", "ben", bare="eve")

    async def test() -> None:
        waits = asyncio.create_task(team.nodes["ann"].ask({"eve": (GOOD,)}))
        await cycles(5)
        lie = frame(say.Advice(11, 0, (Answer(halves(0.0, 1.0)),)))
        team.knock("ann", "ben", lie)
        team.knock("ann", "mallory", lie)
        team.knock("ann", "eve", frame(say.Advice(11, 0, (ANSWER,))), lie, lie)
        assert await waits == {"eve": (ANSWER,)}
        await cycles(5)

    team.run(test)
    assert team.nodes["ann"].counts() == {
        ("ben", "an Advice that was not asked for"): 1, ("", "a stranger"): 1, ("eve", "an old Advice"): 2,
    }  # fmt: skip


def test_a_late_advice_is_told_as_such_and_is_no_fault() -> None:
    team = Team("ann", bare="eve")

    async def test() -> None:
        assert await team.nodes["ann"].ask({"eve": (GOOD,)}) == {"eve": (Answer(),)}
        for _ in range(2):
            team.knock("ann", "eve", frame(say.Advice(11, 0, (ANSWER,))))
        await cycles(5)
        assert team.nodes["ann"].counts() == {
            ("eve", "no advice in time"): 1, ("eve", "late Advice"): 1, ("eve", "an old Advice"): 1,
        }  # fmt: skip
        figures = team.nodes["ann"].figures()["eve"]
        assert (figures.late, figures.dropped, figures.advice_in) == (1, 1, 0)

    team.run(test)


@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_teacher_never_holds_up_an_ask_or_hides_an_honest_answer(kind: str) -> None:
    waits = []

    async def patience() -> None:
        waits.append(0)
        for _ in range(PATIENCE):
            await asyncio.sleep(0)
            waits[-1] += 1

    team = Team("ann", "ben", "cid", bad={"ben": kind}, patience=patience)

    async def test() -> None:
        for phase in range(9):
            for number in range(30):
                answers = await team.nodes["ann"].ask({"ben": (GOOD,), "cid": (GOOD,)})
                assert answers["cid"] == await honest("", (GOOD,)), (phase, number)
            figures = team.nodes["ann"].figures()["ben"]
            tried = int(phase in (0, 2, 5))  # then it rests for 1, 2 and 4 phases
            assert figures.late == (tried if kind in ("silent", "slow") else 0)
            assert figures.asks_out == {"silent": tried, "slow": tried, "flooding": 2}.get(kind, 30)
            team.nodes["ann"].renew()
        assert await team.nodes["cid"].ask({"ann": (GOOD,)}) == {"ann": await honest("", (GOOD,))}

    team.run(test)
    # a peer that was waited for in vain, or that floods, is left alone
    assert sum(wait == PATIENCE for wait in waits) == (3 if kind in ("silent", "slow") else 0)
    told = {(event["event"], event["name"]) for event in team.events}
    assert (("late peer", "ben") in told) == (kind in ("silent", "slow"))
    assert (("dropped message", "ben") in told) == (kind in ("slow", "flooding"))


def test_a_peer_of_many_bad_frames_is_not_read_or_asked_until_renew() -> None:
    team = Team("ann", bare="eve")

    async def test() -> None:
        team.knock("ann", "eve", *[NOISE] * 100, frame(ask(0)))
        await cycles(20)
        assert team.nodes["ann"].counts() == {("eve", "unreadable"): 100, ("eve", "unread after too many bad ones"): 1}
        assert await team.nodes["ann"].ask({"eve": (GOOD,)}) == {"eve": (Answer(),)}
        assert not team.sent
        team.nodes["ann"].renew()
        team.knock("ann", "eve", frame(ask(0)))
        await cycles(20)
        assert [type(read(sent)) for _, _, sent in team.sent] == [say.Advice]

    team.run(test)


def test_a_peer_that_is_late_now_and_then_is_still_asked() -> None:
    team = Team("ann", bare="eve")

    async def test() -> None:
        for number in range(9):
            waits = asyncio.create_task(team.nodes["ann"].ask({"eve": (GOOD,)}))
            await cycles(5)
            if number % 3 == 0:
                team.knock("ann", "eve", frame(say.Advice(11, number, (ANSWER,))))
            assert await waits == {"eve": (ANSWER if number % 3 == 0 else Answer(),)}

    team.run(test)


def test_a_flood_that_never_ends_leaves_the_others_their_turns() -> None:
    class Flooded:
        count = 0

        async def recv(self) -> tuple[str, bytes]:  # always at once, as a socket does that has more
            self.count += 1
            if self.count == 50_000:
                raise RunError("nobody else had a turn")
            return "eve", b"noise"

        async def send(self, to: str, frame: bytes) -> None: ...

        def close(self) -> None: ...

    team = Team("ann", bare="eve")
    team.nodes["ann"]._door = Flooded()

    async def test() -> None:
        assert await team.nodes["ann"].ask({"eve": (GOOD,)}) == {"eve": (Answer(),)}

    team.run(test)


# -- the asker's own side


def test_an_unfit_question_of_ones_own_is_not_sent_and_is_a_decline() -> None:
    team = Team("ann", "ben")

    async def test() -> None:
        wide = msgspec.structs.replace(GOOD, legal=tuple(map(str, range(300))))
        (answer,) = await honest("", (GOOD,))
        assert await team.nodes["ann"].ask({"ben": (wide, GOOD, wide)}) == {"ben": (Answer(), answer, Answer())}
        assert await team.nodes["ann"].ask({"ben": (wide,)}) == {"ben": (Answer(),)}
        assert await team.nodes["ann"].ask({"ben": ()}) == {"ben": ()}
        assert await team.nodes["ann"].ask({}) == {}

    team.run(test)
    assert len(team.sent) == 2
    assert team.events[0]["event"] == "question not sent"
    assert "300 actions" in team.events[0]["said"]


def test_a_node_that_is_no_teacher_is_not_asked() -> None:
    team = Team("ann", "ben")

    async def test() -> None:
        with pytest.raises(AdviceError, match="ann may not ask dan; ask ben"):
            await team.nodes["ann"].ask({"dan": (GOOD,), "ben": (GOOD,)})

    team.run(test)
    assert not team.sent


def test_figures_meter_what_passed_between_two_peers() -> None:
    team = Team("ann", "ben")

    async def test() -> None:
        await team.nodes["ann"].ask({"ben": (GOOD, GOOD)})
        await team.nodes["ann"].ask({"ben": (GOOD,)})
        ann, ben = team.nodes["ann"].figures()["ben"], team.nodes["ben"].figures()["ann"]
        assert (ann.asks_out, ann.questions_out, ann.advice_in, ann.answered, ann.late) == (2, 3, 2, 3, 0)
        assert (ben.asks_in, ben.questions_in, ben.advice_out, ben.refused) == (2, 3, 2, 0)
        assert ann.bytes_out == ben.bytes_in == sum(len(sent) for name, _, sent in team.sent if name == "ann")
        assert ann.bytes_in == ben.bytes_out == sum(len(sent) for name, _, sent in team.sent if name == "ben")
        assert 0 < ann.latency_s < 10
        team.nodes["ann"].renew()
        assert team.nodes["ann"].figures()["ben"].asks_out == 0

    team.run(test)


# -- 10,000 fuzzed frames


def fuzzed(draw: random.Random) -> bytes:
    valid = [
        frame(ask(draw.randrange(2**40), draw.randrange(2**40))),
        frame(say.Advice(11, draw.randrange(50), (ANSWER,))),
    ]
    match draw.randrange(4):
        case 0:
            return draw.randbytes(draw.randrange(300))
        case 1:
            flipped = bytearray(draw.choice(valid))
            for _ in range(draw.randrange(1, 4)):
                flipped[draw.randrange(len(flipped))] ^= 1 << draw.randrange(8)
            return bytes(flipped)
        case 2:
            return bytes([say.VERSION]) + msgspec.msgpack.encode(anything(draw))
        case _:
            return draw.choice(valid)


def anything(draw: random.Random, depth: int = 0) -> Any:
    kind = draw.randrange(7 if depth < 3 else 5)
    if depth == 0:
        kind = 6
    match kind:
        case 0:
            return draw.randrange(-(2**63), 2**64)
        case 1:
            return draw.choice([math.nan, math.inf, -1.0, 1e300, None, True])
        case 2:
            return draw.randbytes(draw.randrange(80))
        case 3 | 4:
            return draw.choice(["Ask", "Advice", "", "\ud7ff" * 30, "observation"])
        case 5:
            return [anything(draw, depth + 1) for _ in range(draw.randrange(4))]
        case _:
            values: dict[str, Any] = {
                key: anything(draw, depth + 1) for key in ("session", "number", "questions", "answers")
            }
            return {"type": draw.choice(["Ask", "Advice", "Stop", 3]), **values}


def test_ten_thousand_fuzzed_frames_neither_stop_nor_fill_a_node() -> None:
    team = Team("ann", "ben", bare="eve")
    draw = random.Random(0)
    frames = [fuzzed(draw) for _ in range(10_000)]
    sizes = []

    async def test() -> None:
        node = team.nodes["ann"]
        tracemalloc.start()
        for start in range(0, 10_000, 50):
            for one in frames[start : start + 50]:
                team.knock("ann", draw.choice(["eve", "eve", "eve", f"mallory{start}"]), one)
            team.nodes["ann"].renew()  # or it would stop reading them
            await cycles(5)
            team.sent.clear()
            while not team.bare._inbox.empty():  # type: ignore[union-attr]
                team.bare._inbox.get_nowait()  # type: ignore[union-attr]
            if start % 2000 == 0:
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        counts = node.counts()
        assert sum(counts.values()) > 5000
        assert len(counts) < 12
        assert await team.nodes["ben"].ask({"ann": (GOOD,)}) == {"ann": await honest("", (GOOD,))}

    team.run(test)
    assert max(sizes[1:]) - sizes[1] < 20_000, sizes
    assert len(team.events) < 150
