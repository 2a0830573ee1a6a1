"""Gymnasium environments as teams: tuples become dicts and back, and what is one for all reaches everyone."""

import random
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo.test import parallel_api_test

from decentral.envs.adapters import gymnasium as adapter
from decentral.envs.check import check_env
from decentral.envs.config import EnvConfig
from decentral.envs.drivers import Breach
from decentral.envs.game import Game
from decentral.envs.trace import play
from decentral.errors import ConfigError

NAME = "decentral.envs.adapters.gymnasium:env"


class Pair(gymnasium.Env):  # type: ignore[misc]
    """Two count up to three; what a step returns besides is the test's."""

    observation_space = spaces.Tuple((spaces.Discrete(4), spaces.Discrete(4)))
    action_space = spaces.Tuple((spaces.Discrete(2), spaces.Discrete(3)))

    def __init__(self, reward: Any = 1.0, done: Any = False, late: Any = False, info: Any = None) -> None:
        self.result = reward, done, late, {} if info is None else info
        self.taken: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.taken = []
        return (0, 0), {}

    def step(self, action: Any) -> Any:
        self.taken.append(action)
        return ((len(self.taken), 3 - len(self.taken)), *self.result)


def step(env: Any) -> Any:
    team = adapter.Team(env)
    team.reset(seed=0)
    return team, team.step({"agent_0": 1, "agent_1": 2})


def test_a_tuple_goes_to_its_agents_and_theirs_goes_back() -> None:
    env = Pair()
    team, (observations, *_) = step(env)
    assert observations == {"agent_0": 1, "agent_1": 2}
    assert env.taken == [(1, 2)]
    assert [team.action_space(agent).n for agent in team.possible_agents] == [2, 3]


@pytest.mark.parametrize("reward", [[0.5, 2.0], (0.5, 2.0), np.array([0.5, 2.0])])
def test_rewards_may_be_one_each(reward: Any) -> None:
    assert step(Pair(reward))[1][1] == {"agent_0": 0.5, "agent_1": 2.0}


@pytest.mark.parametrize("reward", [3, np.float64(3), np.array(3.0)])
def test_a_reward_may_be_the_teams(reward: Any) -> None:
    assert step(Pair(reward))[1][1] == {"agent_0": 3, "agent_1": 3}


def test_infos_may_be_one_each_or_one_for_all() -> None:
    assert step(Pair(info=[{"a": 1}, {"a": 2}]))[1][4] == {"agent_0": {"a": 1}, "agent_1": {"a": 2}}
    assert step(Pair(info={"a": 1}))[1][4] == {"agent_0": {"a": 1}, "agent_1": {"a": 1}}


def test_a_list_of_the_wrong_length_is_told() -> None:
    with pytest.raises(Breach, match="3 entries for 2 agents"):
        step(Pair([1.0, 2.0, 3.0]))


def test_truncation_is_not_termination() -> None:
    team, (_, _, terminations, truncations, _) = step(Pair(late=True))
    assert (set(terminations.values()), set(truncations.values()), team.agents) == ({False}, {True}, [])


def test_one_that_is_done_leaves_and_its_last_action_stands_in() -> None:
    env = Pair(done=[True, False])
    team, _ = step(env)
    assert team.agents == ["agent_1"]
    env.result = (1.0, True, False, {})
    observations, *_ = team.step({"agent_1": 0})
    assert (env.taken[-1], set(observations), team.agents) == ((1, 0), {"agent_1"}, [])


def test_a_game_goes_on_for_those_who_are_left() -> None:
    env = Pair(done=[True, False], info={"is_success": True})
    game = Game(adapter.Team(env), max_rounds=3)
    trace = play(game, 0)
    assert {agent: outcome.turns for agent, outcome in trace.outcomes.items()} == {"agent_0": 1, "agent_1": 3}
    assert {outcome.success for outcome in trace.outcomes.values()} == {1.0}
    assert (trace.outcomes["agent_0"].terminated, trace.outcomes["agent_1"].truncated) == (True, True)


def test_tuples_of_two_lengths_are_one_agents() -> None:
    env = Pair()
    env.action_space = spaces.Tuple((spaces.Discrete(2),) * 3)
    assert adapter.Team(env).possible_agents == ["agent"]


@pytest.mark.parametrize("id", ["FrozenLake-v1", "Taxi-v4", "Blackjack-v1", "CliffWalking-v1", "CartPole-v1"])
def test_an_environment_for_one_agent_checks(id: str) -> None:
    report = check_env(EnvConfig(name=NAME, options={"id": id}))
    assert report.ok, [row for row in report.rows if not row.ok]
    assert report.turn is not None
    assert report.turn.agent == "agent"


@pytest.mark.parametrize("id", ["Foraging-5x5-2p-1f-v3", "Foraging-2s-8x8-3p-2f-v3", "rware-tiny-2ag-v2"])
def test_a_team_checks(id: str) -> None:
    pytest.importorskip("lbforaging" if id.startswith("Foraging") else "rware")
    report = check_env(EnvConfig(name=NAME, options={"id": id}, max_rounds=60))
    assert report.ok, [row for row in report.rows if not row.ok]


def test_masks_options_and_pictures_go_through() -> None:
    game = Game(adapter.env("Taxi-v4", render_mode="ansi", max_episode_steps=5))
    trace = play(game, 1)
    assert min(len(turn.legal) for turn in trace.turns) < 6
    assert trace.outcomes["agent"].truncated
    assert not trace.outcomes["agent"].terminated
    assert "+---------+" in game.render()


def test_a_box_of_actions_goes_through_as_it_is() -> None:
    env = adapter.env("Pendulum-v1")
    assert isinstance(env.action_space("agent"), spaces.Box)
    parallel_api_test(env, num_cycles=10)


def test_the_checker_of_every_step_is_left_out() -> None:
    assert "PassiveEnvChecker" not in str(adapter.env("CartPole-v1").env)


def test_no_global_chance_is_touched() -> None:
    before = random.getstate(), np.random.get_state()[1].tolist()
    play(Game(adapter.env("FrozenLake-v1")), 0)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


def test_an_unknown_id_is_told_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"cannot make 'CartPoll-v1'.*CartPole"):
        adapter.env("CartPoll-v1")
