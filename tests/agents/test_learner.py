"""One update: on-policy, anchored to the base, restorable, on the right tokens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from decentral.agents.config import AgentConfig
from decentral.agents.language import LanguageAgent
from decentral.agents.mind import Ended, Phase, Request
from decentral.agents.schedule import Schedule, rate_at
from decentral.envs.turn import Outcome, Turn
from decentral.errors import ModelError

LEGAL = ("north", "south", "stay")


def agent(tiny: Path, **fields: object) -> LanguageAgent:
    return LanguageAgent("bob", AgentConfig(model=str(tiny), **fields), seed=1)  # type: ignore[arg-type]


def iterate(mind: LanguageAgent, iteration: int, *, episodes: int = 16, fault: int = -1) -> dict[str, float]:
    """A bandit of two turns: north pays, once a turn."""
    mind.begin(Phase("train", iteration))
    total = np.zeros(episodes)
    for t in range(2):
        turn = Turn("bob", t, "you red", LEGAL, system="you are bob" if t == 0 else "")
        actions = mind.act([Request(iteration * 100 + e, iteration * 100 + e // 8, turn) for e in range(episodes)])
        total += [action == "north" for action in actions]
    mind.end(
        [
            Ended(iteration * 100 + e, iteration * 100 + e // 8, Outcome("bob", float(r), 2), "lost" * (e == fault))
            for e, r in enumerate(total)
        ]
    )
    return mind.update()


@pytest.mark.parametrize("weights", ["full", "lora"])
def test_it_learns_and_every_trained_parameter_moves(tiny: Path, weights: str) -> None:
    mind = agent(tiny, weights=weights, lr=3e-3, kl=1e-3)
    before = {name: p.detach().clone() for name, p in mind.policy.trained().items()}
    frozen = {n: p.detach().clone() for n, p in mind.policy.model.named_parameters() if not p.requires_grad}
    first, last = iterate(mind, 0), {}
    for i in range(1, 15):
        last = iterate(mind, i)
    assert last["return"] > first["return"] + 0.5
    assert last["kl"] > first["kl"] == 0.0
    assert all(not torch.equal(before[name], p) for name, p in mind.policy.trained().items())
    assert all(torch.equal(frozen[n], dict(mind.policy.model.named_parameters())[n]) for n in frozen)
    assert mind.updates == 15


def test_the_step_is_on_policy(tiny: Path) -> None:
    mind = agent(tiny, temperature=1.3)
    for i in range(3):
        figures = iterate(mind, i)
        assert figures["clip_fraction"] == 0.0
        assert figures["ratio_mean"] == pytest.approx(1.0, abs=1e-4)
        assert figures["drift"] < 1e-4


def test_the_gradient_is_the_obvious_one(tiny: Path) -> None:
    """Token mean of -advantage * logp, by plain autograd on one row at a time."""
    mind, twin = agent(tiny, kl=0.0, clip=1e9), agent(tiny, kl=0.0)
    iterate(mind, 0)
    gradient = {name: p.grad.clone() for name, p in mind.policy.trained().items() if p.grad is not None}
    twin.begin(Phase("train", 0))
    totals: dict[int, float] = {}
    for t in range(2):
        turn = Turn("bob", t, "you red", LEGAL, system="you are bob" if t == 0 else "")
        for e, action in enumerate(twin.act([Request(e, e // 8, turn) for e in range(16)])):
            totals[e] = totals.get(e, 0.0) + (action == "north")
    loss, count = torch.zeros(()), 0
    for e in range(16):
        mates = [totals[x] for x in range(16) if x // 8 == e // 8]
        advantage = (totals[e] - np.mean(mates)) / (np.std(mates) + 1e-6)
        (chunk,) = twin.rollouts.stream(e).chunks
        for choice in chunk.choices:
            logits = twin.policy.model(torch.tensor([chunk.ids[: choice.at]])).logits[0, -1]
            allowed = list(choice.allowed or ())
            loss = loss - advantage * logits[allowed].log_softmax(0)[allowed.index(chunk.ids[choice.at])]
            count += 1
    (loss / count).backward()
    for name, p in twin.policy.trained().items():
        torch.testing.assert_close(gradient[name], p.grad, atol=1e-5, rtol=1e-3)


def test_micro_batches_do_not_change_the_update(tiny: Path) -> None:
    whole, parts = agent(tiny), agent(tiny, microbatch=40)
    iterate(whole, 0)
    iterate(parts, 0)
    for a, b in zip(whole.policy.trained().values(), parts.policy.trained().values()):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-3)


def test_a_faulted_episode_leaves_before_the_group_is_measured(tiny: Path) -> None:
    whole, short = agent(tiny, clip=1e9), agent(tiny, clip=1e9)
    faulted = iterate(whole, 0, fault=15)
    assert faulted["faults"] == 1
    assert faulted["episodes"] == 15
    short.begin(Phase("train", 0))
    total = np.zeros(15)
    for t in range(2):
        turn = Turn("bob", t, "you red", LEGAL, system="you are bob" if t == 0 else "")
        actions = short.act([Request(e, e // 8, turn) for e in range(15)])
        total += [action == "north" for action in actions]
    short.end([Ended(e, e // 8, Outcome("bob", float(r), 2)) for e, r in enumerate(total)])
    short.update()
    for a, b in zip(whole.policy.trained().values(), short.policy.trained().values()):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("weights", ["full", "lora"])
def test_save_and_load_go_on_exactly(tiny: Path, tmp_path: Path, weights: str) -> None:
    straight, stopped = agent(tiny, weights=weights), agent(tiny, weights=weights)
    for mind in (straight, stopped):
        iterate(mind, 0)
        iterate(mind, 1)
    stopped.save(tmp_path)
    resumed = agent(tiny, weights=weights)
    resumed.load(tmp_path)
    assert resumed.updates == 2
    iterate(straight, 2)
    iterate(resumed, 2)
    for a, b in zip(straight.policy.trained().values(), resumed.policy.trained().values()):
        assert torch.equal(a, b)


def test_an_episode_without_a_turn_of_its_own_counts_in_the_group(tiny: Path) -> None:
    mind = agent(tiny, kl=0.0)
    mind.begin(Phase("train", 0))
    mind.act([Request(0, 0, Turn("bob", 0, "you red", LEGAL))])
    mind.end([Ended(0, 0, Outcome("bob", 1.0, 1)), Ended(1, 0, Outcome("bob", 0.0, 0))])
    figures = mind.update()
    assert figures["episodes"] == 2
    assert figures["loss"] == pytest.approx(-1.0, abs=1e-4)  # one token, one standard deviation above the mean


def test_a_gradient_that_is_not_finite_is_named_and_not_applied(tiny: Path) -> None:
    mind = agent(tiny)
    iterate(mind, 0)
    before = {name: p.detach().clone() for name, p in mind.policy.trained().items()}
    mind._learner._credit = lambda plays, advantage: advantage * np.nan  # type: ignore[union-attr]
    with pytest.raises(ModelError, match="the gradient of update 1 is nan"):
        iterate(mind, 1)
    assert all(torch.equal(before[name], p) for name, p in mind.policy.trained().items())


def test_micro_batches_are_smaller_for_lora(tiny: Path) -> None:
    assert agent(tiny, weights="lora")._learner._tokens < agent(tiny)._learner._tokens  # type: ignore[union-attr]


def test_a_checkpoint_of_something_else_is_refused(tiny: Path, tmp_path: Path) -> None:
    agent(tiny, weights="lora").save(tmp_path)
    with pytest.raises(ModelError, match="other parameters"):
        agent(tiny, weights="full").load(tmp_path)
    (tmp_path / "weights.safetensors").write_bytes(b"torn")
    with pytest.raises(ModelError, match="cannot be read"):
        agent(tiny, weights="lora").load(tmp_path)


def test_an_agent_keeps_its_own_schedule(tiny: Path) -> None:
    mind = agent(tiny, update_every=2)
    assert "loss" not in iterate(mind, 0)
    assert "loss" in iterate(mind, 1)
    frozen = agent(tiny, kind="frozen")
    assert "loss" not in iterate(frozen, 0)
    assert frozen.updates == 0


def test_evaluation_keeps_nothing_to_train_on(tiny: Path) -> None:
    mind = agent(tiny)
    mind.begin(Phase("eval", 0))
    mind.act([Request(0, 0, Turn("bob", 0, "you red", LEGAL))])
    mind.end([Ended(0, 0, Outcome("bob", 1.0, 1, success=1.0))])
    assert mind.update()["success"] == 1.0
    assert mind.updates == 0


def test_rates() -> None:
    rate = Schedule(start=1.0, end=0.0, steps=4, warmup=2)
    assert [rate_at(rate, u) for u in (0, 1, 2, 4, 6, 99)] == [0.5, 1.0, 1.0, 0.5, 0.0, 0.0]
    assert rate_at(0.3, 7) == 0.3
    assert rate_at(Schedule(start=1.0, end=0.0, steps=2, shape="cosine"), 1) == pytest.approx(0.5)


def test_each_turn_is_credited_with_the_reward_that_followed_it(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mind = agent(tiny, discount=0.9)
    seen: list[list[float]] = []
    monkeypatch.setattr(mind._learner, "step", lambda plays, _: seen.extend(list(one.rewards) for one in plays) or {})
    mind.begin(Phase("train", 0))
    for turn, reward in enumerate((0.0, 2.0, -1.0)):
        mind.act([Request(e, 0, Turn("bob", turn, "you red", LEGAL, reward=reward)) for e in range(2)][: 2 - turn // 2])
    mind.end([Ended(1, 0, Outcome("bob", 7.0, 2, reward=5.0)), Ended(0, 0, Outcome("bob", 4.0, 3, reward=3.0))])
    mind.update()
    assert seen == [[2.0, -1.0, 3.0], [2.0, 5.0]]


def test_the_first_update_may_make_all_legal_actions_equally_likely(tiny: Path) -> None:
    """A model that would never go south tries it as often as all else after it, whatever paid."""
    mind = agent(tiny, uniform_steps=40, lr=3e-3, kl=0.0)
    with torch.no_grad():
        never = mind.policy.format.choice("south")[0]
        mind.policy.model.get_input_embeddings().weight[never] *= -4
    figures = iterate(mind, 0)
    assert figures["uneven_last"] < 0.05 < figures["uneven_first"]
    assert "loss" not in figures
    assert mind.updates == 1
    mind.begin(Phase("eval", 1))
    turn = Turn("bob", 0, "you red", LEGAL, system="you are bob")
    actions = mind.act([Request(e, 0, turn) for e in range(300)])
    assert all(actions.count(action) > 60 for action in LEGAL)
    assert "loss" in iterate(mind, 1), "the next one learns from rewards"


def test_free_text_alone_is_learnt_from_rewards_at_once(tiny: Path) -> None:
    mind = agent(tiny, uniform_steps=4, kl=0.0)
    mind.begin(Phase("train", 0))
    mind.act([Request(e, 0, Turn("bob", 0, "you red", free=4)) for e in range(4)])
    mind.end([Ended(e, 0, Outcome("bob", float(e), 1, reward=float(e))) for e in range(4)])
    assert "loss" in mind.update()
