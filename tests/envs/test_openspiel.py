"""OpenSpiel's games as environments: nobody reads what is hidden, rewards add up, copies go their own way."""

# ruff: noqa: E402  the adapter imports pyspiel, which may be absent
from __future__ import annotations

import copy
import random
from functools import partial
from typing import Any

import numpy as np
import pytest

pyspiel = pytest.importorskip("pyspiel")

from gymnasium.spaces import Box
from pettingzoo import AECEnv
from pettingzoo.test import api_test, parallel_api_test

from decentral.envs.adapters.openspiel import env
from decentral.envs.adapters.openspiel_texts import Words
from decentral.envs.check import check_env
from decentral.envs.game import Game
from decentral.envs.trace import answers, play
from decentral.errors import ConfigError

GAMES = [
    "bargaining",
    "connect_four",
    "coop_box_pushing(horizon=20)",
    "goofspiel(num_cards=4,players=3)",
    "hanabi(players=2,colors=2,ranks=3)",
    "kuhn_poker(players=3)",
    "leduc_poker",
    "liars_dice",
    "matrix_pd",
    "negotiation",
    "tic_tac_toe",
    "trade_comm(num_items=3)",
]
READ_WELL = {
    "bargaining": 30,
    "connect_four": 60,
    "coop_box_pushing": 10,
    "hanabi(players=2,colors=2,ranks=3)": 50,
    "kuhn_poker": 10,
    "leduc_poker": 12,
    "negotiation": 40,
    "tic_tac_toe": 15,
    "trade_comm": 15,
}
"""Words, numbers and signs of an observation, at most."""


@pytest.mark.parametrize("id", GAMES)
def test_the_check_passes_and_the_game_can_be_forked(id: str) -> None:
    report = check_env(partial(env, id))
    assert report.ok, [row for row in report.rows if not row.ok]
    assert "by replay" in next(row.detail for row in report.rows if row.name == "fork")


