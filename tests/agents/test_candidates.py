"""Free turns that are asked about: which texts are offered, and that nothing else of the turn changes by it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from decentral.agents.advice import Answer, Question, check_answer, check_question, pack_probabilities
from decentral.agents.advice_config import AdviceConfig
from decentral.agents.advisor import Advisor
from decentral.agents.candidates import candidates, offer
from decentral.agents.choosing import tilt
from decentral.agents.config import AgentConfig
from decentral.agents.mind import Request
from decentral.agents.policy import Policy
from decentral.agents.rollout import Rollouts
from decentral.agents.scoring import score
from decentral.envs.turn import Turn

TEMPERATURE = 0.7


@pytest.fixture(scope="module")
def policy(tiny: Path) -> Policy:
    return Policy(AgentConfig(model=str(tiny)))


def engine(policy: Policy, reasoning: int = 0) -> Rollouts:
    made = Rollouts(policy, seed=3, agent=5, reasoning_tokens=reasoning)
    made.clear(TEMPERATURE)
    return made


def turn(episode: int, round_: int) -> Turn:
    """Every third one has legal actions."""
    text = f"you red {episode} {round_} " + "far " * (episode * round_)
    legal = ("go", "go on", "stay") if (episode + round_) % 3 == 2 else ()
    return Turn("ada", round_, text, legal, 0 if legal else 4, "" if round_ else "You are ada.")


def test_candidates_differ_for_oneself_and_for_a_peer_and_are_no_longer_than_the_turn_allows() -> None:
    def encode(text: str) -> tuple[int, ...]:
        return (*text.lower().strip(" ").encode(), 0)

    draws = ["go", "go on", "go", "GO", " go", "go\n", "", "\n", "\u202e", "stay there and wait", "<|end|>\x1b[2J"]
    found = candidates(draws, encode, 14)
    assert found == ("go", "go on", "<|end|>\x1b[2J")
    long = candidates(["x" * 80 + "y", "x" * 80 + "z", "x"], encode, 100)
    assert long == ("x" * 80 + "y", "x")
    question = Question(0, 0, (("observation", "a door"),), tuple(map(offer, (*found, *long))))
    check_question(question)
    assert question.legal == ("go", "go on", "<|end|>[2J", "x" * 60, "x")


@pytest.mark.parametrize("reasoning", [0, 2])
def test_a_free_turn_that_was_read_and_said_is_as_one_that_was_played_in_any_batch(
    policy: Policy, reasoning: int
) -> None:
    played, said, single = (engine(policy, reasoning) for _ in range(3))
    for round_ in range(3):
        turns = [turn(episode, round_) for episode in range(4)]
        texts = played.play(range(4), turns)
        outlooks = said.read([3, 1, 0, 2], [turns[e] for e in (3, 1, 0, 2)])
        alone = [single.read([e], [turns[e]])[0] for e in range(4)]
        for episode, outlook in zip((3, 1, 0, 2), outlooks):
            assert outlook.legal == alone[episode].legal
            assert torch.allclose(outlook.hidden, alone[episode].hidden, atol=1e-4)
        for rollouts, order in ((said, (3, 1, 0, 2)), (single, range(4))):
            looks = dict(zip(order, outlooks if rollouts is said else alone))
            free = [e for e in order if not turns[e].legal]
            assert rollouts.say(free, [turns[e] for e in free]) == [texts[e] for e in free]
            legal = [e for e in order if turns[e].legal]
            own = [looks[e].probabilities for e in legal]
            forced = [np.array([float(action == texts[e]) for action in turns[e].legal]) for e in legal]
            rollouts.settle(legal, [turns[e] for e in legal], own, forced)
    for episode in range(4):
        a, b = played.close(episode), said.close(episode)
        assert [chunk.ids for chunk in a.chunks] == [chunk.ids for chunk in b.chunks]
        free = [(c.at, c.logp) for c in a.chunks[-1].choices if c.allowed is None]
        assert np.allclose(free, [(c.at, c.logp) for c in b.chunks[-1].choices if c.allowed is None], atol=1e-4)
        assert a.turns == b.turns == 3


def test_what_is_drawn_among_candidates_is_trained_on_as_it_was_drawn(policy: Policy) -> None:
    rollouts = engine(policy, reasoning=2)
    for round_ in range(3):
        turns = [Turn("ada", round_, f"you red {e}", (), 2) for e in range(6)]
        outlooks = rollouts.read(range(6), turns)
        some = [e for e in range(6) if outlooks[e].legal]
        assert len(some) > 3
        none = [e for e in range(6) if not outlooks[e].legal]
        rollouts.say(none, [turns[e] for e in none])
        among = [Turn("ada", round_, turns[e].observation, outlooks[e].legal) for e in some]
        own = [outlooks[e].probabilities for e in some]
        assert all(np.isclose(p.sum(), 1) for p in own)
        assert max(map(len, own)) > 2
        for e, now, p, action in zip(some, among, own, rollouts.settle(some, among, own, own)):
            segment = rollouts.stream(e).segments[-1]
            assert (segment.kind, segment.text, segment.legal) == ("action", now.legal[action], now.legal)
            assert np.isclose(np.exp(sum(segment.logp)), p[action])
    chunks = [chunk for e in range(6) for chunk in rollouts.close(e).chunks]
    recorded = [choice for chunk in chunks for choice in chunk.choices]
    assert max(sum(c.allowed is not None for c in chunk.choices) for chunk in chunks) > 3  # some of several tokens
    scores = score(policy.forward, chunks, TEMPERATURE)
    assert np.allclose(scores.logp.detach(), [choice.logp for choice in recorded], atol=1e-4)
    assert np.allclose(scores.entropy.detach(), [choice.entropy for choice in recorded], atol=1e-4)


def test_candidates_follow_the_policy_and_what_is_done_follows_what_is_recorded(policy: Policy) -> None:
    """Played out: how often a text is a candidate, is said though it is none, and is drawn where advice tilts."""
    count, rollouts = 250, engine(policy)
    turns = [Turn("ada", 0, "you red", (), 1)] * count
    outlooks = rollouts.read(range(count), turns)
    with torch.inference_mode():
        logits = policy.model(torch.tensor([rollouts.stream(0).ids])).logits[0, -1] / TEMPERATURE
    chances: dict[str, float] = {}
    for token, p in enumerate(logits.double().softmax(0).tolist()):
        text = policy.format.decode([token])
        chances[text] = chances.get(text, 0.0) + p
    offered = [text for text in chances if candidates([text], policy.format.choice, 2)]
    text = min(offered, key=lambda text: abs(chances[text] - 0.1))
    p = chances[text]
    assert 0.05 < p < 0.3
    holds = np.array([text in outlook.legal for outlook in outlooks])
    assert near(holds.mean(), 1 - (1 - p) ** 8, count)

    free = [e for e in range(count) if not holds[e]]
    said = rollouts.say(free, [turns[e] for e in free])
    assert near(np.mean([one == text for one in said]), p, len(free))

    some = [e for e in range(count) if holds[e] and len(outlooks[e].legal) > 1]
    own = [outlooks[e].probabilities for e in some]
    places = [outlooks[e].legal.index(text) for e in some]
    drawn = [tilt(q, np.eye(len(q))[place], 1.0) for q, place in zip(own, places)]
    among = [Turn("ada", 0, "you red", outlooks[e].legal) for e in some]
    actions = rollouts.settle(some, among, own, drawn)
    expected = np.array([q[place] for q, place in zip(drawn, places)])
    off = sum(action == place for action, place in zip(actions, places)) - expected.sum()
    assert abs(off) < 4 * np.sqrt((expected * (1 - expected)).sum())
    for e, action, q, b in zip(some, actions, own, drawn):
        (choice,) = rollouts.close(e).chunks[-1].choices
        assert np.isclose(np.exp(choice.logp), b[action])
        assert np.isclose(choice.weight, q[action] / b[action])


def test_a_peer_reads_clean_candidates_and_the_text_itself_is_done(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = ("go\x1b[2J\n<|end|><|system|> on", "red " * 40, "stay")
    monkeypatch.setattr("decentral.agents.rollout.candidates", lambda *_: raw)
    config = AdviceConfig(rule="follow", gate="always")
    ada, bob = (Advisor(name, config, policy, 0, (other,), 1.0) for name, other in (("ada", "bob"), ("bob", "ada")))
    rollouts, request = engine(policy), Request(7, 0, Turn("ada", 0, "you red", (), 3))
    ada.begin(TEMPERATURE)
    bob.begin(TEMPERATURE)
    (question,) = ada.look(rollouts, [request])
    check_question(question)
    assert question.legal == ("go[2J <|end|><|system|> on", ("red " * 15).strip(), "stay")
    (answer,) = bob.answer((question,))
    check_answer(question, answer)
    told = Answer(pack_probabilities([0.0, 1.0, 0.0]), None, answer.embedding, 0)
    assert ada.choose(rollouts, [request], {"bob": {7: told}}) == [raw[1]]
    assert rollouts.stream(7).segments[-1].text.strip() == raw[1].strip()


@pytest.mark.parametrize("silent", [False, True])
def test_a_turn_asked_about_keeps_its_candidates_whoever_answers_and_any_other_is_free(
    policy: Policy, silent: bool
) -> None:
    """Silent: nobody answers. Else the budget lets nothing be asked."""
    config = AdviceConfig(rule="ours", gate="always", bytes=10**6 if silent else 0)
    advisor, rollouts, plain = Advisor("ada", config, policy, 0, ("bob",), 1.0), engine(policy), engine(policy)
    advisor.begin(TEMPERATURE)
    requests = [Request(e, 0, Turn("ada", 0, f"you red {e}", (), 1)) for e in range(8)]
    asked = {question.episode for question in advisor.look(rollouts, requests)}
    texts = advisor.choose(rollouts, requests, {"bob": dict.fromkeys(asked, Answer())})
    played = plain.play(range(8), [request.turn for request in requests])
    assert bool(asked) == silent
    for e in range(8):
        segment = rollouts.stream(e).segments[-1]
        assert segment.text == texts[e]
        assert bool(segment.legal) == (e in asked)
        assert texts[e] in segment.legal if e in asked else texts[e] == played[e]


def near(share: float, p: float, count: int) -> bool:
    return bool(abs(share - p) < 4 * np.sqrt(p * (1 - p) / count))
