"""The warehouse as text: turning turns what is told, only what is in range is told, and following it delivers."""

import copy
import itertools
import random
import re
from typing import Any

import pytest

pytest.importorskip("rware")

from rware.warehouse import Direction, ObservationType

from decentral.envs.adapters import rware as adapter
from decentral.envs.check import check_env
from decentral.envs.config import EnvConfig
from decentral.envs.fork import snapshot
from decentral.envs.game import Game
from decentral.envs.trace import play_on
from decentral.errors import ConfigError

NAME = "decentral.envs.adapters.rware:env"
TINY = "rware-tiny-2ag-v2"
FACING = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}


def started(id: str = TINY, seed: int = 0, **options: Any) -> tuple[Game, Any]:
    game = Game(adapter.env(id, **options))
    game.reset(seed)
    return game, game.env.raw


def put(raw: Any, me: int, x: int, y: int, facing: str, shelf: Any = None) -> None:
    """Puts a robot there, carrying the shelf."""
    robot = raw.agents[me]
    robot.x, robot.y, robot.dir, robot.carrying_shelf = x, y, Direction[facing.upper()], shelf
    if shelf:
        shelf.x, shelf.y = x, y
    raw._recalc_grid()


def read(game: Game, me: int) -> list[str]:
    raw = game.env.raw
    return game.env.text_view.observe(game.agents[me], raw._make_obs(raw.agents[me])).split("; ")


def things(parts: list[str]) -> set[tuple[str, int, int]]:
    """What a text tells to be somewhere: (name, forward, right)."""
    found = set()
    for part in parts:
        if match := re.fullmatch(r"(goal|shelf|wanted shelf|robot|agent_.) ((?:\d+ \w+ ?)+)(?:facing \w+)?", part):
            way = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", match[2])}
            forward, right = way.get("forward", 0) - way.get("back", 0), way.get("right", 0) - way.get("left", 0)
            found.add((match[1], forward, right))
    return found


def act(game: Game, action: str) -> float:
    """One step of agent_0 while the other waits; returns what agent_0 earned."""
    game.step({"agent_0": action, "agent_1": "wait"})
    return game.turns()[0].reward


@pytest.mark.parametrize("id", [TINY, "rware-small-4ag-hard-v2"])
def test_it_checks(id: str) -> None:
    report = check_env(EnvConfig(name=NAME, options={"id": id, "max_steps": 30}))
    assert report.ok, [row for row in report.rows if not row.ok]
    assert "by replay" in report.rows[-1].detail


@pytest.mark.parametrize("normalised_coordinates", [False, True])
@pytest.mark.parametrize("sensor_range", [1, 2])
def test_the_text_is_what_is_in_range_and_nothing_else(sensor_range: int, normalised_coordinates: bool) -> None:
    game, raw = started(sensor_range=sensor_range, normalised_coordinates=normalised_coordinates, max_steps=60)
    for seed in range(6):
        draw = random.Random(seed)
        game.reset(seed)
        while not game.over:
            for me, turn in enumerate(game.turns()):
                robot, other = raw.agents[me], raw.agents[1 - me]
                head, *parts = turn.observation.split("; ")
                x0, y0 = robot.x, robot.y
                at, x, y, facing, *rack = head.split()
                assert (at, int(x), int(y), facing) == ("at", x0, y0, robot.dir.name.lower())
                assert bool(rack) is not bool(raw.highways[y0, x0])
                fx, fy = FACING[facing]
                told = {(what, x0 + a * fx - b * fy, y0 + a * fy + b * fx) for what, a, b in things(parts)}
                near = {("wanted shelf", one.x, one.y) for one in raw.request_queue}
                near = {one for one in near if one[1:] != (x0, y0)} | {(game.agents[1 - me], other.x, other.y)}
                near = {one for one in near if max(abs(one[1] - x0), abs(one[2] - y0)) <= sensor_range}
                assert {one for one in told if one[0] not in ("goal", "shelf")} == near
            game.step({turn.agent: draw.choice(turn.legal) for turn in game.turns()})


