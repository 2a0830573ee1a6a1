"""A whole episode, recorded so that another play of it can be compared with it.

Owns uniformly random legal play and the comparison. Knows nothing about why two plays should be the same.
"""

from __future__ import annotations

__all__ = ["Beside", "Trace", "answers", "difference", "play", "play_on"]

import hashlib
import random
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from decentral.envs.game import Game
from decentral.envs.turn import Outcome, Turn
from decentral.errors import EnvError

Moment = tuple[tuple[Turn, ...], bytes]
"""The turns that wait, and a digest of the raw observations behind them, whose texts may be rounded."""


class Trace(msgspec.Struct, frozen=True):
    """Everything that can be seen of an episode."""

    seed: int
    moments: list[Moment]
    actions: list[dict[str, str]]
    outcomes: dict[str, Outcome]

    @property
    def turns(self) -> list[Turn]:
        """Every turn of every agent."""
        return [turn for turns, _ in self.moments for turn in turns]


def play(game: Game, seed: int) -> Trace:
    """Plays an episode of uniformly random legal actions. Raises EnvError."""
    game.reset(seed)
    return play_on(game, random.Random(seed))


def play_on(game: Game, draw: random.Random) -> Trace:
    """Plays from where the game stands to the end. Raises EnvError."""
    moments, actions = [], []
    while not game.over:
        moments.append(_moment(game))
        step = answers(game, draw)
        actions.append(step)
        game.step(step)
    return Trace(game.seed, moments, actions, game.outcomes())


def answers(game: Game, draw: random.Random) -> dict[str, str]:
    """Draws an action for every agent that must act; on a free turn a few letters."""
    return {
        turn.agent: draw.choice(turn.legal) if turn.legal else "".join(draw.choices("abc 123", k=8))
        for turn in game.turns()
    }


class Beside:
    """Another copy that plays its own episodes meanwhile, so that state which copies share shows."""

    def __init__(self, game: Game) -> None:
        self._game = game
        self._draw = random.Random(0)
        self._seed = 1_000_003
        """Far from the seeds of the episodes that are compared."""

    def step(self) -> None:
        """Plays one step. Raises EnvError."""
        if not self._game.turns():
            self._seed += 1
            self._game.reset(self._seed)
        if self._game.turns():
            self._game.step(answers(self._game, self._draw))


def difference(game: Game, trace: Trace, beside: Beside | None = None) -> str:
    """Plays the recorded actions from the recorded seed; returns what differs first, or the empty string."""
    try:
        game.reset(trace.seed)
        for step, (moment, actions) in enumerate(zip(trace.moments, trace.actions)):
            if beside is not None:
                beside.step()
            if game.over or _moment(game) != moment:
                return f"seed {trace.seed}, step {step}: {_differs(game, moment)}"
            game.step(actions)
    except EnvError as error:
        return str(error)
    if not game.over:
        return f"seed {trace.seed} plays on after step {len(trace.actions)}, where it ended before"
    return "" if game.outcomes() == trace.outcomes else f"seed {trace.seed} ends with other outcomes"


def _differs(game: Game, moment: Moment) -> str:
    if game.over:
        return "the episode is over, where it went on before"
    for now, then in zip(game.turns(), moment[0]):
        for field in Turn.__struct_fields__:
            if (new := getattr(now, field)) != (old := getattr(then, field)):
                return f"the {field} of {then.agent!r} was {_short(old)} and is now {_short(new)}"
    return "the raw observations differ"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _moment(game: Game) -> Moment:
    digest = hashlib.sha256()
    _feed(digest, game.observations())
    return game.turns(), digest.digest()


def _feed(digest: Any, value: Any) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            digest.update(repr(key).encode())
            _feed(digest, item)
    elif isinstance(value, tuple | list):
        for item in value:
            _feed(digest, item)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(value.tobytes())
    else:
        digest.update(repr(value).encode())
