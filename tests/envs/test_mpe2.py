"""Particle worlds as text: every number of an observation is read in its place, and the text is enough to play well."""

import itertools
import random
import re
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mpe2")

from decentral.envs.adapters import mpe2 as adapter
from decentral.envs.adapters.mpe2_texts import GAMES
from decentral.envs.check import check_env
from decentral.envs.config import EnvConfig
from decentral.envs.fork import snapshot
from decentral.envs.game import Game
from decentral.envs.trace import play, play_on
from decentral.errors import ConfigError

NAME = "decentral.envs.adapters.mpe2:env"
PARTIAL = {"num_agent_neighbors": 3, "num_landmark_neighbors": 1}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((id, {}) for id in GAMES),
    ("simple_spread_v3", {"N": 4, **PARTIAL}),
    ("simple_adversary_v3", {"N": 3, **PARTIAL}),
    ("simple_tag_v3", {"num_good": 2, **PARTIAL}),
    ("simple_tag_v3", {"terminate_on_success": True}),
    ("simple_world_comm_v3", {"num_good": 3, "num_food": 3, "num_forests": 1}),
    ("collect_treasure_v1", {"num_collectors": 3, "num_deposits": 3, "num_treasures": 2}),
]
SIGNS = {"right": (1, 0), "left": (-1, 0), "up": (0, 1), "down": (0, -1)}


def places(text: str) -> dict[str, np.ndarray]:
    """Name -> place in tenths, of a text."""
    found = {}
    for part in text.split("; "):
        name, *_ = re.split(r" \d+ (?=right|left|up|down)| here", part)
        steps = [int(n) * np.array(SIGNS[way]) for n, way in re.findall(r"(\d+) (right|left|up|down)", part)]
        found[name] = sum(steps, np.zeros(2))
    return found


def toward(way: np.ndarray, speed: np.ndarray) -> str:
    """The push that brings an agent somewhere: what it will roll on is taken off."""
    x, y = way - 0.3 * speed
    if max(abs(x), abs(y)) < 0.7:
        return "stay"
    return ("right" if x > 0 else "left") if abs(x) >= abs(y) else ("up" if y > 0 else "down")


def rate(id: str, choose: Any, episodes: int = 30, **options: Any) -> float:
    """Success of the last agent when all play by text."""
    game, won = Game(adapter.env(id, **options)), 0.0
    for seed in range(episodes):
        game.reset(seed)
        while not game.over:
            game.step({turn.agent: choose(turn, places(turn.observation)) for turn in game.turns()})
        won += game.outcomes()[game.agents[-1]].success
    return won / episodes


@pytest.mark.parametrize("id", ["simple_spread_v3", "simple_reference_v3"])
def test_it_checks(id: str) -> None:
    report = check_env(EnvConfig(name=NAME, options={"id": id}))
    assert report.ok, [row for row in report.rows if not row.ok]
    assert "by replay" in report.rows[-1].detail


@pytest.mark.parametrize(("id", "options"), VARIANTS)
def test_every_scenario_plays_and_its_layout_is_the_whole_observation(id: str, options: dict[str, Any]) -> None:
    game = Game(adapter.env(id, **options))
    trace = play(game, 1)
    assert len(trace.turns) >= len(game.agents)
    for agent, layout in game.view.layouts.items():
        assert sum(size for _, size, _ in layout) == game.env.observation_space(agent).shape[0]


@pytest.mark.parametrize("id", ["simple_spread_v3", "simple_tag_v3", "simple_line_v1", "simple_push_v3"])
def test_places_are_those_of_the_world(id: str) -> None:
    game = Game(adapter.env(id))
    world, draw = game.env.unwrapped.world, random.Random(0)
    game.reset(3)
    while not game.over:
        for turn in game.turns():
            (me,) = [one for one in world.agents if one.name == turn.agent]
            read = places(turn.observation)
            others = {one.name.replace("adversary", "adv"): one for one in world.agents if one is not me}
            things = {**dict(zip("abc", world.landmarks)), **others}
            if id == "simple_line_v1":  # where nobody sees the others
                things = dict(zip("ab", world.landmarks))
            assert {name for name in read if "speed" not in name} - {"you", "goal"} == set(things)
            for name, thing in things.items():
                assert np.allclose(read[name] / 10, thing.state.p_pos - me.state.p_pos, atol=0.051)
            if "you" in read:
                assert np.allclose(read["you"] / 10, me.state.p_pos, atol=0.051)
        game.step({turn.agent: draw.choice(turn.legal) for turn in game.turns()})


