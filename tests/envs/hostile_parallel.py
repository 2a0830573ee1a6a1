"""Small Parallel environments with one bad habit each: ``decentral envs check tests/envs/hostile_parallel.py:NAME``.

`Pair` is sound; every other class has one habit more, which breaks wrappers.
"""

from __future__ import annotations

import itertools
import random
import threading
import warnings

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv


class Pair(ParallelEnv):
    """Two agents see the time and a number, act three times and are paid 1 for each like action."""

    metadata = {"name": "pair_v0"}  # noqa: RUF012
    render_mode = None
    names = ("a_0", "a_1")

    def __init__(self):
        self.possible_agents = list(self.names)
        self.seen = {name: spaces.Box(0, 9, (2,), np.float32) for name in self.possible_agents}
        self.acts = {name: spaces.Discrete(3) for name in self.possible_agents}
        self.episodes = 0

    def observation_space(self, agent):
        return self.seen[agent]

    def action_space(self, agent):
        return self.acts[agent]

    def reset(self, seed=None, options=None):
        self.random = random.Random(seed)
        self.agents, self.time = list(self.possible_agents), 0
        self.episodes += 1
        return {name: self.look(name) for name in self.agents}, {name: self.info(name) for name in self.agents}

    def look(self, agent):
        return np.array([self.time, self.random.randrange(9)], np.float32)

    def info(self, agent):
        return {}

    def pay(self, agent, same):
        return float(same)

    def ends(self):
        return set(self.agents) if self.time == 3 else set()

    def step(self, actions):
        self.time += 1
        live, ended = self.agents, self.ends()
        self.agents = [name for name in live if name not in ended]
        same = len(set(actions.values())) == 1
        return (
            {name: self.look(name) for name in live},
            {name: self.pay(name, same) for name in live},
            {name: name in ended for name in live},
            dict.fromkeys(live, False),
            {name: self.info(name) for name in live},
        )


# -- lives -----------------------------------------------------------------------------------------------------------


class PaysTheDead(Pair):
    """The first dies after one step, and its team's reward still reaches it."""

    def ends(self):
        return {"a_0"} if self.time == 1 else super().ends()

    def step(self, actions):
        observations, _, *rest = super().step(actions)
        return observations, dict.fromkeys(self.possible_agents, 1.0), *rest


class NoSpaces(Pair):
    """Has a text for everything, and no space for anything."""

    def observation_space(self, agent):
        return self.observation_spaces[agent]

    def action_space(self, agent):
        return self.action_spaces[agent]

    class text_view:
        observe = staticmethod(lambda agent, observation: "x")
        actions = staticmethod(lambda agent, mask: {"go": 0, "stay": 1})


class LeavesOut(Pair):
    teams = {"red": ["a_0"]}  # noqa: RUF012


class OverAtReset(Pair):
    def reset(self, seed=None, options=None):
        super().reset(seed, options)
        self.agents = []
        return {}, {}


class NeverEnds(Pair):
    def ends(self):
        return set()

    def look(self, agent):
        return np.array([0, self.random.randrange(9)], np.float32)


class Forgets(Pair):
    """Nothing is said on how it went for the second agent, which is dropped in the end."""

    def step(self, actions):
        *parts, infos = super().step(actions)
        if not self.agents:
            for part in parts[1:]:
                part.pop("a_1")
        return *parts, dict.fromkeys(infos)


class ComesLate(Pair):
    """The third takes part from the first step on."""

    names = ("a_0", "a_1", "a_2")

    def reset(self, seed=None, options=None):
        parts = super().reset(seed, options)
        self.agents.remove("a_2")
        for part in parts:
            del part["a_2"]
        return parts

    def step(self, actions):
        parts = super().step(actions)
        if self.time == 1:
            self.agents.append("a_2")
            for part, value in zip(parts, (self.look("a_2"), 0.0, False, False, {}), strict=True):
                part["a_2"] = value
        return parts