@pytest.mark.parametrize("id", GAMES)
def test_pettingzoo_test_passes_to_its_end_where_observations_are_arrays(
    id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = env(id)
    look = made.look
    monkeypatch.setattr(made, "look", lambda agent: look(agent) | {"observation": np.zeros(1, np.float32)})
    for agent in made.possible_agents:
        made.observation_space(agent).spaces["observation"] = Box(0, 1, (1,), np.float32)
    test = api_test if isinstance(made, AECEnv) else parallel_api_test
    test(made, num_cycles=50)


@pytest.mark.parametrize("id", GAMES)
def test_rewards_add_up_to_the_returns(id: str) -> None:
    game = Game(env(id))
    for seed in range(20):
        outcomes = play(game, seed).outcomes
        assert [outcome.total for outcome in outcomes.values()] == pytest.approx(game.env.state.returns())


@pytest.mark.parametrize("id", ["kuhn_poker", "kuhn_poker(players=3)", "leduc_poker", "trade_comm(num_items=3)"])
def test_nobody_reads_more_than_its_information_state(id: str) -> None:
    game, read = pyspiel.load_game(id), {}
    words = Words(game)

    def walk(state: Any) -> None:
        if state.is_terminal():
            return
        if not state.is_chance_node():
            player = state.current_player()
            names = [words.action(state, player, action) for action in state.legal_actions()]
            told = words.observe(state, player), names
            assert read.setdefault((player, state.information_state_string()), told) == told
        for action in state.legal_actions():
            walk(state.child(action))

    walk(game.new_initial_state())
    assert len({told for told, _ in read.values()}) >= 6


def test_a_hanabi_player_reads_the_others_cards_and_not_its_own() -> None:
    made = env("hanabi(players=2,colors=2,ranks=3)")
    made.reset(seed=3)
    assert made.observe("player_0")["observation"] == (
        "life 3 info 8 fire R0 Y0 deck 2 you ? ? ? ? ? next R1 R1 Y3 R3 R2"
    )
    made.step(made.text_view.actions("player_0", made.observe("player_0")["action_mask"])["hint 1"])
    assert made.observe("player_1")["observation"].startswith("life 3 info 7 fire R0 Y0 deck 2 you 1 1 23 23 23 next")


@pytest.mark.parametrize(("id", "most"), READ_WELL.items())
def test_observations_stay_short(id: str, most: int) -> None:
    game = Game(env(id))
    for seed in range(10):
        for turn in play(game, seed).turns:
            assert 0 < len(turn.observation.replace("/", "").split()) <= most


def test_simultaneous_moves_wait_for_all_and_single_ones_for_one() -> None:
    for id, waiting in (("goofspiel", 2), ("turn_based_simultaneous_game(game=goofspiel())", 1)):
        game = Game(env(id))
        game.reset(0)
        assert len(game.turns()) == waiting


def test_a_copy_goes_its_own_way_from_the_same_state() -> None:
    made = env("leduc_poker")
    made.reset(seed=1)
    game = Game(made)
    game.reset(1)
    game.step({game.turns()[0].agent: "raise"})
    twin = copy.deepcopy(game)
    twin.step({twin.turns()[0].agent: "call"})
    game.step({game.turns()[0].agent: "call"})
    assert twin.turns() == game.turns()
    game.step({game.turns()[0].agent: "raise"})
    assert twin.env.state.history() != game.env.state.history()
    assert twin.env.text_view.table is twin.env


def test_a_game_that_draws_by_itself_follows_the_seed() -> None:
    first, second = Game(env("negotiation")), Game(env("negotiation"))
    first.reset(5)
    first.reset(6)
    second.reset(6)
    assert first.turns() == second.turns()
    second.reset(7)
    assert first.turns() != second.turns()


def test_no_global_generator_is_touched() -> None:
    random.seed(0)
    np.random.seed(0)
    before = random.getstate(), np.random.get_state()[1].tolist()
    play(Game(env("leduc_poker")), 3)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


def test_success_is_a_win_a_draw_or_a_share() -> None:
    def end(id: str, actions: list[str]) -> list[float | None]:
        game = Game(env(id))
        game.reset(0)
        for action in actions:
            game.step({turn.agent: action for turn in game.turns()})
        return [outcome.success for outcome in game.outcomes().values()]

    assert end("tic_tac_toe", list("14253")) == [1, 0]
    assert end("tic_tac_toe", list("123546879")) == [0.5, 0.5]
    assert end("matrix_coordination", ["Left"]) == [1, 1]
    assert end("matrix_pd", ["Defect"]) == [None, None]


def test_two_actions_with_one_text_get_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    made = env("kuhn_poker")
    made.reset(seed=0)
    monkeypatch.setattr(made.words, "action", lambda *_: "go")
    assert made.text_view.actions("player_0", np.ones(2, np.int8)) == {"go 0": 0, "go 1": 1}


def test_options_are_the_game_s_parameters() -> None:
    assert len(env("kuhn_poker", players=3).possible_agents) == 3
    assert env("repeated_game", stage_game="matrix_pd()", num_repetitions=2).game.max_game_length() == 2
    assert env("bargaining", discount=1).game.get_parameters()["discount"] == 1.0


@pytest.mark.parametrize(
    ("id", "options", "words"),
    [
        ("leduc", {}, "did you mean 'leduc_poker'"),
        ("leduc_poker", {"player": 3}, "did you mean 'players'"),
        ("leduc_poker", {"players": 99}, "cannot load"),
        ("mfg_garnet", {}, "mean field"),
        ("crossword", {}, "0 different actions"),
        ("nfg_game", {}, "cannot load"),
        ("misere(game=negotiation())", {}, "generator of its own"),
        ("add_noise(epsilon=0.1,seed=1,game=kuhn_poker())", {}, "generator of its own"),
    ],
)
def test_what_cannot_be_served_is_refused_in_a_sentence(id: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        env(id, **options)


def test_an_illegal_action_raises_and_does_not_end_the_process() -> None:
    made = env("tic_tac_toe")
    made.reset(seed=0)
    made.step(4)
    with pytest.raises(pyspiel.SpielError):
        made.step(4)


def test_random_play_ends_in_every_game_listed() -> None:
    draw = random.Random(0)
    for id in GAMES:
        game = Game(env(id))
        game.reset(1)
        while not game.over:
            game.step(answers(game, draw))
        assert game.env.state.is_terminal()


@pytest.mark.parametrize("id", READ_WELL)
def test_a_table_that_is_kept_names_actions_as_every_state_does(id: str) -> None:
    game = pyspiel.load_game(id)
    words, draw = Words(game), random.Random(0)
    assert words._steady
    names: dict[tuple[int, int], str] = {}
    for _ in range(20):
        state = game.new_initial_state()
        while not state.is_terminal():
            for player in range(game.num_players()):
                if state.is_simultaneous_node() or player == state.current_player():
                    for action in state.legal_actions(player):
                        name = state.action_to_string(player, action)
                        assert names.setdefault((player, action), name) == name
            if state.is_simultaneous_node():
                state.apply_actions([draw.choice(state.legal_actions(p)) for p in range(game.num_players())])
            else:
                state.apply_action(draw.choice(state.legal_actions()))
