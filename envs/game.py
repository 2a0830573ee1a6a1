"""One turn-based view over PettingZoo's AEC and Parallel environments.

Owns one copy of an environment: the turns that wait for an action, what was played, the outcomes. How PettingZoo is
stepped is in ``drivers.py``, how things read in ``text.py``. Knows nothing about agents, links or other copies.
"""

from __future__ import annotations

__all__ = ["Game"]

import copy
from collections.abc import Mapping
from typing import Any, NoReturn

import gymnasium
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

from decentral.envs.actions import Factors, Free
from decentral.envs.drivers import AecDriver, Breach, Driver, ParallelDriver, Seat, Waiting
from decentral.envs.faults import ANYTHING, Place, fault
from decentral.envs.images import Picture, colour_grid
from decentral.envs.offers import PLAIN, Sound, encodable, examine
from decentral.envs.success import Success, judge
from decentral.envs.teams import check_teams
from decentral.envs.text import SpaceView, TextView, has_nan
from decentral.envs.turn import Outcome, Turn
from decentral.errors import ConfigError, EnvError, said

_ILLEGAL = object()
_READ = (("text_view.observe", "instructions", "step"), ("observe", "instructions", "step"))
"""Whence observation, system and feedback come: with a view of its own, and without one."""


class Game:
    """One copy of an environment, played in texts.

    ``reset``; then, until ``over``, answer every one of ``turns()`` with one ``step``; then ``outcomes()``. Whatever
    the environment or its view does wrong is an EnvError that names the environment, the round, the seed, the step and
    the actions; the game is then of no further use.
    """

    def __init__(
        self,
        env: Any,
        *,
        name: str = "",
        view: TextView | None = None,
        success: Success | None = None,
        success_return: float | None = None,
        max_rounds: int = 200,
        bins: int | None = None,
        picture: Picture = colour_grid,
    ) -> None:
        """Wraps ``env``, which must be an AECEnv or a ParallelEnv.

        ``view`` overrules the environment's own ``text_view``. After ``max_rounds`` rounds, or as many steps as these
        have when each agent acts once a round, the episode is truncated. ``bins`` and ``picture`` are for
        the default view, see ``SpaceView``. Raises EnvError for an object of another kind.
        """
        self.name = name or str(env)
        self.env = env
        self.history: list[dict[str, str]] = []
        """The answers of this episode, in the order in which they were asked for: agent -> text."""
        self.seed = 0
        self._started = False
        self._driver = self._drive(env)
        self._seats: dict[str, Seat] = {seat.name: seat for seat in self._driver.seats.values()}
        self.agents = tuple(self._seats)
        """The names of the possible agents."""
        raw = env.unwrapped
        self.teams = _teams(self.name, getattr(raw, "teams", {}), self.agents)
        """Which agents play for which team, as the environment says; none where they are not opponents."""
        self._instructions = getattr(raw, "instructions", None)
        self.view: TextView = view or getattr(raw, "text_view", None) or self._default_view(bins, picture)
        self._success = success
        self._success_return = success_return
        self._max_rounds = max_rounds
        self._turns: tuple[Turn, ...] = ()
        self._tables: dict[str, Mapping[str, Any] | Free | Factors] = {}
        self._parts: dict[str, list[Any]] = {}
        self._steps = 0
        self._raw: list[Waiting] = []
        self._outcomes: dict[str, Outcome] = {}
        self._sound = Sound()

    @property
    def over(self) -> bool:
        """Says whether an episode was started and nobody must act any more."""
        return self._started and not self._turns

    @property
    def steps(self) -> int:
        """How often the environment was stepped in this episode; an action of many parts is one step."""
        return self._steps

    def reset(self, seed: int) -> None:
        """Starts an episode from ``seed``, whatever happened before. Raises EnvError."""
        self.seed = seed
        self.history = []
        self._steps = 0
        self._outcomes = {}
        self._started = False
        try:
            waiting = self._driver.reset(seed)
        except ANYTHING as error:
            self._fail(error, "reset")
        self._started = True
        self._open(waiting)

    def turns(self) -> tuple[Turn, ...]:
        """Returns who must act now, in the environment's order: every live agent (Parallel) or one (AEC).

        An action of many parts takes as many turns: while one agent chooses further parts, those that are done wait.
        """
        return self._turns

    def step(self, actions: Mapping[str, str]) -> None:
        """Takes one text from exactly those agents that must act, and steps the environment once all actions are whole.

        Raises EnvError; also, before anything is stepped, for a wrong set of agents or an action that is not legal.
        """
        asked = {turn.agent for turn in self._turns}
        if actions.keys() != asked:
            raise EnvError(
                f"{self.name}: actions came from {sorted(actions)}, but {sorted(asked)} must act; answer each"
            )
        chosen = {turn.agent: self._choice(turn.agent, actions[turn.agent]) for turn in self._turns}
        for name, part in chosen.items():
            self._parts[name].append(part)
        self.history.append(dict(actions))
        further = [self._further(turn) for turn in self._turns if self._wanted(turn.agent) is not None]
        if further:
            self._turns = tuple(further)
            return
        raw = {}
        for name in self._tables:
            seat = self._seats[name]
            try:
                raw[seat.id] = self._whole(name)
            except ANYTHING as error:
                self._fail(error, "text_view.actions", name)
            seat.since = 0.0
            seat.turns += 1
        self._steps += 1
        try:
            waiting = self._driver.step(raw)
        except ANYTHING as error:
            self._fail(error, "step")
        self._open(waiting)

    def _wanted(self, name: str) -> tuple[str, Mapping[str, Any]] | None:
        """Returns the name and the choices of the part that an agent must choose next, if any is left."""
        table = self._tables[name]
        if not isinstance(table, Factors):
            return None
        done = len(self._parts[name])
        return table.parts[done] if done < len(table.parts) else None

    def _whole(self, name: str) -> Any:
        """Returns the raw action that an agent has chosen."""
        table, parts = self._tables[name], self._parts[name]
        return table.join(parts) if isinstance(table, Factors) else parts[0]

    def _choice(self, name: str, text: str) -> Any:
        """Returns the raw action, or part of one, that a text stands for. Raises EnvError."""
        table = self._tables[name]
        if isinstance(table, Free):
            return self._fit(name, text)
        wanted = self._wanted(name)
        options: Any = wanted[1] if wanted else table
        action = options.get(text, _ILLEGAL)
        if action is _ILLEGAL:
            raise EnvError(f"{self.name}: {text!r} of {name!r} is not among its legal actions {list(options)}")
        return action if type(action) in PLAIN else copy.deepcopy(action)

    def _further(self, turn: Turn) -> Turn:
        """Returns the turn in which the next part of an action is chosen."""
        wanted = self._wanted(turn.agent)
        assert wanted
        return Turn(turn.agent, turn.round, self._ask(turn.agent), tuple(wanted[1]))

    def _ask(self, name: str) -> str:
        """Says which part of an action is to be chosen; nothing if it has only one."""
        wanted, table = self._wanted(name), self._tables[name]
        if wanted is None or not isinstance(table, Factors):
            return ""
        number = f"part {len(self._parts[name]) + 1} of {len(table.parts)}"
        return f"choose {number}" if wanted[0].isdecimal() else f"choose {wanted[0]}, {number}"

    def outcomes(self) -> dict[str, Outcome]:
        """Returns the outcome of every agent that took part. Raises EnvError while the episode runs."""
        if self._turns or not self._started:
            raise EnvError(f"{self.name} is not over; play it to the end before asking for outcomes")
        if not self._outcomes:
            self._outcomes = {seat.name: self._outcome(seat) for seat in self._driver.seats.values() if seat.lived}
        return self._outcomes

    def observations(self) -> dict[str, Any]:
        """Returns the raw observations behind ``turns()``; the environment may change them in its next step."""
        return {seat.name: observation for seat, observation, _ in self._raw}

    def render(self) -> str:
        """Returns the environment's own text rendering, or else what each agent that must act reads."""
        if getattr(self.env, "render_mode", None) == "ansi":
            try:
                picture = self.env.render()
            except ANYTHING as error:
                self._fail(error, "render")
            if isinstance(picture, str):
                return picture
        return "\n".join(f"{turn.agent}: {turn.observation}" for turn in self._turns)

    def system(self, agent: str) -> str:
        """Returns what an agent is told once, before its first observation; ``reset`` comes first. Raises EnvError."""
        try:
            text = self._system(self._seats[agent])
            encodable(agent, text)
        except ANYTHING as error:
            self._fail(error, "instructions", agent)
        return text

    def close(self) -> None:
        """Lets the environment free what it holds; what goes wrong in that is nobody's concern any more."""
        try:
            self.env.close()
        except KeyboardInterrupt:
            raise
        except ANYTHING:
            pass

    def _drive(self, env: Any) -> Driver:
        try:
            if isinstance(env, AECEnv):
                return AecDriver(env)
            if isinstance(env, ParallelEnv):
                return ParallelDriver(env)
        except EnvError as error:
            raise EnvError(
                f"{self.name}: {error}", detail=error.detail, method=error.method, agent=error.agent
            ) from error
        except KeyboardInterrupt:
            raise
        except ANYTHING as error:
            detail = f"the reset that shows its agents raised {type(error).__name__}: {said(error)}; repair it"
            raise EnvError(f"{self.name}: {detail}", detail=detail, method="reset", step=0, seed=0) from error
        raise EnvError(
            f"{self.name} is a {type(env).__name__}, not a PettingZoo AECEnv or ParallelEnv; {_wrapper(env)}"
        )

    def _default_view(self, bins: int | None, picture: Picture) -> SpaceView:
        env, seats = self.env, self._seats
        return SpaceView(
            lambda name: env.observation_space(seats[name].id),
            lambda name: env.action_space(seats[name].id),
            bins,
            picture,
        )

    def _open(self, waiting: list[Waiting]) -> None:
        """Turns those who must act into turns, or cuts the episode where it has gone on for too long."""
        driver = self._driver
        if waiting and (driver.round >= self._max_rounds or self._steps >= self._max_rounds * len(self.agents)):
            try:
                driver.cut()
            except ANYTHING as error:
                self._fail(error, "step")
            waiting = []
        self._raw = waiting
        self._tables = {}
        self._parts = {seat.name: [] for seat, _, _ in waiting}
        turns = []
        for seat, observation, info in waiting:
            try:
                turns.append(self._turn(seat, observation, info))
            except ANYTHING as error:
                self._fail(error, "text_view", seat.name)
        self._turns = tuple(turns)

    def _turn(self, seat: Seat, observation: Any, info: Mapping[str, Any]) -> Turn:
        name, view = seat.name, self.view
        mask = None
        if isinstance(observation, dict) and "action_mask" in observation:
            mask, observation = observation["action_mask"], _unmasked(observation)
        elif "action_mask" in info:
            mask = info["action_mask"]
        if has_nan(observation):
            raise Breach(f"the observation of {name!r} holds NaN", "return finite observations", method="observe")
        text = view.observe(name, observation)
        if not isinstance(text, str):
            raise Breach(
                f"{type(view).__name__}.observe returned a {type(text).__name__}, not a text",
                "return a str",
                method="text_view.observe",
            )
        table = view.actions(name, mask)
        if not self._sound.has(name, table, mask):
            examine(view, table, name, mask, lambda: self.env.action_space(seat.id))
            self._sound.add(name, table, mask)
        self._tables[name] = table
        system = self._system(seat) if seat.turns == 0 else ""
        feedback = str(info.get("feedback", ""))
        encodable(name, text, system, feedback, sources=_READ[type(view) is SpaceView])
        if isinstance(table, Factors):
            wanted = self._wanted(name)
            assert wanted
            asked = f"{text}; {self._ask(name)}"
            return Turn(name, self._driver.round, asked, tuple(wanted[1]), 0, system, feedback, seat.since)
        if isinstance(table, Free):
            return Turn(name, self._driver.round, text, (), table.max_tokens, system, feedback, seat.since)
        if not table:
            raise Breach(
                f"{name!r} must act and has no legal action",
                "offer one, or end the episode for that agent",
                method="observe" if type(view) is SpaceView else "text_view.actions",
            )
        return Turn(name, self._driver.round, text, tuple(table), 0, system, feedback, seat.since)

    def _system(self, seat: Seat) -> str:
        return f"You are {seat.name}." if self._instructions is None else str(self._instructions(seat.id))

    def _fit(self, name: str, text: str) -> str:
        """Returns the nearest text that a Text action space contains; another environment gets the text as it is."""
        space = self.env.action_space(self._seats[name].id)
        if not isinstance(space, spaces.Text):
            return text
        fitting = "".join(letter for letter in text if letter in space.character_set)[: space.max_length]
        filler = " " if " " in space.character_set else space.character_list[0]
        return fitting.ljust(space.min_length, filler)

    def _outcome(self, seat: Seat) -> Outcome:
        raw = self.env.unwrapped
        try:
            success = judge(raw, seat.id, seat.total, seat.info, self._success, self._success_return)
        except ANYTHING as error:
            self._fail(error, "success", seat.name)
        try:
            feedback = str(seat.info.get("feedback", ""))
            encodable(seat.name, feedback)
        except ANYTHING as error:
            self._fail(error, "step", seat.name)
        return Outcome(
            agent=seat.name,
            total=seat.total,
            turns=seat.turns,
            success=success,
            reward=seat.since,
            feedback=feedback,
            terminated=seat.terminated,
            truncated=seat.truncated,
        )

    def _fail(self, error: BaseException, where: str, agent: str | None = None) -> NoReturn:
        """Raises the EnvError that tells one sentence: what, where in the episode, and what to do."""
        if isinstance(error, KeyboardInterrupt):
            raise error
        self._turns = ()
        self._tables = {}
        self._started = False
        place = Place(self.name, self.seed, self._steps, self.history[-1] if self.history else None)
        raise fault(error, where, agent, self._driver, place) from error


