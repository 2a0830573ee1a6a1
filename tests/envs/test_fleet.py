"""Copies side by side: nobody waits, nothing is lost, faults are data."""

from __future__ import annotations

import random

import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from pettingzoo import ParallelEnv

from decentral.envs.fleet import Episode, Fleet
from decentral.envs.game import Game
from decentral.errors import EnvError, LinkError


class Clock(ParallelEnv):
    """Lasts seed % 7 rounds, agent b one less. Seeds that end in 3 raise in step, those that end in 8 in reset."""

    metadata = {"name": "clock"}  # noqa: RUF012
    possible_agents = ["a", "b"]  # noqa: RUF012
    made = 0

    def __init__(self):
        Clock.made += 1
        self.broken = False

    def observation_space(self, agent):
        return spaces.Discrete(100)

    def action_space(self, agent):
        return spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        assert not self.broken
        self.seed, self.time = seed, 0
        self.agents = ["a", "b"] if seed % 7 else []
        if seed % 10 == 8:
            self.broken = True
            raise OSError("no board")
        return dict.fromkeys(self.agents, 0), {agent: {} for agent in self.agents}

    def step(self, actions):
        self.time += 1
        if self.seed % 10 == 3 and self.time == 2:
            self.broken = True
            raise OSError("the board fell")
        ends = {"a": self.time >= self.seed % 7, "b": self.time >= max(1, self.seed % 7 - 1)}
        live = [agent for agent in self.agents if agent in actions]
        self.agents = [agent for agent in live if not ends[agent]]
        return (
            dict.fromkeys(live, self.time),
            dict.fromkeys(live, 1),
            {agent: ends[agent] for agent in live},
            dict.fromkeys(live, False),
            {agent: {} for agent in live},
        )


def fleet(copies=3):
    return Fleet(lambda: Game(Clock(), name="clock"), copies)


def episodes(seeds):
    return [Episode(100 + i, i // 2, seed) for i, seed in enumerate(seeds)]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 60), max_size=12), st.integers(1, 5), st.integers(0, 9))
def test_every_episode_finishes_once_in_any_order_of_answers(seeds, copies, order):
    todo = episodes(seeds)
    herd, draw, done = fleet(copies), random.Random(order), []
    herd.load(todo)
    while not herd.idle:
        pending = herd.pending()
        assert 1 <= len({episode.id for episode, _ in pending}) <= copies
        episode, turn = draw.choice(pending)
        herd.act(episode.id, turn.agent, draw.choice(turn.legal))
        done += herd.finished()
    done += herd.finished()
    assert sorted(one.episode.id for one in done) == [one.id for one in todo]
    for one in done:
        length = one.episode.seed % 7
        if one.episode.seed % 10 == 8:
            assert one.fault.startswith("clock: reset raised OSError: no board")
        elif one.episode.seed % 10 == 3 and length > 1:
            assert one.fault.startswith("clock: step raised OSError: the board fell (round 1, ")
            assert (len(one.steps), one.outcomes) == (2, {})
        else:
            assert one.fault == ""
            assert len(one.steps) == length
            if length:
                assert one.outcomes["a"].total == one.outcomes["a"].turns == length
                assert [set(step) for step in one.steps[-1:]] == [{"a"} if length > 1 else {"a", "b"}]


def test_a_finished_copy_takes_the_next_episode_without_waiting():
    herd = fleet(copies=2)
    herd.load(episodes([1, 6, 1, 1]))
    for expected in (100, 102, 103):
        for agent in "ab":
            herd.act(expected, agent, "0")
    assert [one.episode.id for one in herd.finished()] == [100, 102, 103]
    assert {episode.id for episode, _ in herd.pending()} == {101}


def test_turns_are_listed_in_order_until_they_are_answered():
    herd = fleet(copies=2)
    herd.load(episodes([4, 5]))
    listed = [(100, "a"), (100, "b"), (101, "a"), (101, "b")]
    assert [(episode.id, turn.agent) for episode, turn in herd.pending()] == listed
    assert [(episode.id, turn.agent) for episode, turn in herd.pending()] == listed
    herd.act(100, "b", "1")
    assert [(episode.id, turn.agent) for episode, turn in herd.pending()] == [listed[0], *listed[2:]]


@pytest.mark.parametrize(
    ("episode", "agent", "action", "message"),
    [
        (999, "a", "0", "episode 999, which is not open"),
        (100, "z", "0", "'z' need not act"),
        (100, "b", "0", "'b' need not act"),
        (100, "a", "up", r"'up' of 'a' is not among its legal actions \['0', '1'\]"),
    ],
)
def test_answers_that_nobody_asked_for_change_nothing(episode, agent, action, message):
    herd = fleet()
    herd.load(episodes([4]))
    herd.act(100, "b", "0")
    before = herd.pending()
    with pytest.raises(LinkError, match=message):
        herd.act(episode, agent, action)
    assert herd.pending() == before


def test_a_broken_copy_is_made_anew_and_others_are_kept():
    Clock.made = 0
    herd = fleet(copies=1)
    herd.load(episodes([1, 18, 1, 1]))
    while not herd.idle:
        for episode, turn in herd.pending():
            herd.act(episode.id, turn.agent, "0")
    assert [bool(one.fault) for one in herd.finished()] == [False, True, False, False]
    assert Clock.made == 2


def test_a_phase_can_be_started_over():
    herd = fleet(copies=2)
    herd.load(episodes([4, 1, 5]))
    herd.act(100, "a", "0")
    for agent in "ab":
        herd.act(101, agent, "0")
    herd.discard_open()
    assert herd.idle
    assert herd.finished() == []
    herd.load(episodes([1]))
    assert [turn.round for _, turn in herd.pending()] == [0, 0]


def test_an_environment_that_cannot_be_made_is_not_a_fault_of_an_episode():
    def make():
        raise EnvError("no such thing")

    with pytest.raises(EnvError, match="no such thing"):
        Fleet(make, 2).load(episodes([1]))


def test_copies_are_closed_when_they_break_and_in_the_end():
    games = []

    class Doors(Clock):
        closed = 0

        def close(self):
            self.closed += 1

    def make():
        games.append(Game(Doors(), name="clock"))
        return games[-1]

    herd = Fleet(make, 2)
    herd.load(episodes([18, 4, 5, 6]))
    assert [game.env.closed for game in games] == [1, 0, 0]
    herd.close()
    assert [game.env.closed for game in games] == [1, 1, 1]