@pytest.mark.parametrize("facing", FACING)
@pytest.mark.parametrize(("x", "y"), [(4, 9), (3, 10), (6, 10)])
def test_following_the_text_delivers(facing: str, x: int, y: int) -> None:
    game, raw = started()
    wanted = raw.request_queue[0]
    put(raw, 1, 0, 0, "up")
    put(raw, 0, x, y, facing, wanted)
    parts = read(game, 0)
    assert parts[1] == "with wanted shelf"
    ((forward, right),) = [way for what, *way in things(parts) if what == "goal"]
    assert abs(forward) + abs(right) == 1
    turns = ["left"] * (right < 0) + ["right"] * (right > 0) + ["right", "right"] * (forward < 0)
    assert [act(game, turn) for turn in turns] == [0] * len(turns)
    assert ("goal", 1, 0) in things(read(game, 0))
    assert act(game, "forward") == 1
    text = game.turns()[0].observation
    assert "; with shelf" in text
    assert "goal" not in text
    assert wanted not in raw.request_queue


def test_turning_right_turns_everything_left() -> None:
    game, raw = started()
    put(raw, 1, 0, 4, "up")
    put(raw, 0, 0, 3, "up", raw.shelfs[0])
    told = []
    for _ in range(4):
        told.append(read(game, 0))
        act(game, "right")
    assert told[0][0] == "at 0 3 up"
    assert "agent_1 1 back facing forward" in told[0]
    assert "agent_1 1 right facing left" in told[1]
    for before, after in itertools.pairwise(told):
        assert things(after) == {(what, right, -forward) for what, forward, right in things(before)}
    assert [next(part for part in parts if part.startswith("wall")) for parts in told] == [
        "wall left",
        "wall back",
        "wall right",
        "wall forward",
    ]


def test_a_loaded_robot_is_told_what_stands_in_its_way_and_a_free_one_is_not() -> None:
    game, raw = started()
    put(raw, 1, 9, 10, "up")
    carried = raw.shelfs[0]
    put(raw, 0, 0, 4, "right", carried)
    assert ("shelf", 1, 0) in things(read(game, 0))
    act(game, "forward")
    assert (raw.agents[0].x, raw.agents[0].y) == (0, 4)
    carried.x, carried.y, raw.agents[0].carrying_shelf = 1, 1, None
    raw._recalc_grid()
    assert "shelf" not in " ".join(part for part in read(game, 0) if not part.startswith("wanted"))
    act(game, "forward")
    assert read(game, 0)[:2] == ["at 1 4 right in rack", "under shelf"]
    act(game, "toggle")
    assert read(game, 0)[1] == "with shelf"


def test_many_robots_do_not_know_each_other() -> None:
    game, raw = started("rware-tiny-3ag-v2")
    put(raw, 1, 0, 4, "up")
    put(raw, 2, 9, 9, "up")
    put(raw, 0, 0, 3, "down")
    assert "robot 1 forward facing back" in read(game, 0)


def test_the_only_end_is_the_time_limit() -> None:
    game, _ = started(max_steps=20)
    trace = play_on(game, random.Random(0))
    assert len(trace.actions) == 20
    assert all(one.truncated and not one.terminated and one.success is None for one in trace.outcomes.values())


def test_a_copy_goes_on_like_its_original() -> None:
    game, _ = started(max_steps=60)
    draw = random.Random(1)
    twin = snapshot(game)
    assert play_on(twin, copy.copy(draw)) == play_on(game, draw)


def test_a_reward_type_is_named() -> None:
    game, raw = started(reward_type="global")
    put(raw, 0, 4, 9, "down", raw.request_queue[0])
    put(raw, 1, 0, 0, "up")
    act(game, "forward")
    assert [turn.reward for turn in game.turns()] == [1, 1]
    with pytest.raises(ConfigError, match="reward_type 'globl' does not exist; did you mean 'global'"):
        adapter.env(TINY, reward_type="globl")


def test_talk_pictures_and_other_environments_are_refused() -> None:
    with pytest.raises(ConfigError, match="msg_bits = 2"):
        adapter.env(TINY, msg_bits=2)
    with pytest.raises(ConfigError, match="observes pictures"):
        adapter.env(TINY, observation_type=ObservationType.IMAGE)
    with pytest.raises(ConfigError, match="'CartPole-v1' is no rware Warehouse"):
        adapter.env("CartPole-v1")
