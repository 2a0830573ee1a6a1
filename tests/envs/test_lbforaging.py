"""Level-based foraging as text: it says just what is in sight, and a team that reads nothing else collects all."""

import copy
import itertools
import random
from typing import Any

import pytest

pytest.importorskip("lbforaging")

from decentral.envs.adapters import lbforaging as adapter
from decentral.envs.check import check_env
from decentral.envs.config import EnvConfig
from decentral.envs.fork import snapshot
from decentral.envs.game import Game
from decentral.envs.trace import play, play_on
from decentral.errors import ConfigError

NAME = "decentral.envs.adapters.lbforaging:env"
COOP, SMALL, PARTIAL = "Foraging-8x8-2p-2f-coop-v3", "Foraging-5x5-2p-1f-v3", "Foraging-2s-8x8-2p-2f-v3"
SIGNS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def places(text: str) -> list[tuple[str, int, int, int]]:
    """Everything but oneself: (name, level, rows down, columns right)."""
    found = []
    for part in text.split("; ")[1:]:
        name, level, at, *way = part.split()
        assert at == "at"
        steps = [(int(n), SIGNS[word]) for n, word in zip(way[::2], way[1::2])]
        found.append((name, int(level), sum(n * y for n, (y, _) in steps), sum(n * x for n, (_, x) in steps)))
    return found


def in_sight(raw: Any, me: int, names: list[str]) -> list[tuple[str, int, int, int]]:
    """The same from the state of the environment."""
    row, column = raw.players[me].position
    foods = [
        ("food", int(raw.field[y, x]), y, x)
        for y, x in itertools.product(*map(range, raw.field.shape))
        if raw.field[y, x]
    ]
    others = [(names[i], int(one.level), *one.position) for i, one in enumerate(raw.players) if i != me]
    found = [(name, level, y - row, x - column) for name, level, y, x in foods + others]
    return [one for one in found if max(abs(one[2]), abs(one[3])) <= raw.sight]


def gather(turn: Any, draw: random.Random) -> str:
    """Goes to the first food and loads, now and then in a chance direction so that two do not block each other."""
    _, _, down, right = next((one for one in places(turn.observation) if one[0] == "food"), ("", 0, 0, 0))
    if abs(down) + abs(right) == 1:
        return "load"
    ways = ["up"] * (down < 0) + ["down"] * (down > 0) + ["left"] * (right < 0) + ["right"] * (right > 0)
    ways = [way for way in ways if way in turn.legal]
    return draw.choice(ways if ways and draw.random() < 0.8 else turn.legal)


@pytest.mark.parametrize("id", [COOP, SMALL, PARTIAL])
def test_it_checks(id: str) -> None:
    report = check_env(EnvConfig(name=NAME, options={"id": id}))
    assert report.ok, [row for row in report.rows if not row.ok]
    assert "by replay" in report.rows[-1].detail


@pytest.mark.parametrize("id", [COOP, SMALL, PARTIAL, "Foraging-2s-6x6-2p-3f-coop-v3"])
def test_the_text_is_what_is_in_sight_and_nothing_else(id: str) -> None:
    game = Game(adapter.env(id))
    raw = game.env.raw
    for seed in range(8):
        draw = random.Random(seed)
        game.reset(seed)
        while not game.over:
            for me, turn in enumerate(game.turns()):
                assert turn.observation.split("; ")[0] == f"you {raw.players[me].level}"
                assert places(turn.observation) == in_sight(raw, me, list(game.agents))
            game.step({turn.agent: draw.choice(turn.legal) for turn in game.turns()})


def test_who_is_who_is_told_only_where_everyone_is_seen() -> None:
    game = Game(adapter.env("Foraging-2s-5x5-3p-1f-v3"))
    counts = set()
    for seed in range(8):
        for turn in play(game, seed).turns:
            others = [name for name, *_ in places(turn.observation) if name != "food"]
            everyone = [name for name in game.agents if name != turn.agent]
            assert others == (everyone if len(others) == 2 else ["player"] * len(others))
            counts.add(len(others))
    assert counts == {0, 1, 2}


def test_levels_that_are_not_observed_are_not_told() -> None:
    game = Game(adapter.env(SMALL, observe_agent_levels=False))
    game.reset(0)
    parts = game.turns()[0].observation.split("; ")
    assert parts[0] == "you"
    assert parts[2].startswith("agent_1 at ")
    assert parts[1].startswith("food 1 at ") or parts[1][5].isdigit()


def test_the_legal_actions_are_those_that_do_something() -> None:
    game = Game(adapter.env(COOP))
    for seed in range(4):
        draw = random.Random(seed)
        game.reset(seed)
        while not game.over:
            for player, turn in zip(game.env.raw.players, game.turns()):
                row, column = player.position
                field = game.env.raw.field
                inside = {way: (row + y, column + x) for way, (y, x) in SIGNS.items()}
                inside = {way: at for way, at in inside.items() if min(at) >= 0 and max(at) < 8}
                moves = {way for way, at in inside.items() if not field[at]}
                loads = {"load"} if len(moves) < len(inside) else set()
                assert set(turn.legal) == {"stay"} | moves | loads
            game.step({turn.agent: draw.choice(turn.legal) for turn in game.turns()})


@pytest.mark.parametrize("id", [COOP, SMALL])
def test_a_team_that_reads_only_the_text_collects_the_food(id: str) -> None:
    game, shares = Game(adapter.env(id)), []
    for seed in range(20):
        draw = random.Random(seed)
        game.reset(seed)
        while not game.over:
            game.step({turn.agent: gather(turn, draw) for turn in game.turns()})
        outcomes = game.outcomes()
        shares.append(outcomes["agent_0"].success)
        assert sum(outcome.total for outcome in outcomes.values()) == pytest.approx(shares[-1])
        assert outcomes["agent_0"].terminated is (shares[-1] == 1)
        assert outcomes["agent_0"].truncated is (shares[-1] < 1)
    assert sum(shares) / len(shares) > 0.8  # chance collects 0 and 0.55


def test_the_time_limit_truncates_and_can_be_set() -> None:
    for steps in (7, 90):
        trace = play(Game(adapter.env(COOP, max_episode_steps=steps)), 3)
        assert len(trace.actions) == steps
        assert trace.outcomes["agent_0"].truncated
        assert not trace.outcomes["agent_0"].terminated


def test_an_episode_depends_on_its_seed_alone() -> None:
    used = Game(adapter.env(SMALL))
    for seed in range(30):
        game = Game(adapter.env(SMALL))
        for one in (game, used):
            one.reset(seed)
        assert used.turns() == game.turns()
        play_on(used, random.Random(seed))


def test_a_copy_goes_on_like_its_original() -> None:
    game = Game(adapter.env(PARTIAL))
    game.reset(5)
    draw = random.Random(1)
    twin = snapshot(game)
    assert play_on(twin, copy.copy(draw)) == play_on(game, draw)


def test_pictures_and_other_environments_are_refused() -> None:
    with pytest.raises(ConfigError, match="with grid_observation shows pictures"):
        adapter.env(SMALL, grid_observation=True)
    with pytest.raises(ConfigError, match="'CartPole-v1' is no lbforaging ForagingEnv"):
        adapter.env("CartPole-v1")
