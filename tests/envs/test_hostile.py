"""Hostile environments are played to their end with the right outcomes, or refused with the place and the way out."""

from __future__ import annotations

import math
import random
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from decentral.envs.check import check_env
from decentral.envs.config import EnvConfig
from decentral.envs.fork import snapshot
from decentral.envs.game import Game
from decentral.envs.names import load
from decentral.envs.trace import play
from decentral.errors import EnvError

PARALLEL, AEC = (Path(__file__).with_name(f"hostile_{kind}.py") for kind in ("parallel", "aec"))


def full(name):
    """Returns a class's name with its file, as an EnvConfig takes it."""
    file = next(one for one in (PARALLEL, AEC) if f"class {name}(" in one.read_text())
    return f"{file}:{name}"


def habit(name, **attributes):
    """Returns a class of these files, with other attributes if some are given."""
    found = load(full(name), "environment")
    return type(found.__name__, (found,), attributes) if attributes else found


def played(name, seed=5, **attributes):
    game = Game(habit(name, **attributes)(), name=name, max_rounds=8)
    return game, play(game, seed)


def place(one):
    return one.method, one.agent, one.step, one.seed


def row(report, name):
    return next(row for row in report.rows if row.name == name)


@pytest.mark.parametrize(
    ("name", "turns"),
    [
        *(("Pair", (3, 3)), ("Ring", (2, 2)), ("DieInPairs", (2, 2, 1, 1)), ("PaysTheDead", (1, 3))),
        ("ComesLate", (3, 3, 2)),
        *(("OverAtReset", ()), ("DeadAtReset", (0, 0)), ("NeverEnds", (8, 8)), ("Forgets", (3, 3))),
        *(("OneArray", (3, 3)), ("MaskAlone", (3, 3)), ("NothingSeen", (3, 3)), ("HugeText", (3, 3))),
        *(
            ("Lies", (3, 3)),
            ("FewerActions", (3, 3)),
            ("NewSpaces", (3, 3)),
            ("NewSpacesInTurn", (2, 2)),
            ("Greedy", (3, 3)),
        ),
        *(("RaisesAround", (3, 3)), ("IgnoresSeeds", (3, 3)), ("OneForAll", (3, 3)), ("GlobalDraws", (3, 3))),
        *(("Threaded", (3, 3)), ("LeavesThreads", (3, 3)), ("NothingToWin", (3, 3)), ("LeftOver", (3, 3))),
    ],
)
def test_it_is_played_to_its_end(name, turns):
    game, trace = played(name)
    outcomes = trace.outcomes
    assert tuple(one.turns for one in outcomes.values()) == turns
    assert all(one.truncated == (name == "NeverEnds") and one.terminated != one.truncated for one in outcomes.values())
    paid = {one: sum(turn.reward for turn in trace.turns if turn.agent == one) for one in outcomes}
    assert all(one.total == paid[one.agent] + one.reward for one in outcomes.values())
    if isinstance(game.env, habit("Ring")):
        assert [one.total for one in outcomes.values()] == list(turns)
    elif name not in ("PaysTheDead", "ComesLate", "NothingToWin"):
        alike = sum(len(set(step.values())) == 1 for step in trace.actions)
        lost = name == "Forgets" and len(set(trace.actions[-1].values())) == 1
        assert [one.total for one in outcomes.values()] == ([alike, alike - lost] if turns else [])


def test_the_deads_share_of_the_pay_is_theirs():
    outcomes = played("PaysTheDead")[1].outcomes
    assert (outcomes["a_0"].total, outcomes["a_0"].turns, outcomes["a_0"].reward) == (3.0, 1, 3.0)
    assert (outcomes["a_1"].total, outcomes["a_1"].reward) == (3.0, 1.0)


def test_an_array_that_changes_later_changes_no_turn():
    _, trace = played("OneArray")
    assert [turn.observation for turn in trace.turns] == ["0 0", "0 0", "1 1", "1 1", "2 2", "2 2"]
    assert len({moment.observed["a_0"] for moment in trace.moments}) == 3


