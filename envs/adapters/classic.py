"""PettingZoo's classic games as text: boards, cards and moves by the names that people give them.

A success is 1 for a win, 0.5 for a draw or a game that was cut, 0 for a loss; in hanabi, the share of the score. How
each game reads is in ``classic_texts.py``.
"""

from __future__ import annotations

__all__ = ["ClassicView", "env"]

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from decentral.envs.adapters.classic_texts import GAMES, Game
from decentral.errors import ConfigError, suggest


def env(id: str, **options: Any) -> Any:
    """Makes for example ``tictactoe_v3`` as an AECEnv; the options are its own. Raises ConfigError."""
    game = GAMES.get(id)
    if game is None:
        raise ConfigError(f"classic has no {id!r} that is known here{suggest(id, GAMES)}; there are {', '.join(GAMES)}")
    if options.get("random_start_player"):
        raise ConfigError(f"{id!r} with random_start_player asks the wrong player to begin; leave it out")
    made = importlib.import_module(f"pettingzoo.classic.{id}").env(**options)
    raw = made.unwrapped
    view = raw.text_view = ClassicView(raw, game)
    raw.instructions = view.instructions
    if not game.shared:
        raw.teams = {agent: (agent,) for agent in raw.possible_agents}
    if game.success:
        raw.success, raw.success_rule = view.success, game.rule
    if game.cards:
        raw._scale_rewards = view.pay
    return made


class ClassicView:
    """The texts of one environment."""

    def __init__(self, raw: Any, game: Game) -> None:
        self.raw = raw
        self.game = game
        self.payoffs: list[float] = []

    def observe(self, agent: str, observation: Any) -> str:
        """Returns what the agent sees."""
        return self.game.read(self.raw, self._seat(agent), observation)

    def actions(self, agent: str, mask: npt.NDArray[np.int8] | None) -> Mapping[str, int]:
        """Returns the legal moves by name."""
        seat = self._seat(agent)
        legal = range(int(self.raw.action_space(agent).n)) if mask is None else np.flatnonzero(mask).tolist()
        return {self.game.name(self.raw, seat, action): action for action in legal}

    def instructions(self, agent: str) -> str:
        """Returns what the agent is told once."""
        return self.game.told(self.raw, self._seat(agent))

    def success(self, agent: str) -> float:
        """Returns how the game ended for the agent."""
        assert self.game.success
        return self.game.success(self.raw, self._seat(agent))

    def pay(self, payoffs: Any) -> Any:
        """Keeps the payoffs of a hand of cards: to judge it twice may give an odd chip to another player."""
        self.payoffs = list(payoffs)
        return payoffs

    def _seat(self, agent: str) -> int:
        return int(self.raw.possible_agents.index(agent))
