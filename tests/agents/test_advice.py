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
    unpack_embedding,
)
from decentral.errors import AdviceError

ONES = pack_embedding(np.ones(32))
QUESTION = Question(7, 2, (("observation", "a door"), ("action", "open"), ("feedback", "shut")), ("open", "wait"), ONES)
ANSWER = Answer((0.25, 0.75), -3.5, ONES, 2, "it is shut")
INF = np.full(32, np.inf, dtype="<f2").tobytes()
NAN = np.full(32, np.nan, dtype="<f2").tobytes()


def test_what_is_well_formed_passes_and_survives_the_wire() -> None:
    check_question(QUESTION)
    check_answer(QUESTION, ANSWER)
    check_answer(QUESTION, Answer())
    check_answer(QUESTION, Answer((1, 0)))
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
        ({"probabilities": (1.0,)}, "1 probabilities for 2 actions"),
        ({"probabilities": (0.3,) * 3000}, "3000 probabilities for 2"),
        ({"probabilities": (math.nan, 1.0)}, "finite"),
        ({"probabilities": (math.inf, 1.0)}, "finite"),
        ({"probabilities": (-0.5, 1.5)}, "at least 0"),
        ({"probabilities": (1.0, 1.0)}, "sum to 2"),
        ({"probabilities": (0.5, 0.48)}, "sum to 0.98"),
        ({"value": 1e9}, "value 1000000000"),
        ({"value": math.nan}, "value nan"),
        ({"value": -math.inf}, "value -inf"),
        ({"embedding": INF}, "norm inf"),
        ({"embedding": np.full(32, 60000, dtype="<f2").tobytes()}, "norm 3"),
        ({"round": -2}, "round -2"),
        ({"rationale": "x" * 10**6}, "1,000,000 characters"),
    ],
)
def test_an_unfit_answer_is_refused_in_one_short_sentence(change: dict[str, Any], why: str) -> None:
    with pytest.raises(AdviceError, match=why) as caught:
        check_answer(QUESTION, msgspec.structs.replace(ANSWER, **change))
    assert len(str(caught.value)) < 200


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
        assert sum(len((kind + text).encode()) for kind, text in longer) > MOST_CONTEXT
