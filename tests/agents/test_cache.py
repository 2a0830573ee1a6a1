"""The cache of rollouts: what it keeps, and how much."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from decentral.agents.cache import HIDDEN, RowCache, causal, side_by_side
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


def test_a_gathered_part_is_a_copy_and_can_be_put_back() -> None:
    cache, values = filled(4, 5)
    part = cache.gather(torch.tensor([3, 1]))
    assert torch.equal(read(part, [0, 1], 5), values[[3, 1]])
    part.aim([0, 1], slice(60, 61), 61)
    part.write(LAYER, torch.ones(2, 1, 2, 3))
    part.write(HIDDEN, torch.ones(2, 1, 6))
    assert torch.equal(read(cache, [0, 1, 2, 3], 5), values)
    cache.put(torch.tensor([3, 1]), part)
    assert torch.equal(read(cache, [0, 1, 2, 3], 5), values)
    assert read(cache, [3, 1], 61)[:, 60].eq(1).all()
    assert not read(cache, [0, 2], 61)[:, 60].any()


def test_a_field_that_only_a_part_has_is_put_back_too() -> None:
    """The head reads for the first time after the rows were packed."""
    cache, _ = filled(4, 5)
    part = cache.gather(torch.tensor([3, 1]))
    part.aim([0, 1], slice(0, 5), 5)
    part.write((1, 0), torch.ones(2, 5, 2, 3))
    cache.put(torch.tensor([3, 1]), part)
    cache.aim([0, 1, 2, 3], slice(0, 5), 5)
    assert cache.read((1, 0)).amax((1, 2, 3)).tolist() == [0, 1, 0, 1]


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
