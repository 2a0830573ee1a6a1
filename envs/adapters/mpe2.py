"""MPE2's particle worlds as text: what an agent's observation holds, with names, in tenths of a unit.

Reads as ``b here; a 12 down 4 right; agent_1 3 left; speed 1 left; you 5 up 3 right``: the nearest mark first, the
longer way first, oneself last. How each scenario reads is in ``mpe2_texts.py``.
"""

from __future__ import annotations

__all__ = ["ParticleView", "env"]

import importlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from decentral.envs.adapters.mpe2_texts import GAMES, Part, place
from decentral.errors import ConfigError, suggest

MOVES = ("stay", "left", "right", "down", "up")
"""In the order of mpe2's discrete actions."""


def env(id: str, **options: Any) -> Any:
    """Makes for example ``simple_spread_v3`` as a ParallelEnv; the options are its own. Raises ConfigError."""
    game = GAMES.get(id)
    if game is None:
        raise ConfigError(f"mpe2 has no {id!r} that is known here{suggest(id, GAMES)}; there are {', '.join(GAMES)}")
    if options.get("continuous_actions"):
        raise ConfigError(f"{id!r} with continuous_actions has no list of actions; leave it out")
    made = importlib.import_module(f"mpe2.{id}").parallel_env(**options)
    raw = made.aec_env = made.unwrapped  # without wrappers, through which every attribute is asked for: we keep order
    raw.text_view = ParticleView(raw, game.layout)
    raw.instructions = f"You are {{}}. {game.told}".format
    if game.success:
        raw.success_rule = game.rule
        raw.success = partial(game.success, raw)  # a partial, since copies of the environment then ask the copy
    sides = {"adversaries": True, "agents": False}
    teams = {team: [one.name for one in raw.world.agents if _hostile(one) == side] for team, side in sides.items()}
    if all(teams.values()):
        raw.teams = teams
    if raw.render_mode is None:  # two megabytes that nothing is drawn on, and a font that cannot be copied
        raw.screen = raw.game_font = None
    return made


class ParticleView:
    """Reads observations by the layout of their scenario."""

    def __init__(self, raw: Any, layout: Callable[[Any, Any], Iterable[Part]]) -> None:
        world = raw.world
        self.layouts = {agent.name: tuple(layout(raw, agent)) for agent in world.agents}
        self.table = {agent.name: _table(agent, world.dim_c) for agent in world.agents}

    def observe(self, agent: str, observation: npt.NDArray[np.float32]) -> str:
        """Returns what the agent sees and hears."""
        numbers, at = observation.tolist(), 0
        found: dict[str, str] = {}
        places: dict[str, float] = {}
        for part in self.layouts[agent]:
            name, size, read = part
            if text := read(numbers[at : at + size]):
                found[name] = f"{found[name]}, {text}" if name in found else f"{name} {text}"
                places[name] = place(part, numbers[at : at + size])
            at += size
        return "; ".join(found[name] for name in sorted(found, key=places.__getitem__)) or "nothing"

    def actions(self, agent: str, mask: None) -> Mapping[str, int]:
        """Returns the moves, ``say`` and a number, or both at once."""
        return self.table[agent]


def _hostile(agent: Any) -> bool:
    return bool(getattr(agent, "adversary", False))


def _table(agent: Any, words: int) -> dict[str, int]:
    moves = MOVES if agent.movable else ("",)
    said = [""] if agent.silent else [f"say {i}" for i in range(words)]
    return {f"{move} {word}".strip(): i for i, (word, move) in enumerate((w, m) for w in said for m in moves)}
