"""The built-in games: their rules, their texts, and that chance is weak and the obvious way of playing strong."""

import copy
import itertools
import math
import random
import re
import subprocess
import sys
from collections import deque

import numpy as np
import pytest
from pettingzoo import ParallelEnv
from pettingzoo.test import api_test, parallel_api_test
from pettingzoo.test.seed_test import parallel_seed_test, seed_test

from decentral.envs.game import Game
from decentral.envs.games import guide, meet, vault
from decentral.errors import ConfigError

GAMES = {"meet": meet, "vault": vault, "guide": guide}
EVERY = [(name, level) for name, game in GAMES.items() for level in range(game.LEVELS)]


def play(env, players, seed):
    """One episode over the raw API; a player is called with (observation text, feedback, legal texts).

    Returns the transcript, one (agent, observation text, feedback, action text) per turn, and the last infos.
    """
    turns, infos = [], {}

    def answer(agent, observation, info):
        text = env.text_view.observe(agent, observation)
        legal = env.text_view.actions(agent, info.get("action_mask"))
        chosen = players[agent](text, info["feedback"], tuple(legal))
        turns.append((agent, text, info["feedback"], chosen))
        return legal[chosen]

    if isinstance(env, ParallelEnv):
        observations, infos = env.reset(seed=seed)
        while env.agents:
            actions = {agent: answer(agent, observations[agent], infos[agent]) for agent in env.agents}
            observations, _, _, _, infos = env.step(actions)
        return turns, infos
    env.reset(seed=seed)
    for agent in env.agent_iter():
        observation, _, terminated, truncated, info = env.last()
        dead = terminated or truncated
        infos[agent] = info
        env.step(None if dead else answer(agent, observation, info))
    return turns, infos


def chance(env, seed):
    """Players who draw uniformly among the legal texts."""

    def player(agent):
        draw = random.Random(f"{seed} {agent}")
        return lambda text, feedback, legal: draw.choice(legal)

    return {agent: player(agent) for agent in env.possible_agents}


def rate(make, players, episodes):
    """The share of episodes in which everyone succeeds."""
    env, won = make(), 0.0
    for seed in range(episodes):
        play(env, players(env, seed), seed)
        won += min(env.success(agent) for agent in env.possible_agents)
    return won / episodes