class FromNowhere(ComesLate):
    """The third is not declared."""

    def __init__(self):
        super().__init__()
        self.possible_agents.pop()

    def reset(self, seed=None, options=None):
        return Pair.reset(self, seed, options)


class Reappears(Pair):
    """The first dies, is gone for a step, and is back."""

    def ends(self):
        return {"a_0"} if self.time == 1 else set()

    def step(self, actions):
        parts = super().step(actions)
        if self.time == 3:
            self.agents = list(self.possible_agents)
            parts[0]["a_0"] = self.look("a_0")
        return parts


class MadeTwice(Pair):
    """Only two copies can ever be made, and each raises in its third episode."""

    made = 0

    def __init__(self):
        super().__init__()
        type(self).made += 1
        if self.made > 2:
            raise OSError("no room for a third")

    def step(self, actions):
        if self.episodes == 3:
            raise ValueError("boom")
        return super().step(actions)


class RaisesInTheThirdEpisode(Pair):
    """Of each copy, whatever its seed."""

    def step(self, actions):
        if self.episodes % 3 == 0 and self.time == 1:
            raise OSError("the third time")
        return super().step(actions)


class Lingers(Pair):
    """Who has ended stays among the agents."""

    def step(self, actions):
        live = self.agents
        parts = super().step(actions)
        self.agents = live
        return parts


class NewSpacesAndLingers(Lingers):
    def action_space(self, agent):
        return spaces.Discrete(3)


class ForgetsAnObservation(Pair):
    def reset(self, seed=None, options=None):
        observations, infos = super().reset(seed, options)
        del observations["a_1"]
        return observations, infos


class DrawsFromNothing(Pair):
    def look(self, agent):
        return np.random.default_rng(0).integers(0)


# -- what is returned ------------------------------------------------------------------------------------------------


class OneArray(Pair):
    """All see views of one array, which changes in place."""

    table = None

    def reset(self, seed=None, options=None):
        self.table = np.zeros(2, np.float32)
        return super().reset(seed, options)

    def look(self, agent):
        self.table[:] = self.time
        return self.table[:]


class MaskAlone(Pair):
    def __init__(self):
        super().__init__()
        self.seen = {name: spaces.Dict({"action_mask": spaces.MultiBinary(3)}) for name in self.possible_agents}

    def look(self, agent):
        return {"action_mask": np.array([1, 0, 1], np.int8)}


class WrongMask(Pair):
    def info(self, agent):
        return {"action_mask": np.ones(3 + (self.time == 2), np.int8)}


class NothingLegal(Pair):
    def info(self, agent):
        return {"action_mask": np.full(3, not (self.time == 2 and agent == "a_1"), np.int8)}


class NothingSeen(Pair):
    def look(self, agent):
        return None


class HugeText(Pair):
    def look(self, agent):
        return "x y " * (25_000 if (self.time, agent) == (1, "a_1") else 1)


class LoneSurrogate(Pair):
    def look(self, agent):
        return "a\ud800" if (self.time, agent) == (1, "a_1") else "a"


class ResetsToNone(Pair):
    def reset(self, seed=None, options=None):
        super().reset(seed, options)


class FourParts(Pair):
    def step(self, actions):
        return super().step(actions)[:4]


class ListOfRewards(Pair):
    def step(self, actions):
        observations, rewards, *rest = super().step(actions)
        return observations, list(rewards.values()), *rest


class NoneForInfos(Pair):
    def step(self, actions):
        return *super().step(actions)[:4], None


class TextForInfo(Pair):
    def info(self, agent):
        return "fine" if (self.time, agent) == (2, "a_1") else {}


# -- what is declared ------------------------------------------------------------------------------------------------


class Lies(Pair):
    """From the second step on, the second agent sees more than its space holds."""

    def look(self, agent):
        return super().look(agent) + (100 if self.time == 2 and agent == "a_1" else 0)


