"""Rollout and training log-probabilities agree, whatever the batch, the cache, the padding or the chunk (float32)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decentral.agents.config import AgentConfig
from decentral.agents.draft import DraftHead
from decentral.agents.drafter import Drafter, Mode
from decentral.agents.lean import LeanLlama
from decentral.agents.pace import Pace
from decentral.agents.policy import Policy
from decentral.agents.rollout import Rollouts
from decentral.agents.scoring import score
from decentral.agents.stream import Chunk, Stream
from decentral.envs.turn import Turn

WORDS = ["north", "south", "east", "west", "stay", "you", "bob", "unseen", "red", "redder", "go"]
MODES: list[Mode] = ["rejection", "target_only"]
LEGAL = [("north", "south", "stay"), ("go", "go on", "go on north", "red"), ("red", "redder"), ("open 1 2", "open 1 3")]


@pytest.fixture(scope="module")
def policy(tiny: Path) -> Policy:
    return Policy(AgentConfig(model=str(tiny)))


@pytest.fixture(scope="module")
def double(tiny: Path) -> Policy:
    """In float64, so that no draw falls so near a boundary that the order of a sum decides."""
    policy = Policy(AgentConfig(model=str(tiny)))
    policy.model.double()
    policy._lean = LeanLlama(policy.model, policy.window)
    return policy


def slow_logps(policy: Policy, chunk: Chunk, temperature: float) -> list[float]:
    """The obvious way: one row, no cache, one full forward per choice, softmax over the allowed tokens only."""
    found = []
    for choice in chunk.choices:
        with torch.inference_mode():
            logits = policy.model(torch.tensor([chunk.ids[: choice.at]])).logits[0, -1] / temperature
        allowed = list(choice.allowed) if choice.allowed else list(range(len(logits)))
        found.append(float(logits[allowed].log_softmax(0)[allowed.index(chunk.ids[choice.at])]))
    return found


def play(
    policy: Policy,
    plan: Sequence[Sequence[Turn]],
    *,
    temperature: float = 1.0,
    reasoning: int = 0,
    together: bool = True,
    by: Drafter | None = None,
) -> list[Stream]:
    """Plays episodes (one list of turns each), all at once or one after the other."""
    engine = Rollouts(policy, seed=3, agent=5, reasoning_tokens=reasoning, drafter=by)
    engine.clear(temperature)
    if together:
        for t in range(max(map(len, plan))):
            live = [e for e in range(len(plan)) if t < len(plan[e])]
            engine.play(live, [plan[e][t] for e in live])
            for e in live:
                if t + 1 == len(plan[e]) and e % 2:
                    engine.play([100 + e], [plan[e][0]])
        return [engine.close(e) for e in range(len(plan))]
    streams = []
    for e, turns in enumerate(plan):
        for turn in turns:
            engine.play([e], [turn])
        streams.append(engine.close(e))
    return streams


@st.composite
def plans(draw: st.DrawFn) -> list[list[Turn]]:
    """Episodes of one to six turns, legal and free, some with one opening in common."""
    episodes = []
    for _ in range(draw(st.integers(1, 5))):
        turns = []
        for t in range(draw(st.integers(1, 6))):
            words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8)) if t else ["you", "red"]
            legal = draw(st.sampled_from([*LEGAL, ()]))
            turns.append(
                Turn(
                    "bob", t, " ".join(words), legal, 0 if legal else 4, "you are bob" if t == 0 else "", "go" * (t % 2)
                )
            )
        episodes.append(turns)
    return episodes


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=plans(), temperature=st.sampled_from([1.0, 0.7, 1.6]), reasoning=st.sampled_from([0, 3]))
def test_rollout_training_and_the_slow_way_agree(
    policy: Policy, plan: list[list[Turn]], temperature: float, reasoning: int
) -> None:
    streams = play(policy, plan, temperature=temperature, reasoning=reasoning)
    chunks = [chunk for stream in streams for chunk in stream.chunks if chunk.choices]
    scored = score(policy.forward, chunks, temperature)
    rolled = [choice.logp for chunk in chunks for choice in chunk.choices]
    np.testing.assert_allclose(scored.logp.detach().numpy(), rolled, atol=1e-4)
    np.testing.assert_allclose(rolled, np.concatenate([slow_logps(policy, c, temperature) for c in chunks]), atol=1e-4)
    entropy = [choice.entropy for chunk in chunks for choice in chunk.choices]
    np.testing.assert_allclose(scored.entropy.detach().numpy(), entropy, atol=1e-4)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=plans(), reasoning=st.sampled_from([0, 3]))
def test_draws_do_not_depend_on_the_batch(double: Policy, plan: list[list[Turn]], reasoning: int) -> None:
    together = play(double, plan, reasoning=reasoning)
    alone = play(double, plan, reasoning=reasoning, together=False)
    assert [s.ids for s in together] == [s.ids for s in alone]


def test_a_chunk_split_keeps_whole_newest_segments_and_exact_log_probabilities(tiny: Path) -> None:
    policy = Policy(AgentConfig(model=str(tiny), window=64))
    turns = [
        Turn("bob", t, "you 1 2 bob unseen red", LEGAL[t % 4], 0, "you are bob" if t == 0 else "") for t in range(20)
    ]
    (stream,) = play(policy, [turns])
    assert len(stream.chunks) > 2
    assert all(chunk.choices[-1].at < 64 for chunk in stream.chunks)
    system = policy.format.given("system", "you are bob")
    for chunk in stream.chunks:
        assert tuple(chunk.ids[: len(system)]) == system
        found = [choice.logp for choice in chunk.choices]
        np.testing.assert_allclose(found, slow_logps(policy, chunk, 1.0), atol=1e-4)
    assert sum(len(chunk.choices) for chunk in stream.chunks) >= 20
    assert {choice.turn for chunk in stream.chunks for choice in chunk.choices} == set(range(20))


def test_actions_follow_the_product_of_restricted_softmaxes(policy: Policy) -> None:
    """One action's text is a prefix of another's: frequencies match the trie's probabilities (chi-square)."""
    legal = ("go", "go on", "go on north", "red")
    turn = Turn("bob", 0, "you red", legal)
    engine = Rollouts(policy, seed=1, agent=1)
    engine.clear(1.0)
    count = 4000
    actions = engine.play(range(count), [turn] * count)
    streams = [engine.close(e) for e in range(count)]
    observed = np.array([actions.count(action) for action in legal])
    probability = {
        action: np.exp(sum(c.logp for c in stream.chunks[0].choices)) for action, stream in zip(actions, streams)
    }
    expected = np.array([probability.get(action, 0.0) for action in legal]) * count
    assert expected.sum() == pytest.approx(count, rel=1e-4)
    assert ((observed - expected) ** 2 / np.maximum(expected, 1e-9)).sum() < 16.3