def _teams(name: str, given: Any, agents: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Returns an environment's own teams with all names as texts. Raises EnvError."""
    try:
        teams = {str(team): tuple(map(str, members)) for team, members in given.items()}
        check_teams(f"the teams of {name}", teams, agents)
    except (AttributeError, TypeError) as error:
        detail = f"teams is {given!r}; let it be a dict of lists of agents"
        raise EnvError(f"{name}: {detail}", detail=detail, method="teams") from error
    except ConfigError as error:
        raise EnvError(str(error), method="teams") from error
    return teams


def _unmasked(observation: Mapping[str, Any]) -> Any:
    if "observation" in observation:
        return observation["observation"]
    return {key: value for key, value in observation.items() if key != "action_mask"}


def _wrapper(env: Any) -> str:
    """Returns what turns an object of another kind into a PettingZoo environment."""
    kind = type(env).__module__.split(".")[0]
    if env is None:
        return "the callable returned nothing; let it return the environment"
    if kind == "pyspiel":
        return "name the game as openspiel/NAME, e.g. openspiel/leduc_poker"
    if isinstance(env, gymnasium.Env) or hasattr(env, "action_space"):
        return "name it as gymnasium/ID, or return decentral.envs.adapters.gymnasium.Team(env)"
    return "let the callable return an instance of one of them"