class FewerActions(Pair):
    """One action less with every step."""

    def action_space(self, agent):
        return spaces.Discrete(3 - min(self.time, 2)) if hasattr(self, "time") else self.acts[agent]


class GrownInPlace(Pair):
    def step(self, actions):
        self.acts["a_1"].n = np.int64(4)
        return super().step(actions)


class NewSpaces(Pair):
    def action_space(self, agent):
        return spaces.Discrete(3)


class MoreAgents(Pair):
    def step(self, actions):
        self.possible_agents.append(f"a_{len(self.possible_agents)}")
        return super().step(actions)


# -- what is done with what it gets ------------------------------------------------------------------------------------


class Greedy(Pair):
    """Keeps the actions and then empties them."""

    def step(self, actions):
        self.kept = [*getattr(self, "kept", ()), actions]
        parts = super().step(actions)
        for one in self.kept:
            one.clear()
        return parts


class RaisesAround(Pair):
    """What comes after play raises."""

    render_mode = "ansi"

    def render(self):
        raise OSError("no screen")

    def close(self):
        raise OSError("no door")


# -- what is not its own ---------------------------------------------------------------------------------------------


class IgnoresSeeds(Pair):
    """Every look shows something else, whatever was looked at before."""

    drawn = itertools.count()

    def look(self, agent):
        return np.array([self.time, 0.37 * next(self.drawn) % 9], np.float32)


class GlobalResets(Pair):
    """Draws from the global generator, whose few values now and then repeat."""

    def look(self, agent):
        return np.array([self.time, random.randrange(2)], np.float32)


class LeftOver(Pair):
    """How often it was reset shows."""

    def look(self, agent):
        return np.array([self.time, self.episodes % 9], np.float32)


class OneForAll(Pair):
    """Keeps the time of all copies in the class."""

    @property
    def time(self):
        return OneForAll.now

    @time.setter
    def time(self, value):
        OneForAll.now = value


class GlobalDraws(Pair):
    """Seeds the generator of the whole process and draws from it, which goes well as long as it is alone."""

    def reset(self, seed=None, options=None):
        np.random.seed(seed)
        return super().reset(seed, options)

    def look(self, agent):
        return np.array([self.time, np.random.randint(9)], np.float32)


class GlobalSeed(Pair):
    """Seeds the generator of the whole process and does not draw."""

    def reset(self, seed=None, options=None):
        random.seed(seed)
        return super().reset(seed, options)


class Threaded(Pair):
    """Holds a lock, and a thread that moves the time."""

    def reset(self, seed=None, options=None):
        self.close()
        self.lock, self.go, self.done = threading.Lock(), threading.Semaphore(0), threading.Semaphore(0)
        self.thread = threading.Thread(target=self.run, args=(self.go, self.done), name="ticker", daemon=True)
        self.thread.start()
        return super().reset(seed, options)

    def run(self, go, done):
        while True:
            go.acquire()
            if self.go is not go:
                return
            self.clock += 1
            done.release()

    def step(self, actions):
        self.clock = self.time
        self.go.release()
        self.done.acquire()
        assert self.clock == self.time + 1
        return super().step(actions)

    def close(self):
        if hasattr(self, "go"):
            old, self.go = self.go, None
            old.release()
            self.thread.join()


class LeavesThreads(Threaded):
    def close(self):
        pass


class Noisy(Pair):
    def step(self, actions):
        print("a step")  # noqa: T201
        warnings.warn("mind the step", stacklevel=1)
        return super().step(actions)


class PaysOnce(Pair):
    """Pays in one episode of twenty."""

    def reset(self, seed=None, options=None):
        self.lucky = seed == 19
        return super().reset(seed, options)

    def pay(self, agent, same):
        return float(self.lucky and self.time == 3)


class NothingToWin(Pair):
    def pay(self, agent, same):
        return 0.0