def test_the_nearest_mark_and_the_longer_way_come_first_and_oneself_last() -> None:
    game, draw = Game(adapter.env("simple_spread_v3")), random.Random(0)
    game.reset(5)
    while not game.over:
        for turn in game.turns():
            parts = turn.observation.split("; ")
            assert sorted(part[0] for part in parts[:3]) == ["a", "b", "c"]
            assert parts[-1].startswith("you ")
            marks = [np.linalg.norm(vector) for vector in list(places(turn.observation).values())[:3]]
            assert all(near < far + 1 for near, far in itertools.pairwise(marks))  # read from tenths
            for part in parts:
                sizes = [int(number) for number in re.findall(r"(\d+) [a-z]", part)]
                assert sizes == sorted(sizes, reverse=True)
        game.step({turn.agent: draw.choice(turn.legal) for turn in game.turns()})


def test_words_move_as_they_say() -> None:
    for word, sign in SIGNS.items():
        game = Game(adapter.env("simple_v3"))
        game.reset(0)
        game.step({"agent_0": word})
        assert np.sign(game.env.unwrapped.world.agents[0].state.p_vel).tolist() == list(sign)


def test_what_one_says_the_other_hears_a_turn_later_and_nobody_else_is_told() -> None:
    game = Game(adapter.env("simple_reference_v3"))
    game.reset(0)
    assert all("hears" not in turn.observation for turn in game.turns())
    game.step({"agent_0": "stay say 7", "agent_1": "left say 2"})
    assert [re.findall("hears .", turn.observation) for turn in game.turns()] == [["hears 2"], ["hears 7"]]
    crypto = Game(adapter.env("simple_crypto_v3"))
    crypto.reset(0)
    crypto.step({"eve_0": "say 0", "bob_0": "say 1", "alice_0": "say 3"})
    eve, bob, alice = (turn.observation for turn in crypto.turns())
    assert eve == "hears 3"
    assert re.fullmatch(r"key [01]; hears 3", bob)
    assert re.fullmatch(r"secret [01]; key [01]", alice)


def test_those_who_are_hidden_or_too_far_are_not_told() -> None:
    game = Game(adapter.env("simple_spread_v3", N=4, num_agent_neighbors=1, num_landmark_neighbors=1))
    game.reset(0)
    for turn in game.turns():
        assert re.fullmatch(r"mark [^;,]*; agent [^;,]*; you [^;]*", turn.observation)
    game, hidden = Game(adapter.env("simple_world_comm_v3", max_cycles=40)), 0
    for seed in range(6):
        draw = random.Random(seed)
        game.reset(seed)
        while not game.over:
            for turn in game.turns():
                seen = game.observations()[turn.agent]
                at = 4 + 2 * len(game.env.unwrapped.world.landmarks)
                shown = int(np.any(seen[at : at + 10].reshape(5, 2), axis=1).sum())
                named = [name for name in places(turn.observation) if "_" in name and "speed" not in name]
                assert len(named) == shown
                hidden += shown < 5
            game.step({turn.agent: draw.choice(turn.legal) for turn in game.turns()})
    assert hidden


