"""Who says what a success is, and in which order."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from mpe2 import simple_reference_v3, simple_spread_v3
from pettingzoo.classic import connect_four_v3, tictactoe_v3

from decentral.envs.config import EnvConfig
from decentral.envs.names import make
from decentral.envs.success import THIRD_PARTY, judge
from decentral.envs.trace import play
from decentral.errors import EnvError


class World:
    def __init__(self, value):
        self.value = value

    def success(self, agent):
        return self.value


def test_the_order_of_those_who_may_say():
    info = {"is_success": True}
    user = lambda env, agent, total: 0.25  # noqa: E731
    silent = lambda env, agent, total: None  # noqa: E731
    assert judge(World(0.5), "a", 9.0, info, user, 100.0) == 0.25
    assert judge(World(0.5), "a", 9.0, info, silent, 100.0) == 0.5
    assert judge(World(None), "a", 9.0, info, silent, 100.0) == 1.0
    assert judge(World(None), "a", 9.0, {}, None, 9.0) == 1.0
    assert judge(World(None), "a", 8.9, {}, None, 9.0) == 0.0
    assert judge(object(), "a", 9.0, {}) is None


@pytest.mark.parametrize(
    ("module", "moves"), [(tictactoe_v3, (0, 1, 3, 2, 6)), (connect_four_v3, (0, 1, 0, 1, 0, 2, 0))]
)
def test_winning_is_success_unless_the_user_says_otherwise(module, moves):
    env = module.env()
    env.reset(seed=0)
    assert judge(env.unwrapped, "player_1", 0.0, {}) == 0.5
    for move in moves:
        env.step(move)
    assert [judge(env.unwrapped, agent, 0.0, {}) for agent in env.possible_agents] == [1.0, 0.0]
    assert judge(env.unwrapped, "player_2", 0.0, {}, None, 0.0) == 1.0


def test_an_environment_is_judged_alike_with_its_adapter_and_without():
    assert make(EnvConfig(name="mpe2/simple_push_v3")).env.unwrapped.success_rule
    for name in ("mpe2/simple_push_v3", "mpe2.simple_push_v3:parallel_env"):
        outcomes = play(make(EnvConfig(name=name)), 3).outcomes
        assert {agent: outcome.success for agent, outcome in outcomes.items()} == {"adversary_0": 0.0, "agent_0": 1.0}


def test_the_table_tells_mpe_games_apart_though_they_share_their_metadata():
    spread = simple_spread_v3.parallel_env()
    reference = simple_reference_v3.parallel_env()
    assert spread.metadata["name"] == "simple_reference_v3"
    spread.reset(seed=0)
    world = spread.unwrapped.world
    for agent, mark in zip(world.agents, world.landmarks):
        agent.state.p_pos = mark.state.p_pos + 0.05
    assert judge(spread.unwrapped, "agent_0", -9.0, {}) == 1.0
    world.agents[0].state.p_pos = np.array([5.0, 5.0])
    assert judge(spread.unwrapped, "agent_0", -9.0, {}) == pytest.approx(2 / 3)
    reference.reset(seed=0)
    world = reference.unwrapped.world
    for agent in world.agents:
        agent.goal_a.state.p_pos = agent.goal_b.state.p_pos + 0.02
    assert judge(reference.unwrapped, "agent_0", -9.0, {}) == 1.0
    world.agents[0].state.p_pos = np.array([5.0, 5.0])
    assert judge(reference.unwrapped, "agent_1", -9.0, {}) == 0.5


def test_every_key_of_the_table_is_a_module_that_defines_an_environment():
    for name in THIRD_PARTY:
        assert importlib.import_module(name).raw_env.__module__ == name


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan")])
def test_success_is_a_share(value):
    with pytest.raises(EnvError, match="is not in"):
        judge(World(value), "a", 0.0, {})
