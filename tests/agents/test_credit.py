"""Credit against its slow, obvious version, and what must hold of it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from decentral.agents.credit import Plays, chain, group_advantage, normalise


def slow(returns: list[float], groups: list[int]) -> list[float]:
    found = []
    for r, g in zip(returns, groups):
        mates = [x for x, h in zip(returns, groups) if h == g]
        mean = sum(mates) / len(mates)
        std = (sum((x - mean) ** 2 for x in mates) / len(mates)) ** 0.5
        found.append(0.0 if std < 1e-12 else (r - mean) / (std + 1e-6))
    return found


episodes = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 1.0, -3.0]), st.integers(0, 3)), min_size=1, max_size=20)


@given(episodes)
def test_normalise_is_the_z_score_within_the_group(pairs: list[tuple[float, int]]) -> None:
    returns, groups = [p[0] for p in pairs], [p[1] for p in pairs]
    np.testing.assert_allclose(normalise(np.array(returns), np.array(groups)), slow(returns, groups), atol=1e-6)


def test_equal_returns_and_single_episodes_get_no_credit() -> None:
    found = normalise(np.array([0.1, 0.1, 0.1, 7.0]), np.array([1, 1, 1, 2]))
    assert found.tolist() == [0.0, 0.0, 0.0, 0.0]


def test_every_token_of_an_episode_gets_its_advantage_and_links_compose_in_order() -> None:
    plays = Plays(np.array([1.0, 0.0]), np.array([5, 5]), np.array([0, 0, 1]), np.array([0, 1, 0]))
    twice = chain(group_advantage, lambda _, advantage: 2 * advantage)
    np.testing.assert_allclose(twice(plays, np.zeros(3)), [2, 2, -2], atol=1e-4)
