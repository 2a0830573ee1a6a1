"""Actions as texts: whole where they can be listed, else part by part."""

import re

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from pettingzoo import AECEnv, ParallelEnv

from decentral.envs.actions import MOST_ACTIONS, Factors, list_actions
from decentral.envs.check import check_env
from decentral.envs.config import EnvConfig
from decentral.envs.game import Game
from decentral.envs.names import make
from decentral.errors import EnvError


@given(st.integers(1, 6), st.integers(-3, 3), st.data())
def test_discrete_offers_exactly_the_masked_actions(n, start, data):
    mask = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)), dtype=np.int8)
    space = spaces.Discrete(n, start=start)
    found = [*list_actions(space, mask).items()]
    assert [int(raw) for _, raw in found] == [start + i for i in range(n) if mask[i]]
    assert [text for text, _ in found] == [str(int(raw)) for _, raw in found]
    assert all(space.contains(raw) for _, raw in found)


SPACES = [
    spaces.Discrete(3, start=2),
    spaces.MultiDiscrete([2, 3]),
    spaces.MultiDiscrete([[2, 2], [1, 3]]),
    spaces.MultiDiscrete([2, 2], start=[1, -1]),
    spaces.MultiBinary(3),
    spaces.MultiBinary([2, 2]),
    spaces.Box(-1, 1, (2,)),
    spaces.Box(np.array([0, 5]), np.array([1, 9]), dtype=np.int64),
    spaces.Tuple([spaces.Discrete(2), spaces.MultiBinary(2)]),
    spaces.Dict({"move": spaces.Discrete(3), "say": spaces.MultiDiscrete([2, 2])}),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_enumeration_is_complete_distinct_and_inside_the_space(space):
    found = [*list_actions(space, bins=3).items()]
    assert all(space.contains(raw) for _, raw in found)
    texts = [text for text, _ in found]
    assert len(set(texts)) == len(texts) == len({repr(raw) for _, raw in found})
    if not isinstance(space, spaces.Box):
        space.seed(0)
        assert {repr(space.sample()) for _ in range(400)} <= {repr(raw) for _, raw in found}


def test_masks_of_products():
    space = spaces.MultiDiscrete([2, 3])
    nested = (np.array([1, 0], np.int8), np.array([0, 1, 1], np.int8))
    assert [*list_actions(space, nested)] == ["0 1", "0 2"]
    assert [*list_actions(space, np.array([1, 0, 0, 1, 1]))] == ["0 1", "0 2"]
    assert [*list_actions(spaces.MultiBinary(2), np.array([2, 1]))] == ["0 1", "1 1"]
    pair = spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)])
    assert [*list_actions(pair, (np.array([0, 1]), None))] == ["1; 0", "1; 1"]


@pytest.mark.parametrize(
    ("space", "mask", "message"),
    [
        (spaces.Discrete(3), np.ones(4), "mask of 4 entries does not fit 3 actions"),
        (spaces.MultiDiscrete([2, 2]), np.ones(3), "mask of 3 entries"),
        (spaces.MultiBinary(2), np.ones(3), "mask of 3 entries"),
        (spaces.Box(0, 1, (2,)), None, "continuous: set env.bins"),
        (spaces.Discrete(MOST_ACTIONS + 1), None, "1025 legal actions"),
        (spaces.MultiDiscrete([2, MOST_ACTIONS + 1]), None, "1025 legal actions at once"),
        (spaces.Graph(spaces.Discrete(2), None), None, "cannot be listed; take discrete actions"),
    ],
)
def test_what_cannot_be_listed_is_refused(space, mask, message):
    with pytest.raises(EnvError, match=message):
        list_actions(space, mask)


def test_a_large_space_with_a_small_mask_is_fine():
    mask = np.zeros(4672, dtype=np.int8)
    mask[[5, 4000]] = 1
    assert [*list_actions(spaces.Discrete(4672), mask)] == ["5", "4000"]


def test_many_combinations_are_chosen_part_by_part():
    space = spaces.Dict({"aim": spaces.MultiDiscrete([40, 40]), "shoot": spaces.Discrete(2)})
    mask = {"aim": np.r_[np.zeros(39), 1, np.ones(40)], "shoot": None}
    found = list_actions(space, {"aim": None, "shoot": None})
    assert isinstance(found, Factors)
    assert [(name, len(part)) for name, part in found.parts] == [("aim 1", 40), ("aim 2", 40), ("shoot", 2)]
    whole = found.join([part["1"] for _, part in found.parts])
    assert space.contains(whole)
    assert (whole["aim"].tolist(), whole["shoot"]) == ([1, 1], 1)
    assert [*list_actions(space, mask)][:2] == ["aim 39 0; shoot 0", "aim 39 0; shoot 1"]


def test_bins_are_evenly_spaced_and_read_short():
    assert [*list_actions(spaces.Box(-1, 1, (1,)), bins=5)] == ["-1", "-0.5", "0", "0.5", "1"]
    assert [*list_actions(spaces.Box(1000, 1000.01, (1,), np.float64), bins=2)] == ["1000", "1000.01"]
    with pytest.raises(EnvError, match=re.escape("no lowest and highest value, so env.bins = 3 cannot divide them")):
        list_actions(spaces.Box(-np.inf, 1, (1,)), bins=3)