def test_actions_are_those_that_the_space_has_now():
    _, trace = played("FewerActions")
    assert [len(turn.legal) for turn in trace.turns] == [3, 3, 2, 2, 1, 1]


def test_what_an_environment_does_with_its_actions_is_its_own_affair():
    game, trace = played("Greedy")
    assert game.history == trace.actions
    assert all(set(step) == {"a_0", "a_1"} for step in game.history)


class Tensor:
    """Has an item, and is no number itself."""

    def item(self):
        return 0.5


@pytest.mark.parametrize(
    "reward", [True, 2, np.float16(0.5), np.bool_(True), np.array(3), np.array([4.0]), Tensor(), Decimal("0.5")]
)
def test_a_reward_of_an_odd_type_is_a_number(reward):
    total = played("Pair", pay=lambda *_: reward)[1].outcomes["a_0"].total
    assert total == 3 * float(reward.item() if hasattr(reward, "item") else reward)
    assert type(total) is float


@pytest.mark.parametrize(
    ("reward", "said"),
    [
        *(
            (reward, "is no number; return one number")
            for reward in (None, "1", b"1", 1j, [1.0], np.ones(2), {}, 10**400)
        ),
        *((reward, f"is {reward}; return finite") for reward in (math.nan, math.inf, -math.inf)),
        (np.array(["1"]), "is no number"),
    ],
)
def test_a_reward_that_is_no_number_is_refused(reward, said):
    with pytest.raises(EnvError) as caught:
        played("Pair", pay=lambda self, agent, same: reward if (self.time, agent) == (2, "a_1") else 1.0)
    assert said in caught.value.detail
    assert place(caught.value) == ("step", "a_1", 2, 5)


@pytest.mark.parametrize("names", [("a b", "a.b"), ("ä", "好"), ("-a", "a" * 200), (0, 1), ("..a", "~")])
def test_agents_of_odd_names_play(names):
    outcomes = played("Ring", names=names)[1].outcomes
    assert tuple(outcomes) == tuple(map(str, names))


@pytest.mark.parametrize(
    ("names", "agent", "said"),
    [
        *(
            ((name, "b"), name, "cannot be a folder's")
            for name in ("a/b", "..", "", "a" * 201, "a\nb", "a\0", "host", "é" * 101)
        ),
        ((1, "1"), "1", "'1' and '1' are one"),
        (("Ann", "ann"), "ann", "'Ann' and 'ann' are one to some file system"),
        (("\u00e9", "e\u0301"), "e\u0301", "are one"),
        ((), None, "there are no agents"),
    ],
)
def test_agents_of_names_that_no_run_can_use_are_refused_at_once(names, agent, said):
    with pytest.raises(EnvError, match=said) as caught:
        Game(habit("Pair", names=names)(), name="Pair")
    assert str(caught.value).startswith("Pair: ")
    assert place(caught.value) == ("possible_agents", agent, None, None)
    report = check_env(habit("Pair", names=names))
    assert [(one.name, one.method) for one in report.failures] == [("made", "possible_agents")]