def test_a_team_that_reads_only_the_text_succeeds() -> None:
    speed = np.zeros(2)
    assert rate("simple_v3", lambda turn, read: toward(read["a"], read.get("speed", speed))) > 0.8
    own = {"agent_0": "a", "agent_1": "b", "agent_2": "c"}
    assert rate("simple_spread_v3", lambda turn, read: toward(read[own[turn.agent]], read.get("speed", speed))) > 0.5
    goals = {0: "red", 1: "green", 2: "blue"}

    def talk(turn: Any, read: dict[str, np.ndarray]) -> str:
        if turn.agent == "speaker_0":
            return f"say {next(i for i, colour in goals.items() if colour in turn.observation)}"
        heard = re.search(r"hears (\d)", turn.observation)
        return toward(read[goals[int(heard[1])]], read.get("speed", speed)) if heard else "stay"

    assert rate("simple_speaker_listener_v4", talk) > 0.7

    def spell(turn: Any, read: dict[str, np.ndarray]) -> str:
        """Alice adds the key to the secret, bob takes it off, and eve can but guess."""
        said = {name: int(n) for name, n in re.findall(r"(\w+) (\d)", turn.observation)}
        if turn.agent == "alice_0":
            return f"say {said['secret'] ^ said['key']}"
        return f"say {said.get('hears', 0) ^ said.get('key', 0)}"

    assert 0.3 < rate("simple_crypto_v3", spell, 60) < 0.7  # eve guesses right half of the time


def test_success_is_what_the_scenario_itself_measures() -> None:
    env = adapter.env("simple_spread_v3", terminate_on_success=True)
    env.reset(seed=0)
    world = env.unwrapped.world
    for agent, mark in zip(world.agents, world.landmarks):
        agent.state.p_pos = mark.state.p_pos + 0.05
    assert env.unwrapped.success("agent_0") == 1.0
    assert env.unwrapped.scenario.is_terminal(world)
    world.agents[0].state.p_pos = world.landmarks[0].state.p_pos + 0.09
    assert env.unwrapped.success("agent_0") == pytest.approx(2 / 3)
    tag = adapter.env("simple_tag_v3", terminate_on_success=True)
    tag.reset(seed=0)
    world = tag.unwrapped.world
    world.agents[0].state.p_pos = world.agents[3].state.p_pos + 0.05
    assert [tag.unwrapped.success(agent) for agent in ("adversary_0", "agent_0")] == [1.0, 0.0]


def test_success_has_the_sign_of_the_last_reward_where_two_sides_race_for_the_goal() -> None:
    for id, side in (("simple_push_v3", "adversary_0"), ("simple_adversary_v3", "agent_0")):
        game, seen = Game(adapter.env(id)), set()
        for seed in range(12):
            outcomes = play(game, seed).outcomes
            assert outcomes[side].success == float(outcomes[side].reward > 0)
            assert outcomes["adversary_0"].success + outcomes["agent_0"].success == 1
            seen.add(outcomes[side].success)
        assert seen == {0.0, 1.0}


def test_success_is_the_share_of_those_who_are_where_they_should_be() -> None:
    env = adapter.env("simple_reference_v3")
    env.reset(seed=0)
    raw = env.unwrapped
    shares = [raw.success("agent_0")]
    for agent in raw.world.agents:
        agent.goal_a.state.p_pos = agent.goal_b.state.p_pos + 0.05
        shares.append(raw.success("agent_0"))
    assert shares == [0.0, 0.5, 1.0]
    raw.world.agents[0].state.p_pos += 0.05
    assert raw.success("agent_1") == 0.5
    for id in ("simple_line_v1", "simple_formation_v1"):
        raw = adapter.env(id).unwrapped
        raw.scenario._delta_dists = np.array([0.04, 0.06, 0.2, 0.0])  # how far each is off after a step
        assert raw.success("agent_0") == 0.5


def test_a_copy_goes_on_like_its_original_and_judges_itself() -> None:
    game = Game(adapter.env("simple_spread_v3"))
    game.reset(5)
    twin = snapshot(game)
    assert twin.env.unwrapped.success.args[0] is twin.env.unwrapped
    assert play_on(twin, random.Random(1)) == play_on(game, random.Random(1))


def test_unknown_ids_and_continuous_actions_are_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'simple_spread_v3'"):
        adapter.env("simple_spred_v3")
    with pytest.raises(ConfigError, match="with continuous_actions has no list of actions; leave it out"):
        adapter.env("simple_v3", continuous_actions=True)
