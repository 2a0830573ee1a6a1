"""The cache of rollouts: what it keeps, and how much."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from decentral.agents.cache import HIDDEN, RowCache, causal, closing, side_by_side
from decentral.agents.config import AgentConfig
from decentral.agents.draft import DraftHead
from decentral.agents.drafter import Drafter
from decentral.agents.pace import Pace
from decentral.agents.policy import Policy
from decentral.agents.rollout import Rollouts
from decentral.envs.turn import Turn

LAYER = (0, 0)
GRAIN = 32


def filled(rows: int, tokens: int) -> tuple[RowCache, torch.Tensor]:
    """A cache whose rows hold their first tokens, of two heads of width three, and those tokens."""
    cache = RowCache(rows)
    values = torch.randn(rows, tokens, 2, 3, generator=torch.Generator().manual_seed(0))
    cache.aim(range(rows), slice(0, tokens), tokens)
    cache.write(LAYER, values)
    cache.write(HIDDEN, values.flatten(2))
    return cache, values


def read(cache: RowCache, rows: list[int], seen: int) -> torch.Tensor:
    cache.aim(rows, slice(0, seen), seen)
    assert torch.equal(cache.read(LAYER).flatten(2), cache.read(HIDDEN))
    return cache.read(LAYER)


def test_growing_in_either_direction_keeps_what_was_written() -> None:
    cache, values = filled(3, 5)
    cache.grow(6)
    assert torch.equal(read(cache, [0, 1, 2], 5), values)
    assert torch.equal(read(cache, [2, 0], 5), values[[2, 0]])
    cache.aim([5], torch.tensor([[200]]), 201)
    cache.write(LAYER, torch.ones(1, 1, 2, 3))
    cache.write(HIDDEN, torch.ones(1, 1, 6))
    assert cache.slots >= 201
    assert torch.equal(read(cache, [0, 1, 2], 5), values)
    assert read(cache, [5], 201)[0, 200].eq(1).all()


@pytest.mark.parametrize("rows", [[0, 1, 2], [2, 0], [1]])
def test_ragged_tokens_land_in_their_rows(rows: list[int]) -> None:
    cache, values = filled(3, 8)
    places = torch.tensor([[4, 5], [1, 2], [6, 7]])[: len(rows)]
    new = torch.randn(len(rows), 2, 2, 3, generator=torch.Generator().manual_seed(1))
    cache.aim(rows, places, 8)
    cache.write(LAYER, new)
    cache.write(HIDDEN, new.flatten(2))
    assert torch.equal(cache.take(HIDDEN), new.flatten(2))
    expected = values.clone()
    for row, at, value in zip(rows, places, new):
        expected[row, at] = value
    assert torch.equal(read(cache, [0, 1, 2], 8), expected)


def test_swapped_rows_change_places_as_far_as_they_are_used() -> None:
    cache, values = filled(5, 4)
    cache.swap([(0, 3), (4, 1)], 3)
    found = read(cache, [0, 1, 2, 3, 4], 4)
    assert torch.equal(found[:, :3], values[[3, 4, 2, 0, 1], :3])
    assert torch.equal(found[:, 3:], values[:, 3:])


@pytest.mark.parametrize("seed", range(20))
def test_closing_up_moves_few_rows_and_leaves_no_gap(seed: int) -> None:
    random = np.random.default_rng(seed)
    total = int(random.integers(1, 9))
    rows = random.permutation(total)[: random.integers(1, total + 1)].tolist()
    pairs = closing(rows, total)
    moved = dict(pairs)
    assert side_by_side(sorted(moved.get(row, row) for row in rows))
    assert set(moved) <= set(rows)
    assert not set(moved.values()) & set(rows)
    windows = [range(first, first + len(rows)) for first in range(total - len(rows) + 1)]
    assert len(pairs) == min(len(set(rows) - set(window)) for window in windows)


def test_a_common_opening_is_copied() -> None:
    cache, values = filled(4, 5)
    cache.copy(1, torch.tensor([0, 3]), 3)
    found = read(cache, [0, 1, 2, 3], 5)
    assert torch.equal(found[[0, 3], :3], values[[1, 1], :3])
    assert torch.equal(found[[0, 3], 3:], values[[0, 3], 3:])
    assert torch.equal(found[[1, 2]], values[[1, 2]])


def test_the_mask_shows_a_token_itself_and_what_lies_before_it() -> None:
    mask = causal(torch.tensor([[0, 2], [3, 4]]), 5, torch.float32)
    assert mask.shape == (2, 1, 2, 5)
    assert mask.eq(0).sum(-1)[:, 0].tolist() == [[1, 3], [4, 5]]
    assert mask[0, 0, 1].tolist() == [0, 0, 0, -torch.inf, -torch.inf]


def test_side_by_side() -> None:
    assert side_by_side([4, 5, 6])
    assert side_by_side([])
    assert not side_by_side([4, 6])
    assert not side_by_side([5, 4])


@pytest.mark.parametrize("rows", [1, 6])
def test_fifty_turns_of_rejected_drafts_leave_nothing_behind(tiny: Path, tmp_path: Path, rows: int) -> None:
    wide = tmp_path / "wide"
    shutil.copytree(tiny, wide)
    config = json.loads((wide / "config.json").read_text())
    (wide / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 2048}))
    policy = Policy(AgentConfig(model=str(wide), kind="frozen", window=2048))
    head = DraftHead(policy.shared(), policy.window)
    engine = Rollouts(policy, 0, 0, drafter=Drafter(head, "rejection", Pace(3)), ends=False)
    engine.clear(1.0)
    for t in range(50):
        engine.play(range(rows), [Turn("bob", t, "you red" if e % 2 else "you", (), 12) for e in range(rows)])
    counts = engine.drafter.pace.counts
    assert sum(counts.proposed) - sum(counts.accepted) > 100 * rows
    kept = [row.cached for row in engine._rows.values()]
    assert min(kept) > 50 * 13
    held = sum(field.nbytes for field in engine._cache._kept.values())
    each = sum(field[0, 0].nbytes for field in engine._cache._kept.values())
    assert held <= each * (1.3 * sum(kept) + GRAIN * rows)
    again = engine._cache.rows
    for e in range(rows):
        engine.close(e)
    engine.play(range(rows, 2 * rows), [Turn("bob", 0, "you", (), 4)] * rows)
    assert engine._cache.rows == again
