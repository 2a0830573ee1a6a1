"""A whole episode, recorded so that another play of it can be compared with it.

Owns uniformly random legal play and the comparison. Knows nothing about why two plays should be the same.
"""

from __future__ import annotations

__all__ = ["Beside", "Difference", "Moment", "Trace", "answers", "difference", "play", "play_on"]

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from decentral.envs.game import Game
from decentral.envs.turn import Outcome, Turn
from decentral.errors import EnvError, short


class Moment(NamedTuple):
    """What waits for actions."""

    turns: tuple[Turn, ...]
    observed: dict[str, str]
    """Digests of the raw observations behind the turns, whose texts may be rounded: agent -> digest."""
    step: int
    """How often the environment had been stepped."""


class Trace(msgspec.Struct, frozen=True):
    """Everything that can be seen of an episode."""

    seed: int
    moments: list[Moment]
    actions: list[dict[str, str]]
    outcomes: dict[str, Outcome]

    @property
    def turns(self) -> list[Turn]:
        """Every turn of every agent."""
        return [turn for _, turn in self.steps()]

    @property
    def length(self) -> int:
        """The steps of the environment."""
        return self.moments[-1].step + 1 if self.moments else 0

    def steps(self) -> Iterator[tuple[int, Turn]]:
        """Yields every turn of every agent, with the environment's step."""
        return ((moment.step, turn) for moment in self.moments for turn in moment.turns)


class Difference(msgspec.Struct, frozen=True):
    """Where two plays of one episode part first."""

    what: str
    method: str | None
    agent: str | None
    step: int
    seed: int

    def __str__(self) -> str:
        return f"{self.what} (seed {self.seed}, step {self.step})"


def play(game: Game, seed: int, look: Callable[[], None] | None = None) -> Trace:
    """Plays an episode of uniformly random legal actions. ``look`` is called after the reset and every step.

    Raises EnvError.
    """
    game.reset(seed)
    return play_on(game, random.Random(seed), look)


def play_on(game: Game, draw: random.Random, look: Callable[[], None] | None = None) -> Trace:
    """Plays from where the game stands to the end. Raises EnvError."""
    moments, actions = [], []
    while not game.over:
        if look is not None:
            look()
        moments.append(_moment(game))
        step = answers(game, draw)
        actions.append(step)
        game.step(step)
    if look is not None:
        look()
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


def difference(game: Game, trace: Trace, beside: Beside | None = None) -> Difference | None:
    """Plays the recorded actions from the recorded seed; returns what differs first, or None."""
    seed, step = trace.seed, 0

    def parts(what: str, agent: str | None = None, method: str | None = None) -> Difference:
        return Difference(what, method or ("step" if step else "reset"), agent, step, seed)

    try:
        game.reset(seed)
        for moment, actions in zip(trace.moments, trace.actions):
            step = moment.step
            if beside is not None:
                beside.step()
            if game.over:
                return parts("the episode is over, where it went on before")
            seen = _moment(game)
            if seen != moment:
                return parts(*_differs(seen, moment))
            game.step(actions)
        step = trace.length
        if not game.over:
            return parts("the episode goes on, where it was over before")
        now, then = game.outcomes(), trace.outcomes
        for name in {**then, **now}:
            if name not in now or name not in then:
                return parts(f"{name!r} took part in only one of two plays", name)
            if now[name] != then[name]:
                return parts(_field(now[name], then[name]), name)
    except EnvError as error:
        step = step if error.step is None else error.step
        return parts(error.detail, error.agent, error.method)
    return None


def _differs(now: Moment, then: Moment) -> tuple[str, str | None]:
    """Returns what two moments differ in, and for which agent."""
    names, known = [turn.agent for turn in now.turns], [turn.agent for turn in then.turns]
    if names != known:
        return f"{known} had to act and now {names}", next((n for n in names if n not in known), None)
    for new, old in zip(now.turns, then.turns):
        if new != old:
            return _field(new, old), old.agent
    name = next((name for name, digest in then.observed.items() if now.observed.get(name) != digest), None)
    return f"the raw observation of {name!r} is another, though it reads the same", name


def _field(now: Turn | Outcome, then: Turn | Outcome) -> str:
    """Says in which field two records of one agent differ."""
    for field in then.__struct_fields__:
        new, old = getattr(now, field), getattr(then, field)
        if new != old:
            return f"the {field} of {then.agent!r} was {short(old)} and is now {short(new)}"
    raise AssertionError("the records are equal")


def _moment(game: Game) -> Moment:
    return Moment(game.turns(), {name: _digest(seen) for name, seen in game.observations().items()}, game.steps)


def _digest(value: Any) -> str:
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()


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
