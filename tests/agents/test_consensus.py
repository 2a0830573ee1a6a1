"""Two agents who see one latent moment each in its own way come to agree on it, by what they send each other alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from decentral.agents.advice import pack_embedding, unpack_embedding
from decentral.agents.consensus import Consensus
from decentral.agents.value import ValueHead

WIDTH, EPISODES, ROUNDS = 48, 24, 8
EPISODE, ROUND = np.repeat(np.arange(EPISODES), ROUNDS), np.tile(np.arange(ROUNDS), EPISODES)


def moments(random: np.random.Generator) -> np.ndarray:
    """(EPISODES * ROUNDS, 6) latent states that drift along an episode."""
    start = random.normal(size=(EPISODES, 1, 6)) * 2
    return (start + random.normal(size=(EPISODES, ROUNDS, 6)).cumsum(1) * 0.3).reshape(-1, 6)


def gap(a: Consensus, b: Consensus, ways: list[np.ndarray], seed: int) -> float:
    """Distance between views of one moment over that between views of different episodes."""
    random = np.random.default_rng(seed)
    latent = moments(random)
    za, zb = (net.project(seen(latent, way, random)) for net, way in zip((a, b), ways))
    return float((za - zb).norm(dim=1).mean() / (za - zb.roll(ROUNDS * 3, 0)).norm(dim=1).mean())


def seen(latent: np.ndarray, way: np.ndarray, random: np.random.Generator) -> torch.Tensor:
    return torch.from_numpy(latent @ way + 0.1 * random.normal(size=(len(latent), WIDTH))).float()


def train(loss: str, talk: bool) -> tuple[float, dict[str, float]]:
    random = np.random.default_rng(0)
    ways = [random.normal(size=(6, WIDTH)) for _ in range(2)]
    nets = [Consensus(WIDTH, seed, loss) for seed in (1, 2)]
    figures: dict[str, float] = {}
    for _ in range(40):
        latent = moments(random)
        hidden = [seen(latent, way, random) for way in ways]
        sent = [[unpack_embedding(pack_embedding(z)) for z in net.target(h).numpy()] for net, h in zip(nets, hidden)]
        for net, h, other in zip(nets, hidden, reversed(sent)):
            figures = net.learn(h, EPISODE, ROUND, list(enumerate(other)) if talk else [])
    return gap(*nets, ways, 9), figures


@pytest.mark.parametrize("loss", ["infonce", "dino"])
def test_embeddings_of_one_moment_meet_and_do_not_collapse(loss: str) -> None:
    apart, figures = train(loss, talk=True)
    assert apart < 0.7
    assert figures["consensus_std"] > 0.05
    assert figures["consensus_rank"] > 3
    assert figures["consensus_received"] == EPISODES * ROUNDS


def test_without_what_others_send_they_do_not_meet() -> None:
    apart, _ = train("infonce", talk=False)
    assert apart > 0.85


def test_a_collapse_is_seen() -> None:
    net = Consensus(WIDTH, 0)
    figures = net.learn(torch.ones(len(EPISODE), WIDTH), EPISODE, ROUND, [])
    assert figures["consensus_std"] < 1e-4


def test_nothing_to_learn_from_is_fine_and_the_global_generator_is_left_alone() -> None:
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    net, head = Consensus(WIDTH, 0), ValueHead(WIDTH, 0)
    none = np.zeros(0, dtype=np.int64)
    assert net.learn(torch.zeros(0, WIDTH), none, none, [])["consensus_pairs"] == 0
    assert net.learn(torch.zeros(1, WIDTH), np.zeros(1, int), np.zeros(1, int), [])["consensus_pairs"] == 0
    assert head.learn(torch.zeros(0, WIDTH), np.zeros(0)) == {}
    assert head.predict(torch.zeros(2, WIDTH)) == [None, None]
    assert torch.equal(before, torch.random.get_rng_state())


def test_both_go_on_from_a_checkpoint_bit_for_bit(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    hidden = torch.from_numpy(random.normal(size=(len(EPISODE), WIDTH))).float()
    returns = random.normal(size=len(EPISODE))
    net, head = Consensus(WIDTH, 0), ValueHead(WIDTH, 0)
    net.learn(hidden, EPISODE, ROUND, [])
    head.learn(hidden, returns)
    net.save(tmp_path)
    head.save(tmp_path)
    again, other = Consensus(WIDTH, 7), ValueHead(WIDTH, 7)
    again.load(tmp_path)
    other.load(tmp_path)
    for one in (net, again):
        one.learn(hidden, EPISODE, ROUND, [])
    for one in (head, other):
        one.learn(hidden, returns)
    assert torch.equal(net.project(hidden), again.project(hidden))
    assert torch.equal(net.target(hidden), again.target(hidden))
    assert head.predict(hidden) == other.predict(hidden)


@pytest.mark.parametrize("scale", [1e-3, 1e4])
def test_values_are_learnt_at_any_scale(scale: float) -> None:
    random = np.random.default_rng(0)
    way = random.normal(size=WIDTH)
    head = ValueHead(WIDTH, 0)
    explained = []
    for _ in range(40):
        hidden = random.normal(size=(200, WIDTH))
        returns = (hidden @ way / 7 + 3) * scale
        explained.append(head.learn(torch.from_numpy(hidden).float(), returns)["value_explained"])
    assert explained[0] < 0.2
    assert explained[-1] > 0.8
