"""What the built-in games share: the agents' names and the choice of a level.

Knows no game. The texts of all games use one small vocabulary: lower-case words and single digits, the same word
for the same thing everywhere.
"""

from __future__ import annotations

__all__ = ["NAMES", "pick"]

from collections.abc import Sequence
from typing import TypeVar

from decentral.errors import ConfigError

Rules = TypeVar("Rules")

NAMES = ("ada", "bob", "cat", "dan")


def pick(game: str, levels: Sequence[Rules], level: int) -> Rules:
    """Returns the rules of one level. Raises ConfigError if there is no such level."""
    if level not in range(len(levels)):
        raise ConfigError(
            f"level {level!r} does not exist: {game} has the levels 0 to {len(levels) - 1}; take one of them"
        )
    return levels[level]
