"""What of a stream a draft head is trained on."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from decentral.agents.config import AgentConfig
from decentral.agents.passage import Passage
from decentral.agents.policy import Policy
from decentral.agents.rollout import Rollouts
from decentral.agents.stream import Choice, Chunk
from decentral.envs.turn import Turn


def chunk(choices: dict[int, tuple[int, ...] | None]) -> Chunk:
    return Chunk(list(range(20)), [Choice(at, 0, allowed, -1.0, 1.0) for at, allowed in choices.items()])


@pytest.mark.parametrize(
    ("choices", "runs"),
    [
        ({}, []),
        ({3: None}, [(3, 4)]),
        ({3: None, 4: None, 5: None}, [(3, 6)]),
        ({3: None, 4: None, 6: None}, [(3, 5), (6, 7)]),
        ({3: None, 4: (1, 2), 5: None, 6: None}, [(3, 4), (5, 7)]),
        ({3: (1, 2), 4: (1, 2)}, []),
        ({3: (1, 2), 4: None, 5: None, 19: None}, [(4, 6), (19, 20)]),
    ],
)
def test_runs_end_where_a_token_was_given_forced_or_restricted(
    choices: dict[int, tuple[int, ...] | None], runs: list[tuple[int, int]]
) -> None:
    passage = Passage.of(chunk(choices), 0.7)
    assert passage.runs == runs
    assert passage.sampled == sum(allowed is None for allowed in choices.values())
    assert passage.ids == list(range(len(passage.ids)))
    assert len(passage.ids) >= max((end for _, end in runs), default=0)
    assert passage.temperature == 0.7


def test_a_played_stream_gives_a_run_per_free_text_and_survives_the_disk(tiny: Path) -> None:
    engine = Rollouts(Policy(AgentConfig(model=str(tiny), kind="frozen")), 0, 0, reasoning_tokens=4, ends=False)
    for turn in (
        Turn("bob", 0, "you red", (), 3),
        Turn("bob", 1, "you", ("north", "south")),
        Turn("bob", 2, "go", (), 5),
    ):
        engine.play([0], [turn])
    stream = engine.close(0)
    passage = Passage.of(stream.chunks[0], 1.0)
    assert [end - start for start, end in passage.runs] == [4, 3, 4, 4, 5]
    assert passage.sampled == 20
    given = set(range(len(passage.ids))) - {at for start, end in passage.runs for at in range(start, end)}
    assert min(given) == 0
    assert {choice.at for choice in stream.chunks[0].choices if choice.allowed is not None} <= given
    assert msgspec.json.decode(msgspec.json.encode(passage), type=Passage) == passage
