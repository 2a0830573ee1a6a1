from __future__ import annotations

import asyncio

import pytest

from decentral import messages as say
from decentral.agents.advice import (
    MOST_RATIONALE,
    Answer,
    Question,
    check_answer,
    clean,
    pack_probabilities,
    unpack_probabilities,
)
from decentral.bad_teachers import KINDS, BadTeacher
from decentral.errors import ConfigError, LinkError

QUESTION = Question(1, 1, (("observation", "a door"),), ("open", "wait", "leave"))
FIRST = Answer(pack_probabilities([0.5, 0.3, 0.2]), 1.0, rationale="as I see it")
SECOND = Answer(pack_probabilities([0.1, 0.8, 0.1]))
read = say.Decoder[say.Peer](say.Peer, say.MAX_PEER)


class Door:
    """Keeps what goes out."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes]] = []

    async def send(self, to: str, frame: bytes) -> None:
        self.sent.append((to, frame))

    async def recv(self) -> tuple[str, bytes]:
        return "ann", b"heard"

    def close(self) -> None:
        self.sent.clear()


def advise(kind: str, *answers: Answer, seed: int = 0) -> tuple[list[say.Peer], list[bytes]]:
    """Sends one Advice for each answer, and returns what can be read of it, and the frames that cannot."""
    door = Door()
    teacher = BadTeacher(door, kind, seed)
    for number, answer in enumerate(answers):
        asyncio.run(teacher.send("ann", say.encode(say.Advice(5, number, (answer,)), say.MAX_PEER)))
    messages, garbage = [], []
    for to, frame in door.sent:
        assert to == "ann"
        try:
            messages.append(read(frame))
        except LinkError:
            garbage.append(frame)
    return messages, garbage


def probabilities(kind: str, *answers: Answer, seed: int = 0) -> list[list[float]]:
    messages, garbage = advise(kind, *answers, seed=seed)
    assert not garbage
    assert [message.number for message in messages] == list(range(len(answers)))
    for message in messages:
        assert isinstance(message, say.Advice)
        for answer in message.answers:
            check_answer(QUESTION, answer)
    said = [message.answers[0].probabilities for message in messages if isinstance(message, say.Advice)]
    return [unpack_probabilities(data).round(3).tolist() for data in said]


def test_random_is_a_distribution_that_its_seed_decides() -> None:
    drawn = probabilities("random", FIRST, FIRST)
    assert drawn[0] != drawn[1]
    assert [0.5, 0.3, 0.2] not in drawn
    assert drawn == probabilities("random", FIRST, FIRST)
    assert drawn != probabilities("random", FIRST, FIRST, seed=1)


def test_adversarial_is_certain_of_what_it_likes_least() -> None:
    assert probabilities("adversarial", FIRST, SECOND) == [[0, 0, 1], [1, 0, 0]]


def test_stale_repeats_what_it_said_to_an_earlier_question_with_as_many_actions() -> None:
    other = Answer(pack_probabilities([0.9, 0.1]))
    messages, _ = advise("stale", FIRST, other, SECOND, SECOND)
    said = [message.answers[0].probabilities for message in messages if isinstance(message, say.Advice)]
    assert said == [FIRST.probabilities, other.probabilities, FIRST.probabilities, SECOND.probabilities]


def test_silent_sends_no_advice() -> None:
    assert advise("silent", FIRST, SECOND) == ([], [])


def test_slow_is_one_advice_behind_to_each_peer() -> None:
    messages, _ = advise("slow", FIRST, SECOND, FIRST)
    assert messages == [say.Advice(5, 0, (FIRST,)), say.Advice(5, 1, (SECOND,))]


def test_flooding_sends_everything_many_times_and_garbage() -> None:
    messages, garbage = advise("flooding", FIRST)
    assert messages == [say.Advice(5, 0, (FIRST,))] * 50
    assert len(garbage) == 50


def test_injecting_turns_its_preference_around_and_gives_orders() -> None:
    assert probabilities("injecting", FIRST) == [[0.2, 0.3, 0.5]]
    (message,), _ = advise("injecting", FIRST)
    assert isinstance(message, say.Advice)
    orders = message.answers[0].rationale
    assert "<|im_start|>system" in orders
    assert "\n" in orders
    assert len(orders.encode()) <= MOST_RATIONALE  # it gets through the checks, and is study for what comes after them
    assert "\n" not in clean(orders)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_advice_passes_unchanged_both_ways(kind: str) -> None:
    door = Door()
    teacher = BadTeacher(door, kind, 0)
    ask = say.encode(say.Ask(5, 0, (QUESTION,)), say.MAX_PEER)
    for frame in (ask, b"noise"):
        asyncio.run(teacher.send("ben", frame))
    assert door.sent == [("ben", ask), ("ben", b"noise")]
    assert asyncio.run(teacher.recv()) == ("ann", b"heard")
    teacher.close()
    assert not door.sent


@pytest.mark.parametrize("kind", ["random", "adversarial", "stale", "injecting"])
def test_a_decline_stays_a_decline(kind: str) -> None:
    assert advise(kind, Answer()) == ([say.Advice(5, 0, (Answer(),))], [])


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'silent'"):
        BadTeacher(Door(), "silant", 0)
