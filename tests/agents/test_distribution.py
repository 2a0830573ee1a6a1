"""The restricted distribution and draws from it, against the obvious version."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from decentral.agents.distribution import entropy, pick, restricted
from decentral.agents.draws import name_word, uniform


@given(
    logits=st.lists(st.floats(-8, 8, width=32), min_size=6, max_size=6),
    allowed=st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=6, unique=True), min_size=1, max_size=4),
    temperature=st.sampled_from([0.3, 1.0, 2.0]),
)
def test_it_is_the_softmax_over_the_allowed_tokens(
    logits: list[float], allowed: list[list[int]], temperature: float
) -> None:
    table, tokens = restricted(torch.tensor([logits] * len(allowed)), [tuple(a) for a in allowed], temperature)
    assert tokens is not None
    nats = entropy(table)
    for row, ids in enumerate(allowed):
        weights = np.exp(np.array(logits)[ids] / temperature)
        p = weights / weights.sum()
        np.testing.assert_allclose(table[row, : len(ids)].exp(), p, atol=1e-5)
        np.testing.assert_allclose(nats[row], -(p * np.log(p)).sum(), atol=1e-4)
        assert tokens[row, : len(ids)].tolist() == ids
        assert (table[row, len(ids) :] == -torch.inf).all()


def test_draws_fall_in_proportion_and_never_on_what_is_not_allowed() -> None:
    p = torch.tensor([0.5, 0.0, 0.3, 0.2, 0.0])
    draws = torch.from_numpy(uniform(7, list(range(20000))))
    counts = np.bincount(pick(p.expand(20000, -1), draws), minlength=5)
    assert counts[1] == counts[4] == 0
    expected = np.array([10000, 6000, 4000])
    assert ((counts[[0, 2, 3]] - expected) ** 2 / expected).sum() < 13.8


def test_the_largest_draw_stays_inside() -> None:
    p = torch.tensor([[0.5, 0.5, 0.0]])
    assert pick(p, torch.tensor([1.0 - 2**-53], dtype=torch.float64)).tolist() == [1]


def test_a_draw_is_a_function_of_its_key_alone() -> None:
    word = name_word("ada")
    many = uniform(1, word, [5, 6, 2**63 + 1], [0, 1, 2])
    assert many[1] == uniform(1, word, 6, 1)[0]
    assert many[2] == uniform(1, word, 2**63 + 1, 2)[0]
    assert len(set(uniform(0, list(range(1000))).tolist())) == 1000
    assert abs(uniform(0, list(range(20000))).mean() - 0.5) < 0.01
