"""The check passes what can be trained on, and names what is wrong with the rest."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import ParallelEnv

from decentral.envs.check import check_env
from decentral.envs.config import EnvConfig
from decentral.errors import ConfigError, EnvError


def count(text):
    return len(text.split())


def rows(report):
    return {row.name: row for row in report.rows}


@pytest.mark.parametrize(
    "name",
    [
        "meet",
        "guide",
        "vault",
        "pettingzoo.classic.tictactoe_v3:env",
        "pettingzoo.classic.connect_four_v3:env",
        "pettingzoo.classic.rps_v2:parallel_env",
        "mpe2.simple_spread_v3:parallel_env",
        "mpe2.simple_reference_v3:parallel_env",
    ],
)
def test_what_can_be_trained_on_passes(name, capsys):
    report = check_env(EnvConfig(name=name), count=count, window=512)
    assert report.ok, report
    assert rows(report)["fork"].detail.startswith("by replay")
    assert list(rows(report)) == [
        "made",
        f"PettingZoo's {'api_test' if name.endswith(':env') or name == 'vault' else 'parallel_api_test'}",
        *(
            "plays",
            "legal actions",
            "seeded reset",
            "copies",
            "ends",
            "rewards",
            "success",
            "tokens per turn",
            "side effects",
            "fork",
        ),
    ]
    assert report.turn.system
    assert report.turn.legal
    assert capsys.readouterr().out == ""


class Walk(ParallelEnv):
    """A short walk with one fault, named by ``fault``."""

    metadata = {"name": "walk"}  # noqa: RUF012
    render_mode = None
    possible_agents = ["a_0", "a_1"]  # noqa: RUF012
    everywhere = 0

    def __init__(self, fault="", length=6):
        self.fault, self.length = fault, length
        self.action = {agent: spaces.Discrete(3) for agent in self.possible_agents}
        self.space = {agent: spaces.Box(-99, 99, (2,)) for agent in self.possible_agents}
        if fault == "words":
            self.text_view = self

    def observe(self, agent, observation):
        return "long " * 300

    def actions(self, agent, mask):
        return {"0": 0, " ": 1, "2": 2}

    def observation_space(self, agent):
        return self.space[agent]

    def action_space(self, agent):
        return self.action[agent]

    def reset(self, seed=None, options=None):
        self.random = random.Random(None if self.fault == "unseeded" else seed)
        self.agents, self.time = list(self.possible_agents), 0
        return self.look(), {agent: {} for agent in self.agents}

    def look(self):
        face = self.random.uniform(-9, 9)
        if self.fault == "shared":
            Walk.everywhere += 1
            face += Walk.everywhere % 7
        if self.fault == "nan" and self.time == 3:
            face = np.nan
        return {agent: np.array([face, self.time], dtype=np.float32) for agent in self.agents}

    def step(self, actions):
        self.time += 1
        if self.fault == "raises" and self.time == 5:
            raise OSError("off the map")
        end = self.time >= self.length
        live, seen = self.agents, self.look()
        if end and self.fault != "lingers":
            self.agents = []
        ends = dict.fromkeys(live, end)
        return seen, dict.fromkeys(live, 1.0), ends, dict.fromkeys(live, False), {agent: {} for agent in live}


def walk(fault="", length=6):
    return check_env(lambda: Walk(fault, length), count=count, window=128)


def test_a_sound_walk_passes():
    report = walk()
    assert report.ok
    assert rows(report)["success"].detail.startswith("not defined")
    assert rows(report)["tokens per turn"].detail == "3 in the middle, 6 at most, in a window of 128"
    assert rows(report)["ends"].detail == "by itself after 6 to 6 steps, within 200 rounds"


@pytest.mark.parametrize(
    ("fault", "row", "message"),
    [
        (
            "unseeded",
            "seeded reset",
            "(the observation of 'a_0' was .*|the raw observation of 'a_0' is another); draw only from",
        ),
        ("nan", "plays", "the observation of 'a_0' holds NaN"),
        ("raises", "plays", "step raised OSError: off the map"),
        ("raises", "PettingZoo's parallel_api_test", "OSError: off the map .*test_check.py:.*; correct step"),
        ("lingers", "PettingZoo's parallel_api_test", "AssertionError"),
        ("words", "legal actions", "an action has an empty text"),
        ("words", "tokens per turn", "over half of the window of 128"),
    ],
)
def test_faults_are_rows(fault, row, message):
    report = walk(fault)
    assert not report.ok
    found = rows(report)[row]
    assert not found.ok
    assert re.search(message, found.detail), found.detail


def test_copies_that_share_state_are_seen():
    Walk.everywhere = 0

    report = check_env(lambda: Walk("shared", 6))  # alone, an episode uses up exactly one cycle of the counter
    assert not rows(report)["copies"].ok
    assert "beside another copy" in rows(report)["copies"].detail


def test_long_episodes_are_cut_and_reported():
    report = check_env(EnvConfig(name="pettingzoo.classic.rps_v2:parallel_env", max_rounds=4))
    assert rows(report)["ends"].detail.startswith("3 of 3 episodes reached max_rounds = 4")
    assert "tokens per turn" not in rows(report)


def test_what_cannot_be_forked_says_why_and_can_still_be_trained_on():
    report = walk("unseeded")
    assert "replay does not" in rows(report)["fork"].detail
    assert rows(report)["fork"].ok


def test_masks_in_infos_are_kept_in_pettingzoos_test():
    class Strict(Walk):
        """Only action 2 is ever legal."""

        def reset(self, seed=None, options=None):
            observations, infos = super().reset(seed, options)
            return observations, {agent: {"action_mask": np.array([0, 0, 1], dtype=np.int8)} for agent in infos}

        def step(self, actions):
            assert set(actions.values()) == {2}, "illegal"
            *rest, infos = super().step(actions)
            return *rest, {agent: {"action_mask": np.array([0, 0, 1], dtype=np.int8)} for agent in infos}

    report = check_env(lambda: Strict())
    assert report.ok, report
    assert rows(report)["legal actions"].detail == "1 to 1 a turn, all texts different"


def test_actions_that_the_model_cannot_tell_apart():
    def encode(legal):
        if "2" in legal:
            raise EnvError("'1' and '2' look alike")

    report = check_env(lambda: Walk(), encode=encode)
    assert not report.ok
    assert rows(report)["encodings"].detail == "'1' and '2' look alike"
    assert check_env(lambda: Walk(), encode=len).ok


def test_what_cannot_be_made():
    assert not check_env(lambda: None).ok
    with pytest.raises(ConfigError, match="did you mean 'meet'"):
        check_env(EnvConfig(name="meat"))


def test_a_report_reads_as_a_list_of_failures_with_their_places():
    report = walk("words")
    assert str(report) == repr(report)
    assert str(report).splitlines() == [
        "<lambda> fails 2 of 12 checks",
        "  legal actions: an action has an empty text; give every action a text",
        "    in text_view.actions, agent a_0, step 0, seed 0",
        "  tokens per turn: 301 in the middle, 304 at most, over half of the window of 128; give the environment a "
        "shorter text_view",
        "    in text_view.observe, agent a_0, step 0, seed 0",
    ]
    assert [row.name for row in report.failures] == ["legal actions", "tokens per turn"]
    assert report.seed == 0
    sound = walk()
    assert sound.seed is None
    assert str(sound).splitlines()[:2] == [
        "<lambda> passes 12 checks",
        "  made: Parallel, all agents at once; agents a_0, a_1",
    ]


def test_a_bare_assertion_of_pettingzoo_is_known_by_its_call():
    found = rows(check_env(lambda: Walk("lingers"), seed=4))["PettingZoo's parallel_api_test"]
    assert (found.method, found.agent, found.step, found.seed) == ("step", None, 6, 4)


def test_every_copy_is_closed():
    opened, closed = [], []

    class Door(Walk):
        def __init__(self):
            super().__init__()
            opened.append(self)

        def close(self):
            closed.append(self)

    assert check_env(Door).ok
    assert closed == opened
