"""One view over both kinds of environment, right where wrappers usually go wrong."""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.classic import connect_four_v3, rps_v2, tictactoe_v3
from pettingzoo.utils.conversions import parallel_to_aec

from decentral.envs.actions import Free
from decentral.envs.config import EnvConfig
from decentral.envs.game import Game
from decentral.envs.names import make
from decentral.errors import EnvError

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


KINDS = st.sampled_from(("terminated", "truncated"))
ENDS = st.dictionaries(st.integers(0, 6), st.dictionaries(st.sampled_from(NAMES), KINDS, max_size=4), max_size=4)


def complete(ends, last):
    """Everyone who still lives ends at ``last``."""
    gone = {name for step, who in ends.items() if step <= last for name in who}
    return {**ends, last: {**ends.get(last, {}), **{name: "truncated" for name in NAMES if name not in gone}}}


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


class Words:
    def observe(self, agent, observation):
        return f"{agent} sees {observation}"

    def actions(self, agent, mask):
        return {"left": 0, "right": 1, "wait": 2}


class Blurred(Words):
    def actions(self, agent, mask):
        return {"left": 0, "right": 1}


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


@pytest.mark.parametrize(
    ("later", "message"),
    [
        ({"left": 0, "right": 1}, "3 legal actions but only 2 texts"),
        ({"left": 0, "right": 1, "wait": 2.0}, "'wait' is 2.0, which Discrete.3. does not hold"),
        ({"left": 0, "right": 1, "wait": 3}, "'wait' is 3, which Discrete.3. does not hold"),
        ({"left": 0, "right": 1, "\ud800": 2}, "lone surrogate"),
    ],
)
def test_a_table_that_was_right_once_is_examined_again_when_it_changes(later, message):
    class Shifty(Words):
        def __init__(self):
            self.table = Words().actions("a", None)

        def actions(self, agent, mask):
            return self.table

    view = Shifty()
    game = Game(Lone(), view=view)
    game.reset(0)
    view.table.clear()
    view.table.update(later)
    with pytest.raises(EnvError, match=message):
        game.reset(0)


def test_a_mask_of_fewer_actions_is_examined_though_the_table_is_the_same():
    env = Lone(0, {"action_mask": np.ones(3, np.int8)}, text_view=Words())
    game = Game(env)
    game.reset(0)
    env.info["action_mask"] = np.array([1, 0, 1], np.int8)
    with pytest.raises(EnvError, match="offers 'a' 3 actions and only 2 are legal"):
        game.reset(0)


def test_feedback_and_success_come_from_infos():
    game = Game(Lone(info={"feedback": "too far", "is_success": np.bool_(True)}))
    game.reset(0)
    assert game.turns()[0].feedback == "too far"
    game.step({"a": "0"})
    outcome = game.outcomes()["a"]
    assert (outcome.feedback, outcome.success, outcome.total, outcome.reward) == ("too far", 1.0, 1.0, 1.0)


class Broken(Lone):
    def step(self, actions):
        raise ZeroDivisionError("division\nby zero")


@pytest.mark.parametrize(
    ("env", "view", "message"),
    [
        (Lone(np.array([np.nan])), None, "the observation of 'a' holds NaN .in reset, round 0, seed 5, step 0."),
        (
            Lone(0, {"action_mask": np.zeros(3)}),
            None,
            "'a' must act and has no legal action .in reset, round 0, seed 5",
        ),
        (Lone(0, {"action_mask": np.ones(4)}), None, "mask of 4 entries does not fit 3 actions"),
        (Lone(), Blurred(), "3 legal actions but only 2 texts .*so two share one, or one is missing"),
        (Lone(object()), None, "type object has no default text"),
        (
            Lone(reward=float("nan")),
            None,
            "the reward of 'a' is nan .in step, round 1, seed 5, step 1, actions .'a': '.'..",
        ),
        (Broken(), None, "step raised ZeroDivisionError: division by zero .*seed 5, step 1, actions"),
        (Lone(success=lambda agent: 3), None, "success 3.0 of 'a' is not in .0, 1."),
        (Lone(success=lambda agent: 1 / 0), None, "success raised ZeroDivisionError"),
        (Lone(space=spaces.Box(0, 1, (1,))), None, "are continuous: set env.bins"),
        (Lone(text_view=object()), None, "text_view raised AttributeError"),
    ],
)
def test_what_an_environment_does_wrong_is_one_sentence(env, view, message):
    game = Game(env, view=view, name="lone")
    with pytest.raises(EnvError, match=message) as caught:
        play(game, 5)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("lone: ")
    assert game.turns() == ()


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