REFUSED = [
    ("FromNowhere", "agent 'a_2' appears, which is not among possible_agents; declare it", ("step", "a_2", 1)),
    ("Reappears", "agent 'a_0' reappears after its end; let it live on", ("step", "a_0", 3)),
    ("SelectsTheGone", "agent_selection is 'a_0', which is not among agents; select", ("step", "a_0", 2)),
    ("NoTermination", "terminations has no entry for 'a_1', which must act; keep one", ("step", "a_1", 1)),
    ("NoInfos", "infos is of type NoneType, not a dict; keep one", ("reset", None, 0)),
    (
        "CannotStepTheDead",
        "step raised TypeError: unsupported .*hostile_aec.py:.*; a dead agent's action is None, so begin step with",
        ("step", "a_0", 4),
    ),
    ("WrongMask", "an action mask of 4 entries does not fit 3 actions", ("step", "a_0", 2)),
    ("NothingLegal", "'a_1' must act and has no legal action; offer one", ("step", "a_1", 2)),
    ("LoneSurrogate", r"a text for 'a_1' holds a lone surrogate \('a\\ud800'\); decode", ("step", "a_1", 1)),
    ("ResetsToNone", r"reset\(\) does not return \(observations, infos\); return both", ("reset", None, 0)),
    ("FourParts", r"step\(\) does not return five dicts; return", ("step", None, 1)),
    ("ListOfRewards", "rewards is of type list, not a dict; return", ("step", None, 1)),
    ("NoneForInfos", "infos is of type NoneType, not a dict; return", ("step", None, 1)),
    ("TextForInfo", "the info of 'a_1' is a str, not a dict; return", ("step", "a_1", 2)),
    ("RaisesOdd", "step raised Odd: neither .*hostile_aec.py:.*; repair it", ("step", "a_1", 2)),
    ("RaisesInObserve", "observe raised OSError: no more .*hostile_aec.py:.*; repair it", ("observe", "a_1", 3)),
]


@pytest.mark.parametrize(("name", "said", "where"), REFUSED)
def test_it_is_refused_with_the_place_and_the_way_out(name, said, where):
    with pytest.raises(EnvError) as caught:
        played(name)
    assert re.match(said, caught.value.detail), caught.value.detail
    assert place(caught.value) == (*where, 5)
    message = str(caught.value)
    assert message.startswith(f"{name}: ")
    assert f"seed 5, step {where[2]}" in message
    assert "\n" not in message
    message.encode()


@pytest.mark.parametrize(("name", "said", "where"), REFUSED)
def test_the_check_refuses_it_likewise(name, said, where):
    report = check_env(habit(name), seed=5)
    found = row(report, "plays")
    assert not found.ok
    assert re.match(said, found.detail)
    assert place(found) == (*where, 5)
    assert found.place.endswith(f"step {where[2]}, seed 5")


def test_the_users_interrupt_is_no_fault_of_the_environment():
    with pytest.raises(KeyboardInterrupt):
        played("Interrupted")
    with pytest.raises(KeyboardInterrupt):
        check_env(habit("Interrupted"))

    def close(self):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Game(habit("Pair", close=close)()).close()


def test_what_raises_around_play_is_named_where_it_matters():
    game = Game(habit("RaisesAround")(), name="around")
    game.reset(5)
    with pytest.raises(EnvError, match="render raised OSError: no screen") as caught:
        game.render()
    assert place(caught.value) == ("render", None, 0, 5)
    game.close()
    assert "it close raises" not in row(check_env(habit("Pair")), "side effects").detail
    assert "close raises OSError: no door" in row(check_env(habit("RaisesAround")), "side effects").detail


@pytest.mark.parametrize(
    ("name", "failing", "said", "where"),
    [
        ("OverAtReset", "plays", "nobody ever had to act in 3 episodes; let agents live", ("reset", None, 0, 5)),
        ("DeadAtReset", "plays", "nobody ever had to act", ("reset", None, 0, 5)),
        (
            "Lies",
            "spaces",
            "the observation of 'a_1' is not in its .*holds 10. to .*, the space 0 to 9; correct",
            ("observation_space", "a_1", 2, 5),
        ),
        (
            "FewerActions",
            "spaces",
            r"it was Discrete\(3\) for 'a_0' and is now Discrete\(2\); return",
            ("action_space", "a_0", 1, 5),
        ),
        (
            "GrownInPlace",
            "spaces",
            r"it was Discrete\(3\) for 'a_1' and is now Discrete\(4\); return",
            ("action_space", "a_1", 1, 5),
        ),
        (
            "NewSpaces",
            "spaces",
            r"action_space\(agent\) must return the same object at every call; make the spaces in __init__",
            ("action_space", "a_0", 0, 5),
        ),
        (
            "NewSpacesInTurn",
            "spaces",
            r"observation_space\(agent\) must return the same object at every call; make",
            ("observation_space", "a_0", 0, 5),
        ),
        ("MoreAgents", "spaces", "it was .* and is now .*'a_2'.; never change it", ("possible_agents", None, 1, 5)),
        (
            "IgnoresSeeds",
            "seeded reset",
            "the observation of 'a_0' was .* and is now .*; draw only",
            ("reset", "a_0", 0, 5),
        ),
        ("LeftOver", "seeded reset", "the observation of 'a_0' .*so let reset.. clear all", ("reset", "a_0", 0, 5)),
        ("OneForAll", "copies", "beside another copy, .*; keep all state in the instance$", ("step", "a_0", 1, 5)),
        ("GlobalDraws", "copies", r"beside another copy, .*\(it uses the global numpy.random\)", ("step", "a_0", 1, 5)),
        ("HugeText", "tokens per turn", "over half of the window", ("step", "a_1", 1, 5)),
        (
            "RaisesInTheThirdEpisode",
            "plays",
            r"step raised OSError: the third time .*; repair it \(only after",
            ("step", None, 2, 5),
        ),
    ],
)
def test_the_check_finds_what_play_does_not(name, failing, said, where):
    report = check_env(habit(name), seed=5, count=lambda text: len(text.split()), window=1024)
    found = row(report, failing)
    assert not found.ok
    assert re.search(said, found.detail), found.detail
    assert place(found) == where
    assert report.seed == 5


