"""A state is restored only where that was seen to work."""

from __future__ import annotations

import random
import re
import threading
from functools import partial

import msgspec
import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import ParallelEnv

from decentral.envs.config import EnvConfig
from decentral.envs.fork import fork, prove_fork, snapshot
from decentral.envs.game import Game
from decentral.envs.names import make
from decentral.envs.trace import Beside, Trace, answers, difference, play, play_on
from decentral.errors import EnvError


class Dice(ParallelEnv):
    """Throws a die each round; ``throw`` says with which randomness."""

    metadata = {"name": "dice"}  # noqa: RUF012
    possible_agents = ["a", "b"]  # noqa: RUF012
    thrown = 0

    def __init__(self, kind="seeded"):
        self.kind = kind
        self.own = np.random.default_rng()
        self.played = 0
        self.lock = threading.Lock() if kind.endswith("lock") else None

    def observation_space(self, agent):
        return spaces.Box(0, 6, (1,))

    def action_space(self, agent):
        return spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        if self.kind.startswith("seeded"):
            self.own = np.random.default_rng(seed)
        if self.kind == "global":
            random.seed(seed)
        if self.kind == "stale":
            self.own = np.random.default_rng((seed, self.played))
        self.played += 1
        self.agents, self.time = ["a", "b"], 0
        return self.look(), {agent: {} for agent in self.agents}

    def look(self):
        if self.kind == "global":
            self.face = random.random()
        elif self.kind == "shared":
            Dice.thrown += 1
            self.face = Dice.thrown
        else:
            self.face = float(self.own.random())
            if self.kind == "tiny":
                self.face *= 1e-5
        return {agent: np.array([self.face]) for agent in self.agents}

    def step(self, actions):
        self.time += 1
        live = self.agents
        if self.time >= 4:
            self.agents = []
        rewards = {agent: int(actions[agent]) for agent in live}
        seen = self.look()
        ends = dict.fromkeys(live, self.time >= 4)
        return seen, rewards, ends, dict.fromkeys(live, False), {agent: {} for agent in live}


def dice(kind="seeded"):
    return Game(Dice(kind), name="dice")


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("seeded", "replay"),
        ("seeded lock", "replay"),  # a lock cannot be copied, and need not be
        ("unseeded", "snapshot"),  # its generator travels with the copy
        ("unseeded lock", None),
        ("stale", "snapshot"),  # a used copy plays differently from a new one
        ("global", None),  # looks reproducible as long as nothing else plays
        ("shared", None),
        ("tiny", "snapshot"),  # differs below the decimals of the text
    ],
)
def test_forking_is_proven_never_assumed(kind, method):
    state = random.getstate()
    proof = prove_fork(partial(dice, kind), 5)
    random.setstate(state)
    assert proof.method == method
    assert (f"seed {6 if kind == 'stale' else 5}, step 0" in proof.why) == (method != "replay" and kind != "global")
    if method is None:
        assert "snapshot: " in proof.why
    if kind == "tiny":
        assert "the raw observation of 'a' is another" in proof.why
    if kind == "unseeded lock":
        assert "dice cannot be copied: TypeError" in proof.why


CLASSIC = ["pettingzoo.classic.connect_four_v3:env", "pettingzoo.classic.rps_v2:parallel_env"]


@pytest.mark.parametrize("name", ["meet", "vault", "guide", *CLASSIC])
def test_snapshots_hold_the_state_where_pickling_would_forget_it(name):
    game = make(EnvConfig(name=name))
    game.reset(1)
    game.step(answers(game, random.Random(1)))
    twin = snapshot(game)
    assert play_on(twin, random.Random(0)) == play_on(game, random.Random(0))


@pytest.mark.parametrize("name", ["meet", "vault", "guide", *CLASSIC, "mpe2.simple_reference_v3:parallel_env"])
def test_replay_is_proven(name):
    assert prove_fork(partial(make, EnvConfig(name=name)), 0, episodes=2).method == "replay"


def test_a_fork_stands_where_the_episode_stood_and_goes_its_own_way():
    trace = play(dice(), 7)
    for step in range(len(trace.actions)):
        game = fork(dice, 7, trace.actions, step)
        assert game.turns() == trace.moments[step][0]
        assert game.history == trace.actions[:step]
    other = {agent: "1" if text == "0" else "0" for agent, text in trace.actions[3].items()}
    game.step(other)
    assert game.over
    assert game.outcomes() != trace.outcomes
    assert fork(dice, 7, trace.actions, len(trace.actions)).over
    with pytest.raises(EnvError, match="step 5 cannot be forked: the episode has 4 steps"):
        fork(dice, 7, trace.actions, 5)


def test_every_kind_of_difference_is_named():
    trace = play(dice(), 7)
    assert difference(dice(), trace) is None
    assert difference(dice(), trace, Beside(dice())) is None

    def found(seed=7, moments=trace.moments, actions=trace.actions, outcomes=trace.outcomes):
        return difference(dice(), Trace(seed, moments, actions, outcomes))

    def place(one):
        return one.method, one.agent, one.step, one.seed

    shorter = found(moments=trace.moments[:3], actions=trace.actions[:3])
    assert shorter.what == "the episode goes on, where it was over before"
    assert place(shorter) == ("step", None, 3, 7)
    longer = found(moments=[*trace.moments, trace.moments[0]._replace(step=4)], actions=[*trace.actions, {}])
    assert longer.what == "the episode is over, where it went on before"
    assert place(longer) == ("step", None, 4, 7)
    other = found(seed=8)
    assert re.fullmatch(r"the observation of 'a' was '0\.\d' and is now '0\.\d'", other.what)
    assert place(other) == ("reset", "a", 0, 8)
    assert "must act" in found(actions=[{}]).what
    assert found(outcomes={"a": trace.outcomes["a"]}).what == "'b' took part in only one of two plays"
    richer = dict(trace.outcomes, b=msgspec.structs.replace(trace.outcomes["b"], total=9.0))
    assert re.fullmatch(r"the total of 'b' was 9\.0 and is now \d\.0", found(outcomes=richer).what)
    assert place(found(outcomes=richer)) == ("step", "b", 4, 7)
    alone = trace.moments[0]._replace(turns=trace.moments[0].turns[:1])
    assert found(moments=[alone, *trace.moments[1:]]).what == "['a'] had to act and now ['a', 'b']"


def test_an_environment_that_cannot_be_played_cannot_be_proven():
    class Bad(Dice):
        def step(self, actions):
            raise OSError("no")

    with pytest.raises(EnvError, match="step raised OSError: no"):
        prove_fork(lambda: Game(Bad()), 0)