def test_names_of_agents_are_texts_whatever_their_ids():
    env = Relay(complete({}, 3), names=(0, 1))
    env.ends = {3: {0: "terminated", 1: "terminated"}}
    game = Game(env)
    assert [turn.agent for turn in play(game)] == ["0", "1", "0", "1"]
    assert set(game.outcomes()) == {"0", "1"}


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


@pytest.mark.parametrize(
    ("observe", "actions", "said"),
    [
        (lambda agent, seen: 5, lambda agent, mask: {"go": 0}, "observe returned a int"),
        (lambda agent, seen: "x", lambda agent, mask: [("go", 0)], "actions returned a list"),
        (lambda agent, seen: "x", lambda agent, mask: {0: 0}, "actions returned a dict"),
    ],
)
def test_a_view_that_returns_no_text_is_named(observe: Any, actions: Any, said: str) -> None:
    view = type("Odd", (), {"observe": staticmethod(observe), "actions": staticmethod(actions)})()
    game = make(EnvConfig(name="meet"))
    with pytest.raises(EnvError, match=said):
        Game(game.env, name="meet", view=view).reset(0)


def _exit(*_: Any, **__: Any) -> Any:
    raise SystemExit(0)


@pytest.mark.parametrize(
    "attributes",
    [
        {"reset": _exit},
        {"step": _exit},
        {"success": _exit},
        {"instructions": _exit},
        {"text_view": type("View", (), {"observe": _exit, "actions": _exit})()},
        {"render": _exit, "render_mode": "ansi"},
    ],
)
def test_an_environment_that_exits_ends_its_episode_and_not_the_process(attributes: dict[str, Any]) -> None:
    game = Game(Lone(**attributes), name="lone")

    def whole() -> None:
        play(game, 5)
        game.render()

    with pytest.raises(EnvError, match=r"^lone: .* raised SystemExit"):
        whole()


BAD = "a\ud800"


@pytest.mark.parametrize(
    "attributes",
    [
        {"text_view": type("Bad", (), {"observe": lambda *_: BAD, "actions": lambda *_: {"go": 0, "b": 1, "c": 2}})()},
        {"text_view": type("Bad", (), {"observe": lambda *_: "x", "actions": lambda *_: {BAD: 0, "b": 1, "c": 2}})()},
        {"info": {"feedback": BAD}},
        {"instructions": lambda agent: BAD},
    ],
)
def test_half_a_surrogate_pair_is_named(attributes: dict[str, Any]) -> None:
    with pytest.raises(EnvError, match=r"a text for 'a' holds a lone surrogate \('.*\\ud800'\)") as caught:
        play(Game(Lone(**attributes)), 5)
    str(caught.value).encode()


def test_half_a_surrogate_pair_in_the_last_feedback_or_in_an_exception_is_named() -> None:
    class Late(Lone):
        def step(self, actions):
            self.info = {"feedback": BAD}
            return super().step(actions)

    class Raises(Lone):
        def step(self, actions):
            raise ValueError(BAD)

    for kind in (Late, Raises):
        with pytest.raises(EnvError, match="ud800") as caught:
            play(Game(kind()), 5)
        str(caught.value).encode()


def test_closing_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    closed: list[bool] = []
    Game(Lone(close=lambda: closed.append(True))).close()
    Game(Lone(close=_exit)).close()
    Game(Lone(close=lambda: 1 / 0)).close()
    assert closed == [True]
    assert capsys.readouterr() == ("", "")
