"""How PettingZoo's two kinds of environment are stepped, and the books that are kept on each agent meanwhile.

A driver owns one environment's cycle: dead agents, vanished keys, arriving agents, rounds. It knows raw actions only,
no texts. Whatever the environment does wrong comes out as ``Breach``, or as the exception that the environment raised.
"""

from __future__ import annotations

__all__ = ["AecDriver", "Breach", "Driver", "ParallelDriver", "Seat", "Waiting"]

from collections.abc import Hashable, Mapping
from math import isfinite
from typing import Any, Protocol

import numpy as np
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.wrappers import (
    AssertOutOfBoundsWrapper,
    CaptureStdoutWrapper,
    ClipOutOfBoundsWrapper,
    OrderEnforcingWrapper,
    TerminateIllegalWrapper,
)


class Breach(Exception):
    """The environment breaks its API. The message is the first half of a sentence, without its place in the episode."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.fix = fix


class Seat:
    """The books on one agent in one episode."""

    __slots__ = ("alive", "id", "info", "lived", "name", "since", "terminated", "total", "truncated", "turns")

    def __init__(self, agent: Hashable) -> None:
        self.id = agent
        self.name = str(agent)
        self.clear()

    def clear(self) -> None:
        """Forgets the last episode."""
        self.alive = self.lived = self.terminated = self.truncated = False
        self.total = self.since = 0.0
        self.turns = 0
        self.info: Mapping[str, Any] = {}

    def sit(self) -> None:
        """Marks that the agent takes part from now on."""
        self.alive = self.lived = True

    def earn(self, reward: Any) -> None:
        """Books a reward of any numeric type. Raises Breach for anything that is not one finite number."""
        try:
            number = float(reward) if type(reward) in (float, int) else float(np.asarray(reward).item())
        except (TypeError, ValueError):
            raise Breach(
                f"the reward {reward!r} of {self.name!r} is no number", "return one number per agent"
            ) from None
        if not isfinite(number):
            raise Breach(f"the reward of {self.name!r} is {number}", "return finite rewards")
        self.total += number
        self.since += number

    def end(self, terminated: bool, truncated: bool) -> None:
        """Closes the books; an agent that vanished without a word counts as terminated."""
        self.alive = False
        self.terminated = bool(terminated) or not truncated
        self.truncated = bool(truncated)


Waiting = tuple[Seat, Any, Mapping[str, Any]]
"""An agent that must act, its raw observation, its info."""


class Driver(Protocol):
    """One environment, stepped with raw actions."""

    round: int
    seats: dict[Hashable, Seat]

    def reset(self, seed: int) -> list[Waiting]:
        """Starts an episode; returns who must act, nobody if it is over."""
        ...

    def step(self, actions: dict[Hashable, Any]) -> list[Waiting]:
        """Takes the actions of all who must act; returns who must act next."""
        ...

    def cut(self) -> None:
        """Truncates every agent that still lives."""
        ...


def _seats(env: Any) -> dict[Hashable, Seat]:
    """Returns a seat per possible agent; an environment that does not declare them is reset once to see its agents."""
    possible = getattr(env, "possible_agents", None)
    if possible is None:
        env.reset(seed=0)
        possible = env.agents
    return {agent: Seat(agent) for agent in possible}


def _seat(seats: dict[Hashable, Seat], agent: Hashable) -> Seat:
    seat = seats.get(agent)
    if seat is None:
        raise Breach(f"agent {agent!r} appears, which is not among possible_agents", "declare it in possible_agents")
    return seat


class ParallelDriver:
    """All live agents act at once; a round is a step."""

    def __init__(self, env: ParallelEnv[Any, Any, Any]) -> None:
        self._env = env
        self.seats = _seats(env)
        self.round = 0

    def reset(self, seed: int) -> list[Waiting]:
        """Starts an episode."""
        for seat in self.seats.values():
            seat.clear()
        self.round = 0
        result = self._env.reset(seed=seed)
        if not isinstance(result, tuple) or len(result) != 2:
            raise Breach("reset() does not return (observations, infos)", "return both, as PettingZoo asks")
        return self._waiting(*result)

    def step(self, actions: dict[Hashable, Any]) -> list[Waiting]:
        """Steps all live agents; dead ones are left out."""
        result = self._env.step(actions)
        if not isinstance(result, tuple) or len(result) != 5:
            raise Breach(
                "step() does not return five dicts",
                "return observations, rewards, terminations, truncations and infos",
            )
        observations, rewards, terminations, truncations, infos = result
        self.round += 1
        for agent, reward in rewards.items():
            seat = self.seats.get(agent)
            if seat is not None and seat.lived:  # a team's reward may still reach those who died
                seat.earn(reward)
        present = set(self._env.agents)
        for seat in self.seats.values():
            if not seat.alive:
                continue
            seat.info = infos.get(seat.id) or {}
            terminated, truncated = terminations.get(seat.id, False), truncations.get(seat.id, False)
            if terminated or truncated or seat.id not in present:
                seat.end(terminated, truncated)
        return self._waiting(observations, infos)

    def cut(self) -> None:
        """Truncates every agent that still lives."""
        for seat in self.seats.values():
            if seat.alive:
                seat.end(False, True)

    def _waiting(self, observations: Mapping[Hashable, Any], infos: Mapping[Hashable, Any]) -> list[Waiting]:
        waiting: list[Waiting] = []
        for agent in self._env.agents:
            seat = _seat(self.seats, agent)
            if not seat.lived:
                seat.sit()
            if not seat.alive:  # some environments never take the dead off the list
                continue
            if agent not in observations:
                raise Breach(f"live agent {agent!r} gets no observation", "return one for every agent in agents")
            seat.info = infos.get(agent) or {}
            waiting.append((seat, observations[agent], seat.info))
        return waiting


class AecDriver:
    """One agent acts at a time; a round ends when every live agent has acted since it began."""

    def __init__(self, env: AECEnv[Any, Any, Any]) -> None:
        self._env = env
        self._core = _core(env)
        self._plain = type(self._core).last is AECEnv.last
        self.seats = _seats(env)
        self.round = 0
        self._acted: set[Hashable] = set()

    def reset(self, seed: int) -> list[Waiting]:
        """Starts an episode."""
        for seat in self.seats.values():
            seat.clear()
        self.round = 0
        self._acted.clear()
        self._env.reset(seed=seed)
        for agent in self._core.agents:
            _seat(self.seats, agent).sit()
        return self._advance()

    def step(self, actions: dict[Hashable, Any]) -> list[Waiting]:
        """Steps the selected agent, and every dead one after it with None."""
        ((agent, action),) = actions.items()
        self._acted.add(agent)
        self._env.step(action)
        return self._advance()

    def cut(self) -> None:
        """Truncates every agent that still lives, with what it earned since it was last selected."""
        core = self._core
        for agent in core.agents:
            seat = _seat(self.seats, agent)
            if seat.alive:
                if agent != core.agent_selection:  # its share was read when it was selected
                    seat.earn(core._cumulative_rewards.get(agent, 0.0))
                    seat.info = core.infos.get(agent) or {}
                terminated, truncated = core.terminations.get(agent, False), core.truncations.get(agent, False)
                seat.end(terminated, truncated or not terminated)
        self._vanish()

    def _advance(self) -> list[Waiting]:
        env, core = self._env, self._core
        while core.agents:
            agent = core.agent_selection
            seat = self.seats.get(agent) or _seat(self.seats, agent)
            if not seat.alive:
                if seat.lived:
                    raise Breach(
                        f"agent {agent!r} is selected again after its end", "remove it in _was_dead_step(None)"
                    )
                seat.sit()
            if self._plain:  # what last() reads, without asking every wrapper for each of the five
                observation, reward = env.observe(agent), core._cumulative_rewards[agent]
                terminated, truncated, info = core.terminations[agent], core.truncations[agent], core.infos[agent]
            else:
                observation, reward, terminated, truncated, info = env.last()
            seat.earn(reward)
            seat.info = info or {}
            if not (terminated or truncated):
                if agent in self._acted and self._all_acted():
                    self.round += 1
                    self._acted.clear()
                return [(seat, observation, seat.info)]
            seat.end(terminated, truncated)
            env.step(None)
        self._vanish()
        return []

    def _all_acted(self) -> bool:
        core, acted = self._core, self._acted
        return all(
            agent in acted or core.terminations.get(agent) or core.truncations.get(agent) for agent in core.agents
        )

    def _vanish(self) -> None:
        """Closes the books on agents that were taken off the list without a dead step."""
        core = self._core
        for seat in self.seats.values():
            if seat.alive:
                seat.earn(core._cumulative_rewards.get(seat.id, 0.0))
                seat.end(core.terminations.get(seat.id, False), core.truncations.get(seat.id, False))


_STOCK = (
    AssertOutOfBoundsWrapper,
    CaptureStdoutWrapper,
    ClipOutOfBoundsWrapper,
    OrderEnforcingWrapper,
    TerminateIllegalWrapper,
)


def _core(env: Any) -> Any:
    """Returns the environment that holds ``agents``, ``agent_selection`` and the rest under PettingZoo's own wrappers.

    Those pass each of these attributes on, layer by layer, which costs more than a step of a small game.
    """
    while type(env) in _STOCK:
        env = env.env
    return env
