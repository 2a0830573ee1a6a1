"""Trust follows what came of advice, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from decentral.agents.trust import Trust


def outcomes(teacher: np.ndarray, best: int, count: int, seed: int = 0) -> list[list[float]]:
    """What an agent that draws evenly among three actions finds about a teacher, where one action pays; one a turn."""
    random = np.random.default_rng(seed)
    own = np.full(3, 1 / 3)
    actions = random.integers(3, size=count)
    gains = (actions == best) * 1.0 - 1 / 3 + random.normal(size=count)
    return [[float(gain * (teacher[a] - own[a]) / own[a])] for a, gain in zip(actions, gains)]


def test_it_grows_for_who_is_right_and_falls_for_who_is_wrong() -> None:
    trust = Trust()
    trust.update("right", outcomes(np.array([0.8, 0.1, 0.1]), 0, 300))
    trust.update("wrong", outcomes(np.array([0.0, 0.0, 1.0]), 0, 300))
    trust.update("even", outcomes(np.full(3, 1 / 3), 0, 300))
    right, wrong, even, unknown = trust.of(["right", "wrong", "even", "unknown"])
    assert right > 0.95
    assert wrong < 0.15
    assert even == unknown == 0.5


def test_few_or_huge_observations_move_it_little() -> None:
    trust = Trust()
    trust.update("lucky", [[0.5]])
    trust.update("huge", [[1e12]])
    assert trust.of(["lucky"])[0] < 0.6
    assert trust.of(["huge"])[0] < 0.9


def test_who_changes_is_found_out_again() -> None:
    trust = Trust()
    trust.update("turncoat", outcomes(np.array([1.0, 0.0, 0.0]), 0, 3000))
    assert trust.of(["turncoat"])[0] > 0.99
    trust.update("turncoat", outcomes(np.array([0.0, 0.0, 1.0]), 0, 1500, seed=1))
    assert trust.of(["turncoat"])[0] < 0.1


def test_it_survives_a_checkpoint() -> None:
    trust, again = Trust(), Trust()
    trust.update("ann", [[0.3, -0.2], [4.0]])
    again.restore(trust.state())
    again.update("ann", [[1.0]])
    trust.update("ann", [[1.0]])
    assert trust.of(["ann"]) == again.of(["ann"])


def test_the_turns_of_an_episode_are_one_observation() -> None:
    trust = Trust()
    found = outcomes(np.array([0.8, 0.1, 0.1]), 0, 40)
    trust.update("once", found)
    trust.update("often", [episode * 50 for episode in found])
    assert trust.of(["once"])[0] == pytest.approx(trust.of(["often"])[0])