class Dials(ParallelEnv):
    """Two players turn dials, one of them many; both are paid what the first dial of each shows."""

    def __init__(self):
        self.metadata = {"name": "dials"}
        self.possible_agents = ["ada", "bob"]
        self.spaces = {"ada": spaces.MultiDiscrete([50, 50, 3]), "bob": spaces.Discrete(4)}

    def observation_space(self, agent):
        return DIAL

    def action_space(self, agent):
        return self.spaces[agent]

    def reset(self, seed=None, options=None):
        self.agents, self.left = list(self.possible_agents), 2
        return dict.fromkeys(self.agents, 0), {agent: {} for agent in self.agents}

    def step(self, actions):
        self.taken, self.left = actions, self.left - 1
        every = self.agents
        if not self.left:
            self.agents = []
        paid = float(actions["ada"][0]) + float(actions["bob"])
        return (
            dict.fromkeys(every, int(actions["bob"])),
            dict.fromkeys(every, paid),
            dict.fromkeys(every, not self.left),
            dict.fromkeys(every, False),
            {agent: {} for agent in every},
        )


DIAL = spaces.Discrete(4)


def test_the_environment_is_stepped_once_all_parts_are_chosen():
    game = Game(Dials())
    game.reset(0)
    ada, bob = game.turns()
    assert ada.observation == "0; choose part 1 of 3"
    assert ada.system
    assert len(ada.legal) == 50
    assert bob.observation == "0"
    game.step({"ada": "49", "bob": "3"})
    (ada,) = game.turns()
    assert (ada.observation, ada.round, ada.system, ada.reward) == ("choose part 2 of 3", 0, "", 0.0)
    with pytest.raises(EnvError, match="must act; answer each"):
        game.step({"ada": "1", "bob": "1"})
    with pytest.raises(EnvError, match="'50' of 'ada' is not among its legal actions"):
        game.step({"ada": "50"})
    game.step({"ada": "7"})
    (ada,) = game.turns()
    assert ada.legal == ("0", "1", "2")
    game.step({"ada": "2"})
    assert game.env.taken["ada"].tolist() == [49, 7, 2]
    assert game.env.taken["bob"] == 3
    ada, bob = game.turns()
    assert (ada.round, ada.reward, bob.reward) == (1, 52.0, 52.0)
    for answer in ({"ada": "0", "bob": "0"}, {"ada": "0"}, {"ada": "0"}):
        assert not game.over
        game.step(answer)
    assert {name: (one.total, one.turns) for name, one in game.outcomes().items()} == {
        "ada": (52.0, 2),
        "bob": (52.0, 2),
    }
    assert game.history[0] == {"ada": "49", "bob": "3"}


class Jammed:
    """A view whose parts do not fit together, or are none."""

    def __init__(self, parts):
        self.parts = parts

    def observe(self, agent, observation):
        return "a dial"

    def actions(self, agent, mask):
        return Factors(self.parts, lambda raws: raws[7])


def test_a_view_of_ones_own_that_cannot_join_its_parts_is_one_sentence():
    game = Game(Dials(), view=Jammed((("high", {"a": 1}), ("low", {"b": 2}))))
    game.reset(0)
    assert game.turns()[0].observation == "a dial; choose high, part 1 of 2"
    game.step({"ada": "a", "bob": "a"})
    with pytest.raises(EnvError, match=r"text_view\.actions raised IndexError"):
        game.step({"ada": "b", "bob": "b"})
    with pytest.raises(EnvError, match="returned Factors with no part"):
        Game(Dials(), view=Jammed(())).reset(0)


def test_parts_count_as_one_step_of_an_episode():
    game = Game(Dials(), max_rounds=1)
    game.reset(0)
    for answer in ({"ada": "1", "bob": "0"}, {"ada": "1"}, {"ada": "1"}):
        assert not game.over
        game.step(answer)
    assert game.over
    assert game.outcomes()["ada"].truncated


def test_an_environment_of_parts_passes_the_check():
    report = check_env(Dials)
    assert report.ok, [row for row in report.rows if not row.ok]


class Wheel(AECEnv):
    """One player turns a wheel by any number in [-1, 1]."""

    def __init__(self):
        self.metadata = {"name": "wheel", "is_parallelizable": True}
        self.possible_agents = ["ada"]
        self.render_mode = None
        self.turn = spaces.Box(-1, 1, (6,))
        self.seen = spaces.Discrete(2)

    def observation_space(self, agent):
        return self.seen

    def action_space(self, agent):
        return self.turn

    def observe(self, agent):
        return 0

    def reset(self, seed=None, options=None):
        self.agents = ["ada"]
        self.agent_selection = "ada"
        self.rewards = {"ada": 0.0}
        self._cumulative_rewards = {"ada": 0.0}
        self.terminations, self.truncations = {"ada": False}, {"ada": False}
        self.infos = {"ada": {}}

    def step(self, action):
        if self.terminations["ada"]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards["ada"] = 0.0
        self.rewards = {"ada": float(action.sum())}
        self.terminations = {"ada": True}
        self._accumulate_rewards()


def test_a_continuous_space_is_played_by_bins_and_refused_without():
    name = f"{__file__}:Wheel"
    assert not check_env(EnvConfig(name=name)).ok
    game = make(EnvConfig(name=name, bins=5))
    game.reset(0)
    for _ in range(6):
        (turn,) = game.turns()
        assert turn.legal == ("-1", "-0.5", "0", "0.5", "1")
        game.step({"ada": "0.5"})
    assert game.outcomes()["ada"].total == 3.0
