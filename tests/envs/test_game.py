"""One view over both kinds of environment, right where wrappers usually go wrong."""

from __future__ import annotations

import copy
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo.classic import connect_four_v3, rps_v2, tictactoe_v3

from decentral.envs.actions import Free
from decentral.envs.game import Game
from decentral.envs.names import load
from decentral.errors import EnvError

ENVS = Path(__file__).with_name("small_envs.py")
Crowd, Lone, Relay, Words, complete, play = (
    load(f"{ENVS}:{name}", "environment") for name in ("Crowd", "Lone", "Relay", "Words", "complete", "play")
)


@pytest.mark.parametrize("make", [Relay, Crowd])
def test_max_rounds_truncates_with_the_books_closed(make):
    env = make({})
    game = Game(env, max_rounds=3)
    turns = play(game)
    assert max(turn.round for turn in turns) == 2
    for name, outcome in game.outcomes().items():
        assert outcome.truncated
        assert not outcome.terminated
        assert outcome.total == env.ledger[name]


def test_an_agent_that_acts_alone_forever_is_cut_too():
    class Solo(Relay):
        def step(self, action):
            super().step(action)
            self.agent_selection = "a"

    game = Game(Solo({}), max_rounds=5)
    turns = play(game)
    assert len(turns) == 20
    assert {turn.round for turn in turns} == {0}


def test_a_seed_decides_everything_and_a_game_can_be_played_again():
    game = Game(rps_v2.parallel_env())
    first, ended = play(game, 1), game.outcomes()
    other, ended_otherwise = play(game, 2), game.outcomes()
    assert play(game, 1) == first != other
    assert game.outcomes() == ended != ended_otherwise


@pytest.mark.parametrize("env", [tictactoe_v3.env, connect_four_v3.env])
def test_classic_masks_keep_play_legal_and_totals_zero_sum(env):
    game = Game(env())
    for seed in range(20):
        turns = play(game, seed)
        assert len(turns[0].legal) in (7, 9)
        totals = [outcome.total for outcome in game.outcomes().values()]
        assert sum(totals) == 0
        assert max(totals) in (0, 1)  # an illegal move would cost the mover 1 and the other nothing
        assert sorted(outcome.success for outcome in game.outcomes().values()) in ([0, 1], [0.5, 0.5])
    assert turns[0].feedback == ""
    assert turns[0].system == "You are " + turns[0].agent + "."
    assert all(turn.system == "" for turn in turns[2:])


MASK = np.array([0, 1, 1], dtype=np.int8)


@pytest.mark.parametrize(
    "env",
    [
        Lone({"observation": 7, "action_mask": MASK}),
        Lone(7, {"action_mask": MASK}),
        Lone({"observation": 7, "action_mask": MASK}, {"action_mask": np.array([1, 0, 0])}),
    ],
)
def test_masks_in_the_observation_or_in_infos(env):
    game = Game(env)
    game.reset(0)
    (turn,) = game.turns()
    assert (turn.observation, turn.legal) == ("7", ("1", "2"))
    with pytest.raises(EnvError, match="'0' of 'a' is not among its legal actions"):
        game.step({"a": "0"})
    game.step({"a": "2"})  # a refused action changed nothing
    assert env.taken == [2]


def test_a_dict_beside_a_mask_keeps_its_other_keys():
    game = Game(Lone({"left": 1, "right": 2, "action_mask": MASK}))
    game.reset(0)
    assert game.turns()[0].observation == "left 1; right 2"


def test_the_environment_gets_a_fresh_action_each_time():
    env = Lone(space=spaces.MultiDiscrete([2, 2]))
    game = Game(env)
    for _ in range(2):
        game.reset(0)
        game.step({"a": "1 0"})
        assert env.taken[-1].tolist() == [1, 0]
        env.taken[-1][:] = 9


def test_free_turns_pass_text_that_the_space_contains():
    env = Lone(space=spaces.Text(max_length=4, charset="ab "))
    game = Game(env)
    for text, taken in (("abba", "abba"), ("a!b, cab", "ab a"), ("", " ")):
        game.reset(0)
        (turn,) = game.turns()
        assert (turn.legal, turn.free) == ((), 4)
        game.step({"a": text})
        assert env.taken[-1] == taken


def test_views_of_the_environment_and_of_the_user():
    env = Lone(text_view=Words(), instructions=lambda agent: f"be {agent}")
    game = Game(env)
    game.reset(0)
    (turn,) = game.turns()
    assert (turn.observation, turn.legal, turn.system) == ("a sees 0", ("left", "right", "wait"), "be a")
    game.step({"a": "right"})
    assert env.taken == [1]

    class Free9(Words):
        def actions(self, agent, mask):
            return Free(9)

    game = Game(env, view=Free9())
    game.reset(0)
    assert game.turns()[0].free == 9
    game.step({"a": "any text"})
    assert env.taken[-1] == "any text"


def test_feedback_and_success_come_from_infos():
    game = Game(Lone(info={"feedback": "too far", "is_success": np.bool_(True)}))
    game.reset(0)
    assert game.turns()[0].feedback == "too far"
    game.step({"a": "0"})
    outcome = game.outcomes()["a"]
    assert (outcome.feedback, outcome.success, outcome.total, outcome.reward) == ("too far", 1.0, 1.0, 1.0)


@pytest.mark.parametrize("answer", [{}, {"a": "0", "b": "0"}, {"b": "0"}])
def test_exactly_those_who_must_act_answer(answer):
    game = Game(Lone())
    game.reset(0)
    with pytest.raises(EnvError, match=r"but \['a'\] must act"):
        game.step(answer)
    assert game.turns()


def test_outcomes_wait_for_the_end():
    game = Game(Lone())
    for _ in range(2):
        with pytest.raises(EnvError, match="is not over"):
            game.outcomes()
        assert not game.over
        game.reset(0)


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (gymnasium.make("CartPole-v1"), "name it as gymnasium.ID"),
        (None, "the callable returned nothing"),
        (42, "return an instance of one of them"),
    ],
)
def test_other_things_are_refused_with_a_way_out(thing, message):
    with pytest.raises(EnvError, match=message):
        Game(thing)


def test_render_is_the_environments_or_else_the_turns():
    game = Game(Lone(3))
    game.reset(0)
    assert game.render() == "a: 3"
    game = Game(Lone(render_mode="ansi", render=lambda: "a picture"))
    game.reset(0)
    assert game.render() == "a picture"


def test_copies_of_a_game_do_not_share():
    game = Game(Relay(complete({}, 9)))
    game.reset(3)
    game.step({"a": "0"})
    twin = copy.deepcopy(game)
    while not twin.over:
        twin.step({twin.turns()[0].agent: "1"})
    assert len(game.history) == 1
    assert game.turns()[0].agent == "b"
    assert len(twin.history) == 10
