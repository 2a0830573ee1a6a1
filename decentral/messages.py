"""Every message that a link carries, and how it becomes bytes. Knows no socket and no process.

A frame is one byte with the version, then the msgpack of one tagged struct. What comes in is decoded by schema, after
its size and its version were checked; anything else is a LinkError, and the receiver counts, logs and drops it. The
host's and an agent's roads differ, so that neither can be made to decode what only the other may say.

    world link     host -> agent: Welcome Begin Turns Over Close Commit Finish    agent -> host: Hello Actions Updated
                                                                                                 Finished
    control link   supervisor -> process: Stop Lost     process -> supervisor: Status Progress PhaseClosed Failed
    peer link      agent -> agent: Ask Advice
"""

from __future__ import annotations

__all__ = [
    "MAX_CONTROL",
    "MAX_PEER",
    "MAX_WORLD",
    "VERSION",
    "Actions",
    "Advice",
    "Ask",
    "Begin",
    "Close",
    "Commit",
    "Decoder",
    "Event",
    "Failed",
    "Finish",
    "Finished",
    "FromAgent",
    "FromHost",
    "FromProcess",
    "FromSupervisor",
    "Hello",
    "Lost",
    "Over",
    "Peer",
    "PhaseClosed",
    "Progress",
    "Restarted",
    "Status",
    "Stop",
    "Turns",
    "Updated",
    "Welcome",
    "encode",
]

from typing import Any, Generic, Literal, TypeVar

import msgspec

from decentral.agents.advice import Answer, Question
from decentral.agents.mind import Ended, Metrics, Phase, Request
from decentral.errors import LinkError

VERSION = 2
MAX_WORLD = 64 * 2**20
"""Bytes of a frame on the world link: some ten thousand turns."""
MAX_CONTROL = 2**20
MAX_PEER = 64 * 2**10

_T = TypeVar("_T")


