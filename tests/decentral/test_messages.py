from __future__ import annotations

import pickle
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decentral import messages as say
from decentral.agents.advice import Answer, Question
from decentral.agents.mind import Ended, Phase, Request
from decentral.envs.turn import Outcome, Turn
from decentral.errors import LinkError

PHASE = Phase("train", 3, 1)
TURN = Turn("ann", 0, "you see a door", legal=("open", "wait"), system="be quick", reward=-1.0)
FROM_HOST: list[say.FromHost] = [
    say.Welcome("s"),
    say.Begin(PHASE, 3),
    say.Turns(PHASE, 1, (Request(2**40 + 5, 2**40, TURN),)),
    say.Over(PHASE, (Ended(1, 0, Outcome("ann", 1.5, 3, success=None)),)),
    say.Close(PHASE),
    say.Commit(4),
    say.Finish(60),
]
FROM_AGENT: list[say.FromAgent] = [
    say.Hello("ann"),
    say.Actions(PHASE, 1, ((5, "open"),)),
    say.Updated(PHASE, 4),
    say.Finished(4),
]
FROM_PEER: list[say.Peer] = [
    say.Ask(5, 1, (Question(2**40, 3, (("observation", "a door"), ("action", "open")), ("open", "wait"), bytes(64)),)),
    say.Advice(5, 1, (Answer(bytes(4), 1.5, bytes(64), 3, "it is shut"), Answer())),
    say.Advice(5, 1),
]
FIRST = bytes([say.VERSION])
host_reads = say.Decoder[say.FromAgent](say.FromAgent, 10_000)
agent_reads = say.Decoder[say.FromHost](say.FromHost, 10_000)
peer_reads = say.Decoder[say.Peer](say.Peer, 10_000)


@pytest.mark.parametrize("message", FROM_HOST)
def test_the_agent_reads_what_the_host_says_and_the_host_does_not(message: say.FromHost) -> None:
    frame = say.encode(message, 10_000)
    assert agent_reads(frame) == message
    with pytest.raises(LinkError):
        host_reads(frame)


@pytest.mark.parametrize("message", FROM_AGENT)
def test_the_host_reads_what_an_agent_says_and_the_agent_does_not(message: say.FromAgent) -> None:
    frame = say.encode(message, 10_000)
    assert host_reads(frame) == message
    with pytest.raises(LinkError):
        agent_reads(frame)


@pytest.mark.parametrize("message", FROM_PEER)
def test_a_peer_reads_what_a_peer_says_and_nobody_else_does(message: say.Peer) -> None:
    frame = say.encode(message, 10_000)
    assert peer_reads(frame) == message
    for reads in (host_reads, agent_reads):
        with pytest.raises(LinkError):
            reads(frame)


@pytest.mark.parametrize("message", [*FROM_HOST, *FROM_AGENT])
def test_a_peer_reads_nothing_else(message: Any) -> None:
    with pytest.raises(LinkError):
        peer_reads(say.encode(message, 10_000))


def test_a_message_that_is_too_large_is_refused_on_both_sides() -> None:
    message = say.Actions(PHASE, 1, ((5, "x" * 10_000),))
    with pytest.raises(LinkError, match="does not fit"):
        say.encode(message, 10_000)
    with pytest.raises(LinkError, match="larger than"):
        host_reads(say.encode(message, 20_000))


def test_another_version_is_refused() -> None:
    frame = say.encode(say.Hello("ann"), 10_000)
    with pytest.raises(LinkError, match=f"protocol version {say.VERSION}"):
        host_reads(bytes([say.VERSION + 1]) + frame[1:])


@pytest.mark.parametrize(
    "frame", [b"", FIRST, pickle.dumps({"a": 1}), FIRST + b"\x91" * 9000, FIRST + b"\x81\xa4type\xa5Hello"]
)
def test_what_is_no_message_is_a_link_error(frame: bytes) -> None:
    with pytest.raises(LinkError):
        host_reads(frame)


@given(st.binary(max_size=200))
def test_bytes_never_do_more_than_raise_a_link_error(noise: bytes) -> None:
    for frame in (noise, bytes([say.VERSION]) + noise):
        with suppress(LinkError):
            host_reads(frame)


@given(st.sampled_from(FROM_AGENT), st.data())
def test_a_flipped_byte_never_does_more_than_raise_a_link_error(message: Any, data: st.DataObject) -> None:
    frame = bytearray(say.encode(message, 10_000))
    frame[data.draw(st.integers(0, len(frame) - 1))] ^= data.draw(st.integers(1, 255))
    with suppress(LinkError):
        host_reads(bytes(frame))


def test_half_a_surrogate_pair_is_a_named_error() -> None:
    with pytest.raises(LinkError, match=r"a Hello holds a lone surrogate \('a\\ud800'\)"):
        say.encode(say.Hello("a\ud800"), 100)


def test_what_is_told_of_a_frame_does_not_quote_all_of_it() -> None:
    frame = bytes([say.VERSION]) + msgspec.msgpack.encode({"type": "x" * 10**6})
    with pytest.raises(LinkError) as caught:
        say.Decoder[say.FromAgent](say.FromAgent, say.MAX_WORLD)(frame)
    assert len(str(caught.value)) < 400
