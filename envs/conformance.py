"""PettingZoo's own tests of an environment, run so that a bare assertion is known by the call that it was about.

Owns what those tests cannot do: masks in infos, observations without a dtype, a place for their complaints.
"""

from __future__ import annotations

__all__ = ["conformance"]

import contextlib
import io
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo.utils.wrappers import BaseParallelWrapper, BaseWrapper

from decentral.envs.drivers import DEAD_STEP, bury
from decentral.envs.faults import location
from decentral.envs.report import Row
from decentral.errors import said, short

CYCLES = 20
"""Steps per agent."""


def conformance(env: Any, seed: int) -> Row:
    """Runs PettingZoo's test for this kind of environment, its prints and warnings caught.

    Resets without a seed get ``seed`` and those after it, so that what fails, fails again.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the import
        from pettingzoo.test import api_test, parallel_api_test  # slow to import, and needed here only

    aec = isinstance(env, AECEnv)
    name = f"PettingZoo's {'api_test' if aec else 'parallel_api_test'}"
    calls = _Calls(seed)
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        try:
            if aec:
                api_test(_Aec(env, calls), num_cycles=CYCLES)
            else:
                parallel_api_test(_Parallel(env, calls), num_cycles=CYCLES)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  the test runs foreign code; it becomes a row
            lines = _lines(error)
            method, agent = calls.space if any("_space" in line for line in lines) else calls.last
            return Row(name, False, _complaint(error, lines, method), method, agent, calls.step, seed)
    notes = dict.fromkeys(note for one in caught if not (note := said(Warning(one.message))).startswith(_IDLE))
    return Row(name, True, f"passed; it remarks: {'; '.join(list(notes)[:3])}" if notes else "passed")


_IDLE = (
    "Observation is a single number",
    "Observation numpy array is all zeros",
    "Observation space for each agent probably should be",
    "Action space for each agent probably should be",
)
"""Beginnings of remarks that concern nobody who plays through our view."""

_BOOKS = (
    "rewards, terminations, truncations and infos need an entry for every agent in self.agents and for nobody else; "
    "self._was_dead_step(action) removes those of the dead"
)
_CURES = {
    "== live_agents": "agents whose termination or truncation is True must leave self.agents, and nobody else may",
    "agent not in has_finished": "an agent that has ended must never come back; give a newcomer a name of its own",
    "issubset(set(obs.keys()))": "reset must return an observation for every agent in self.agents",
    "issubset(set(infos.keys()))": "reset must return an info, {} at least, for every agent in self.agents",
    "issubset(set(par_env.possible_agents))": "possible_agents must name everybody who ever is in self.agents",
    "issubset(set(env.possible_agents))": "possible_agents must name everybody who ever is in self.agents",
    "terminated[agent] or truncated[agent]": "step must return a termination and a truncation for all who acted",
    "not any(env.terminations": "reset must set the terminations of all agents to False",
    "not any(env.truncations": "reset must set the truncations of all agents to False",
    "live_agents.issubset(set(env.agents))": f"only a dead step takes an agent off self.agents: {DEAD_STEP}",
    "accumulated_rewards[agent] == reward": (
        "step must set self._cumulative_rewards of who acts to 0, fill self.rewards for all, and then call "
        "self._accumulate_rewards()"
    ),
    "set(env.rewards.keys())": _BOOKS,
    "set(env.terminations.keys())": _BOOKS,
    "set(env.truncations.keys())": _BOOKS,
    "set(env.infos.keys())": _BOOKS,
    "has_finished == generated_agents": "every agent must be selected once more after its end, for its dead step",
    "isinstance(terminated, bool)": "let terminations hold True or False, and no number of numpy",
    "isinstance(truncated, bool)": "let truncations hold True or False, and no number of numpy",
    "observation is None": "step must return nothing",
    "base_close !=": "an environment that defines render must define close too",
    "not in its observation_space": "correct one of the two",
    "expected.dtype == seen.dtype": "give the observation the dtype of its observation_space",
}
"""What is asserted, in the test's words -> what to do about it."""


def _complaint(error: BaseException, lines: list[str], method: str) -> str:
    """Returns what is wrong and what to do; where no cure is known, what the test compared."""
    kind, last = type(error).__name__, traceback.extract_tb(error.__traceback__)[-1]
    if last.filename != __file__ and not (last.line and last.line in lines):  # raised by the environment
        fix = DEAD_STEP if DEAD_STEP in getattr(error, "__notes__", ()) else f"correct {method}"
        return f"{kind}: {said(error)} ({location(error)}); {fix}"
    text = f"\n{error}".partition("\nassert ")[0].strip()  # pytest adds how it came about
    what = f"{kind}: {said(Exception(text))}" if text else kind
    cure = next((cure for words, cure in _CURES.items() if words in f"{last.line} {text}"), None)
    return f"{what}; {cure}" if cure else f"{what}; the test says `{last.line}`"


