"""The running scale that probes read hidden states and returns through."""

from __future__ import annotations

import torch

from decentral.agents.probe import Scale


def test_a_first_batch_counts_in_full_and_old_ones_are_forgotten() -> None:
    scale, draws = Scale(3), torch.Generator().manual_seed(0)
    x = (torch.randn(50, 3, generator=draws) + 2) * torch.tensor([1e-3, 1.0, 1e4])
    scale.watch(x)
    torch.testing.assert_close(scale(x).mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(scale(x).std(0, correction=0), torch.ones(3))
    torch.testing.assert_close(scale.inverse(scale(x)), x)
    for _ in range(100):
        scale.watch(10 * x)
    torch.testing.assert_close(scale(10 * x).mean(0), torch.zeros(3), atol=5e-3, rtol=0)
    torch.testing.assert_close(scale(10 * x).std(0, correction=0), torch.ones(3), atol=5e-3, rtol=0)


def test_the_first_batches_count_alike() -> None:
    parts = torch.randn(5, 40, 2, generator=torch.Generator().manual_seed(0)) + torch.arange(5)[:, None, None]
    scale = Scale(2)
    for part in parts:
        scale.watch(part)
    torch.testing.assert_close(scale.mean, parts.flatten(0, 1).double().mean(0))
    torch.testing.assert_close(scale.variance, parts.flatten(0, 1).double().var(0, correction=0))


def test_a_column_that_does_not_vary_has_deviation_one() -> None:
    scale = Scale(2)
    scale.watch(torch.tensor([[0.3, 1.0], [0.3, 1.0001]]).repeat(20, 1))
    assert scale.deviation[0] == 1
    assert scale.deviation[1] < 1e-3