def to_the_centre(env):
    """Meet: walk the shortest way to the centre and stay there."""
    free = set(env.cells)
    centre = (len(env.rules.grid[0]) // 2, len(env.rules.grid) // 2)
    far, queue = {centre: 0}, deque([centre])
    while queue:
        x, y = queue.popleft()
        for dx, dy in meet.MOVES.values():
            if (near := (x + dx, y + dy)) in free and near not in far:
                far[near] = far[x, y] + 1
                queue.append(near)
    assert set(far) == free, "a cell from which nobody can reach the centre"

    def player(text, feedback, legal):
        x, y = (int(word) - 1 for word in text.split()[1:3])
        return min(legal, key=lambda word: far[x + meet.MOVES[word][0], y + meet.MOVES[word][1]])

    return player


class Locksmith:
    """Vault: try what your clue and the answers leave open, and keep a digit that was right."""

    def __init__(self, seat, digits):
        self.seat, self.digits, self.open, self.tries, self.own = seat, digits, {}, set(), None

    def learn(self, code, said):
        self.tries.add(code)
        if said == "error repeated":
            return
        wrong = said.split()[1:-1]
        for place, (ordinal, digit) in enumerate(zip(vault.ORDINALS, code)):
            if ordinal in wrong or wrong[0] in ("both", "all"):
                self.open[place].discard(digit)
            else:
                self.open[place] &= {digit}

    def __call__(self, text, feedback, legal):
        clue, last = re.fullmatch(r"\w+ is ([\d or]+?)(?: last try (.*))? left \d", text).groups()
        if not self.open:
            self.open = {place: set(range(1, self.digits + 1)) for place in range(len(legal[0].split()))}
            self.open[self.seat] = {int(digit) for digit in clue.split(" or ")}
        if self.own:
            self.learn(self.own, feedback)
        if last:
            code, said = last.split(" error ")
            self.learn(tuple(map(int, code.split())), f"error {said}")
        codes = itertools.product(*(sorted(self.open[place]) for place in sorted(self.open)))
        self.own = next(code for code in codes if code not in self.tries)
        return " ".join(map(str, self.own))


def show_the_goal(env):
    """Guide: show the goal's colour; with too few flags, its number in two digits, one per round."""
    rules = env.rules

    def player(text, feedback, legal):
        _, goal, _, _, _, left = text.split()
        if goal in legal and rules.flags == rules.doors:
            return goal
        return legal[divmod(guide.COLOURS.index(goal), len(legal))[(rules.rounds - int(left)) % 2]]

    return player


class Walker:
    """Guide: walk to the doors, wait for a flag, open or follow to its door; with too few flags, read two in a row."""

    def __init__(self, rules):
        self.rules, self.seen = rules, []

    def __call__(self, text, feedback, legal):
        flag = text.split()[3]
        self.seen.append(flag)
        if "walk" in legal:
            return "walk"
        if self.rules.flags == self.rules.doors:
            return next(action for action in (flag, "follow", "wait") if action in legal)
        signs = ("none", *guide.COLOURS[: self.rules.flags])
        if len(self.seen) < 3 or len(self.seen) % 2 == 0:
            return "wait"
        high, low = (signs.index(sign) for sign in self.seen[-2:])
        return guide.COLOURS[high * len(signs) + low]


def obvious(env, seed):
    if isinstance(env, meet.Meet):
        return {agent: to_the_centre(env) for agent in env.possible_agents}
    if isinstance(env, vault.Vault):
        return {agent: Locksmith(seat, env.rules.digits) for seat, agent in enumerate(env.possible_agents)}
    return {"ada": show_the_goal(env), "bob": Walker(env.rules)}


CHANCE = {
    "meet": (0.20, 0.16, 0.125, 0.14, 0.11),
    "vault": tuple(1 - (1 - rules.digits**-rules.agents) ** rules.tries for rules in vault.RULES),
    "guide": (0.18, 0.23, 0.13, 0.125, 0.13),
}
"""Random-legal success; exact for the vault, measured over 4,000 seeds for the others."""

EPISODES = 1200


@pytest.mark.parametrize(("name", "level"), EVERY)
def test_random_legal_play_succeeds_as_rarely_as_known(name, level):
    expected = CHANCE[name][level]
    deviation = math.sqrt(expected * (1 - expected) / EPISODES)
    measured = rate(lambda: GAMES[name].env(level), chance, EPISODES)
    assert abs(measured - expected) < 4 * deviation + 0.01
    if level == 0:
        assert measured < 0.30


@pytest.mark.parametrize(("name", "level"), EVERY)
def test_the_obvious_way_of_playing_reads_the_texts_and_wins(name, level):
    assert rate(lambda: GAMES[name].env(level), obvious, 300) >= 0.99


@pytest.mark.parametrize("agents", [3, 4])
def test_more_agents_can_meet(agents):
    assert rate(lambda: meet.env(0, agents=agents), obvious, 50) == 1
    assert rate(lambda: meet.env(0, agents=agents), chance, 300) < 0.1


@pytest.mark.filterwarnings(
    "error",
    "ignore:Observation space for each agent probably should be",  # ours are MultiDiscrete
    "ignore:We recommend agents to be named",  # ours have short names: each is one token
)
@pytest.mark.parametrize(("name", "level"), EVERY)
def test_conforms_to_pettingzoo(name, level):
    env = GAMES[name].env(level)
    if isinstance(env, ParallelEnv):
        parallel_api_test(env, num_cycles=100)
        parallel_seed_test(lambda: GAMES[name].env(level), num_cycles=50)
    else:
        api_test(env, num_cycles=100)
        seed_test(lambda: GAMES[name].env(level), num_cycles=50)


@pytest.mark.parametrize(("name", "level"), EVERY)
def test_equal_seeds_play_equally_also_in_a_used_env(name, level):
    env = GAMES[name].env(level)
    first = [play(env, chance(env, seed), seed) for seed in range(20)]
    again = [play(env, chance(env, seed), seed) for seed in reversed(range(20))][::-1]
    assert [turns for turns, _ in first] == [turns for turns, _ in again]
    assert len({str(turns) for turns, _ in first}) > 10


@pytest.mark.parametrize("name", GAMES)
def test_a_copy_goes_on_alone_and_equally(name):
    env = GAMES[name].env(GAMES[name].LEVELS - 1)
    play(env, chance(env, 0), 3)
    shown, fork = env.render(), copy.deepcopy(env)
    turns, _ = play(fork, chance(fork, 1), None)
    assert env.render() == shown != fork.render()
    assert (play(env, chance(env, 1), None)[0], env.render()) == (turns, fork.render())


def test_resets_leave_the_global_generators_alone():
    random.seed(1), np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()
    for name, level in EVERY:
        env = GAMES[name].env(level)
        play(env, chance(env, 0), 0)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


def test_texts_are_short_and_of_one_small_vocabulary():
    words = set()
    for name, level in EVERY:
        game, env = GAMES[name], GAMES[name].env(level)
        for seed in range(100):
            turns, infos = play(env, chance(env, seed), seed)
            for agent, text, feedback, action in turns:
                line = game.scratch(text)
                assert len(text.split()) <= 16
                assert len(feedback.split()) <= 4
                assert len(line.split()) <= 6 * (len(env.possible_agents) - 1)
                words.update(f"{text} {feedback} {action} {line} {env.instructions(agent)}".split())
            words.update(word for info in infos.values() for word in info["feedback"].split())
    assert all(re.fullmatch(r"[a-z]+|\d", word) for word in words), sorted(words)
    assert 40 < len(words) < 90


@pytest.mark.parametrize(("name", "level"), EVERY)
def test_legal_texts_are_distinct_lists_of_what_the_mask_allows(name, level):
    env = GAMES[name].env(level)
    parallel = isinstance(env, ParallelEnv)
    for seed in range(20):
        infos = env.reset(seed=seed)[1] if parallel else (env.reset(seed=seed), env.infos)[1]
        for agent in env.agents:
            mask, size = infos[agent].get("action_mask"), env.action_space(agent).n
            legal = env.text_view.actions(agent, mask)
            assert list(legal.values()) == [a for a in range(size) if mask is None or mask[a]]
            assert name == "vault" or len({text.split()[0] for text in legal}) == len(legal)


@pytest.mark.parametrize("name", GAMES)
def test_an_unknown_level_is_refused_with_the_known_ones(name):
    for level in (-1, GAMES[name].LEVELS):
        with pytest.raises(ConfigError, match=rf"level {level} does not exist: {name} has the levels 0 to 4"):
            GAMES[name].env(level)


@pytest.mark.parametrize("agents", [1, 5])
def test_meet_refuses_an_unknown_number_of_agents(agents):
    with pytest.raises(ConfigError, match=f"agents = {agents}"):
        meet.env(agents=agents)


def test_meet_tells_where_the_near_ones_are_and_nothing_of_the_far():
    for level, seed in itertools.product(range(meet.LEVELS), range(60)):
        env = meet.env(level, agents=3)
        observations, _ = env.reset(seed=seed)
        for agent, observation in observations.items():
            (x, y), text = env.where[agent], env.text_view.observe(agent, observation)
            assert text.startswith(f"you {x + 1} {y + 1} ")
            line = meet.scratch(text)
            for other in env.agents:
                a, b = env.where[other]
                near = max(abs(a - x), abs(b - y)) <= env.rules.view
                assert other == agent or (f"{other} at {a + 1} {b + 1}" in line) == near
                assert other == agent or (f"{other} unseen" in text) == (f"{other} unseen" in line) == (not near)


def meet_at(**where):
    env = meet.env()
    env.reset(seed=0)
    env.where.update(where)
    return env, {word: action for action, word in enumerate(meet.MOVES)}


def test_meet_ends_when_all_stand_in_one_cell_not_when_they_swap():
    env, move = meet_at(ada=(1, 1), bob=(2, 1))
    _, rewards, terminated, truncated, _ = env.step({"ada": move["east"], "bob": move["west"]})
    assert (rewards, any(terminated.values()), env.agents) == ({"ada": 0, "bob": 0}, False, ["ada", "bob"])
    observations, rewards, terminated, truncated, infos = env.step({"ada": move["stay"], "bob": move["east"]})
    assert rewards == {"ada": 1, "bob": 1}
    assert (all(terminated.values()), any(truncated.values()), env.agents) == (True, False, [])
    assert infos["ada"]["feedback"] == "met"
    assert env.text_view.observe("ada", observations["ada"]) == "you 3 2 bob here"
    assert env.success("ada") == 1


def test_meet_truncates_at_the_limit_and_blocks_walls():
    env, move = meet_at(ada=(0, 0), bob=(4, 4))
    for left in range(env.rules.rounds, 0, -1):
        _, rewards, terminated, truncated, infos = env.step({"ada": move["north"], "bob": move["stay"]})
        assert env.where["ada"] == (0, 0)
        assert list(env.text_view.actions("ada", infos["ada"]["action_mask"])) == ["south", "east", "stay"]
        assert (truncated["ada"], any(terminated.values()), rewards["bob"]) == (left == 1, False, 0)
        assert infos["ada"]["feedback"] == ("late" if left == 1 else "blocked")
    assert env.agents == []
    assert env.success("bob") == 0


def vault_with(level, secret, *tries):
    env = vault.env(level)
    env.reset(seed=0)
    env.secret = secret
    for code in tries:
        env.step(env.text_view.actions(env.agent_selection, None)[code])
    agent = env.agent_selection
    return env, env.text_view.observe(agent, env.observe(agent)).split(" last try ")[-1]


@pytest.mark.parametrize(
    ("level", "secret", "tries", "text", "line"),
    [
        (0, (2, 4), ["2 1"], "2 1 error second wrong left 3", "first 2 right second 1 wrong"),
        (0, (2, 4), ["1 4"], "1 4 error first wrong left 3", "first 1 wrong second 4 right"),
        (0, (2, 4), ["1 1"], "1 1 error both wrong left 3", "first 1 wrong second 1 wrong"),
        (0, (2, 4), ["2 1", "2 1"], "2 1 error repeated left 2", "nothing new"),
        (
            4,
            (1, 2, 3),
            ["1 1 1"],
            "1 1 1 error second third wrong left 8",
            "first 1 right second 1 wrong third 1 wrong",
        ),
        (4, (1, 2, 3), ["2 1 1"], "2 1 1 error all wrong left 8", "first 2 wrong second 1 wrong third 1 wrong"),
    ],
)
def test_vault_answers_the_next_agent(level, secret, tries, text, line):
    env, read = vault_with(level, secret, *tries)
    assert read == text
    assert vault.scratch(f"first is 2 last try {text}") == line
    assert env.infos[env.tried[-1][0]]["feedback"] == re.search("error .*(?= left)", text)[0]


def test_vault_opens_for_all_or_ends_for_all():
    env, _ = vault_with(0, (2, 4), "2 1", "2 4")
    assert env.terminations == {"ada": True, "bob": True}
    assert env.rewards == {"ada": 1, "bob": 1}
    assert [env.infos[agent]["feedback"] for agent in env.agents] == ["open", "open"]
    env, _ = vault_with(0, (2, 4), "1 1", "1 2", "1 3", "3 4")
    assert (env.terminations["ada"], env.truncations, env.success("ada")) == (False, {"ada": True, "bob": True}, 0)
    assert [env.infos[agent]["feedback"] for agent in env.agents] == ["late", "error first wrong"]


def test_vault_clues_hold_the_right_digit_and_are_private():
    for level, seed in itertools.product(range(vault.LEVELS), range(60)):
        env = vault.env(level)
        env.reset(seed=seed)
        for seat, agent in enumerate(env.agents):
            text = env.text_view.observe(agent, env.observe(agent))
            words = text.split(" left ")[0].split()
            assert words[0] == vault.ORDINALS[seat]
            assert str(env.secret[seat]) in words[2::2]
            assert len(words[2::2]) == env.rules.clue
            assert vault.scratch(text) == "nothing tried"


def guide_step(env, flag, move):
    words = env.text_view.words
    observations, rewards, terminated, truncated, infos = env.step(
        {"ada": words["ada"].index(flag), "bob": words["bob"].index(move)}
    )
    texts = {agent: env.text_view.observe(agent, observations[agent]) for agent in observations}
    return texts, rewards, terminated, truncated, infos


@pytest.mark.parametrize(("door", "won"), [("blue", 1), ("red", 0), ("follow", 1)])
def test_guide_shows_the_flag_of_the_round_before_and_ends_at_a_door(door, won):
    env = guide.env(1)
    _, infos = env.reset(seed=0)
    env.goal = guide.COLOURS.index("blue")
    assert list(env.text_view.actions("bob", infos["bob"]["action_mask"])) == ["wait", "walk"]
    texts, *_, infos = guide_step(env, "blue", "walk")
    assert texts == {"ada": "goal blue steps 0 left 4", "bob": "steps 0 flag blue left 4"}
    assert guide.scratch(texts["bob"]) == "bob at doors flag up"
    assert guide.scratch(texts["ada"]) == "bob at doors"
    at_flag = ["wait", "follow", "red", "blue", "green", "gold"]
    assert list(env.text_view.actions("bob", infos["bob"]["action_mask"])) == at_flag
    _, rewards, terminated, truncated, infos = guide_step(env, "none", door)
    assert rewards == {"ada": won, "bob": won}
    assert (terminated, any(truncated.values())) == ({"ada": True, "bob": True}, False)
    assert infos["ada"]["feedback"] == infos["bob"]["feedback"] == ("goal" if won else "wrong door")
    assert env.success("ada") == env.success("bob") == won


def test_guide_lets_the_walker_only_follow_at_first_and_never_on_hard_levels():
    for level, at_flag, at_none in ((0, "follow", []), (1, "follow red", ["red"]), (2, "red", ["red"])):
        env = guide.env(level)
        env.reset(seed=0)
        for flag, expected in (("none", at_none), ("red", at_flag.split())):
            env.steps = 1
            *_, infos = guide_step(env, flag, "walk")
            legal = list(env.text_view.actions("bob", infos["bob"]["action_mask"]))
            assert [action for action in legal if action in ("follow", "red")] == expected


def test_guide_blocks_doors_out_of_reach_and_truncates_at_the_limit():
    env = guide.env()
    env.reset(seed=0)
    for left in range(env.rules.rounds - 1, -1, -1):
        texts, _, terminated, truncated, infos = guide_step(env, "red", "red")
        assert texts["bob"] == f"steps 1 flag red left {left}"
        assert (truncated["bob"], terminated["bob"]) == (left == 0, False)
        assert infos["bob"]["feedback"] == ("blocked" if left else "late")


def test_guide_hides_far_flags_and_those_in_the_fog():
    env = guide.env(2)
    env.reset(seed=0)
    assert guide_step(env, "red", "walk")[0]["bob"] == "steps 1 flag hidden left 5"
    assert guide_step(env, "red", "walk")[0]["bob"] == "steps 0 flag red left 4"
    env, hidden = guide.env(3), 0
    for seed in range(600):
        env.reset(seed=seed)
        hidden += "hidden" in guide_step(env, "red", "walk")[0]["bob"]
    assert 150 < hidden < 250


def test_renders_show_what_happened():
    env, _ = meet_at(ada=(0, 0), bob=(1, 1))
    assert env.render().splitlines()[:3] == ["round 0 of 8", "A . . . .", ". B . . ."]
    assert "#" in meet.env(3).render()
    env, _ = vault_with(0, (2, 4), "2 1")
    assert env.render().startswith("code 2 4; ada knows ")
    assert env.render().endswith("ada tries 2 1: error second wrong")
    env = guide.env()
    env.reset(seed=0)
    env.goal = 1
    guide_step(env, "blue", "walk")
    assert env.render().splitlines() == [
        "round 1 of 5",
        ". B | red (blue) green gold",
        "ada's flag: blue, bob sees: blue",
    ]


def test_importing_the_games_loads_no_model_library():
    code = "import sys; from decentral.envs.games import guide, meet, vault; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "transformers", "pandas", "matplotlib"} & set(loaded)


@pytest.mark.parametrize(("name", "level"), EVERY)
def test_a_game_shows_the_same_texts_and_judges_success(name, level):
    game = Game(GAMES[name].env(level))
    for seed in range(10):
        reference = GAMES[name].env(level)
        expected, infos = play(reference, obvious(reference, seed), seed)
        players, played = obvious(game.env, seed), []
        game.reset(seed)
        while turns := game.turns():
            actions = {turn.agent: players[turn.agent](turn.observation, turn.feedback, turn.legal) for turn in turns}
            played += [(turn.agent, turn.observation, turn.feedback, actions[turn.agent]) for turn in turns]
            game.step(actions)
        assert played == expected
        for agent, outcome in game.outcomes().items():
            assert (outcome.success, outcome.total) == (1, 1)
            assert outcome.feedback == infos[agent]["feedback"]
        assert game.render() == reference.render()
