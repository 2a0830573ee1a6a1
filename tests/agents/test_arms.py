"""Rules of choice: the closed form is what happens when the rule is played out, and liars gain what they should."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from decentral.agents.arms import decide
from decentral.agents.choosing import tilt, veto
from decentral.agents.credibility import View, ccks_weights, our_weights, preference, trimmed

Floats = NDArray[np.float64]
RULES = ("follow", "majority", "ccks", "ours")
COUNT = 40_000


def view(random: np.random.Generator, actions: int, sharp: float = 1.0) -> View:
    embedding = random.normal(size=32).astype(np.float32)
    return View(
        random.dirichlet(np.full(actions, sharp)), embedding / np.linalg.norm(embedding), float(random.normal())
    )


def eligible(student: View, teacher: View) -> bool:
    return teacher.entropy <= student.entropy and teacher.value > student.value


def middle(weights: Floats, teachers: list[View]) -> Floats:
    """The mean of the middle third of a crowd in which each teacher has as many voices as it has weight."""
    crowd = np.repeat([one.probabilities for one in teachers], np.round(weights * 300_000).astype(int), axis=0)
    third = len(crowd) // 3
    return np.sort(crowd, axis=0)[third : len(crowd) - third].mean(axis=0)


def simulate(rule: str, student: View, teachers: list[View], trust: Floats, random: np.random.Generator) -> Floats:
    """Plays a rule out, literally as it is described, and returns how often each action came."""
    actions = len(student.probabilities)
    own = student.probabilities
    if rule == "ccks":
        scores = []
        for one in teachers:
            far = np.linalg.norm(student.embedding - one.embedding)
            scores.append(-far * one.entropy if eligible(student, one) else -np.inf)
        weights = np.exp(scores) / np.exp(scores).sum() if np.isfinite(scores).any() else None
        first = random.choice(actions, COUNT, p=own)
        if weights is None:
            return np.bincount(first, minlength=actions) / COUNT
        mixed = sum(w * one.probabilities for w, one in zip(weights, teachers))
        bad = sorted(range(actions), key=lambda a: mixed[a])[: min(actions // 3 + 1, actions - 1)]
        again = random.choice(actions, COUNT, p=own)
        return np.bincount(np.where(np.isin(first, bad), again, first), minlength=actions) / COUNT
    if rule == "ours":
        raw = [
            t * np.exp(-np.linalg.norm(student.embedding - one.embedding) * max(one.entropy, 0.3))
            if eligible(student, one)
            else 0.0
            for one, t in zip(teachers, trust)
        ]
        if not any(raw):
            return np.bincount(random.choice(actions, COUNT, p=own), minlength=actions) / COUNT
        weights = np.array(raw) / sum(raw)
        mixed = middle(weights, teachers)
        strength = 3.0 * min(1.0, 2 * sum(weights * trust))
        # rejection sampling: draw from one's own, keep with a chance that grows with what the teachers favour
        found: list[int] = []
        while len(found) < COUNT:
            drawn = random.choice(actions, COUNT, p=own)
            kept = random.random(COUNT) < np.exp(strength * (mixed[drawn] - mixed.max()))
            found += drawn[kept].tolist()
        return np.bincount(found[:COUNT], minlength=actions) / COUNT
    votes = [int(one.probabilities.argmax()) for one in teachers]
    if rule == "follow":
        chosen = votes[int(np.argmin([one.entropy for one in teachers]))]
    else:
        most = max(votes.count(a) for a in votes)
        tied = [a for a in set(votes) if votes.count(a) == most]
        chosen = max(tied, key=lambda a: sum(one.probabilities[a] for one in teachers))
    return np.eye(actions)[chosen]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("actions", [2, 3, 5, 8])
def test_the_behaviour_probability_is_exact(rule: str, actions: int) -> None:
    random = np.random.default_rng([actions, *rule.encode()])
    for _ in range(3):
        student = view(random, actions, 3.0)
        teachers = [view(random, actions, sharp) for sharp in (0.3, 1.0, 3.0)]
        trust = random.random(3)
        p = decide(rule, student, teachers, trust, 3.0).behaviour
        seen = simulate(rule, student, teachers, trust, random)
        assert np.isclose(p.sum(), 1)
        assert np.all(np.abs(seen - p) <= 4.5 * np.sqrt(p * (1 - p) / COUNT) + 1e-9)


def test_without_a_teacher_who_counts_one_acts_as_oneself() -> None:
    random = np.random.default_rng(1)
    student, other = view(random, 4, 0.2), View(np.full(4, 0.25))
    assert np.array_equal(decide("ccks", student, [other], np.ones(1), 3.0).behaviour, student.probabilities)
    assert np.allclose(decide("ours", student, [other], np.zeros(1), 3.0).behaviour, student.probabilities)


def test_a_lone_action_is_never_vetoed_and_at_least_one_of_two_is_left() -> None:
    assert veto(np.array([1.0]), np.array([0.0])).tolist() == [1.0]
    assert veto(np.array([0.5, 0.5]), np.array([1.0, -1.0])).tolist() == [0.75, 0.25]


def test_a_confident_liar_far_away_outweighs_honest_teachers_in_the_papers_form_and_not_in_ours() -> None:
    """The worked case of the method: one liar at entropy 0, two honest teachers near by."""

    def at(distance: float) -> NDArray[np.float32]:
        angle = 2 * np.arcsin(distance / 2)
        return np.array([np.cos(angle), np.sin(angle), *[0] * 30], dtype=np.float32)

    honest = View(np.array([0.8, 0.1, 0.1]), at(0.8))
    liar = View(np.array([0.0, 0.0, 1.0]), at(2.0))
    student = View(np.full(3, 1 / 3), at(0.0))
    paper = ccks_weights(student, [liar, honest, honest])
    assert paper[0] > 1.5 * paper[1]
    ours = our_weights(student, [liar, honest, honest], np.full(3, 0.5))
    assert ours[0] < ours[1] * 1.01
    assert our_weights(student, [liar, honest, honest], np.array([0.02, 0.9, 0.9]))[0] < 0.02
    assert preference(ours, [liar, honest, honest]).argmax() == 0


def test_who_sends_no_embedding_is_as_far_as_the_others() -> None:
    random = np.random.default_rng(2)
    student, known = View(view(random, 3).probabilities, view(random, 3).embedding), view(random, 3)
    silent = View(known.probabilities)
    assert known.entropy < student.entropy
    assert np.allclose(our_weights(student, [known, silent], np.full(2, 0.5)), 0.5)
    assert np.allclose(our_weights(student, [silent, silent], np.full(2, 0.5)), 0.5)
    even = View(np.full(3, 1 / 3), student.embedding)
    assert np.allclose(ccks_weights(even, [View(known.probabilities, known.embedding), silent]), 0.5)


def test_a_tilt_leaves_what_is_impossible_impossible_and_survives_any_strength() -> None:
    p = tilt(np.array([0.0, 0.3, 0.7]), np.array([0.9, 0.1, -1.0]), 1e4)
    assert p.tolist() == [0.0, 1.0, 0.0]
    own = np.array([0.2, 0.8])
    assert np.allclose(tilt(own, np.array([0.5, -0.5]), 0.0), own)


def test_a_liar_with_less_than_a_third_of_the_weight_cannot_move_what_the_others_agree_on() -> None:
    honest, liar = View(np.array([0.6, 0.3, 0.1])), View(np.array([0.0, 0.0, 1.0]))
    agreed = preference(np.ones(1), [honest])
    assert np.allclose(trimmed(np.full(3, 1 / 3), [honest, liar, honest]), agreed)
    assert not np.allclose(trimmed(np.array([0.3, 0.4, 0.3]), [honest, liar, honest]), agreed)
    assert np.allclose(trimmed(np.array([0.5, 0.5]), [honest, liar]), preference(np.full(2, 0.5), [honest, liar]))


def test_belief_is_full_until_a_peer_is_distrusted() -> None:
    student, teacher = View(np.full(3, 1 / 3)), View(np.array([0.8, 0.1, 0.1]))
    beliefs = [decide("ours", student, [teacher], np.array([t]), 3.0).belief for t in (0.9, 0.5, 0.25)]
    assert beliefs == [1.0, 1.0, 0.5]
    assert decide("ours", teacher, [student], np.ones(1), 3.0).belief == 0.0, "who is less certain teaches nobody"
    assert decide("ccks", teacher, [student], np.ones(1), 3.0).belief == 0.0
    assert decide("follow", teacher, [student], np.zeros(1), 3.0).belief == 1.0


def test_values_and_certainty_decide_who_is_eligible_in_the_papers_form() -> None:
    even, sharp = np.full(4, 0.25), np.array([0.97, 0.01, 0.01, 0.01])
    student = View(np.array([0.7, 0.1, 0.1, 0.1]), None, 1.0)
    teachers = [View(even, None, 2.0), View(sharp, None, 0.5), View(sharp, None, 2.0), View(sharp)]
    assert ccks_weights(student, teachers).tolist() == [0.0, 0.0, 0.5, 0.5]
    assert ccks_weights(student, teachers, margin=1.5).tolist() == [0.0, 0.0, 0.0, 1.0]
