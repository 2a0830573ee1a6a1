"""Who may play in an environment, and what these agents may be called: a run keeps a folder for each, named like it.

Knows nothing about how an environment is played, or about folders.
"""

from __future__ import annotations

__all__ = ["check_names", "declared"]

import unicodedata
from collections.abc import Sequence
from typing import Any

from decentral.errors import EnvError

_TAKEN = (".", "..", "host")
"""Folders that exist already; the host's is beside those of the agents."""
_LONGEST = 200
"""Bytes; file systems take 255, and some names get an ending."""


def declared(env: Any) -> list[Any]:
    """Returns the possible agents of an environment as it declares them; none where it does not."""
    possible = getattr(env, "possible_agents", None)
    return [] if possible is None else list(possible)


def check_names(names: Sequence[str]) -> None:
    """Raises EnvError for a name that no folder can have, and for two that are one on some file system."""
    if not names:
        raise EnvError("there are no agents: name them in possible_agents", method="possible_agents")
    known: dict[str, str] = {}
    for name in names:
        if name in _TAKEN or "/" in name or not name.isprintable() or not 0 < len(name.encode()) <= _LONGEST:
            raise EnvError(
                f"the agent name {name[:_LONGEST]!r} cannot be a folder's: the environment must use a plain, short one",
                method="possible_agents",
                agent=name,
            )
        folded = unicodedata.normalize("NFC", name).casefold()
        if folded in known:
            raise EnvError(
                f"the agent names {known[folded]!r} and {name!r} are one to some file system: give each agent its own",
                method="possible_agents",
                agent=name,
            )
        known[folded] = name
