"""What passes between agents: a question about one turn, an answer to it. Hostile until it was checked.

Owns their shape, their limits, and how a peer's text becomes harmless. Knows nothing about links, models, or how an
answer is scored. An answer tells no entropy: the receiver computes it from the probabilities.
"""

from __future__ import annotations

__all__ = [
    "EMBEDDING",
    "FRAME",
    "MOST_CONTEXT",
    "MOST_LEGAL",
    "MOST_OFFER",
    "MOST_PAIR",
    "MOST_RATIONALE",
    "Answer",
    "Question",
    "Said",
    "answer_bytes",
    "check_answer",
    "check_question",
    "clean",
    "clip_context",
    "context_room",
    "pack_embedding",
    "pack_probabilities",
    "pair_bytes",
    "question_bytes",
    "unpack_embedding",
    "unpack_probabilities",
]

import unicodedata
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from decentral.errors import AdviceError, short

EMBEDDING = 32
"""Numbers of a consensus embedding."""
MOST_RATIONALE = 200
"""Bytes (UTF-8) of a rationale."""
MOST_CONTEXT = 600
"""Bytes (UTF-8) of a question's context, kinds and texts."""
MOST_PAIR = 1000
"""Bytes that a question and its answer without a rationale take, alone in their frames, if the asker can help it."""
FRAME = 64
"""Bytes that a frame has beside its questions or answers, at most."""
MOST_LEGAL = 256
"""Actions of a question."""
MOST_OFFER = 8192
"""Bytes (UTF-8) of all actions of a question, so that any question fits into a frame."""
_MOST_NORM = 100.0
_MOST_VALUE = 1e6
_SLACK = 1e-3
"""How far from 1 probabilities may sum: float16 rounds each by at most a part in 2,048."""
_ANSWER = 91
"""Bytes of an answer without probabilities and rationale, at most."""

Said = tuple[Literal["observation", "action", "feedback"], str]
"""A segment of the asker's episode: its kind and its text."""


