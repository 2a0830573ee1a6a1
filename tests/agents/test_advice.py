from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decentral.agents.advice import (
    MOST_CONTEXT,
    MOST_RATIONALE,
    Answer,
    Question,
    check_answer,
    check_question,
    clean,
    clip_context,
    pack_embedding,
    pack_probabilities,
    pair_bytes,
    unpack_embedding,
    unpack_probabilities,
)
from decentral.errors import AdviceError
from decentral.messages import MAX_PEER, Advice, Ask, encode

ONES = pack_embedding(np.ones(32))
QUESTION = Question(7, 2, (("observation", "a door"), ("action", "open"), ("feedback", "shut")), ("open", "wait"), ONES)
ANSWER = Answer(pack_probabilities([0.25, 0.75]), -3.5, ONES, 2, "it is shut")
INF = np.full(32, np.inf, dtype="<f2").tobytes()
NAN = np.full(32, np.nan, dtype="<f2").tobytes()


def halves(*numbers: float) -> bytes:
    """Numbers as they are on the wire, whatever they are."""
    return np.array(numbers, dtype="<f2").tobytes()


def test_what_is_well_formed_passes_and_survives_the_wire() -> None:
    check_question(QUESTION)
    check_answer(QUESTION, ANSWER)
    check_answer(QUESTION, Answer())
    check_answer(QUESTION, Answer(pack_probabilities([1, 0])))
    for message in (QUESTION, ANSWER, Answer()):
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=type(message)) == message


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"episode": -1}, "counted from 0"),
        ({"round": -1}, "counted from 0"),
        ({"context": (("observation", "x" * 600),)}, "611 bytes of context"),
        ({"context": (("observation", "é" * 300),)}, "611 bytes of context"),
        ({"context": (("action", ""),) * 9000}, "without text"),
        ({"context": (("observation", "\ud800"),)}, "lone surrogate"),
        ({"legal": ()}, "offers 0 actions"),
        ({"legal": tuple(map(str, range(3000)))}, "offers 3,000 actions"),
        ({"legal": ("x" * 8000, "y" * 193)}, "8,193 bytes of actions"),
        ({"legal": ("open", "open")}, "twice"),
        ({"legal": ("open", "")}, "without text"),
        ({"embedding": bytes(63)}, "63 bytes"),
        ({"embedding": INF}, "norm inf"),
        ({"embedding": NAN}, "norm nan"),
    ],
)
def test_an_unfit_question_is_refused_in_one_short_sentence(change: dict[str, Any], why: str) -> None:
    with pytest.raises(AdviceError, match=why) as caught:
        check_question(msgspec.structs.replace(QUESTION, **change))
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"probabilities": halves(1.0)}, "2 bytes of probabilities for 2 actions"),
        ({"probabilities": halves(0.5, 0.5)[:3]}, "3 bytes"),
        ({"probabilities": halves(*[0.3] * 3000)}, "6,000 bytes of probabilities for 2"),
        ({"probabilities": halves(math.nan, 1.0)}, "finite"),
        ({"probabilities": halves(math.inf, 1.0)}, "finite"),
        ({"probabilities": halves(-0.5, 1.5)}, "at least 0"),
        ({"probabilities": halves(1.0, 1.0)}, "sum to 2"),
        ({"probabilities": halves(0.5, 0.498)}, "sum to 0.998"),
        ({"value": 1e9}, "value 1000000000"),
        ({"value": math.nan}, "value nan"),
        ({"value": -math.inf}, "value -inf"),
        ({"embedding": INF}, "norm inf"),
        ({"embedding": np.full(32, 60000, dtype="<f2").tobytes()}, "norm 3"),
        ({"round": -2}, "round -2"),
        ({"rationale": "é" * 101}, "202 bytes"),
        ({"rationale": "x" * 10**6}, "1,000,000 bytes"),
    ],
)
def test_an_unfit_answer_is_refused_in_one_short_sentence(change: dict[str, Any], why: str) -> None:
    with pytest.raises(AdviceError, match=why) as caught:
        check_answer(QUESTION, msgspec.structs.replace(ANSWER, **change))
    assert len(str(caught.value)) < 200


