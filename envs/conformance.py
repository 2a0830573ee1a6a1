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

from decentral.envs.agent_names import declared
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
            for agent in declared(env):
                env.action_space(agent).seed(seed)
            if aec:
                api_test(_Aec(env, calls), num_cycles=CYCLES)
            else:
                parallel_api_test(_Parallel(env, calls), num_cycles=CYCLES)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  the test runs foreign code; it becomes a row
            lines, last = _lines(error), traceback.extract_tb(error.__traceback__)[-1]
            method, agent = calls.space if any("_space" in line for line in lines) else calls.last
            what = f"{type(error).__name__}: {said(error)}"
            if not (last.line and last.line in lines):  # raised by the environment
                what += f" ({last.filename}:{last.lineno})"
            elif not isinstance(error, AssertionError) or not str(error):
                what += f", in the test's `{last.line}`"
            return Row(name, False, f"{what}; correct {method}", method, agent, calls.step, seed)
    notes = list(dict.fromkeys(said(Warning(one.message)) for one in caught))
    return Row(name, True, f"passed; it remarks: {'; '.join(notes[:3])}" if notes else "passed")


def _lines(error: BaseException) -> list[str]:
    """Returns the lines of PettingZoo's tests that were being run, the innermost last."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame.line or "" for frame in frames if Path(frame.filename).parts[-3:-1] == ("pettingzoo", "test")]


class _Calls:
    """The last calls of a test. Spaces are asked for in between, and are rarely what is wrong."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.last: tuple[str, str | None] = ("reset", None)
        self.space: tuple[str, str | None] = ("observation_space", None)
        self.step = 0

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
        return super().observation_space(agent)

    def action_space(self, agent: Any) -> Any:
        self.calls.note("action_space", agent)
        return super().action_space(agent)


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
        return super().step(action)

    def observation_space(self, agent: Any) -> Any:
        self.calls.note("observation_space", agent)
        space = self.env.observation_space(agent)
        known, shown = self.shown.get(agent, (None, None))
        if known is not space:
            shown = _shown(space)
            self.shown[agent] = space, shown
        return shown

    def action_space(self, agent: Any) -> Any:
        self.calls.note("action_space", agent)
        return super().action_space(agent)

    def observe(self, agent: Any) -> Any:
        self.calls.note("observe", agent)
        seen, space = self.env.observe(agent), self.env.observation_space(agent)
        assert space.contains(seen), f"the observation {short(seen)} of {agent!r} is not in {space}"
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
