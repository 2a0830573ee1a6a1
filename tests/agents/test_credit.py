"""Credit against its slow, obvious version, and what must hold of it."""

from __future__ import annotations

from collections.abc import Callable

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
def test_a_turn_is_credited_with_what_came_after_it_beside_what_was_to_be_expected(
    plays: list[tuple[list[float], int]], discount: float
) -> None:
    def after(row: list[float], turn: int) -> float:
        return sum(reward * discount**k for k, reward in enumerate(row[turn:]))

    def before(row: list[float], turn: int) -> float:
        return row[turn - 1] if turn else 0.0

    def gap(value: Callable[[list[float], int], float], e: int, turn: int) -> float:
        row, group = plays[e]
        same = [value(other, turn) for other, g in plays if g == group and len(other) > turn]
        return value(row, turn) - sum(same) / len(same)

    tokens = [(e, turn) for e, (row, _) in enumerate(plays) for turn in range(len(row))]
    late, soon = (np.array([gap(value, *token) for token in tokens]) for value in (after, before))
    slope = (late * soon).sum() / (soon * soon).sum() if (soon * soon).sum() > 1e-12 else 0.0
    rest = late - slope * soon
    groups = np.array([plays[e][1] for e, _ in tokens])
    spread = np.array([np.sqrt(np.square(rest[groups == g]).mean()) for g in groups])
    want = np.where(spread > 1e-9, rest / (spread + 1e-6), 0.0)
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


def test_the_reward_before_a_turn_is_no_credit_to_it() -> None:
    """A walk whose reward is where one stands: only the steps count, not the place from which they were made."""
    random = np.random.default_rng(0)
    steps = random.choice([-1.0, 1.0], (200, 6))
    start = 10 * random.normal(size=(200, 1))
    steps[:, 0] = start[:, 0]
    places = steps.cumsum(axis=1)
    plays = [(row, 0) for row in places.tolist()]
    tokens = [(e, turn) for e in range(200) for turn in range(1, 6)]
    found = turn_advantage(0.0)(of(plays, tokens), np.zeros(len(tokens))).reshape(200, 5)
    assert np.corrcoef(found.ravel(), steps[:, 1:].ravel())[0, 1] > 0.9