@given(st.lists(st.floats(0, 1), min_size=1, max_size=256).filter(lambda numbers: sum(numbers) > 1e-3))
def test_probabilities_come_back_nearly_the_same_and_sum_to_one(numbers: list[float]) -> None:
    numbers = (np.array(numbers) / sum(numbers)).tolist()
    question = msgspec.structs.replace(QUESTION, legal=tuple(map(str, range(len(numbers)))))
    answer = Answer(pack_probabilities(numbers))
    check_answer(question, answer)
    told = unpack_probabilities(answer.probabilities)
    np.testing.assert_allclose(told, numbers, rtol=2e-3, atol=1e-7)
    assert told.dtype == np.float64
    assert abs(told.sum() - 1) < 1e-12


@pytest.mark.parametrize("bad", [[0.5, 0.4], [math.nan, 1.0], [1.5, -0.5]])
def test_what_are_no_probabilities_are_not_packed(bad: list[float]) -> None:
    with pytest.raises(AdviceError, match="probabilities"):
        pack_probabilities(bad)


@given(st.lists(st.floats(-10, 10), min_size=32, max_size=32))
def test_an_embedding_comes_back_nearly_the_same(numbers: list[float]) -> None:
    packed = pack_embedding(numbers)
    assert len(packed) == 64
    np.testing.assert_allclose(unpack_embedding(packed), numbers, rtol=1e-3, atol=1e-4)


@given(st.lists(st.floats(-1e30, 1e30), min_size=32, max_size=32))
def test_an_embedding_of_any_length_is_one_that_a_peer_takes_and_keeps_its_direction(numbers: list[float]) -> None:
    packed = pack_embedding(numbers)
    check_answer(QUESTION, msgspec.structs.replace(ANSWER, embedding=packed))
    norm = np.linalg.norm(numbers)
    if norm > 200:
        cosine = np.dot(unpack_embedding(packed), numbers) / (np.linalg.norm(unpack_embedding(packed)) * norm)
        assert cosine > 0.999


@pytest.mark.parametrize("bad", [np.ones(31), np.ones((1, 32)), np.full(32, np.nan), [np.inf] * 32])
def test_what_is_no_embedding_is_not_packed(bad: Any) -> None:
    with pytest.raises(AdviceError, match="no embedding"):
        pack_embedding(bad)


@given(st.text(max_size=400), st.integers(0, MOST_RATIONALE))
def test_a_clean_text_is_one_short_line_of_visible_characters(text: str, most: int) -> None:
    line = clean(text, most)
    assert len(line) <= most
    assert line == line.strip()
    assert len(line.splitlines()) <= 1
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in line)
    assert clean(line, most) == line


def test_a_clean_text_has_no_escapes_and_no_characters_that_turn_the_line_around() -> None:
    assert clean("\u200b a \u200b b", 20) == "a b"
    assert clean("a\x1b[31m\u202eb\u200bc\u2028d\x00", 20) == "a[31mbc d"


@given(
    st.lists(
        st.tuples(st.sampled_from(["observation", "action", "feedback"]), st.integers(0, 90).map("é".__mul__)),
        max_size=20,
    )
)
def test_a_clipped_context_is_the_newest_that_fits(segments: list[tuple[Any, str]]) -> None:
    kept = clip_context(segments)
    told = [said for said in segments if said[1]]
    assert list(kept) == told[len(told) - len(kept) :]
    check_question(msgspec.structs.replace(QUESTION, context=kept))
    if len(kept) < len(told):
        longer = told[len(told) - len(kept) - 1 :]
        assert sum(len(msgspec.msgpack.encode(said)) for said in longer) > MOST_CONTEXT


def test_the_newest_segment_is_told_even_where_actions_leave_no_room() -> None:
    told: list[Any] = [("action", "wait"), ("observation", "x" * 400)]
    assert clip_context(told, 100) == (told[1],)
    assert clip_context([*told, ("observation", "x" * 700)], 100) == ()


def test_a_pair_never_takes_more_than_was_reckoned() -> None:
    huge = msgspec.structs.replace(QUESTION, episode=2**63, round=2**63)
    answer = Answer(halves(0.5, 0.5), -1e5, ONES, 2**63 - 1, "\U0001f6aa" * (MOST_RATIONALE // 4))
    check_answer(huge, answer)
    frames = [encode(Ask(2**64 - 1, 2**63, (huge,)), MAX_PEER), encode(Advice(2**64 - 1, 2**63, (answer,)), MAX_PEER)]
    assert pair_bytes(huge) - 20 < sum(map(len, frames)) <= pair_bytes(huge)
