"""TextArena: ten games play as the check asks, moves that are offered count, and the walls around a game hold."""

from __future__ import annotations

import copy
import random
import warnings
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box
from pettingzoo.test import api_test
from pettingzoo.utils.wrappers import BaseWrapper

textarena = pytest.importorskip("textarena")

from decentral.envs.adapters import textarena as adapter  # noqa: E402
from decentral.envs.adapters.textarena_texts import MOVES, hear  # noqa: E402
from decentral.envs.check import check_env  # noqa: E402
from decentral.envs.config import EnvConfig  # noqa: E402
from decentral.envs.game import Game  # noqa: E402
from decentral.envs.names import make  # noqa: E402
from decentral.envs.trace import answers, play  # noqa: E402
from decentral.errors import ConfigError, EnvError  # noqa: E402

IDS = [id for id, _ in adapter.GAMES]
NAME = "decentral.envs.adapters.textarena:env"
KIND = textarena.ObservationType


def game(id: str, **options: Any) -> Game:
    return Game(adapter.env(id, **options), name=id)


def last(env: Any) -> tuple[str, dict[str, str]]:
    observation, _, _, _, info = env.last()
    return observation, info


@pytest.mark.parametrize("id", IDS)
def test_the_check_passes_with_success_and_a_fork(id: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = check_env(EnvConfig(name=NAME, options={"id": id}))
    assert report.ok, [row for row in report.rows if not row.ok]
    rows = {row.name: row.detail for row in report.rows}
    assert "defined" in rows["success"]
    assert rows["fork"].startswith("by replay")


class Letters(BaseWrapper):  # type: ignore[misc]
    """Texts as arrays, since PettingZoo's test stops where observations have no dtype."""

    SPACE = Box(0, 0x10FFFF, (4000,), np.int64)

    def observation_space(self, agent: str) -> Box:
        return self.SPACE

    def observe(self, agent: str) -> np.ndarray[Any, Any]:
        return np.array([ord(letter) for letter in super().observe(agent).ljust(4000)], dtype=np.int64)


@pytest.mark.parametrize("id", IDS)
def test_pettingzoos_own_test_runs_to_its_end(id: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        api_test(Letters(adapter.env(id)), num_cycles=60)


@pytest.mark.parametrize("kind", sorted(MOVES))
def test_a_move_that_is_offered_is_never_called_invalid(kind: str) -> None:
    entry = f"textarena.envs.{kind}.env:{kind}Env"
    id = next(id for id, spec in textarena.envs.registration.ENV_REGISTRY.items() if spec.entry_point == entry)
    try:
        one = game(id)
    except EnvError as error:
        pytest.skip(str(error))
    for seed in range(10):
        trace = play(one, seed)
        assert not any(turn.feedback for turn in trace.turns)
        assert not any(info.get("invalid_move") for info in one.env.state.game_info.values())
        assert not any(outcome.truncated for outcome in trace.outcomes.values())


@pytest.mark.parametrize("id", ["TicTacToe-v0", "SimpleTak-v0", "Othello-v0-tiny"])
def test_every_move_that_the_game_lists_is_offered(id: str) -> None:
    env, seen = adapter.env(id), 0
    draw = random.Random(3)
    env.reset(seed=3)
    while not env.state.done:
        listed = [
            text for _, text, kind in env.state.observations[1 - env.state.current_player_id] if kind == KIND.GAME_BOARD
        ]
        if listed and env.moves:
            seen += 1
            assert [f"[{move}]" in listed[-1] for move in env.moves] == [True] * len(env.moves)
            assert listed[-1].count("[") == len(env.moves)
        env.step(f"[{draw.choice(env.moves)}]" if env.moves else "skip")
    assert seen > 2


def test_an_episode_is_the_seeds_alone_and_leaves_the_generators_alone() -> None:
    one, other = game("LiarsDice-v0-small", players=3), game("GameOfPureStrategy-v0")
    expected = play(one, 5)
    random.seed(11)
    np.random.seed(11)
    np.random.standard_normal()  # which leaves a second number waiting in the state
    before, numpy_before = random.getstate(), repr(np.random.get_state())
    again = game("LiarsDice-v0-small", players=3)
    again.reset(5)
    other.reset(6)
    moments = []
    for step in expected.actions:
        moments.append(again.turns())
        again.step(step)
        if not other.over:
            other.step(answers(other, random.Random(0)))
        random.random()
    assert moments == [moment.turns for moment in expected.moments]
    assert again.outcomes() == expected.outcomes
    random.setstate(before)
    play(again, 7)
    assert random.getstate() == before
    assert repr(np.random.get_state()) == numpy_before


def test_a_game_that_draws_from_numpy_is_contained_too() -> None:
    env = adapter.env("Sokoban-v0")
    assert adapter.NUMPY in env._chance.sources
    np.random.seed(4)
    before = repr(np.random.get_state())
    seen = set()
    for _ in range(2):
        env.reset(seed=8)
        seen.add(env.observe("player_0"))
    assert repr(np.random.get_state()) == before
    assert len(seen) == 1


def test_a_copy_goes_on_by_itself() -> None:
    env = adapter.env("TruthAndDeception-v0")
    env.reset(seed=2)
    env.step("trust me")
    twin = copy.deepcopy(env)
    for one in (env, twin):
        while not one.state.done:
            one.step(f"[{one.moves[0]}]" if one.moves else "so what")
    assert env.rewards == twin.rewards
    assert twin.text_view._arena is twin
    assert twin.state is twin.game.state is not env.state


def test_invalid_moves_are_told_and_the_second_in_a_row_loses() -> None:
    env = adapter.env("TicTacToe-v0")
    env.reset(seed=0)
    env.step("[4]")
    env.step("[4]")
    assert env.agent_selection == "player_1"
    assert last(env)[1] == {"feedback": "invalid: cell 4 is already occupied."}
    assert "feedback" in env.infos["player_0"]
    env.step("anything at all")
    assert env.terminations == {"player_0": True, "player_1": True}
    assert env.rewards == {"player_0": 1.0, "player_1": -1.0}
    assert [env.success(agent) for agent in env.possible_agents] == [1.0, 0.0]
    assert env.infos["player_1"]["feedback"].startswith("Player 1 made an invalid move: ")


def test_success_is_a_win_a_draw_a_loss_or_a_share() -> None:
    env = adapter.env("TicTacToe-v0")
    env.reset(seed=0)
    for cell in (0, 1, 2, 4, 3, 5, 7, 6, 8):
        env.step(f"[{cell}]")
    assert [env.success(agent) for agent in env.possible_agents] == [0.5, 0.5]
    for rewards, successes in [
        ({0: 1, 1: -1}, [1, 0]),
        ({0: 0.25, 1: 0.75}, [0.25, 0.75]),
        ({0: 120, 1: 80}, [None, None]),
        (None, [0, 0]),
    ]:
        env.state.rewards = rewards
        assert [env.success(agent) for agent in env.possible_agents] == successes
    puzzle = adapter.env("TowerOfHanoi-v0")
    puzzle.reset(seed=0)
    for move in ("A C", "A B", "C B", "A C", "B A", "B C", "A C"):
        puzzle.step(f"[{move}]")
    assert puzzle.success("player_0") == puzzle.rewards["player_0"] == 1.0


def test_a_game_in_which_everyone_is_out_stops_with_a_sentence() -> None:
    env = adapter.env("PublicGoodsGame-v0", players=3)
    env.reset(seed=0)
    while env.state.game_state["phase"] == "conversation":
        env.step("hello")
    for text in ("none", "none", "none", "[1]") * 3:  # the third puts a player out, the fourth passes the turn on
        env.step(text)
    assert set(env.truncations.values()) == {True}
    assert env.infos["player_1"]["feedback"] == (
        "everyone is out, and PublicGoodsGame-v0 looked for the next player until it was stopped"
    )
    assert [env.success(agent) for agent in env.possible_agents] == [0.0] * 3


def test_a_game_that_breaks_on_a_free_text_ends_and_one_that_breaks_on_its_own_move_raises(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env = adapter.env("CharacterConclave-v0")
    env.reset(seed=0)
    env.step("hello")
    assert set(env.truncations.values()) == {True}
    assert env.infos["player_0"]["feedback"].startswith("CharacterConclave-v0 broke on that text with TypeError: ")
    env = adapter.env("Nim-v0")
    env.reset(seed=0)
    monkeypatch.setattr(env.game, "_execute_move", lambda action: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        env.step("[0 1]")


@pytest.mark.parametrize("id", ["Countdown-v0", "ThreeCardMonte-v0"])
def test_a_sentence_in_the_place_of_a_reward_counts_nothing(id: str) -> None:
    env = adapter.env(id)
    env.reset(seed=0)
    while not env.terminations["player_0"]:
        env.step("nonsense")
    assert env.rewards == {"player_0": 0.0}
    assert env.success("player_0") == 0.0


def test_word_games_are_refused_in_one_sentence_and_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*args: object) -> None:
        raise LookupError("\n Resource words not found.\n >>> import nltk\n >>> nltk.download('words')\n")

    fetched = []
    monkeypatch.setattr(adapter.nltk, "download", lambda *args, **options: fetched.append(args))
    monkeypatch.setattr(adapter.nltk.corpus.words.__class__, "words", missing, raising=False)
    with pytest.raises(EnvError, match=r"^Hangman-v0 needs the word lists 'words' of nltk, .*nltk.downloader words$"):
        adapter.env("Hangman-v0")
    assert not fetched


def test_what_cannot_be_made_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"no game 'TicTacTo-v0'; did you mean 'TicTacToe-v0'\?"):
        adapter.env("TicTacTo-v0")
    with pytest.raises(ConfigError, match=r"Nim-v0 refuses players = 3 .* has to be 2, received 3; change them"):
        adapter.env("Nim-v0", players=3)
    with pytest.raises(EnvError, match="unexpected keyword argument 'stones'"):
        make(EnvConfig(name=NAME, options={"id": "Nim-v0", "stones": 3}))
    monkeypatch.setattr(adapter.textarena, "make", lambda id: compile("f'{x[\"y'", "env.py", "eval"))
    with pytest.raises(EnvError, match=r"^Chess-v0 is written for Python 3\.12 and this is 3\.\d+"):
        adapter.env("Chess-v0")


def test_players_are_two_or_what_the_game_takes() -> None:
    players = {
        id: len(adapter.env(id).possible_agents) for id in ("Nim-v0", "TowerOfHanoi-v0", "ThreePlayerTicTacToe-v0")
    }
    assert list(players.values()) == [2, 1, 3]
    assert len(adapter.env("LiarsDice-v0-small", players=5).possible_agents) == 5


def test_talk_reaches_the_other_and_is_bounded() -> None:
    one = game("IteratedPrisonersDilemma-v0", talk=9)
    one.reset(0)
    assert one.turns()[0].free == 9
    one.step({"player_0": "shall we"})
    assert one.turns()[0].observation == "Player 0: shall we"
    while one.turns()[0].free:
        one.step({one.turns()[0].agent: "yes"})
    assert one.turns()[0].legal == ("cooperate", "defect")


def test_a_reader_is_spared_its_own_words_old_boards_and_what_is_said_twice() -> None:
    messages = [
        (0, "[2]", KIND.PLAYER_ACTION),
        (-1, "Player 0 took 2.", KIND.GAME_ACTION_DESCRIPTION),
        (-1, "Board now:\n---\n| a | b |\nAvailable Moves: [1], [2]", KIND.GAME_BOARD),
        (1, "[1]", KIND.PLAYER_ACTION),
        (-1, "Player 1 took 1.", KIND.GAME_ACTION_DESCRIPTION),
        (-1, "Player 1 took 1.", KIND.GAME_MESSAGE),
        (-1, "Board now:\n---\n| c | d |\nAvailable Moves: [2]", KIND.GAME_BOARD),
    ]
    assert hear(messages, 0, {}, True) == "Player 0 took 2. Player 1 took 1. Board now: / c d"
    assert hear(messages[:4], 0, {}, False) == (
        "Player 0 took 2. Board now: / a b / Available Moves: [1], [2] Player 1: [1]"
    )
