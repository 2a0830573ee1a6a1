"""Earlier weights: which are kept, when they play, and that nobody learns from what they played."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch

from decentral.agents.config import AgentConfig
from decentral.agents.language import LanguageAgent
from decentral.agents.mind import Ended, Phase, Request
from decentral.agents.past import PastSelves
from decentral.envs.turn import Outcome, Turn
from decentral.errors import ModelError

LEGAL = ("north", "south", "stay")


def agent(tiny: Path, past: float = 0.5, **fields: object) -> LanguageAgent:
    return LanguageAgent("bob", AgentConfig(model=str(tiny), past=past, **fields), seed=1)  # type: ignore[arg-type]


def iterate(mind: LanguageAgent, iteration: int, groups: int = 8) -> tuple[list[str], dict[str, float]]:
    """Groups of two episodes of one turn, in which north pays."""
    mind.begin(Phase("train", iteration))
    first = iteration * 1000
    requests = [Request(first + e, first + e // 2, Turn("bob", 0, "you red", LEGAL)) for e in range(2 * groups)]
    actions = mind.act(requests)
    paid = [float(action == "north") for action in actions]
    mind.end([Ended(r.episode, r.group, Outcome("bob", p, 1, reward=p)) for r, p in zip(requests, paid)])
    return actions, mind.update()


def test_nothing_is_past_before_the_first_update_and_about_the_share_is_after_it(tiny: Path) -> None:
    mind = agent(tiny)
    assert iterate(mind, 0)[1]["past"] == 0
    shares = [iterate(mind, i)[1] for i in range(1, 6)]
    assert 0.3 < sum(one["past"] for one in shares) / 80 < 0.7
    assert all(one["past"] + one["episodes"] == 16 for one in shares)
    mind.begin(Phase("eval", 6))
    assert not any(mind._past.play(group) for group in range(100))  # type: ignore[union-attr]


def test_earlier_weights_play_and_nobody_learns_from_it(tiny: Path) -> None:
    mind, twin = agent(tiny, past=0.999999), agent(tiny, past=0.0)
    scale(mind, -2)  # far from those that the model was loaded with
    iterate(mind, 0)
    first = {name: p.detach().clone() for name, p in mind.policy.trained().items()}
    scale(mind, -3)
    actions, figures = iterate(mind, 1)
    assert figures["past"] == 16
    assert figures["episodes"] == 0
    assert mind.updates == 1, "there was nothing to learn from"
    with torch.no_grad():
        for name, p in twin.policy.trained().items():
            p.copy_(first[name])
    assert actions == iterate(twin, 1)[0]


def scale(mind: LanguageAgent, factor: float) -> None:
    with torch.no_grad():
        for p in mind.policy.trained().values():
            p.mul_(factor)


@pytest.mark.parametrize("updates", [1, 6, 7, 50, 1000])
def test_few_are_kept_evenly_spaced_from_all_updates(tiny: Path, updates: int) -> None:
    past = PastSelves("bob", AgentConfig(model=str(tiny), past=0.5), 1)
    for at in range(1, updates + 1):
        past.keep(at, {})
    kept = list(past._kept)
    assert 1 <= len(kept) <= 6
    assert len(kept) >= min(updates, 3)
    assert len({b - a for a, b in pairwise(kept)}) <= 1
    assert kept[-1] > updates - kept[0]


def test_a_checkpoint_brings_back_the_past_exactly(tiny: Path, tmp_path: Path) -> None:
    mind, again = agent(tiny, lr=1e-2), agent(tiny, lr=1e-2)
    for i in range(3):
        iterate(mind, i)
    mind.save(tmp_path)
    again.load(tmp_path)
    assert iterate(again, 3)[0] == iterate(mind, 3)[0]
    ours, theirs = mind._past._kept, again._past._kept  # type: ignore[union-attr]
    assert list(ours) == list(theirs) == [1, 2, 3, 4]
    assert all(torch.equal(p, theirs[at][name]) for at, weights in ours.items() for name, p in weights.items())


def test_a_past_of_other_parameters_is_refused(tiny: Path, tmp_path: Path) -> None:
    past = PastSelves("bob", AgentConfig(model=str(tiny), past=0.5), 1)
    weights = past._policy.trained()
    past.keep(1, weights)
    past.keep(2, dict(list(weights.items())[1:]))
    past.save(tmp_path)
    with pytest.raises(ModelError, match=r"after update 2, other parameters than model .*; resume with its config$"):
        past.load(tmp_path)
