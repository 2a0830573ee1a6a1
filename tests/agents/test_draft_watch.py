"""A draft head through an agent's updates: watched always, retrained only when asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from decentral.agents.config import AgentConfig
from decentral.agents.draft import DraftHead
from decentral.agents.language import LanguageAgent
from decentral.agents.mind import Ended, Metrics, Phase, Request
from decentral.agents.policy import Policy
from decentral.envs.turn import Outcome, Turn


@pytest.fixture(scope="module")
def folder(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("head")
    policy = Policy(AgentConfig(model=str(tiny), kind="frozen", draft="plain"))
    DraftHead(policy.shared(), policy.window).save(folder)
    return folder


@pytest.fixture
def agent(tiny: Path, folder: Path) -> Any:
    def make(**fields: Any) -> LanguageAgent:
        base = {"model": str(tiny), "draft_head": str(folder), "reasoning_tokens": 8, "draft_tokens": 3, "lr": 1e-2}
        return LanguageAgent("bob", AgentConfig(**base | fields), seed=1)

    return make


def iteration(agent: LanguageAgent, number: int) -> Metrics:
    """Plays eight episodes of two turns, the return being how often it went north, and updates."""
    agent.begin(Phase("train", number))
    count = 8
    north = [0.0] * count
    for t in range(2):
        turn = Turn("bob", t, "you 1 2", ("north", "south"), 0, "you are bob" if t == 0 else "")
        for e, action in enumerate(agent.act([Request(100 * number + e, 0, turn) for e in range(count)])):
            north[e] += action == "north"
    agent.end([Ended(100 * number + e, 0, Outcome("bob", north[e], 2)) for e in range(count)])
    return agent.update()


def weights(module: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def test_acceptance_is_logged_after_every_update_and_the_head_stays(agent: Any) -> None:
    bob = agent()
    head, policy = weights(bob.drafter.head), weights(bob.policy.model)
    for number in range(2):
        figures = iteration(bob, number)
        assert figures["drafts"] > 0
        assert 0 <= figures["drafts_accepted"] <= 1
        assert all(0 <= figures[f"acceptance_{j}"] <= 1 for j in (1, 2, 3))
        assert "head_updates" not in figures
    assert torch.equal(weights(bob.drafter.head), head)
    assert not torch.equal(weights(bob.policy.model), policy)


def test_acceptance_is_that_of_the_new_weights(agent: Any) -> None:
    """The same text under the old and the new weights: the log shows the new."""
    still, moved = iteration(agent(lr=1e-9), 0), iteration(agent(lr=0.1), 0)
    assert still["drafts_accepted"] == moved["drafts_accepted"]
    assert abs(still["acceptance_1"] - moved["acceptance_1"]) > 1e-3


def test_retraining_raises_acceptance_and_leaves_the_policy_to_its_own_optimiser(agent: Any) -> None:
    frozen, retrained = agent(), agent(draft_retrain=1.0)
    for number in range(3):
        before, after = iteration(frozen, number), iteration(retrained, number)
    assert after["head_updates"] >= 3
    assert after["acceptance_1"] > before["acceptance_1"] + 0.02
    first, second = agent(), agent(draft_retrain=1.0)
    iteration(first, 0)
    iteration(second, 0)
    assert torch.equal(weights(first.policy.model), weights(second.policy.model))
    assert not torch.equal(weights(first.drafter.head), weights(second.drafter.head))


def test_a_head_that_is_believed_is_left_alone(agent: Any) -> None:
    bob = agent(draft_retrain=1e-6)
    assert iteration(bob, 0)["head_updates"] == 0


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_save_and_load_go_on_exactly(agent: Any, tmp_path: Path, threshold: float) -> None:
    whole, begun = agent(draft_retrain=threshold), agent(draft_retrain=threshold)
    iteration(whole, 0)
    iteration(begun, 0)
    begun.save(tmp_path)
    resumed = agent(draft_retrain=threshold)
    resumed.load(tmp_path)
    one, two = iteration(whole, 1), iteration(resumed, 1)
    same = [key for key in one if not key.endswith("_s")]
    assert {key: one[key] for key in same} == {key: two[key] for key in same}
    assert torch.equal(weights(whole.drafter.head), weights(resumed.drafter.head))
    assert resumed.drafter.pace.counts == whole.drafter.pace.counts


def test_an_evaluation_and_a_phase_played_again_leave_no_trace(agent: Any, tmp_path: Path) -> None:
    """Counts of drafts choose the next lengths, and a resumed run would not have them."""
    straight, other = agent(), agent()
    iteration(straight, 0)
    iteration(other, 0)
    for phase in (Phase("eval", 1), Phase("train", 1)):
        other.begin(phase)
        other.act([Request(500 + e, 0, Turn("bob", 0, "you 2", ("north", "south"))) for e in range(4)])
    iteration(straight, 1)
    iteration(other, 1)
    assert other.drafter.pace.counts == straight.drafter.pace.counts


def test_a_checkpoint_from_before_there_was_a_head_is_taken(agent: Any, tmp_path: Path) -> None:
    agent(draft="plain", draft_head="").save(tmp_path)
    bob = agent()
    bob.load(tmp_path)
    assert bob.drafter.pace.most == 3


def test_a_model_without_a_head_plays_plainly(tiny: Path) -> None:
    assert LanguageAgent("bob", AgentConfig(model=str(tiny)), seed=1).drafter is None