def test_draws_from_the_global_generator_are_not_taken_for_what_reset_leaves():
    """Few values, of which some come again by chance."""
    for seed in range(4):
        found = row(check_env(habit("GlobalResets"), seed=seed), "seeded reset")
        assert not found.ok
        assert found.detail.endswith("keep all state in the instance (it uses the global random)")


@pytest.mark.parametrize(
    ("name", "row_name", "said"),
    [
        ("Pair", "side effects", "none seen"),
        ("Threaded", "side effects", "none seen"),
        ("Threaded", "fork", "by replay"),
        ("LeavesThreads", "side effects", "it leaves threads running: ticker"),
        (
            "GlobalSeed",
            "side effects",
            "it draws from or seeds the global random, first seen in the reset, which is harmless as long as the row",
        ),
        ("NeverEnds", "ends", "3 of 3 episodes reached max_rounds = 200, where they are cut; does the game end?"),
        ("PaysOnce", "rewards", "returns from 0 to 1"),
        ("Noisy", "side effects", "it prints, first 'a step'; it warns, first 'mind the step'"),
        ("ComesLate", "plays", "24 turns of random legal actions; observations and rewards are all numbers"),
        ("NothingToWin", "rewards", "every return was 0 in 50 random episodes: if random play never"),
    ],
)
def test_what_a_run_does_not_suffer_from_is_a_remark(name, row_name, said, capsys):
    state, numpy_state = random.getstate(), np.random.get_state()[1].tolist()
    report = check_env(habit(name))
    assert report.ok, report
    assert row(report, row_name).detail.startswith(said)
    assert capsys.readouterr().out == ""
    assert (random.getstate(), np.random.get_state()[1].tolist()) == (state, numpy_state)


def test_what_holds_a_lock_cannot_be_copied():
    game, _ = played("Threaded")
    with pytest.raises(EnvError, match="Threaded cannot be copied: TypeError"):
        snapshot(game)
    game.close()


