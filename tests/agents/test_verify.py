"""Verified drafts are distributed as plain sampling: chi-square over many rows, and faults that it must notice."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from decentral.agents import verify as module
from decentral.agents.verify import residual, verify

ROWS = 200_000
SIZE = 5
DEPTH = 3


@pytest.fixture
def tables() -> tuple[Tensor, Tensor]:
    """A model over SIZE tokens and one that drafts: rows of next-token probabilities after every two tokens."""
    draw = torch.Generator().manual_seed(1)
    p, q = torch.randn(2, SIZE, SIZE, SIZE, generator=draw).mul(1.3).softmax(-1)
    return p, q


def p_value(observed: Tensor, expected: Tensor) -> float:
    """Of a chi-square test; cells expected fewer than five times are one."""
    small = expected < 5
    seen = torch.cat([observed[~small], observed[small].sum()[None]]).double()
    hoped = torch.cat([expected[~small], expected[small].sum()[None]]).double()
    seen, hoped = seen[hoped > 0], hoped[hoped > 0]
    statistic = ((seen - hoped) ** 2 / hoped).sum()
    return torch.special.gammaincc(torch.tensor((len(hoped) - 1) / 2).double(), statistic / 2).item()


def joint(p: Tensor, start: tuple[int, int]) -> Tensor:
    """Probabilities of the next three tokens, flat."""
    a, b = start
    return (p[a, b][:, None, None] * p[b][:, :, None] * p).flatten()


def speculate(p: Tensor, q: Tensor, start: tuple[int, int], mixed: bool, seed: int, greedy: bool = False) -> Tensor:
    """Draws three tokens a row by cycles of drafting and verification, and counts each outcome.

    Lengths of drafts are mixed or always DEPTH, and every cycle uses fresh draws, as a rollout does.
    """
    draw = torch.Generator().manual_seed(seed)
    ids = torch.tensor(start).expand(ROWS, 2)
    made = torch.zeros(ROWS, dtype=torch.long)
    out = torch.zeros(ROWS, DEPTH + 3, dtype=torch.long)
    while (made < 3).any():
        drafted, before, weights, context = [], [p[ids[:, 0], ids[:, 1]]], [], ids
        for _ in range(DEPTH):
            q_now = q[context[:, 0], context[:, 1]]
            if greedy:
                q_now = F.one_hot(q_now.argmax(-1), SIZE).float()
            y = torch.multinomial(q_now, 1, generator=draw)
            drafted.append(y)
            weights.append(q_now)
            context = torch.cat([context[:, 1:], y], 1)
            before.append(p[context[:, 0], context[:, 1]])
        lengths = torch.randint(0, DEPTH + 1, (ROWS,), generator=draw) if mixed else torch.full((ROWS,), DEPTH)
        tokens = torch.cat(drafted, 1)
        uniforms = torch.rand(ROWS, 2 * DEPTH + 1, generator=draw, dtype=torch.float64)
        count, after = verify(
            torch.stack(before, 1), torch.stack(weights, 1), tokens, lengths, uniforms[:, :DEPTH], uniforms[:, DEPTH:]
        )
        tokens = F.pad(tokens, (0, 1)).scatter(1, count[:, None], after[:, None])
        for j in range(DEPTH + 1):
            new = (j <= count) & (made < 3)
            out[new, made[new]] = tokens[new, j]
            ids = torch.where(new[:, None], torch.stack([ids[:, 1], tokens[:, j]], 1), ids)
            made += new.long()
    return torch.bincount(out[:, 0] * SIZE**2 + out[:, 1] * SIZE + out[:, 2], minlength=SIZE**3)


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("greedy", [False, True])
def test_three_tokens_have_the_joint_law_of_plain_sampling(
    tables: tuple[Tensor, Tensor], mixed: bool, greedy: bool
) -> None:
    p, q = tables
    counts = speculate(p, q, (0, 3), mixed, seed=int(mixed), greedy=greedy)
    assert p_value(counts, joint(p, (0, 3)) * ROWS) > 1e-3


def test_it_is_exact_where_q_leaves_tokens_out(tables: tuple[Tensor, Tensor]) -> None:
    p, q = tables
    listed = q * (torch.arange(SIZE) < 2)
    counts = speculate(p, listed / listed.sum(-1, keepdim=True), (2, 1), True, seed=4)
    assert p_value(counts, joint(p, (2, 1)) * ROWS) > 1e-3


def test_a_draft_from_p_itself_is_always_accepted(tables: tuple[Tensor, Tensor]) -> None:
    p, _ = tables
    rows = p[:, :, None].expand(-1, -1, 3, -1).flatten(0, 1)
    drafted = torch.multinomial(rows[:, 0], 2, replacement=True, generator=torch.Generator().manual_seed(0))
    almost = torch.full((len(rows), 3), 1 - 2**-53, dtype=torch.float64)
    count, after = verify(rows, rows[:, :2], drafted, torch.full((len(rows),), 2), almost[:, :2], almost)
    assert count.tolist() == [2] * len(rows)
    assert ((after >= 0) & (after < SIZE)).all()


def test_acceptance_is_what_theory_says(tables: tuple[Tensor, Tensor]) -> None:
    p, q = (table[0, :1].expand(ROWS, -1) for table in tables)
    draw = torch.Generator().manual_seed(3)
    drafted = torch.multinomial(q, 1, generator=draw)
    accept, last = torch.rand(ROWS, 1, generator=draw), torch.rand(ROWS, 2, generator=draw)
    count, _ = verify(p[:, None].expand(-1, 2, -1), q[:, None], drafted, torch.ones(ROWS).long(), accept, last)
    assert count.float().mean().item() == pytest.approx(torch.minimum(p[0], q[0]).sum().item(), abs=5e-3)


def test_a_residual_without_mass_falls_back_to_p() -> None:
    p = torch.tensor([[0.25, 0.75], [0.5, 0.5]])
    q = torch.tensor([[0.25, 0.75], [0.9, 0.1]])
    torch.testing.assert_close(residual(p, q), torch.tensor([[0.25, 0.75], [0.0, 0.4]]))
    refused = torch.ones(1, 1)
    count, after = verify(
        p[:1, None].expand(-1, 2, -1),
        q[:1, None],
        torch.zeros(1, 1).long(),
        torch.ones(1).long(),
        refused,
        torch.tensor([[0.2, 0.9]]),
    )
    assert (count.item(), after.item()) == (0, 0)


def test_drafts_beyond_a_rows_length_are_not_looked_at(tables: tuple[Tensor, Tensor]) -> None:
    p, q = tables
    accept, last = torch.zeros(SIZE, 2), torch.rand(SIZE, 3, generator=torch.Generator().manual_seed(0))
    rows, weights = p[:, :3], q[:, :2]
    for lengths, most in ((torch.zeros(SIZE).long(), 0), (torch.ones(SIZE).long(), 1)):
        first = torch.zeros(SIZE, 2).long()
        second = first.clone()
        second[:, most:] = 4
        found = [verify(rows, weights, drafted, lengths, accept, last) for drafted in (first, second)]
        assert found[0][0].tolist() == [most] * SIZE
        assert torch.equal(found[0][1], found[1][1])


@pytest.mark.parametrize("fault", ["residual", "accept", "stale q"])
def test_chi_square_notices_a_planted_fault(
    tables: tuple[Tensor, Tensor], monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    p, q = tables
    if fault == "residual":
        monkeypatch.setattr(module, "residual", lambda p, q: p)
    else:
        whole = module.verify

        def faulty(p: Tensor, q: Tensor, drafted: Tensor, lengths: Tensor, accept: Tensor, last: Tensor) -> object:
            if fault == "accept":
                return whole(p, q, drafted, lengths, accept * 0.9, last)
            return whole(p, q.roll(1, -1), drafted, lengths, accept, last)

        monkeypatch.setitem(speculate.__globals__, "verify", faulty)
    assert p_value(speculate(p, q, (0, 3), False, seed=0), joint(p, (0, 3)) * ROWS) < 1e-6
