"""Environments: one turn-based view over PettingZoo, text views of spaces, built-in games.

Public names load on first use, so that who only needs a struct does not wait for PettingZoo.
"""

from __future__ import annotations

__all__ = [
    "EnvConfig",
    "Episode",
    "Factors",
    "Finished",
    "Fleet",
    "Forkable",
    "Free",
    "Game",
    "Outcome",
    "Report",
    "SpaceView",
    "TextView",
    "Turn",
    "check_env",
    "games",
    "make",
    "prove_fork",
    "resolve",
]

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from decentral.envs.actions import Factors, Free
    from decentral.envs.check import Report, check_env
    from decentral.envs.config import EnvConfig
    from decentral.envs.fleet import Episode, Finished, Fleet
    from decentral.envs.fork import Forkable, prove_fork
    from decentral.envs.game import Game
    from decentral.envs.names import games, make, resolve
    from decentral.envs.text import SpaceView, TextView
    from decentral.envs.turn import Outcome, Turn

_HOMES = {
    "actions": ("Factors", "Free"),
    "check": ("Report", "check_env"),
    "config": ("EnvConfig",),
    "fleet": ("Episode", "Finished", "Fleet"),
    "fork": ("Forkable", "prove_fork"),
    "game": ("Game",),
    "names": ("games", "make", "resolve"),
    "text": ("SpaceView", "TextView"),
    "turn": ("Outcome", "Turn"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