def test_what_has_no_spaces_declares_no_agents_or_leaves_one_out_of_its_teams_is_a_row():
    found = check_env(habit("NoSpaces"))
    assert "'NoSpaces' object has no attribute 'action_spaces'" in row(found, "plays").detail

    def reset(self, seed=None, options=None):
        self.possible_agents = ["a_0", "a_1"]
        parts = type(self).__mro__[1].reset(self, seed, options)
        self.possible_agents = None
        return parts

    undeclared = habit("Pair", reset=reset, possible_agents=None, names=("a_0", "a_1"))
    init = undeclared.__init__
    undeclared.__init__ = lambda self: (init(self), setattr(self, "possible_agents", None))[0]
    assert row(check_env(undeclared), "plays").ok
    (made,) = check_env(habit("LeavesOut")).rows
    assert (made.name, made.ok, made.method) == ("made", False, "teams")
    assert "leave out 'a_1'" in made.detail


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Lingers", r"AssertionError: .* != .*; agents whose termination or truncation is True must leave self.agents"),
        ("NewSpacesAndLingers", "agents whose termination or truncation is True must leave self.agents"),
        ("ForgetsAnObservation", "AssertionError; reset must return an observation for every agent in self.agents"),
        (
            "DropsTheDead",
            "if they were terminated .*; rewards, terminations, truncations and infos need",
        ),
        ("NoDeadStep", r"TypeError: int\(\) .*hostile_aec.py:\d+\); a dead agent's action is None, so begin step with"),
        ("NumpysBools", "terminated from last .*; let terminations hold True or False"),
        ("KeepsPay", r"is not the accumulated .*; step must .* self._accumulate_rewards\(\)"),
        ("FourParts", "ValueError: not enough values to unpack .*; the test says `obs, rew, "),
    ],
)
def test_what_pettingzoo_asserts_comes_with_its_cure(name, said):
    found = check_env(habit(name)).rows[1]
    assert found.name.startswith("PettingZoo's")
    assert not found.ok
    assert re.search(said, found.detail), found.detail


def test_a_mistake_in_the_spaces_does_not_hide_another():
    failed = {one.name for one in check_env(habit("NewSpacesAndLingers")).failures}
    assert failed == {"PettingZoo's parallel_api_test", "spaces"}


def test_what_concerns_nobody_here_is_not_remarked():
    assert row(check_env(habit("Ring")), "PettingZoo's api_test").detail == "passed"


def test_a_fault_is_located_in_its_authors_file(monkeypatch):
    with pytest.raises(EnvError) as caught:
        played("DrawsFromNothing")
    line = next(i for i, text in enumerate(PARALLEL.read_text().splitlines(), 1) if "integers(0)" in text)
    assert f"hostile_parallel.py:{line}); repair it" in caught.value.detail
    monkeypatch.chdir(PARALLEL.parent)
    found = check_env(habit("DrawsFromNothing")).rows[1]
    assert f"(hostile_parallel.py:{line}); correct reset" in found.detail


def test_what_was_not_tried_is_counted():
    report = check_env(habit("DrawsFromNothing"), count=len)
    assert str(report).startswith("DrawsFromNothing fails 2 of 4 checks, 8 more not tried")
    assert report.untried[0] == "legal actions"
    assert check_env(habit("Pair"), count=len).untried == ()


def test_what_was_found_stays_found_when_no_further_copy_can_be_made():
    kind = habit("MadeTwice")
    kind.made = 0
    report = check_env(kind)
    assert [one.name for one in report.rows].count("made") == 1
    assert "step raised ValueError: boom" in row(report, "plays").detail
    assert row(report, "legal actions").ok
    assert "no room for a third" in row(report, "another copy").detail
    assert not row(report, "another copy").ok
    assert "seeded reset" not in [one.name for one in report.rows]


def test_books_that_are_lost_when_an_episode_is_cut_are_named():
    with pytest.raises(EnvError, match="infos is of type NoneType, not a dict") as caught:
        played("LosesItsInfos", length=99)
    assert place(caught.value) == ("step", None, 16, 5)


def test_the_advice_can_be_typed_in_a_shell():
    game = Game(habit("Raises")(), name="openspiel/hanabi(players=2)")
    with pytest.raises(EnvError, match=r"decentral envs check 'openspiel/hanabi\(players=2\)' --seed 5"):
        play(game, 5)


def test_a_callable_that_makes_one_environment_is_named():
    env = habit("Pair")()
    report = check_env(lambda: env)
    assert [one.name for one in report.failures] == ["made", "copies"]
    assert "returned one environment twice" in row(report, "made").detail


@pytest.mark.parametrize("name", ["Pair", "Ring", "DieInPairs"])
def test_the_sound_ones_pass(name):
    assert check_env(EnvConfig(name=full(name))).ok
