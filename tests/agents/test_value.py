"""The value head: it learns at any scale, says how much it explains, and goes on from a checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from decentral.agents.value import ValueHead
from decentral.errors import ModelError

WIDTH = 16


def rows(seed: int, n: int = 300) -> tuple[Tensor, Tensor]:
    """(n, 16) hidden states and (n,) linear functions of them, of mean 2 and deviation 1."""
    draws = torch.Generator().manual_seed(seed)
    h = torch.randn(n, WIDTH, generator=draws)
    return h * 3 + 5, h @ torch.linspace(-1, 1, WIDTH) / 2.43 + 2


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_a_linear_target_is_learnt_at_any_scale(scale: float) -> None:
    head = ValueHead(WIDTH, 1, steps=20)
    for i in range(10):
        h, y = rows(i)
        figures = head.learn(h, scale * y)
    assert figures["value_explained"] > 0.95
    assert figures["value_loss"] < 0.05
    h, y = rows(1000)
    assert ((head.predict(h) / scale - y).square().mean()) < 0.05


def test_noise_is_not_explained() -> None:
    head = ValueHead(WIDTH, 1)
    for i in range(5):
        figures = head.learn(rows(i)[0], rows(i + 100)[1])
    assert figures["value_explained"] < 0.1


def test_what_was_explained_is_told_before_it_is_learnt() -> None:
    head = ValueHead(WIDTH, 1)
    h, y = rows(0)
    assert not head.predict(h).any()
    assert head.learn(h, y)["value_explained"] == pytest.approx(0)
    assert head.learn(h, y)["value_explained"] > 0.01


@pytest.mark.parametrize("value", [0.3, -1.7e4, 0.0])
def test_equal_returns_are_predicted_and_nothing_is_explained(value: float) -> None:
    head = ValueHead(WIDTH, 1)
    h, noise = rows(0, 299)
    y = value * (1 + 1e-12 * noise.double())  # as sums of the same rewards in another order may differ
    for _ in range(3):
        assert head.learn(h, y)["value_explained"] == 0
    torch.testing.assert_close(head.predict(h), y.float(), atol=0.02, rtol=0)


@pytest.mark.parametrize("varied", [0.0, 1e-4])
def test_a_feature_that_hardly_varied_does_no_harm_once_it_does(varied: float) -> None:
    head = ValueHead(WIDTH, 1)
    h, y = rows(0)
    h[:, 0] = 0.1 + varied * h[:, 1]
    head.learn(h, y)
    h[:, 0] += 1
    assert (head.predict(h) - y.mean()).abs().max() < 5


def test_no_rows_are_nothing_to_learn() -> None:
    head = ValueHead(WIDTH, 1)
    assert head.predict(torch.zeros(0, WIDTH)).shape == (0,)
    assert head.learn(torch.zeros(0, WIDTH), torch.zeros(0)) == {}


def test_a_restored_head_goes_on_bit_for_bit(tmp_path: Path) -> None:
    one, again = ValueHead(WIDTH, 1), ValueHead(WIDTH, 2)
    one.learn(*rows(0, 600))
    one.save(tmp_path)
    again.load(tmp_path)
    assert one.learn(*rows(1, 600)) == again.learn(*rows(1, 600))
    assert torch.equal(one.predict(rows(2)[0]), again.predict(rows(2)[0]))
    assert torch.equal(one.draws.get_state(), again.draws.get_state())


def test_a_checkpoint_of_another_width_is_refused(tmp_path: Path) -> None:
    ValueHead(WIDTH, 1).save(tmp_path)
    with pytest.raises(ModelError, match=r"of another model; resume with its config$"):
        ValueHead(WIDTH + 1, 1).load(tmp_path)


def test_the_global_generator_is_left_alone() -> None:
    before = torch.get_rng_state()
    ValueHead(WIDTH, 1).learn(*rows(0))
    assert torch.equal(before, torch.get_rng_state())


def test_it_says_whether_it_has_learnt(tmp_path: Path) -> None:
    head, again = ValueHead(4, 0), ValueHead(4, 0)
    assert not head.learnt
    head.learn(torch.randn(8, 4), torch.arange(8.0))
    assert head.learnt
    head.save(tmp_path)
    again.load(tmp_path)
    assert again.learnt
