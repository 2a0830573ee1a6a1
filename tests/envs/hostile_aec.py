"""Small AEC environments with one bad habit each: ``decentral envs check tests/envs/hostile_aec.py:NAME``.

`Ring` is sound; every other class has one habit more, which breaks wrappers.
"""

from __future__ import annotations

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv


class Ring(AECEnv):
    """Two agents in turn, who see the time, act twice each and are paid 1 for each act."""

    metadata = {"name": "ring_v0"}  # noqa: RUF012
    render_mode = None
    names = ("a_0", "a_1")
    length = 4

    def __init__(self):
        self.possible_agents = list(self.names)
        self.seen = {name: spaces.Box(0, 9, (1,), np.float32) for name in self.possible_agents}
        self.acts = {name: spaces.Discrete(3) for name in self.possible_agents}

    def observation_space(self, agent):
        return self.seen[agent]

    def action_space(self, agent):
        return self.acts[agent]

    def reset(self, seed=None, options=None):
        self.agents, self.time = list(self.possible_agents), 0
        self.rewards, self._cumulative_rewards = dict.fromkeys(self.agents, 0.0), dict.fromkeys(self.agents, 0.0)
        self.terminations, self.truncations = dict.fromkeys(self.agents, False), dict.fromkeys(self.agents, False)
        self.infos = {name: {} for name in self.agents}
        self.agent_selection = self.agents[0]
        self._skip_agent_selection = None

    def observe(self, agent):
        return np.array([self.time], np.float32)

    def ends(self):
        return set(self.agents) if self.time == self.length else set()

    def step(self, action):
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        self.time += 1
        self._cumulative_rewards[agent] = 0.0
        self.rewards = {name: float(name == agent) for name in self.agents}
        self._accumulate_rewards()
        ended = self.ends()
        self.terminations = {name: name in ended for name in self.agents}
        order = self.agents[self.agents.index(agent) + 1 :] + self.agents[: self.agents.index(agent) + 1]
        self.agent_selection = next((name for name in order if name not in ended), order[0])
        self._deads_step_first()


# -- lives -----------------------------------------------------------------------------------------------------------


class DieInPairs(Ring):
    """The last two of four die after the first round, the others in the next."""

    names = ("a_0", "a_1", "a_2", "a_3")

    def ends(self):
        return {"a_2", "a_3"} & set(self.agents) if self.time == 4 else set(self.agents) if self.time == 6 else set()


class DeadAtReset(Ring):
    def reset(self, seed=None, options=None):
        super().reset(seed, options)
        self.terminations = dict.fromkeys(self.agents, True)


class SelectsTheGone(Ring):
    """An agent is dropped from the list, and selected all the same."""

    def step(self, action):
        super().step(action)
        if self.time == 2:
            self.agents.remove("a_0")


class NoTermination(Ring):
    def step(self, action):
        super().step(action)
        if self.time == 1:
            del self.terminations["a_1"]


class NoInfos(Ring):
    def reset(self, seed=None, options=None):
        super().reset(seed, options)
        self.infos = None


class LosesItsInfos(Ring):
    """Reads its books itself, and has no infos from the fourth step on."""

    length = 99

    def last(self, observe=True):
        agent = self.agent_selection
        if self.time == 4:
            self.infos = None
        return self.observe(agent), self._cumulative_rewards[agent], False, False, {}


class CannotStepTheDead(Ring):
    def step(self, action):
        action + 0  # None + 0
        super().step(action)


class DropsTheDead(Ring):
    """All are dropped without a dead step."""

    def step(self, action):
        super().step(action)
        if self.time == self.length:
            self.agents = self.agents[1:]


class NoDeadStep(Ring):
    def step(self, action):
        self.chosen = int(action)
        super().step(action)


class NumpysBools(Ring):
    def reset(self, seed=None, options=None):
        super().reset(seed, options)
        self.terminations = dict.fromkeys(self.agents, np.bool_(False))


class KeepsPay(Ring):
    """What was paid for is paid again."""

    def step(self, action):
        kept = dict(self._cumulative_rewards)
        super().step(action)
        for agent in self.agents:
            self._cumulative_rewards[agent] += kept[agent]


# -- what is declared ------------------------------------------------------------------------------------------------


class NewSpacesInTurn(Ring):
    def observation_space(self, agent):
        return spaces.Box(0, 9, (1,), np.float32)


# -- what is done with what it gets ------------------------------------------------------------------------------------


class Raises(Ring):
    """Raises ``error`` in one method, once the time is ``when``."""

    error: BaseException = OSError("no more")
    where, when = "step", 1

    def _maybe(self, where):
        if self.where == where and self.time >= self.when:
            raise self.error

    def step(self, action):
        self._maybe("step")
        super().step(action)

    def observe(self, agent):
        self._maybe("observe")
        return super().observe(agent)


class Odd(BaseException):
    """No Exception, and no interrupt."""


class RaisesOdd(Raises):
    error = Odd("neither")


class RaisesInObserve(Raises):
    where, when = "observe", 3


class Interrupted(Raises):
    error = KeyboardInterrupt()
