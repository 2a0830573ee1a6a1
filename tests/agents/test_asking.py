"""Which turns are asked about."""

from __future__ import annotations

import json

import numpy as np

from decentral.agents.asking import Budget, Gate


def test_entropy_asks_about_the_upper_part_of_what_was_seen_lately() -> None:
    gate = Gate("entropy", quantile=0.75)
    random = np.random.default_rng(0)
    gate.choose(random.random(500), [""] * 500, np.zeros(500))
    asked = gate.choose(np.linspace(0, 1, 101), [""] * 101, np.zeros(101))
    assert 15 < asked.sum() < 36
    assert asked[-1]
    assert not asked[0]


def test_all_alike_are_all_asked_about() -> None:
    assert Gate("entropy").choose(np.full(4, 0.7), [""] * 4, np.zeros(4)).all()


def test_always_and_never() -> None:
    assert Gate("always").choose(np.zeros(2), ["", ""], np.zeros(2)).tolist() == [True, True]
    assert Gate("never").choose(np.zeros(2), ["", ""], np.zeros(2)).tolist() == [False, False]


def test_visits_ask_less_and_less_about_the_like_and_again_about_the_new() -> None:
    gate = Gate("visits")
    shares = []
    for number in range(20):
        draws = (np.arange(100) + 0.5) / 100
        texts = [f"you 4{number % 10} red"] + ["other"] * 99
        shares.append(bool(gate.choose(np.zeros(100), texts, draws)[0]))
    assert shares[0]
    rare = Gate("visits")
    assert [bool(rare.choose(np.zeros(1), ["you 41"], np.array([0.4]))[0]) for _ in range(4)] == [
        True,
        True,
        False,
        False,
    ]
    assert bool(rare.choose(np.zeros(1), ["you 44"], np.array([0.3]))[0]) is False  # alike but for the last digit
    assert bool(rare.choose(np.zeros(1), ["you 91"], np.array([0.4]))[0]) is True


def test_a_gate_survives_a_checkpoint() -> None:
    for kind in ("entropy", "visits"):
        one, other = Gate(kind), Gate(kind)
        one.choose(np.array([0.1, 0.9]), ["a 1", "b"], np.zeros(2))
        other.restore(json.loads(json.dumps(one.state())))
        step = (np.array([0.5, 0.2]), ["a 1", "c"], np.array([0.4, 0.4]))
        assert one.choose(*step).tolist() == other.choose(*step).tolist()


def test_a_budget_is_spent_in_each_episode_for_itself_given_back_and_renewed() -> None:
    budget = Budget(5)
    assert [budget.take(0, 3), budget.take(0, 3), budget.take(1, 3), budget.take(0, 2)] == [True, False, True, True]
    budget.give_back(0, 1)
    assert [budget.take(0, 2), budget.take(0, 1)] == [False, True]
    budget.renew()
    assert budget.take(0, 5)
