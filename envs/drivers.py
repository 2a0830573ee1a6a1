"""How PettingZoo's two kinds of environment are stepped, and the books that are kept on each agent meanwhile.

A driver owns one environment's cycle: dead agents, vanished keys, arriving agents, rounds. It knows raw actions only,
no texts. Whatever the environment does wrong comes out as ``Breach``, or as the exception that the environment raised.
"""

from __future__ import annotations

__all__ = ["DEAD_STEP", "AecDriver", "Breach", "Driver", "ParallelDriver", "Seat", "Waiting", "bury"]

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import isfinite
from traceback import walk_tb
from typing import Any, Protocol, SupportsFloat

from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.wrappers import (
    AssertOutOfBoundsWrapper,
    CaptureStdoutWrapper,
    ClipOutOfBoundsWrapper,
    OrderEnforcingWrapper,
    TerminateIllegalWrapper,
)

from decentral.envs.agent_names import check_names, declared

DEAD_STEP = (
    "a dead agent's action is None, so begin step with `if self.terminations[agent] or self.truncations[agent]: "
    "self._was_dead_step(action); return`"
)


class Breach(Exception):
    """The environment breaks its API. The message is the first half of a sentence, without its place in the episode.

    ``method`` is the one that is wrong, if it is not the one that was called; ``agent`` is whom it is about.
    """

    def __init__(self, what: str, fix: str, *, method: str | None = None, agent: str | None = None) -> None:
        super().__init__(what)
        self.fix = fix
        self.method = method
        self.agent = agent


class Seat:
    """The books on one agent in one episode."""

    __slots__ = ("alive", "gone", "id", "info", "lived", "name", "since", "terminated", "total", "truncated", "turns")

    def __init__(self, agent: Hashable) -> None:
        self.id = agent
        self.name = str(agent)
        self.clear()

    def clear(self) -> None:
        """Forgets the last episode."""
        self.alive = self.lived = self.gone = self.terminated = self.truncated = False
        self.total = self.since = 0.0
        self.turns = 0
        self.info: Mapping[str, Any] = {}

    def sit(self) -> None:
        """Marks that the agent takes part from now on."""
        self.alive = self.lived = True

    def earn(self, reward: Any) -> None:
        """Books a reward of any numeric type. Raises Breach for anything that is not one finite number."""
        try:
            number = float(reward) if type(reward) in (float, int) else _number(reward)
        except (OverflowError, RuntimeError, TypeError, ValueError):
            raise Breach(
                f"the reward {reward!r} of {self.name!r} is no number", "return one number per agent", agent=self.name
            ) from None
        if not isfinite(number):
            raise Breach(f"the reward of {self.name!r} is {number}", "return finite rewards", agent=self.name)
        self.total += number
        self.since += number

    def end(self, terminated: bool, truncated: bool) -> None:
        """Closes the books; an agent that vanished without a word counts as terminated."""
        self.alive = False
        self.terminated = bool(terminated) or not truncated
        self.truncated = bool(truncated)


def _number(reward: Any) -> float:
    """Returns what a number, or an array or tensor of one, holds. A text is none, whatever it says."""
    value = reward.item() if hasattr(reward, "item") else reward
    if not isinstance(value, SupportsFloat):
        raise TypeError
    return float(value)


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

    def asked(self, method: str) -> str | None:
        """Returns the agent for which a method was last called; None where it is called for all."""
        ...


def _seats(env: Any) -> dict[Hashable, Seat]:
    """Returns a seat per possible agent; an environment that does not declare them is reset once to see its agents.

    Raises EnvError for names that no run can use.
    """
    possible = declared(env)
    if not possible:
        env.reset(seed=0)
        possible = env.agents
    check_names([str(agent) for agent in possible])
    return {agent: Seat(agent) for agent in possible}


def _seat(seats: dict[Hashable, Seat], agent: Hashable) -> Seat:
    seat = seats.get(agent)
    if seat is None:
        raise Breach(
            f"agent {agent!r} appears, which is not among possible_agents",
            "declare it in possible_agents",
            agent=str(agent),
        )
    return seat


_PARTS = ("observations", "rewards", "terminations", "truncations", "infos")
"""What a Parallel step returns, a dict each."""
_BOOKS = ("_cumulative_rewards", "terminations", "truncations", "infos")
"""The dicts of an AEC environment that are read for the agent that is selected."""


