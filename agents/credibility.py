"""How much a receiver believes each teacher, from its own models alone, and which actions that speaks for.

Pure functions over arrays; A legal actions, J teachers. Source: CCKS, arXiv 2606.12281, and our variant of it.
"""

from __future__ import annotations

__all__ = ["View", "ccks_weights", "our_weights", "preference", "trimmed"]

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FLOOR = 0.3
"""Nats below which a teacher's certainty earns no further belief."""


@dataclass(frozen=True)
class View:
    """What somebody makes of a situation."""

    probabilities: Floats
    """(A,) of the legal actions."""
    embedding: NDArray[np.float32] | None = None
    """(32,) by the consensus model of whoever made it."""
    value: float | None = None
    """The return that is expected from here on."""

    @cached_property
    def entropy(self) -> float:
        """Of the probabilities, in nats."""
        p = self.probabilities
        return float(-(p * np.log(np.where(p > 0, p, 1.0))).sum())


def ccks_weights(student: View, teachers: Sequence[View], margin: float = 0.0) -> Floats:
    """Returns (J,) weights, the softmax over eligible teachers of ``-distance * entropy``; all 0 if none is eligible.

    Not eligible is who is less certain than the student, or whose value does not exceed the student's by more than the
    margin, if both have one. Who sends no embedding is as far as the others are.
    """
    certain = np.array([one.entropy for one in teachers])
    return _softmax(-_distances(student, teachers) * certain, _eligible(student, teachers, margin))


def our_weights(student: View, teachers: Sequence[View], trust: Floats, floor: float = FLOOR) -> Floats:
    """Returns (J,) weights like ``trust * exp(-distance * max(entropy, floor))``; all 0 if nobody is eligible.

    Eligible is who is so by the paper's rules, and trusted: agents that know equally little and believe each other
    agree on anything. Unlike the paper's, the weights give no teacher more for being certain than ``floor`` nats would,
    so that a confident liar far from the student's consensus cannot outweigh honest teachers. Who sends no embedding is
    as far as the others are.
    """
    score = -_distances(student, teachers) * np.maximum([one.entropy for one in teachers], floor)
    return _softmax(score + np.log(np.maximum(trust, 1e-12)), _eligible(student, teachers) & (trust > 1e-9))


def preference(weights: Floats, teachers: Sequence[View]) -> Floats:
    """Returns (A,) what the teachers favour: the weighted mean of their probabilities less its mean over actions."""
    mixed = weights @ np.stack([one.probabilities for one in teachers])
    return np.asarray(mixed - mixed.mean())


def trimmed(weights: Floats, teachers: Sequence[View]) -> Floats:
    """Returns (A,) like `preference`, of a mean that leaves out a third of the weight at either end of each action.

    So nobody with less than a third of the weight, however certain, can move it beyond what the others say.

    >>> views = [View(np.array(p)) for p in ([0.9, 0.1], [0.8, 0.2], [0.0, 1.0])]
    >>> trimmed(np.full(3, 1 / 3), views).round(3).tolist()
    [0.3, -0.3]
    """
    if not weights.any():
        return np.zeros(len(teachers[0].probabilities))
    table = np.stack([one.probabilities for one in teachers])
    order = table.argsort(axis=0)
    share = weights[order] / weights.sum()
    above = share.cumsum(axis=0)
    kept = np.clip(np.minimum(above, 2 / 3) - np.maximum(above - share, 1 / 3), 0.0, None)
    middle = 3 * (kept * np.take_along_axis(table, order, axis=0)).sum(axis=0)
    return np.asarray(middle - middle.mean())


def _distances(student: View, teachers: Sequence[View]) -> Floats:
    """Returns (J,) distances of embeddings; one that is missing is as far as the mean of the others."""
    own = student.embedding
    others = [one.embedding for one in teachers]
    far = np.array([np.nan if own is None or z is None else np.linalg.norm(own - z) for z in others])
    known = far[~np.isnan(far)]
    return np.where(np.isnan(far), known.mean() if len(known) else 0.0, far)


def _eligible(student: View, teachers: Sequence[View], margin: float = 0.0) -> NDArray[np.bool_]:
    found = [one.entropy <= student.entropy and _worth(student, one, margin) for one in teachers]
    return np.array(found, dtype=bool)


def _worth(student: View, teacher: View, margin: float) -> bool:
    return student.value is None or teacher.value is None or teacher.value > student.value + margin


def _softmax(score: Floats, eligible: NDArray[np.bool_]) -> Floats:
    if not eligible.any():
        return np.zeros(len(score))
    raw = np.where(eligible, np.exp(score - score[eligible].max()), 0.0)
    return np.asarray(raw / raw.sum())
