"""Consensus: two agents with views of their own come to agree on moments by exchanging embeddings alone."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from decentral.agents.consensus import Consensus, Loss, dino, infonce, neighbours, rank, spread
from decentral.errors import ModelError

LOSSES: tuple[Loss, ...] = ("dino", "infonce")
EPISODES, ROUNDS, LATENT, WIDTH = 12, 5, 4, 16
EPISODE, ROUND = (grid.flatten() for grid in np.indices((EPISODES, ROUNDS)))


def views(seed: int) -> tuple[Tensor, Tensor]:
    """What each of two agents sees of the same slowly moving states: a linear map and a mean of its own, with noise."""
    fixed, draws = np.random.default_rng(0), np.random.default_rng(seed)
    state = draws.normal(size=(EPISODES, ROUNDS, LATENT))
    for t in range(1, ROUNDS):
        state[:, t] = 0.8 * state[:, t - 1] + 0.6 * state[:, t]
    flat = state.reshape(-1, LATENT)
    seen = []
    for _ in range(2):
        clean = flat @ fixed.normal(size=(LATENT, WIDTH)) / 2 + 3 * fixed.normal(size=WIDTH)
        seen.append(torch.tensor(clean + 0.2 * draws.normal(size=clean.shape), dtype=torch.float32))
    return seen[0], seen[1]


@functools.cache
def trained(loss: Loss, exchange: bool) -> tuple[Consensus, Consensus]:
    """Two agents after a hundred steps; what one receives was sent before the other learnt, in float16."""
    pair = Consensus(WIDTH, 1, loss, steps=20), Consensus(WIDTH, 2, loss, steps=20)
    for iteration in range(5):
        seen = views(iteration + 1)
        sent = [one.target(h).numpy().astype(np.float16).astype(np.float32) for one, h in zip(pair, seen)]
        for one, h, z in zip(pair, seen, reversed(sent)):
            one.learn(h, EPISODE, ROUND, list(enumerate(z)) if exchange else [])
    return pair


def distances(pair: tuple[Consensus, Consensus]) -> tuple[float, float]:
    """Mean distance of an own z and a peer's z' of one moment, and of different moments, on states never seen."""
    seen = views(1000)
    d = torch.cdist(pair[0].project(seen[0]), pair[1].target(seen[1]))
    same = d.diagonal().mean()
    return float(same), float((d.sum() - d.diagonal().sum()) / (len(d) * (len(d) - 1)))


@pytest.mark.parametrize("loss", LOSSES)
def test_agents_that_exchange_embeddings_agree_on_moments(loss: Loss) -> None:
    same, different = distances(trained(loss, True))
    assert same < 0.85 * different


@pytest.mark.parametrize("loss", LOSSES)
def test_agents_that_exchange_nothing_do_not(loss: Loss) -> None:
    same, different = distances(trained(loss, False))
    assert same > 0.97 * different


@pytest.mark.parametrize("exchange", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_embeddings_do_not_collapse(loss: Loss, exchange: bool) -> None:
    for one, h in zip(trained(loss, exchange), views(1000)):
        z = one.project(h)
        assert spread(z) > 0.1
        assert rank(z) > 6


@pytest.mark.parametrize("loss", LOSSES)
def test_a_collapse_shows_in_the_figures(loss: Loss) -> None:
    one = Consensus(WIDTH, 1, loss, steps=2)
    healthy = one.learn(views(1)[0], EPISODE, ROUND, [])
    assert healthy["consensus_std"] > 0.1
    assert healthy["consensus_rank"] > 6
    blind = one.learn(torch.ones(len(EPISODE), WIDTH), EPISODE, ROUND, [])
    assert blind["consensus_std"] < 1e-6
    assert blind["consensus_rank"] < 1.01
    never = Consensus(WIDTH, 1, loss, steps=2).learn(torch.full((len(EPISODE), WIDTH), 0.3), EPISODE, ROUND, [])
    assert np.isfinite(list(never.values())).all()


def test_rank_and_spread_have_known_ends() -> None:
    alike, apart = torch.eye(32)[:1].repeat(64, 1), torch.cat([torch.eye(32), -torch.eye(32)])
    assert rank(apart) == pytest.approx(32)
    assert spread(apart) == pytest.approx(32**-0.5)
    assert rank(alike) == pytest.approx(1, abs=1e-3)
    assert spread(alike) == 0
    assert rank(torch.eye(32)[[0, 1] * 8]) == pytest.approx(2, abs=1e-3)


def test_dino_is_the_cross_entropy_of_its_definition() -> None:
    z, targets, centre = (np.random.default_rng(i).normal(size=(n, 32)) / 6 for i, n in enumerate((5, 5, 1)))

    def softmax(x: np.ndarray) -> np.ndarray:
        return np.exp(x) / np.exp(x).sum()

    slow = [-sum(softmax((b - centre[0]) / 0.04) * np.log(softmax(a / 0.1))) for a, b in zip(z, targets)]
    np.testing.assert_allclose(dino(*map(torch.from_numpy, (z, targets, centre[0]))), slow)


def test_infonce_takes_only_other_moments_as_negatives() -> None:
    z, targets = (np.random.default_rng(i).normal(size=(6, 32)) / 6 for i in range(2))
    at, of = [0, 0, 1, 2, 5, 5], [1, 0, 0, 3, 5, 6]
    slow = []
    for i in range(6):
        others = [j for j in range(6) if of[j] not in (at[i], of[i])]
        logits = [z[i] @ targets[j] / 0.1 for j in (i, *others)]
        slow.append(np.log(np.exp(logits).sum()) - logits[0])
    np.testing.assert_allclose(infonce(*map(torch.tensor, (z, targets, at, of))), slow)


def test_neighbours_are_at_most_one_round_apart_in_one_episode() -> None:
    episodes, rounds = np.array([7, 7, 3, 7, 3, 7, 9]), np.array([1, 0, 0, 3, 1, 1, 2])
    found = {(int(a), int(b)) for a, b in neighbours(episodes, rounds)}
    assert found == {(1, 0), (0, 1), (0, 5), (5, 0), (2, 4), (4, 2)}
    assert neighbours(episodes[:0], rounds[:0]).shape == (0, 2)


def test_all_embeddings_have_length_one_and_survive_float16() -> None:
    one, h = Consensus(WIDTH, 1), views(1)[0]
    one.learn(h, EPISODE, ROUND, [])
    for z in (one.project(h), one.target(h)):
        assert z.shape == (len(h), 32)
        torch.testing.assert_close(z.norm(dim=1), torch.ones(len(h)))
        assert (z.half().float() - z).norm(dim=1).max() < 1e-3


def test_the_scale_of_hidden_states_and_the_length_of_what_a_peer_sends_do_not_matter() -> None:
    h, z = views(1)[0], np.eye(32, dtype=np.float32)
    figures = [
        Consensus(WIDTH, 1, steps=2).learn(scale * h, EPISODE, ROUND, [(i, length * z[i]) for i in range(20)])
        for scale, length in ((1, 1), (256, 1), (1, 64))
    ]
    assert figures[0] == figures[1] == figures[2]


def test_without_rows_or_pairs_nothing_is_learnt() -> None:
    one, none = Consensus(WIDTH, 1), np.zeros(0, np.int64)
    before = [p.clone() for p in one.layers.parameters()]
    assert one.project(torch.zeros(0, WIDTH)).shape == one.target(torch.zeros(0, WIDTH)).shape == (0, 32)
    assert one.learn(torch.zeros(0, WIDTH), none, none, []) == {"consensus_pairs": 0}
    alone = one.learn(views(1)[0][:3], np.arange(3), np.zeros(3, np.int64), [])
    assert alone.keys() == {"consensus_pairs", "consensus_std", "consensus_rank"}
    assert all(torch.equal(a, b) for a, b in zip(before, one.layers.parameters()))
    only = one.learn(views(1)[0][:3], np.arange(3), np.zeros(3, np.int64), [(1, np.ones(32, np.float32))])
    assert only["consensus_pairs"] == 1
    assert not any(torch.equal(a, b) for a, b in zip(before, one.layers.parameters()))


def test_a_step_moves_targets_and_centre_at_their_rates() -> None:
    one, h = Consensus(WIDTH, 1, steps=1), views(1)[0]
    before = [p.clone() for p in one.layers.parameters()]
    one.learn(h, EPISODE, ROUND, [])
    for old, slow, new in zip(before, one.slow.parameters(), one.layers.parameters()):
        assert not torch.equal(old, new)
        torch.testing.assert_close(slow, 0.996 * old + 0.004 * new)
    again = Consensus(WIDTH, 1, steps=1)
    again.learn(h[:1], EPISODE[:1], ROUND[:1], [(0, np.ones(32, np.float32))])
    torch.testing.assert_close(again.centre, torch.full((32,), 0.1 * 32**-0.5))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_restored_model_goes_on_bit_for_bit(loss: Loss, tmp_path: Path) -> None:
    h, z = views(1)[0], np.eye(32, dtype=np.float32)
    one, again = Consensus(WIDTH, 1, loss, steps=2), Consensus(WIDTH, 2, loss, steps=2)
    one.learn(h, EPISODE, ROUND, [(3, z[0]), (9, z[1])])
    one.save(tmp_path)
    again.load(tmp_path)
    assert one.learn(h, EPISODE, ROUND, [(0, z[2])]) == again.learn(h, EPISODE, ROUND, [(0, z[2])])
    ours, theirs = one.state_dict(), again.state_dict()
    assert all(torch.equal(p, theirs[name]) for name, p in ours.items())
    assert torch.equal(one.draws.get_state(), again.draws.get_state())


def test_a_checkpoint_of_another_width_is_refused(tmp_path: Path) -> None:
    Consensus(WIDTH, 1).save(tmp_path)
    with pytest.raises(ModelError, match=r"of another model; resume with its config$"):
        Consensus(WIDTH + 1, 1).load(tmp_path)


def test_the_global_generators_are_left_alone_and_the_seed_decides(tmp_path: Path) -> None:
    figures = []
    before = torch.get_rng_state()
    for seed in (1, 1, 2):
        one = Consensus(WIDTH, seed, steps=2)
        figures.append(one.learn(views(1)[0], EPISODE, ROUND, []))
        one.save(tmp_path)
        one.load(tmp_path)
    assert torch.equal(before, torch.get_rng_state())
    assert figures[0] == figures[1] != figures[2]
