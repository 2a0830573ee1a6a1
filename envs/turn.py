"""What passes between an environment and an agent: a turn, and in the end an outcome.

Knows nothing about PettingZoo, tokens or links; the same structs travel on the world link.
"""

from __future__ import annotations

__all__ = ["Outcome", "Turn"]

import msgspec


class Turn(msgspec.Struct, frozen=True, omit_defaults=True):
    """One action that one agent must choose now. Exactly one of ``legal`` and ``free`` is set."""

    agent: str
    round: int
    """Parallel: the step; AEC: how often every live agent has acted. Starts at 0."""
    observation: str
    legal: tuple[str, ...] = ()
    """The texts among which to choose, in the environment's order, all different."""
    free: int = 0
    """Free turn: the largest number of tokens of the answer."""
    system: str = ""
    """What the agent is told once, before its first observation; empty on later turns."""
    feedback: str = ""
    """What the environment answered to this agent's previous action, if it says so apart."""
    reward: float = 0.0
    """What the agent got since its previous turn."""


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """How an episode ended for one agent."""

    agent: str
    total: float
    """The return: the sum of the agent's rewards."""
    turns: int
    success: float | None = None
    """In [0, 1], or none where nothing defines success."""
    reward: float = 0.0
    """What the agent got since its last turn."""
    feedback: str = ""
    terminated: bool = False
    truncated: bool = False
