"""What an agent makes of a turn before it acts: the exact distribution over actions, and a draw from another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from decentral.agents.config import AgentConfig
from decentral.agents.policy import Policy
from decentral.agents.rollout import Rollouts
from decentral.agents.scoring import score
from decentral.envs.turn import Turn

LEGAL = [
    ("north", "south", "stay"),
    ("go", "go on", "go on north", "red"),
    ("stay",),
    ("open 1 2", "open 1 3", "go on"),
]


def plan(episodes: int = 5, rounds: int = 5) -> list[list[Turn]]:
    return [
        [
            Turn(
                "ada", t, f"you red {e % 3} {t} " + "far " * (e * t), LEGAL[(e + t) % 4], 0, "" if t else "You are ada."
            )
            for t in range(rounds)
        ]
        for e in range(episodes)
    ]


@pytest.fixture(scope="module")
def policy(tiny: Path) -> Policy:
    return Policy(AgentConfig(model=str(tiny)))


def engine(policy: Policy, temperature: float = 1.3, reasoning: int = 0) -> Rollouts:
    made = Rollouts(policy, seed=3, agent=5, reasoning_tokens=reasoning)
    made.clear(temperature)
    return made


def slow(policy: Policy, ids: list[int], legal: tuple[str, ...], temperature: float) -> list[float]:
    """The obvious way: each action's tokens one by one, a full forward each, softmax over the trie's children."""
    found = []
    for action in legal:
        node, p, context = policy.format.trie(legal), 1.0, list(ids)
        for token in policy.format.choice(action):
            with torch.inference_mode():
                logits = policy.model(torch.tensor([context])).logits[0, -1] / temperature
            p *= float(logits[list(node.tokens)].softmax(0)[node.tokens.index(token)])
            node = node.nodes[token]
            context.append(token)
        found.append(p)
    return found


@pytest.mark.parametrize("reasoning", [0, 3])
def test_the_outlook_is_the_product_of_restricted_softmaxes_and_the_state_is_the_last_one(
    policy: Policy, reasoning: int
) -> None:
    rollouts = engine(policy, reasoning=reasoning)
    turns = plan()
    for t in range(5):
        outlooks = rollouts.read(range(5), [turns[e][t] for e in range(5)])
        for e, outlook in enumerate(outlooks):
            ids = list(rollouts.stream(e).ids)
            assert np.allclose(outlook.probabilities, slow(policy, ids, turns[e][t].legal, 1.3), atol=1e-5)
            with torch.inference_mode():
                state = policy.model(torch.tensor([ids]), output_hidden_states=True).hidden_states[-1][0, -1]
            assert torch.allclose(outlook.hidden, state, atol=1e-4)
        policies = [outlook.probabilities for outlook in outlooks]
        rollouts.settle(range(5), [turns[e][t] for e in range(5)], policies, policies)
    streams = [rollouts.close(e) for e in range(5)]
    chunks = [chunk for stream in streams for chunk in stream.chunks]
    scores = score(policy.forward, chunks, 1.3)
    recorded = [choice for chunk in chunks for choice in chunk.choices]
    assert np.allclose(scores.logp.detach(), [choice.logp for choice in recorded], atol=1e-4)
    assert np.allclose(scores.entropy.detach(), [choice.entropy for choice in recorded], atol=1e-4)


def test_actions_are_drawn_with_the_behaviour_and_recorded_token_by_token(policy: Policy) -> None:
    legal = LEGAL[1]
    behaviour = np.array([0.1, 0.2, 0.3, 0.4])
    count = 400
    rollouts = engine(policy)
    turns = [Turn("ada", 0, "you red", legal)] * count
    outlooks = rollouts.read(range(count), turns)
    assert all(np.allclose(one.probabilities, outlooks[0].probabilities, atol=1e-6) for one in outlooks)
    actions = rollouts.settle(range(count), turns, [one.probabilities for one in outlooks], [behaviour] * count)
    seen = np.bincount(actions, minlength=4) / count
    assert np.all(np.abs(seen - behaviour) < 4 * np.sqrt(behaviour * (1 - behaviour) / count))
    for episode, action in enumerate(actions):
        stream = rollouts.close(episode)
        assert stream.segments[-1].text == legal[action]
        assert np.isclose(sum(choice.logp for choice in stream.chunks[-1].choices), np.log(behaviour[action]))


def test_a_turn_that_was_read_and_settled_leaves_the_episode_as_one_that_was_played(policy: Policy) -> None:
    turns, played, settled = plan(), engine(policy), engine(policy)
    for t in range(5):
        now = [turns[e][t] for e in range(5)]
        texts = played.play(range(5), now)
        outlooks = settled.read(range(5), now)
        forced = [np.array([float(action == text) for action in turn.legal]) for turn, text in zip(now, texts)]
        settled.settle(range(5), now, [one.probabilities for one in outlooks], forced)
        for e, (outlook, text) in enumerate(zip(outlooks, texts)):
            action = played.stream(e).segments[-1]
            assert np.isclose(np.exp(sum(action.logp)), outlook.probabilities[now[e].legal.index(text)], atol=1e-5)
    for e in range(5):
        assert played.close(e).chunks[-1].ids == settled.close(e).chunks[-1].ids


def test_a_context_of_a_peer_is_read_as_ones_own_and_nothing_of_it_is_kept(policy: Policy) -> None:
    rollouts, turns = engine(policy), plan()
    context = [("system", "You are ada.")]
    for t in range(3):
        rollouts.play([0], [turns[0][t]])
        context.append(("observation", turns[0][t].observation))
        context.append(("action", rollouts.stream(0).segments[-1].text))
    context.append(("observation", turns[0][3].observation))
    own = rollouts.read([0], [turns[0][3]])[0]
    other = engine(policy)
    found = other.consult([context, context[:2]], [turns[0][3].legal, LEGAL[0]])
    assert np.allclose(found[0].probabilities, own.probabilities, atol=1e-5)
    assert torch.allclose(found[0].hidden, own.hidden, atol=1e-4)
    assert other.stream(0) is None
    long: list[Any] = [("observation", "far " * 5000)]
    mixed = other.consult([long, context, context], [LEGAL[0], turns[0][3].legal, ("x", "x")])
    assert [outlook is None for outlook in mixed] == [True, False, True]
    assert np.allclose(mixed[1].probabilities, own.probabilities, atol=1e-5)
    assert other.stream(0) is None
    again = other.consult([context[:2]], [LEGAL[0]])
    assert np.allclose(again[0].probabilities, found[1].probabilities, atol=1e-5)


@pytest.mark.parametrize("window", [0, 64])
def test_advice_is_read_where_it_stands_and_the_probabilities_are_exact(tiny: Path, window: int) -> None:
    policy = Policy(AgentConfig(model=str(tiny), window=window))
    rollouts, turns = engine(policy), plan(3, 6)
    for t in range(6):
        now = [turns[e][t] for e in range(3)]
        before = rollouts.read(range(3), now)
        after = rollouts.hear([0, 2], [now[0], now[2]], ["bob north 80", 'bob stay 50 "it is <|end|> far"'])
        for e, outlook in zip((0, 2), after):
            ids = list(rollouts.stream(e).ids)
            assert np.allclose(outlook.probabilities, slow(policy, ids, now[e].legal, 1.3), atol=1e-5)
            assert rollouts.stream(e).segments[-1].kind == "advice"
        policies = [after[0].probabilities, before[1].probabilities, after[1].probabilities]
        rollouts.settle(range(3), now, policies, policies)
    chunks = [chunk for e in range(3) for chunk in rollouts.close(e).chunks if chunk.choices]
    assert (len(chunks) > 3) == bool(window)
    recorded = [choice.logp for chunk in chunks for choice in chunk.choices]
    assert np.allclose(score(policy.forward, chunks, 1.3).logp.detach(), recorded, atol=1e-4)