def _lines(error: BaseException) -> list[str]:
    """Returns the lines of PettingZoo's tests that were being run, the innermost last."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame.line or "" for frame in frames if Path(frame.filename).parts[-3:-1] == ("pettingzoo", "test")]


class _Calls:
    """The last calls of a test. Spaces are asked for in between, and are rarely what is wrong."""

    def __init__(self, seed: int) -> None:
        self._seed = self._first = seed
        self.last: tuple[str, str | None] = ("reset", None)
        self.space: tuple[str, str | None] = ("observation_space", None)
        self.step = 0
        self._spaces: dict[tuple[str, Any], spaces.Space[Any]] = {}

    def same(self, method: str, agent: Any, space: spaces.Space[Any]) -> spaces.Space[Any]:
        """Returns ``space``, or the one that was returned before, if they are equal.

        The test would stop at a new object. Whoever watches the spaces tells of it.
        """
        known = self._spaces.get((method, agent))
        if known is not None and known == space:
            return known
        self._spaces[method, agent] = space
        if method == "action_space":
            space.seed(self._first)
        return space

    def note(self, method: str, agent: Any = None, *, dead: bool = False) -> None:
        """Notes a call before it is made. ``dead``: it only takes a dead agent off the list, which is no step."""
        call = (method, None if agent is None else str(agent))
        if method.endswith("_space"):
            self.space = call
            return
        self.last = call
        if method == "reset":
            self.step = 0
        elif method == "step" and not dead:
            self.step += 1

    def seed(self, given: int | None) -> int:
        """Returns the seed of a reset."""
        if given is not None:
            return given
        self._seed += 1
        return self._seed


class _Parallel(BaseParallelWrapper):  # type: ignore[misc]
    """Draws again where parallel_api_test, which looks for masks in observations only, plays what infos forbid."""

    def __init__(self, env: Any, calls: _Calls) -> None:
        super().__init__(env)
        self.calls = calls
        self.seen: Any = {}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.calls.note("reset")
        result = super().reset(seed=self.calls.seed(seed), options=options)
        self.seen = result[1] if isinstance(result, tuple) and len(result) == 2 else {}
        return result

    def step(self, actions: dict[Any, Any]) -> Any:
        for agent in actions:
            info = self.seen.get(agent)
            mask = info.get("action_mask") if isinstance(info, dict) else None
            if mask is not None:
                actions[agent] = self.action_space(agent).sample(mask)
        self.calls.note("step")
        result = super().step(actions)
        self.seen = result[4] if isinstance(result, tuple) and len(result) == 5 else {}
        return result

    def observation_space(self, agent: Any) -> Any:
        self.calls.note("observation_space", agent)
        return self.calls.same("observation_space", agent, super().observation_space(agent))

    def action_space(self, agent: Any) -> Any:
        self.calls.note("action_space", agent)
        return self.calls.same("action_space", agent, super().action_space(agent))


class _Aec(BaseWrapper):  # type: ignore[misc]
    """Shows an array where an observation has no dtype, which api_test does not know, and asserts its space itself."""

    def __init__(self, env: Any, calls: _Calls) -> None:
        super().__init__(env)
        self.calls = calls
        self.shown: dict[Any, tuple[Any, Any]] = {}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        self.calls.note("reset")
        super().reset(seed=self.calls.seed(seed), options=options)

    def step(self, action: Any) -> Any:
        self.calls.note("step", self.env.agent_selection, dead=action is None)
        return bury(self.env) if action is None else super().step(action)

    def observation_space(self, agent: Any) -> Any:
        self.calls.note("observation_space", agent)
        space = self.calls.same("observation_space", agent, self.env.observation_space(agent))
        known, shown = self.shown.get(agent, (None, None))
        if known is not space:
            shown = _shown(space)
            self.shown[agent] = space, shown
        return shown

    def action_space(self, agent: Any) -> Any:
        self.calls.note("action_space", agent)
        return self.calls.same("action_space", agent, super().action_space(agent))

    def observe(self, agent: Any) -> Any:
        self.calls.note("observe", agent)
        seen, space = self.env.observe(agent), self.env.observation_space(agent)
        assert space.contains(seen), (
            f"the observation {short(seen)} of {agent!r} is not in its observation_space {space}"
        )
        return _replaced(seen, space)


_ARRAYS = (spaces.Box, spaces.MultiBinary, spaces.MultiDiscrete)


def _shown(space: spaces.Space[Any]) -> spaces.Space[Any]:
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: _shown(part) for key, part in space.spaces.items()})
    return space if isinstance(space, _ARRAYS) else spaces.Box(0, 1, (1,))


def _replaced(seen: Any, space: spaces.Space[Any]) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _replaced(seen[key], part) for key, part in space.spaces.items()}
    return seen if isinstance(space, _ARRAYS) else np.zeros(1, np.float32)