class Question(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """What an agent would do with help: its episode so far, as text, and the actions among which it must choose."""

    episode: int
    round: int
    context: tuple[Said, ...]
    """Newest last."""
    legal: tuple[str, ...]
    embedding: bytes = b""
    """The asker's own consensus embedding, see `pack_embedding`, or nothing."""


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What a teacher would do in the asker's place. ``Answer()`` is a decline."""

    probabilities: bytes = b""
    """Over the question's actions, in their order, see `pack_probabilities`; empty: declined."""
    value: float | None = None
    """The return that the teacher expects from there, if it says so."""
    embedding: bytes = b""
    """The teacher's consensus embedding of its own latest context in that episode, or nothing."""
    round: int = -1
    """The round to which that embedding belongs; -1: none."""
    rationale: str = ""


def check_question(question: Question) -> None:
    """Raises AdviceError for a question that no honest agent asks."""
    if question.episode < 0 or question.round < 0:
        raise AdviceError(
            f"a question is of episode {question.episode}, round {question.round}; both are counted from 0"
        )
    if not all(text for _, text in question.context):
        raise AdviceError("a question has a context segment without text; leave it out")
    size = sum(_bytes(kind + text) for kind, text in question.context)
    if size > MOST_CONTEXT:
        raise AdviceError(f"a question has {size:,} bytes of context and {MOST_CONTEXT} may be sent; clip_context cuts")
    if not 1 <= len(question.legal) <= MOST_LEGAL:
        raise AdviceError(f"a question offers {len(question.legal):,} actions; offer 1 to {MOST_LEGAL}")
    size = sum(_bytes(text) for text in question.legal)
    if size > MOST_OFFER:
        raise AdviceError(f"a question has {size:,} bytes of actions and {MOST_OFFER:,} may be sent; name them shorter")
    if "" in question.legal or len(set(question.legal)) < len(question.legal):
        raise AdviceError("a question offers an action twice, or one without text; name every action differently")
    _check_embedding(question.embedding)


def check_answer(question: Question, answer: Answer) -> None:
    """Raises AdviceError for an answer that no honest teacher gives to the question."""
    if answer.probabilities:
        _check_probabilities(answer.probabilities, len(question.legal))
    if answer.value is not None and not abs(answer.value) <= _MOST_VALUE:  # so that NaN fails too
        raise AdviceError(f"an answer has the value {answer.value}; send at most {_MOST_VALUE:g} in size, or none")
    _check_embedding(answer.embedding)
    if answer.round < -1:
        raise AdviceError(f"an answer's embedding is of round {answer.round}; send -1 for none")
    size = _bytes(answer.rationale)
    if size > MOST_RATIONALE:
        raise AdviceError(f"a rationale has {size:,} bytes; send at most {MOST_RATIONALE}")


def _check_probabilities(data: bytes, actions: int) -> None:
    if len(data) != 2 * actions:
        raise AdviceError(f"an answer has {len(data):,} bytes of probabilities for {actions} actions; send 2 for each")
    numbers = np.frombuffer(data, dtype="<f2").astype(np.float64)
    if not (np.isfinite(numbers).all() and (numbers >= 0).all()):
        raise AdviceError(
            f"an answer has the probabilities {short(tuple(numbers.tolist()))}; all must be finite and at least 0"
        )
    if abs(numbers.sum() - 1) > _SLACK:
        raise AdviceError(f"an answer's probabilities sum to {numbers.sum():g}; normalise them to 1")


def _check_embedding(data: bytes) -> None:
    if data:
        norm = float(np.linalg.norm(unpack_embedding(data)))
        if not norm <= _MOST_NORM:
            raise AdviceError(f"an embedding has the norm {norm:g}; pack_embedding keeps it below {_MOST_NORM:g}")


def _bytes(text: str) -> int:
    """Returns the size of a text. Raises AdviceError for half a surrogate pair, which no link carries."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise AdviceError(f"{short(text)} holds a lone surrogate; make texts of whole Unicode characters") from None


def pack_embedding(embedding: npt.ArrayLike) -> bytes:
    """Returns an embedding (32,) as float16, little-endian. One that is too long for a peer to take is scaled down.

    Raises AdviceError if it has another shape or is not finite.
    """
    vector = np.asarray(embedding, dtype=np.float64)
    if vector.shape != (EMBEDDING,) or not np.isfinite(vector).all():
        raise AdviceError(f"{short(embedding)} is no embedding; give {EMBEDDING} finite numbers")
    norm = float(np.linalg.norm(vector))
    most = 0.99 * _MOST_NORM  # float16 rounds
    return (vector * min(1.0, most / norm) if norm else vector).astype("<f2").tobytes()


def unpack_embedding(data: bytes) -> npt.NDArray[np.float32]:
    """Returns the embedding (32,) of `pack_embedding`. Raises AdviceError for another number of bytes."""
    if len(data) != 2 * EMBEDDING:
        raise AdviceError(f"an embedding has {len(data):,} bytes; send {2 * EMBEDDING}, or none")
    return np.frombuffer(data, dtype="<f2").astype(np.float32)


def pack_probabilities(probabilities: npt.ArrayLike) -> bytes:
    """Returns (A,) probabilities as float16, little-endian; what is below 3e-8 becomes 0.

    Raises AdviceError if they are none that `check_answer` takes.
    """
    data = np.asarray(probabilities, dtype=np.float64).astype("<f2").tobytes()
    _check_probabilities(data, len(data) // 2)
    return data


def unpack_probabilities(data: bytes) -> npt.NDArray[np.float64]:
    """Returns the (A,) probabilities that `check_answer` let pass, normalised: what a receiver reckons with.

    >>> unpack_probabilities(pack_probabilities([0.25, 0.75])).tolist()
    [0.25, 0.75]
    """
    numbers = np.frombuffer(data, dtype="<f2").astype(np.float64)
    return np.asarray(numbers / numbers.sum())


def question_bytes(question: Question) -> int:
    """Returns what a question takes within a frame."""
    return len(msgspec.msgpack.encode(question))


def answer_bytes(actions: int) -> int:
    """Returns the most that an answer about so many actions takes within a frame."""
    return _ANSWER + 2 * actions + MOST_RATIONALE


def pair_bytes(question: Question) -> int:
    """Returns the most that a question and its answer take, frames and all."""
    return 2 * FRAME + question_bytes(question) + answer_bytes(len(question.legal))


def context_room(question: Question) -> int:
    """Returns how many bytes of context bring a question that has none yet to `MOST_PAIR`; may be negative."""
    return MOST_PAIR - (pair_bytes(question) - MOST_RATIONALE)


def clean(text: str, most: int = MOST_RATIONALE) -> str:
    """Returns a peer's text as one line of at most ``most`` characters, without control and invisible characters.

    Special tokens stay as they read: `Format.given` splits them into plain characters, so they close no segment.

    >>> clean("go\\x1b[2J   north\\n\\nnow", 20)
    'go[2J north now'
    """
    visible = "".join(c for c in text if c.isspace() or not unicodedata.category(c).startswith("C"))
    return " ".join(visible.split())[:most].strip()


def clip_context(segments: Sequence[Said], most_bytes: int = MOST_CONTEXT) -> tuple[Said, ...]:
    """Returns the newest segments that take at most ``most_bytes`` on the wire, newest last.

    Those without text are left out. The newest may take up to `MOST_CONTEXT`: without it there is nothing to answer.

    >>> clip_context([("observation", "a wall"), ("action", "wait"), ("observation", "a door")], 40)
    (('action', 'wait'), ('observation', 'a door'))
    """
    kept: list[Said] = []
    size = 0
    for said in reversed([said for said in segments if said[1]]):
        size += len(msgspec.msgpack.encode(said))
        if size > (min(most_bytes, MOST_CONTEXT) if kept else MOST_CONTEXT):
            break
        kept.append(said)
    return tuple(reversed(kept))