def test_a_forced_turn_costs_no_forward_and_no_draw(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Rollouts(policy, seed=1, agent=1)
    engine.clear(1.0)
    monkeypatch.setattr(policy, "forward_cached", lambda *_: pytest.fail("a forced turn ran the model"))
    assert engine.play([0], [Turn("bob", 0, "you", ("north",))]) == ["north"]
    assert engine.spent.tokens == 0
    segment = engine.stream(0).segments[-1]
    assert set(segment.logp) == {0.0}
    assert len(segment.logp) == len(segment.ids)


def test_a_common_opening_is_computed_once(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Rollouts(policy, seed=1, agent=1)
    engine.clear(1.0)
    rows: list[int] = []
    forward = policy.forward_cached
    monkeypatch.setattr(policy, "forward_cached", lambda ids, *rest: rows.append(len(ids)) or forward(ids, *rest))
    turn = Turn("bob", 0, "you red", ("north", "south"))
    engine.play(range(6), [turn] * 6)
    engine.play(range(6), [turn] * 6)
    assert rows == [1, 6]


def test_a_row_with_much_to_read_does_not_pad_the_others(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """And all say what they say alone, the middle row's place in the cache included."""
    long = " ".join(["you", "bob", "red"] * 80)
    plan = [[Turn("bob", t, long if (e, t) == (2, 1) else "you red", LEGAL[e % 2]) for t in range(4)] for e in range(5)]
    shapes: list[torch.Size] = []
    forward = policy.forward_cached
    monkeypatch.setattr(policy, "forward_cached", lambda ids, *a: shapes.append(ids.shape) or forward(ids, *a))
    together = play(policy, plan)
    assert max(width for rows, width in shapes if rows > 1) < 20
    assert max(width for rows, width in shapes if rows == 1) > 200
    alone = play(policy, plan, together=False)
    for mine, other in zip(together, alone):
        assert mine.ids == other.ids
        np.testing.assert_allclose(
            slow_logps(policy, mine.chunks[0], 1.0), [c.logp for c in mine.chunks[0].choices], atol=1e-4
        )


def test_special_tokens_in_a_text_stay_text(policy: Policy) -> None:
    fmt = policy.format
    ids = fmt.given("observation", "x <|action|> north <|end|>")
    assert ids.count(fmt.end) == 0
    assert ids.count(fmt.opening("action")[0]) == 0
    assert fmt.decode(fmt.text(" a  b\n<|end|> ü")) == " a  b\n<|end|> ü"


def drafter(policy: Policy, mode: Mode, length: int, shortlist: bool = False) -> Drafter:
    """Drafts with a head of disturbed weights: some of its tokens are accepted, some are not."""
    draw = torch.Generator().manual_seed(2)
    some = torch.randperm(policy.model.config.vocab_size, generator=draw)[: policy.model.config.vocab_size // 2]
    head = DraftHead(policy.shared(), policy.window, some if shortlist else None)
    with torch.no_grad():
        for weight in head.parameters():
            weight.add_(torch.randn(weight.shape, generator=draw), alpha=0.1)
    return Drafter(head, mode, Pace(length))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    plan=plans(),
    temperature=st.sampled_from([1.0, 0.7, 1.6]),
    reasoning=st.sampled_from([0, 5]),
    mode=st.sampled_from(MODES),
    length=st.integers(1, 3),
    shortlist=st.booleans(),
)
def test_with_drafts_too_rollout_training_and_the_slow_way_agree(
    policy: Policy,
    plan: list[list[Turn]],
    temperature: float,
    reasoning: int,
    mode: Mode,
    length: int,
    shortlist: bool,
) -> None:
    by = drafter(policy, mode, length, shortlist)
    streams = play(policy, plan, temperature=temperature, reasoning=reasoning, by=by)
    chunks = [chunk for stream in streams for chunk in stream.chunks if chunk.choices]
    rolled = [choice.logp for chunk in chunks for choice in chunk.choices]
    np.testing.assert_allclose(rolled, np.concatenate([slow_logps(policy, c, temperature) for c in chunks]), atol=1e-4)
    scored = score(policy.forward, chunks, temperature)
    entropy = [choice.entropy for chunk in chunks for choice in chunk.choices]
    np.testing.assert_allclose(scored.entropy.detach().numpy(), entropy, atol=1e-4)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=plans(), reasoning=st.sampled_from([0, 5]), mode=st.sampled_from(MODES), length=st.integers(1, 3))
def test_with_drafts_of_a_fixed_length_draws_do_not_depend_on_the_batch(
    double: Policy, plan: list[list[Turn]], reasoning: int, mode: Mode, length: int
) -> None:
    by = drafter(double, mode, length)
    together = play(double, plan, reasoning=reasoning, by=by)
    alone = play(double, plan, reasoning=reasoning, together=False, by=by)
    assert [s.ids for s in together] == [s.ids for s in alone]


def test_a_choice_beside_rows_that_draft_is_the_one_it_makes_alone(policy: Policy) -> None:
    """Whichever way the order of the actions is not that of their tokens."""
    legal = ("south red", "south bob", "north red", "north bob")
    plan = [[Turn("bob", t, "you red", legal if e % 2 else legal[::-1]) for t in range(4)] for e in range(12)]
    plan.append([Turn("bob", t, "you red", (), 12) for t in range(4)])
    by = drafter(policy, "rejection", 3)
    together = play(policy, plan, by=by)
    assert [s.ids for s in together] == [s.ids for s in play(policy, plan, together=False, by=by)]


@pytest.mark.parametrize("mode", MODES)
def test_a_chunk_split_amid_drafts_keeps_exact_log_probabilities(tiny: Path, mode: Mode) -> None:
    policy = Policy(AgentConfig(model=str(tiny), window=64))
    by = drafter(policy, mode, 3)
    plan = [
        [Turn("bob", t, "you 1 2 bob", LEGAL[t % 4] if t % 3 else (), 0 if t % 3 else 6 + e) for t in range(12)]
        for e in range(3)
    ]
    streams = play(policy, plan, reasoning=4, by=by)
    for stream in streams:
        assert len(stream.chunks) > 2
        for chunk in stream.chunks:
            assert chunk.choices[-1].at < 64
            found = [choice.logp for choice in chunk.choices]
            np.testing.assert_allclose(found, slow_logps(policy, chunk, 1.0), atol=1e-4)
    assert 0 < by.pace.counts.accepted[0] < by.pace.counts.reached[0]


@pytest.mark.parametrize("mode", MODES)
def test_drafted_actions_follow_the_product_of_restricted_softmaxes(policy: Policy, mode: Mode) -> None:
    """Several choices lie on the way to an action, and drafts are restricted to the trie."""
    legal = ("go on north 1 red", "go on north 1 bob", "go on south", "go red", "red go", "red go on", "red you 2")
    by = drafter(policy, mode, 3)
    engine = Rollouts(policy, seed=1, agent=1, drafter=by)
    engine.clear(1.0)
    count = 8000
    engine.play(range(count), [Turn("bob", 0, "you red", ("north", "south"))] * count)
    turn = Turn("bob", 1, "bob", legal)
    same = [e for e in range(count) if engine.stream(e).segments[-1].text == "north"]
    actions = engine.play(same, [turn] * len(same))
    before = engine.stream(same[0]).ids[: -len(policy.format.choice(actions[0]))]
    expected = np.array([likelihood(policy, before, legal, action) for action in legal]) * len(same)
    assert expected.sum() == pytest.approx(len(same), rel=1e-4)
    observed = np.array([actions.count(action) for action in legal])
    rare = expected < 5
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], max(expected[rare].sum(), 1e-9))
    assert len(expected) > 4
    assert by.pace.counts.accepted[0] > 0
    assert ((observed - expected) ** 2 / expected).sum() < 22.5  # at most 6 degrees of freedom, p = 0.001


def likelihood(policy: Policy, before: list[int], legal: tuple[str, ...], action: str) -> float:
    """The product of softmaxes over the children of every node of the trie, one plain forward each."""
    node, ids, total = policy.format.trie(legal), list(before), 1.0
    for token in policy.format.choice(action):
        if len(node.tokens) > 1:
            with torch.inference_mode():
                logits = policy.model(torch.tensor([ids])).logits[0, -1, list(node.tokens)]
            total *= logits.softmax(0)[node.tokens.index(token)].item()
        node = node.nodes[token]
        ids.append(token)
    return total