def _blame(env: Any, names: Sequence[str], parts: Sequence[Any]) -> None:
    """Raises Breach if anything is wrong with the kinds of what a Parallel environment returned."""
    for name, part in zip(names, parts, strict=True):
        if not isinstance(part, Mapping):
            raise Breach(f"{name} is of type {type(part).__name__}, not a dict", "return one with an entry per agent")
    if not isinstance(env.agents, Iterable):
        raise Breach(f"agents is of type {type(env.agents).__name__}, not a list", "list the live agents in it")


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
        try:
            return self._waiting(*result)
        except (AttributeError, TypeError):  # looked into only once it matters, for speed
            _blame(self._env, ("observations", "infos"), result)
            raise

    def step(self, actions: dict[Hashable, Any]) -> list[Waiting]:
        """Steps all live agents; dead ones are left out."""
        result = self._env.step(actions)
        if not isinstance(result, tuple) or len(result) != 5:
            raise Breach(
                "step() does not return five dicts",
                "return observations, rewards, terminations, truncations and infos",
            )
        self.round += 1
        try:
            return self._book(*result)
        except (AttributeError, TypeError):
            _blame(self._env, _PARTS, result)
            raise

    def cut(self) -> None:
        """Truncates every agent that still lives."""
        for seat in self.seats.values():
            if seat.alive:
                seat.end(False, True)

    def asked(self, method: str) -> str | None:
        """Returns None: all act together."""
        return None

    def _book(
        self,
        observations: Mapping[Hashable, Any],
        rewards: Mapping[Hashable, Any],
        terminations: Mapping[Hashable, Any],
        truncations: Mapping[Hashable, Any],
        infos: Mapping[Hashable, Any],
    ) -> list[Waiting]:
        for agent, reward in rewards.items():
            seat = self.seats.get(agent)
            if seat is not None and seat.lived:  # a team's reward may still reach those who died
                seat.earn(reward)
        present = set(self._env.agents)
        for seat in self.seats.values():
            absent = seat.id not in present
            if not seat.alive:
                if seat.gone and not absent:
                    raise Breach(
                        f"agent {seat.name!r} reappears after its end",
                        "let it live on, or give the newcomer a name of its own",
                        agent=seat.name,
                    )
                seat.gone = seat.lived and absent
                continue
            seat.info = infos.get(seat.id) or {}
            terminated, truncated = terminations.get(seat.id, False), truncations.get(seat.id, False)
            if terminated or truncated or absent:
                seat.end(terminated, truncated)
                seat.gone = absent
        return self._waiting(observations, infos)

    def _waiting(self, observations: Mapping[Hashable, Any], infos: Mapping[Hashable, Any]) -> list[Waiting]:
        waiting: list[Waiting] = []
        for agent in self._env.agents:
            seat = _seat(self.seats, agent)
            if not seat.lived:
                seat.sit()
            if not seat.alive:  # some environments never take the dead off the list
                continue
            if agent not in observations:
                raise Breach(
                    f"live agent {agent!r} gets no observation", "return one for every agent in agents", agent=seat.name
                )
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
        self._stepped: Hashable = None

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
        self._stepped = agent
        self._env.step(action)
        return self._advance()

    def cut(self) -> None:
        """Truncates every agent that still lives, with what it earned since it was last selected."""
        core = self._core
        for agent in core.agents:
            seat = _seat(self.seats, agent)
            if not seat.alive:
                continue
            try:
                if agent != core.agent_selection:  # its share was read when it was selected
                    seat.earn(core._cumulative_rewards.get(agent, 0.0))
                    seat.info = core.infos.get(agent) or {}
                terminated, truncated = core.terminations.get(agent, False), core.truncations.get(agent, False)
            except (AttributeError, TypeError):
                self._blame(agent)
                raise
            seat.end(terminated, truncated or not terminated)
        self._vanish()

    def _advance(self) -> list[Waiting]:
        env, core = self._env, self._core
        while core.agents:
            agent = core.agent_selection
            if agent not in core.agents:
                raise Breach(
                    f"agent_selection is {agent!r}, which is not among agents",
                    "select one of agents, or empty agents to end the episode",
                    agent=str(agent),
                )
            seat = self.seats.get(agent) or _seat(self.seats, agent)
            if not seat.alive:
                if seat.lived:
                    raise Breach(
                        f"agent {agent!r} is selected again after its end",
                        DEAD_STEP,
                        agent=seat.name,
                    )
                seat.sit()
            try:
                if self._plain:  # what last() reads, without asking every wrapper for each of the five
                    observation, reward = env.observe(agent), core._cumulative_rewards[agent]
                    terminated, truncated, info = core.terminations[agent], core.truncations[agent], core.infos[agent]
                else:
                    observation, reward, terminated, truncated, info = env.last()
            except (KeyError, TypeError):  # looked into only once it matters, for speed
                self._blame(agent)
                raise
            seat.earn(reward)
            seat.info = info or {}
            if not (terminated or truncated):
                if agent in self._acted and self._all_acted():
                    self.round += 1
                    self._acted.clear()
                return [(seat, observation, seat.info)]
            seat.end(terminated, truncated)
            self._stepped = agent
            bury(env)
        self._vanish()
        return []

    def asked(self, method: str) -> str | None:
        """Returns the agent that acted, or else the one that is selected."""
        agent = self._stepped if method == "step" else getattr(self._core, "agent_selection", None)
        return None if agent is None or method == "reset" else str(agent)

    def _blame(self, agent: Hashable) -> None:
        """Raises Breach if anything is missing for the selected agent."""
        for name in _BOOKS:
            book = getattr(self._core, name)
            if not isinstance(book, Mapping):
                raise Breach(f"{name} is of type {type(book).__name__}, not a dict", "keep one with an entry per agent")
            if agent not in book:
                raise Breach(
                    f"{name} has no entry for {agent!r}, which must act", "keep one for all in agents", agent=str(agent)
                )

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


def bury(env: Any) -> None:
    """Steps an AEC environment for a dead agent. What that raises gets DEAD_STEP as a note if it is to blame."""
    try:
        env.step(None)
    except Exception as error:
        if all(frame.f_code.co_name != "_was_dead_step" for frame, _ in walk_tb(error.__traceback__)):
            error.add_note(DEAD_STEP)
        raise


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
