"""Gymnasium environments as PettingZoo ones: a tuple of observations becomes a team, anything else a team of one.

Owns how tuples become dicts and back. Knows nothing about texts: spaces go through as they are, to the default view.
"""

from __future__ import annotations

__all__ = ["Team", "env", "make"]

import importlib
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from decentral.envs.drivers import Breach
from decentral.errors import ConfigError, said

HOMES = {"Foraging": "lbforaging", "rware": "rware"}
"""Packages that register their ids when imported, by an id's beginning; others are asked for as ``package:id``."""
_SEQUENCES = (list, tuple, np.ndarray)


def env(id: str, **options: Any) -> Team:
    """Makes the Gymnasium environment ``id``; the options are its own. Raises ConfigError for an unknown id."""
    return Team(make(id, **options))


def make(id: str, **options: Any) -> Any:
    """Returns the Gymnasium environment itself, without the checker that would look at every step."""
    if home := HOMES.get(id.partition("-")[0]):
        importlib.import_module(home)
    try:
        made = gymnasium.make(id, disable_env_checker=True, **options)
    except gymnasium.error.Error as error:
        what = said(error).rstrip(".")
        raise ConfigError(
            f"gymnasium cannot make {id!r}: {what}; correct the id, or write package:id where a package registers it"
        ) from error
    return Forgetful(made) if type(made.unwrapped).__name__ == "ForagingEnv" else made


class Forgetful(gymnasium.Wrapper):  # type: ignore[misc]
    """lbforaging with episodes that depend on the seed alone.

    By itself it puts nobody where somebody stood at the end of the last episode.
    """

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Starts an episode; nobody stands anywhere before."""
        for player in self.unwrapped.players:
            player.position = None
        return super().reset(seed=seed, options=options)


class Team(ParallelEnv):  # type: ignore[misc]
    """Agents agent_0, agent_1, ... where observations and actions are tuples of one length, else one ``agent``.

    Rewards, ends and infos may be one per agent or one for all.
    """

    def __init__(self, env: Any) -> None:
        seen, acts = env.observation_space, env.action_space
        self.env = env
        self.raw = env.unwrapped
        self.metadata = {**env.metadata, "name": env.spec.id if env.spec else type(self.raw).__name__}
        self.render_mode = env.render_mode
        self.many = isinstance(seen, spaces.Tuple) and isinstance(acts, spaces.Tuple) and len(seen) == len(acts)
        self.possible_agents = [f"agent_{i}" for i in range(len(acts))] if self.many else ["agent"]
        self.agents: list[str] = []
        self._observation_spaces = self._each(seen.spaces if self.many else seen)
        self._action_spaces = self._each(acts.spaces if self.many else acts)
        self._played: dict[str, Any] = {}

    def observation_space(self, agent: str) -> Any:
        """Returns the agent's part of the space, always the same object."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        """Returns the agent's part of the space, always the same object."""
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts an episode. Raises Breach."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.agents = list(self.possible_agents)
        self._played = {}
        return self._each(observation), self._each(self.infos(info))

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """Steps all at once; for one that is done already, its last action stands in. Raises Breach."""
        self._played |= actions
        joint = tuple([self._played[agent] for agent in self.possible_agents]) if self.many else self._played["agent"]
        observation, reward, terminated, truncated, info = self.env.step(joint)
        every = self.agents
        results = [self._each(part) for part in (observation, reward, terminated, truncated, self.infos(info))]
        if len(every) < len(self.possible_agents):
            results = [{agent: part[agent] for agent in every} for part in results]
        observations, rewards, terminations, truncations, infos = results
        if any(terminations.values()) or any(truncations.values()):
            self.agents = [agent for agent in every if not (terminations[agent] or truncations[agent])]
            if self.late():
                truncations = {agent: bool(terminations[agent] or truncations[agent]) for agent in every}
                terminations = dict.fromkeys(every, False)
        return observations, rewards, terminations, truncations, infos

    def infos(self, info: Any) -> Any:
        """Returns the infos, one for all or a list; for an adapter that adds to them."""
        return info

    def late(self) -> bool:
        """Says whether what the environment just called a termination is its time limit; for an adapter that knows."""
        return False

    def render(self) -> Any:
        """Returns what the environment renders."""
        return self.env.render()

    def close(self) -> None:
        """Closes the environment."""
        self.env.close()

    def _each(self, value: Any) -> dict[str, Any]:
        """Returns each agent's entry of a sequence, or else the same for all."""
        agents = self.possible_agents
        if not (self.many and isinstance(value, _SEQUENCES)) or (isinstance(value, np.ndarray) and not value.ndim):
            return dict.fromkeys(agents, value)
        if len(value) != len(agents):
            raise Breach(f"{value!r} has {len(value)} entries for {len(agents)} agents", "return one for each")
        return dict(zip(agents, value))
