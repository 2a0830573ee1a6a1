"""Both kinds of environment are stepped alike, with exact books on whoever comes, goes and dies."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pettingzoo.utils.conversions import parallel_to_aec

from decentral.envs.game import Game
from decentral.envs.names import load
from decentral.errors import EnvError

ENVS = Path(__file__).with_name("small_envs.py")
Crowd, Lone, Relay, complete, play = (
    load(f"{ENVS}:{name}", "environment") for name in ("Crowd", "Lone", "Relay", "complete", "play")
)
NAMES = tuple(Relay({}).possible_agents)
KINDS = st.sampled_from(("terminated", "truncated"))
ENDS = st.dictionaries(st.integers(0, 6), st.dictionaries(st.sampled_from(NAMES), KINDS, max_size=4), max_size=4)


def first_end(ends, name):
    return next((step, ends[step][name]) for step in sorted(ends) if name in ends[step])


@settings(max_examples=60, deadline=None)
@given(ENDS, st.integers(0, 99))
def test_aec_books_are_exact_whoever_dies_when(ends, seed):
    env = Relay(complete(ends, 9))
    game = Game(env)
    turns = play(game, seed)
    outcomes = game.outcomes()
    for name in NAMES:
        mine = [turn for turn in turns if turn.agent == name]
        outcome = outcomes[name]
        assert outcome.total == env.ledger[name]
        assert outcome.total == sum(turn.reward for turn in mine) + outcome.reward
        assert outcome.turns == len(mine)
        _, kind = first_end(env.ends, name)
        assert (outcome.terminated, outcome.truncated) == (kind == "terminated", kind == "truncated")


@settings(max_examples=60, deadline=None)
@given(ENDS, st.integers(0, 99), st.sampled_from(("last word", "vanish", "stay")))
def test_parallel_books_are_exact_whoever_dies_when(ends, seed, dead):
    env = Crowd(complete(ends, 7), dead)
    game = Game(env)
    turns = play(game, seed)
    outcomes = game.outcomes()
    for name in NAMES:
        mine = [turn for turn in turns if turn.agent == name]
        step, kind = first_end(env.ends, name)
        assert [turn.round for turn in mine] == list(range(step + 1))
        assert [turn.observation for turn in mine] == [str(i) for i in range(step + 1)]
        assert outcomes[name].total == env.ledger[name] == sum(turn.reward for turn in mine) + outcomes[name].reward
        if dead != "vanish":
            assert (outcomes[name].terminated, outcomes[name].truncated) == (kind == "terminated", kind == "truncated")
        else:
            assert outcomes[name].terminated


@settings(max_examples=30, deadline=None)
@given(ENDS, st.integers(0, 99))
def test_parallel_and_its_aec_conversion_pay_the_same(ends, seed):
    parallel, aec = Game(Crowd(complete(ends, 5))), Game(parallel_to_aec(Crowd(complete(ends, 5))))
    play(parallel, seed)
    aec.reset(seed)
    for step in parallel.history:
        for _ in step:
            (turn,) = aec.turns()
            aec.step({turn.agent: step[turn.agent]})
    assert aec.over
    assert aec.outcomes() == parallel.outcomes()


def test_aec_rounds_end_when_every_live_agent_has_acted():
    ends = {4: {"b": "terminated", "c": "truncated"}, 8: dict.fromkeys("ad", "terminated")}
    turns = play(Game(Relay(ends)))
    assert [(turn.agent, turn.round) for turn in turns] == [
        *(("a", 0), ("b", 0), ("c", 0), ("d", 0)),
        *(("a", 1), ("d", 1), ("a", 2), ("d", 2), ("a", 3)),
    ]


def test_dead_agents_that_wait_for_the_end_hold_no_round_open():
    class Patient(Relay):
        def _deads_step_first(self):
            return self.agent_selection

    game = Game(Patient({4: {"b": "terminated"}, 8: dict.fromkeys("acd", "terminated")}))
    expected = [("a", 0), ("b", 0), ("c", 0), ("d", 0), ("a", 1), ("c", 1), ("d", 1), ("a", 2), ("c", 2)]
    assert [(turn.agent, turn.round) for turn in play(game)] == expected


def test_an_environment_with_its_own_last_is_asked():
    class Own(Relay):
        def last(self, observe=True):
            observation, *rest = super().last(observe)
            return observation + 500, *rest

    assert [turn.observation for turn in play(Game(Own(complete({}, 1))))] == ["500", "501"]


def test_the_next_episode_begins_with_a_round_of_its_own():
    game = Game(Relay(complete({}, 3)))
    for _ in range(2):
        assert [turn.round for turn in play(game)] == [0, 0, 0, 0]


def test_unequal_spaces_and_late_arrivals():
    env = Crowd(complete({1: {"a": "terminated"}}, 5), arrive={2: "d"})
    game = Game(env)
    turns = play(game)
    assert {turn.agent: len(turn.legal) for turn in turns} == {"a": 2, "b": 3, "c": 4, "d": 5}
    assert [turn.round for turn in turns if turn.agent == "d"] == [2, 3, 4, 5]
    assert game.outcomes()["d"].turns == 4
    assert next(turn for turn in turns if turn.agent == "d").system == "You are d."


def test_an_agent_that_never_came_has_no_outcome():
    game = Game(Crowd(complete({}, 1), arrive={9: "d"}))
    play(game)
    assert set(game.outcomes()) == {"a", "b", "c"}
    assert game.agents == NAMES


def test_agents_are_seen_where_none_are_declared():
    env = Relay(complete({}, 3))
    names, env.possible_agents = env.possible_agents, None
    env.reset = lambda seed=None, options=None: (
        setattr(env, "possible_agents", names),
        Relay.reset(env, seed),
        setattr(env, "possible_agents", None),
    )[1]
    game = Game(env)
    assert game.agents == NAMES
    play(game)
    env.reset = None
    with pytest.raises(EnvError, match="the reset that shows its agents raised TypeError"):
        Game(env)


def test_a_dead_agent_that_is_selected_again_does_not_hang():
    class Stuck(Relay):
        def _was_dead_step(self, action):
            pass

    with pytest.raises(EnvError, match="selected again after its end"):
        play(Game(Stuck(complete({}, 2))))


def test_agents_taken_off_the_list_without_a_dead_step():
    class Abrupt(Relay):
        def step(self, action):
            super().step(action)
            if self.time == 6:
                self.agents = []

    env = Abrupt({5: {"b": "truncated"}})
    game = Game(env)
    play(game)
    assert {name: outcome.total for name, outcome in game.outcomes().items()} == dict(env.ledger)
    assert game.outcomes()["a"].terminated
    assert game.outcomes()["b"].truncated


def test_missing_answers_of_an_environment():
    class Quiet(Lone):
        def reset(self, seed=None, options=None):
            self.agents = ["a"]
            return {}, {}

    class Old(Lone):
        def reset(self, seed=None, options=None):
            self.agents = ["a"]
            return {"a": 0}

    class Four(Lone):
        def step(self, actions):
            return super().step(actions)[:4]

    for kind, message in (
        (Quiet, "gets no observation"),
        (Old, "does not return .observations, infos"),
        (Four, "five"),
    ):
        with pytest.raises(EnvError, match=message):
            play(Game(kind()))


def test_names_of_agents_are_texts_whatever_their_ids():
    env = Relay(complete({}, 3), names=(0, 1))
    env.ends = {3: {0: "terminated", 1: "terminated"}}
    game = Game(env)
    assert [turn.agent for turn in play(game)] == ["0", "1", "0", "1"]
    assert set(game.outcomes()) == {"0", "1"}
