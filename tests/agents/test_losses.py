"""The losses of a draft head against slow, obvious versions, in float64."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from decentral.agents.losses import LOSSES, cross_entropy, end_to_end_tv, kl, one_step_tv, overlap

Case = tuple[Tensor, Tensor, Tensor, Tensor]


def case(seed: int, rows: int = 7, depth: int = 4, size: int = 6, listed: int | None = None) -> Case:
    """p, logits, taken and a ragged mask; with ``listed``, the columns are a shortlist and p sums to less than 1."""
    draw = torch.Generator().manual_seed(seed)
    p = torch.randn(rows, depth, size, generator=draw, dtype=torch.float64).mul(1.5).softmax(-1)[..., :listed]
    logits = torch.randn(p.shape, generator=draw, dtype=torch.float64)
    taken = torch.randint(-1 if listed else 0, p.shape[-1], (rows, depth), generator=draw)
    counts = torch.randint(1, depth + 1, (rows,), generator=draw)
    return p, logits.requires_grad_(), taken, torch.arange(depth) < counts[:, None]


def accepted_share(p: Tensor, logits: Tensor, mask: Tensor) -> Tensor:
    """1 - E[accepted] / k of every row by its definition, which autograd can differentiate."""
    rows = []
    for some, raw, counts in zip(p, logits, mask):
        alphas = [torch.minimum(a, b).sum() for a, b in zip(some[counts], raw[counts].softmax(-1))]
        products = [torch.stack(alphas[: j + 1]).prod() for j in range(len(alphas))]
        rows.append(1 - torch.stack(products).mean())
    return torch.stack(rows).mean()


def weighted_tv(p: Tensor, logits: Tensor, mask: Tensor) -> Tensor:
    """sum_m W_m TV_m with Bebop's detached weights, which has the gradient of the end-to-end loss, not its value."""
    total = torch.zeros((), dtype=p.dtype)
    for some, raw, counts in zip(p, logits, mask):
        tv = 1 - torch.minimum(some[counts], raw[counts].softmax(-1)).sum(-1)
        alpha = (1 - tv).tolist()
        for m in range(len(alpha)):
            before = math.prod(alpha[:m])
            behind = sum(math.prod(alpha[m + 1 : j]) for j in range(m + 1, len(alpha) + 1))
            total = total + before * behind / len(alpha) * tv[m]
    return total / len(p)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), depth=st.integers(1, 5), listed=st.sampled_from([None, 4]))
def test_the_closed_form_gradient_is_that_of_both_slow_forms(seed: int, depth: int, listed: int | None) -> None:
    p, logits, taken, mask = case(seed, depth=depth, listed=listed)
    loss = end_to_end_tv(p, logits, taken, mask)
    (found,) = torch.autograd.grad(3.0 * loss, logits)
    obvious = accepted_share(p, logits, mask)
    (first,) = torch.autograd.grad(3.0 * obvious, logits)
    (second,) = torch.autograd.grad(3.0 * weighted_tv(p, logits, mask), logits)
    torch.testing.assert_close(loss, obvious)
    torch.testing.assert_close(found, first, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(found, second, rtol=1e-9, atol=1e-12)
    assert not found[~mask].any()


def test_one_position_end_to_end_is_the_one_step_loss() -> None:
    p, logits, taken, mask = case(1, depth=1)
    torch.testing.assert_close(end_to_end_tv(p, logits, taken, mask), one_step_tv(p, logits, taken, mask))
    grads = [torch.autograd.grad(loss(p, logits, taken, mask), logits)[0] for loss in (end_to_end_tv, one_step_tv)]
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("listed", [None, 4])
def test_the_other_losses_are_means_over_what_counts(listed: int | None) -> None:
    p, logits, taken, mask = case(2, listed=listed)
    tv, divergence, surprise = [], [], []
    for i, k in mask.nonzero().tolist():
        q = logits[i, k].detach().softmax(-1)
        tv.append(1 - sum(min(a, b) for a, b in zip(p[i, k].tolist(), q.tolist())))
        divergence.append(sum(a * math.log(a / b) for a, b in zip(p[i, k].tolist(), q.tolist())))
        if taken[i, k] >= 0:
            surprise.append(-q[taken[i, k]].log().item())
    for loss, values in ((one_step_tv, tv), (kl, divergence), (cross_entropy, surprise)):
        assert loss(p, logits, taken, mask).item() == pytest.approx(sum(values) / len(values), rel=1e-6)


def test_overlap_is_one_minus_total_variation() -> None:
    p, logits, _, _ = case(3)
    q = logits.detach().softmax(-1)
    torch.testing.assert_close(overlap(p, q), 1 - (p - q).abs().sum(-1) / 2)
    torch.testing.assert_close(overlap(p, p), torch.ones(p.shape[:2], dtype=torch.float64))


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_what_the_mask_hides_changes_nothing(name: str) -> None:
    p, logits, taken, mask = case(4)
    other = torch.where(mask[..., None], logits, torch.randn_like(logits))
    noise = torch.where(mask[..., None], p, torch.rand_like(p))
    column = torch.where(mask, taken, 0)
    torch.testing.assert_close(LOSSES[name](p, logits, taken, mask), LOSSES[name](noise, other, column, mask))


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_every_loss_draws_q_to_p(name: str) -> None:
    p, logits, _, mask = case(5, rows=4000, depth=2)
    p = p[:1].expand(4000, -1, -1)
    taken = torch.multinomial(p.reshape(-1, 6), 1, generator=torch.Generator().manual_seed(0)).view(4000, 2)
    shared = logits[:1].detach().clone().requires_grad_()
    optimiser = torch.optim.Adam([shared], lr=0.03)
    first = overlap(p[0], shared[0].softmax(-1)).min().item()
    for _ in range(200):
        optimiser.zero_grad()
        LOSSES[name](p, shared.expand(4000, -1, -1), taken, mask).backward()
        optimiser.step()
    assert first < 0.9
    assert overlap(p[0], shared[0].softmax(-1)).min().item() > 0.93


def test_rows_with_nothing_that_counts_are_no_trouble() -> None:
    p, logits, taken, mask = case(6)
    for loss in LOSSES.values():
        (gradient,) = torch.autograd.grad(loss(p, logits, taken, torch.zeros_like(mask)), logits)
        assert not gradient.any()
