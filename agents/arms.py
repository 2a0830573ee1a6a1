"""The rules by which an agent uses the same advice: rivals, the paper's, and ours."""

from __future__ import annotations

__all__ = ["Decision", "decide"]

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from decentral.agents.choosing import follow, majority, tilt, veto
from decentral.agents.credibility import View, ccks_weights, our_weights, preference, trimmed

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Decision:
    """What advice came to."""

    behaviour: Floats
    """(A,) the exact probabilities that the action is drawn with."""
    weights: Floats
    """(J,) of the teachers."""
    favour: Floats
    """(A,) what they speak for."""
    belief: float
    """In it, from 0 to 1: how much of the tilt and of the shaping it is worth."""


def decide(rule: str, student: View, teachers: Sequence[View], trust: Floats, strength: float) -> Decision:
    """Returns what a rule makes of advice.

    Args:
        rule: ``follow``, ``majority``, ``ccks`` or ``ours``.
        student: the agent's own view.
        teachers: J others, at least one.
        trust: (J,) in them, from 0 to 1; used by ``ours`` only, which believes fully whom it does not distrust.
        strength: of the tilt of ``ours`` under full belief.
    """
    own = student.probabilities
    even = np.full(len(teachers), 1 / len(teachers))
    match rule:
        case "follow" | "majority":
            chosen = follow(teachers) if rule == "follow" else majority(teachers)
            return Decision(chosen, even, preference(even, teachers), 1.0)
        case "ccks":
            weights = ccks_weights(student, teachers)
            favour = preference(weights, teachers)
            return Decision(veto(own, favour) if weights.any() else own, weights, favour, float(weights.any()))
        case "ours":
            weights = our_weights(student, teachers, trust)
            favour = trimmed(weights, teachers)
            belief = min(1.0, 2 * float(weights @ trust))
            return Decision(tilt(own, favour, strength * belief), weights, favour, belief)
    raise ValueError(f"no rule is called {rule!r}")
