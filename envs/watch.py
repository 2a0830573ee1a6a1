"""Whether an environment keeps, while it is played, to what it declares: its agents and its spaces.

Knows nothing about what a check makes of it.
"""

from __future__ import annotations

__all__ = ["Watch"]

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from decentral.envs.agent_names import declared
from decentral.envs.game import Game
from decentral.errors import EnvError, said, short


class Watch:
    """Looks at a game after its resets and steps."""

    def __init__(self, game: Game) -> None:
        self.follow(game)
        self._possible = declared(self._env)
        self._spaces: dict[tuple[str, Any], spaces.Space[Any]] = {}
        self.fault: EnvError | None = None
        """The first thing that was not as declared."""
        self.anew: EnvError | None = None
        """The first space that is another object whenever it is asked for."""

    def follow(self, game: Game) -> None:
        """Turns to another copy."""
        self._game = game
        self._env = game.env

    def faults(self) -> list[EnvError]:
        """Returns what was found, without a space that is both made anew and another one."""
        if self.fault is None or self.anew is None:
            return [error for error in (self.fault, self.anew) if error is not None]
        return [self.fault] if self.fault.method == self.anew.method else [self.fault, self.anew]

    def look(self) -> None:
        """Looks at the moment at which the game stands."""
        try:
            if self.fault is None:
                self._compare()
        except EnvError as error:
            self.fault = error
        except Exception as error:  # noqa: BLE001  foreign code; whoever plays meets it too
            self.fault = self._wrong(f"the spaces cannot be read: {type(error).__name__}: {said(error)}; repair them")

    def _compare(self) -> None:
        possible = declared(self._env)
        if possible != self._possible:
            raise self._wrong(f"it was {self._possible} and is now {possible}; never change it", "possible_agents")
        for agent in possible:
            for method in ("observation_space", "action_space"):
                space = getattr(self._env, method)(agent)
                known = self._spaces.get((method, agent))
                if known is None:
                    known = self._spaces[method, agent] = copy.deepcopy(space)  # it may be changed in place
                    if self.anew is None and getattr(self._env, method)(agent) is not space:
                        self.anew = self._wrong(
                            f"{method}(agent) must return the same object at every call; make the spaces in __init__",
                            method,
                            str(agent),
                        )
                if space != known:
                    raise self._wrong(
                        f"it was {known} for {str(agent)!r} and is now {space}; return the same space whenever asked",
                        method,
                        str(agent),
                    )
        seen = self._game.observations()
        for agent in possible:
            name = str(agent)
            if name in seen and not (space := self._env.observation_space(agent)).contains(seen[name]):
                raise self._wrong(
                    f"the observation of {name!r} is not in its observation_space: {_misfit(space, seen[name])}; "
                    "correct one of the two",
                    "observation_space",
                    name,
                )

    def _wrong(self, detail: str, method: str | None = None, agent: str | None = None) -> EnvError:
        return EnvError(detail, method=method, agent=agent, step=self._game.steps, seed=self._game.seed)


def _misfit(space: spaces.Space[Any], value: Any) -> str:
    """Says why a space does not contain a value, as closely as can be told."""
    if isinstance(space, spaces.Dict) and isinstance(value, Mapping):
        if space.spaces.keys() != value.keys():
            return f"it has the keys {list(value)}, the space {list(space.spaces)}"
        key = next(key for key, part in space.spaces.items() if not part.contains(value[key]))
        return f"under {key!r}, {_misfit(space.spaces[key], value[key])}"
    if isinstance(space, spaces.Box) and isinstance(value, np.ndarray):
        if value.shape != space.shape:
            return f"its shape is {value.shape}, the space's {space.shape}"
        if not np.can_cast(value.dtype, space.dtype):
            return f"its dtype is {value.dtype}, the space's {space.dtype}"
        return f"it holds {value.min():g} to {value.max():g}, the space {space.low.min():g} to {space.high.max():g}"
    return f"it is {short(value)} and the space {space}"