class Message(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Base of all messages; the class's name is the tag on the wire."""


# -- world link: host -> agent


class Welcome(Message, frozen=True):
    """The host is there. It names the host's session, so that an answer to an earlier host can be told apart."""

    session: str
    terms: dict[str, str] = {}
    """What it plays by, where it did not start the agents; see `decentral.terms`."""


class Begin(Message, frozen=True):
    """A phase starts; whatever was open is void. The agent plays it with the weights of checkpoint ``iteration``."""

    phase: Phase
    iteration: int
    """How many iterations are committed."""


class Turns(Message, frozen=True):
    """Turns that wait for the agent. It answers all of them with one Actions of the same batch number."""

    phase: Phase
    batch: int
    requests: tuple[Request, ...]


class Over(Message, frozen=True):
    """Episodes that are over; said before any later Turns."""

    phase: Phase
    ended: tuple[Ended, ...]


class Close(Message, frozen=True):
    """Every episode of the phase is over. After a train phase the agent updates and saves a checkpoint."""

    phase: Phase


class Commit(Message, frozen=True):
    """All agents have saved checkpoint ``iteration``; what is older than the one before it may go."""

    iteration: int


class Finish(Message, frozen=True):
    """The run is over: export the weights of checkpoint ``iteration`` and answer Finished."""

    iteration: int


FromHost = Welcome | Begin | Turns | Over | Close | Commit | Finish


# -- world link: agent -> host


class Hello(Message, frozen=True):
    """An agent is there and has nothing open. A new process says it with an empty session."""

    name: str
    session: str = ""
    terms: dict[str, str] = {}
    """What it was started with, as in Welcome."""


class Actions(Message, frozen=True):
    """The answer to Turns: (episode, action text) for each of its requests."""

    phase: Phase
    batch: int
    answers: tuple[tuple[int, str], ...]


class Updated(Message, frozen=True):
    """The answer to Close: the phase is over for this agent too, and after a train phase its checkpoint is on disk."""

    phase: Phase
    updates: int


class Finished(Message, frozen=True):
    """The answer to Finish."""

    updates: int


FromAgent = Hello | Actions | Updated | Finished


# -- peer link


class Ask(Message, frozen=True):
    """Questions for one peer, all that the asker has at once. It is answered by one Advice of the same number."""

    session: int
    """Of the asker's process, so that what an earlier one asked can be told apart."""
    number: int
    """Grows with every Ask from this asker to this peer."""
    questions: tuple[Question, ...]


class Advice(Message, frozen=True):
    """The answers to an Ask, one for each of its questions, or none: then the whole Ask is declined."""

    session: int
    """The asker's."""
    number: int
    answers: tuple[Answer, ...] = ()


Peer = Ask | Advice


# -- control link


class Stop(Message, frozen=True):
    """End now, in order; the run is resumed from its last committed iteration."""


class Lost(Message, frozen=True):
    """A process was lost; ``why`` is a clause that says how ("was killed by signal 9")."""

    name: str
    why: str


class Status(Message, frozen=True):
    """How an agent is doing, said about twice a second; it is also the sign of life."""

    name: str
    phase: Phase | None = None
    updates: int = 0
    busy: Literal["", "loading", "acting", "updating", "exporting", "done"] = ""
    metrics: Metrics = {}
    """What the last update returned."""


class Progress(Message, frozen=True):
    """How far the host is, said about twice a second; it is also the sign of life."""

    phase: Phase | None
    done: int
    """Episodes of this phase that are over."""
    total: int
    iteration: int
    """Iterations committed."""
    iterations: int
    train_seconds: float
    waiting: tuple[str, ...] = ()
    """Agents whose answer the host waits for."""


class PhaseClosed(Message, frozen=True):
    """A phase is over and recorded."""

    phase: Phase
    episodes: int
    faults: int
    seconds: float
    success: dict[str, float | None]
    returns: dict[str, float]


class Failed(Message, frozen=True):
    """A process ends because of an error that was raised on purpose; ``kind`` is a class of decentral.errors."""

    kind: str
    text: str


class Restarted(Message, frozen=True):
    """The supervisor has started a lost process again (never sent: an event only)."""

    name: str
    count: int


FromSupervisor = Stop | Lost
FromProcess = Status | Progress | PhaseClosed | Failed
Event = Status | Progress | PhaseClosed | Lost | Restarted
"""What ``on_event`` of an engine is called with."""


def encode(message: Message, max_bytes: int) -> bytes:
    """Returns the frame of a message. Raises LinkError if it is larger than the link allows, or holds no Unicode."""
    try:
        frame = bytes([VERSION]) + msgspec.msgpack.encode(message)
    except UnicodeEncodeError as error:
        bad = error.object[max(0, error.start - 20) : error.end]
        raise LinkError(
            f"a {type(message).__name__} holds a lone surrogate ({bad!r}), which no link carries: "
            "make its texts of whole Unicode characters"
        ) from error
    if len(frame) > max_bytes:
        raise LinkError(
            f"a {type(message).__name__} of {len(frame):,} bytes does not fit the link's {max_bytes:,}: "
            "lower `copies`, or shorten the observations"
        )
    return frame


class Decoder(Generic[_T]):
    """Turns frames into messages of one union."""

    def __init__(self, union: Any, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._decoder: msgspec.msgpack.Decoder[_T] = msgspec.msgpack.Decoder(union)

    def __call__(self, frame: bytes) -> _T:
        """Raises LinkError if the frame is too large, of another version, or no message of the union."""
        if len(frame) > self.max_bytes:
            raise LinkError(f"a frame of {len(frame):,} bytes is larger than the link's {self.max_bytes:,}")
        if frame[:1] != bytes([VERSION]):
            raise LinkError(f"a frame starts with {frame[:1]!r}, not with protocol version {VERSION}")
        try:
            return self._decoder.decode(memoryview(frame)[1:])
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
            raise LinkError(
                f"a frame of {len(frame):,} bytes is no message of this link: {str(error)[:200]}"
            ) from error
