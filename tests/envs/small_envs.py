"""Small environments that do what their arguments say, a view of one, and random play, for the tests of their game."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

NAMES = ("a", "b", "c", "d")


class Relay(AECEnv):
    """Agents in turn; at a step's number in ``ends`` all named agents die together. Every step pays everyone alive."""

    metadata = {"name": "relay"}  # noqa: RUF012

    def __init__(self, ends, names=NAMES):
        self.possible_agents = list(names)
        self.ends = ends  # {step: {agent: "terminated" | "truncated"}}
        self.ledger = defaultdict(float)
        self.spaces = {name: spaces.Discrete(2 + i) for i, name in enumerate(names)}

    def observation_space(self, agent):
        return spaces.Discrete(1000)

    def action_space(self, agent):
        return self.spaces[agent]

    def reset(self, seed=None, options=None):
        self.random = random.Random(seed)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self.agent_selection = self.agents[0]
        self.time = 0
        self.ledger.clear()

    def observe(self, agent):
        return self.time

    def step(self, action):
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            return self._was_dead_step(action)
        assert self.action_space(agent).contains(action)
        self._cumulative_rewards[agent] = 0
        for name in self.agents:
            self.rewards[name] = self.random.choice((0, 1, -2, np.float32(0.5), np.int8(3), True, np.array(2.0)))
            self.ledger[name] += float(self.rewards[name])
        self._accumulate_rewards()
        for name, kind in self.ends.get(self.time, {}).items():
            if name in self.agents:
                getattr(self, "terminations" if kind == "terminated" else "truncations")[name] = True
        order = [*self.agents[self.agents.index(agent) + 1 :], *self.agents[: self.agents.index(agent) + 1]]
        alive = [name for name in order if not (self.terminations[name] or self.truncations[name])]
        self.agent_selection = alive[0] if alive else order[0]
        self.time += 1
        self._deads_step_first()


class Crowd(ParallelEnv):
    """All at once; ``ends`` as in Relay. ``dead``: what happens to the dead's keys. ``arrive``: {step: agent}."""

    metadata = {"name": "crowd"}  # noqa: RUF012
    render_mode = None

    def __init__(self, ends, dead="last word", arrive=None, names=NAMES):
        self.possible_agents = list(names)
        self.ends, self.dead, self.arrive = ends, dead, arrive or {}
        self.ledger = defaultdict(float)
        self.spaces = {name: spaces.Discrete(2 + i) for i, name in enumerate(names)}

    def observation_space(self, agent):
        return spaces.Box(0, 1000, (1,), np.int64)

    def action_space(self, agent):
        return self.spaces[agent]

    def reset(self, seed=None, options=None):
        self.random = random.Random(seed)
        late = set(self.arrive.values())
        self.agents = [name for name in self.possible_agents if name not in late]
        self.time = 0
        self.ledger.clear()
        self.buffer = np.array([0])
        return dict.fromkeys(self.agents, self.buffer), {name: {} for name in self.agents}

    def step(self, actions):
        live = [name for name in self.agents if name in actions]
        assert set(actions) == set(live)
        assert all(self.action_space(name).contains(action) for name, action in actions.items())
        kinds = {name: kind for name, kind in self.ends.get(self.time, {}).items() if name in live}
        self.time += 1
        self.buffer[0] = self.time  # one array for everyone, changed in place
        heard = [name for name in live if not (self.dead == "vanish" and name in kinds)]
        rewards = {name: self.random.choice((0, 1, -2, np.float32(0.5), True)) for name in heard}
        for name, reward in rewards.items():
            self.ledger[name] += float(reward)
        terminations = {name: kinds.get(name) == "terminated" for name in heard}
        truncations = {name: kinds.get(name) == "truncated" for name in heard}
        if self.dead != "stay":
            self.agents = [name for name in self.agents if name not in kinds]
        if self.time in self.arrive:
            self.agents.append(self.arrive[self.time])
        seen = {*heard, *self.agents}
        return dict.fromkeys(seen, self.buffer), rewards, terminations, truncations, {name: {} for name in seen}


def play(game, seed=0):
    """Plays random legal actions; returns every turn."""
    draw = random.Random(seed)
    game.reset(seed)
    turns = []
    while not game.over:
        assert len(turns) < 5000
        turns += game.turns()
        game.step({turn.agent: draw.choice(turn.legal) for turn in game.turns()})
    assert game.turns() == ()
    game.outcomes()
    return turns


def complete(ends, last):
    """Everyone who still lives ends at ``last``."""
    gone = {name for step, who in ends.items() if step <= last for name in who}
    return {**ends, last: {**ends.get(last, {}), **{name: "truncated" for name in NAMES if name not in gone}}}


class Lone(ParallelEnv):
    """One agent, one step, whose parts are given."""

    metadata = {"name": "lone"}  # noqa: RUF012
    possible_agents = ["a"]  # noqa: RUF012

    def __init__(self, observation=0, info=None, reward=1.0, space=None, **attributes):
        self.observation, self.info, self.reward = observation, info or {}, reward
        self.space = space or spaces.Discrete(3)
        self.taken = []
        self.__dict__.update(attributes)

    def observation_space(self, agent):
        return spaces.Discrete(9)

    def action_space(self, agent):
        return self.space

    def reset(self, seed=None, options=None):
        self.agents = ["a"]
        return {"a": self.observation}, {"a": self.info}

    def step(self, actions):
        self.taken.append(actions["a"])
        self.agents = []
        return {"a": self.observation}, {"a": self.reward}, {"a": True}, {"a": False}, {"a": self.info}


class Words:
    def observe(self, agent, observation):
        return f"{agent} sees {observation}"

    def actions(self, agent, mask):
        return {"left": 0, "right": 1, "wait": 2}
