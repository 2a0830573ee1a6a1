"""Credit against its slow, obvious version, and what must hold of it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from decentral.agents.credit import Plays, chain, group_advantage, normalise, to_go, turn_advantage


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
    rewards = np.array([[1.0, 0.0], [0.0, np.nan]])
    plays = Plays(np.array([1.0, 0.0]), np.array([5, 5]), rewards, np.array([0, 0, 1]), np.array([0, 1, 0]))
    twice = chain(group_advantage, lambda _, advantage: 2 * advantage)
    np.testing.assert_allclose(twice(plays, np.zeros(3)), [2, 2, -2], atol=1e-4)


ragged = st.lists(
    st.tuples(st.lists(st.sampled_from([0.0, 1.0, -2.0]), min_size=1, max_size=4), st.integers(0, 2)), min_size=1
)


@given(ragged, st.sampled_from([0.0, 0.5, 1.0]))
def test_a_turn_is_credited_with_what_came_after_it_beside_the_same_turn_of_its_group(
    plays: list[tuple[list[float], int]], discount: float
) -> None:
    def after(row: list[float], turn: int) -> float:
        return sum(reward * discount**k for k, reward in enumerate(row[turn:]))

    def gap(row: list[float], group: int, turn: int) -> float:
        same = [after(other, turn) for other, g in plays if g == group and len(other) > turn]
        return after(row, turn) - sum(same) / len(same)

    def spread(group: int) -> float:
        gaps = [gap(row, group, turn) for row, g in plays if g == group for turn in range(len(row))]
        return float(np.sqrt(np.mean(np.square(gaps))))

    tokens = [(e, turn) for e, (row, _) in enumerate(plays) for turn in range(len(row))]
    want = [gap(*plays[e], turn) / (s + 1e-6) if (s := spread(plays[e][1])) > 1e-12 else 0.0 for e, turn in tokens]
    found = turn_advantage(discount)(of(plays, tokens), np.zeros(len(tokens)))
    np.testing.assert_allclose(found, want, atol=1e-6)


@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0, -2.0]), st.integers(0, 2)), min_size=1, max_size=12))
def test_reward_that_comes_last_makes_an_undiscounted_turn_as_good_as_its_episode(
    ends: list[tuple[float, int]],
) -> None:
    plays = [([0.0, 0.0, last], group) for last, group in ends]
    tokens = [(e, turn) for e in range(len(plays)) for turn in range(3)]
    arrays, zero = of(plays, tokens), np.zeros(len(tokens))
    np.testing.assert_allclose(turn_advantage(1.0)(arrays, zero), group_advantage(arrays, zero), atol=1e-6)


def test_rewards_to_go_leave_nothing_beyond_the_last_turn() -> None:
    found = to_go(np.array([[1.0, 2.0], [3.0, np.nan]]), 1.0)
    np.testing.assert_array_equal(found, [[3.0, 2.0], [3.0, np.nan]])


def of(plays: list[tuple[list[float], int]], tokens: list[tuple[int, int]]) -> Plays:
    width = max(len(row) for row, _ in plays)
    return Plays(
        returns=np.array([sum(row) for row, _ in plays]),
        groups=np.array([group for _, group in plays]),
        rewards=np.array([row + [np.nan] * (width - len(row)) for row, _ in plays]),
        episode=np.array([e for e, _ in tokens]),
        turn=np.array([turn for _, turn in tokens]),
    )
