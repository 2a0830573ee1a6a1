"""PettingZoo's classic games as text: they read as they are, nothing hidden is told, winners have won."""

import random
import re
from typing import Any

import numpy as np
import pytest

pytest.importorskip("chess")
pytest.importorskip("rlcard")

from decentral.envs.adapters import classic as adapter
from decentral.envs.adapters.classic_texts import GAMES, _four
from decentral.envs.check import check_env
from decentral.envs.config import EnvConfig
from decentral.envs.fork import snapshot
from decentral.envs.game import Game
from decentral.envs.trace import play, play_on
from decentral.errors import ConfigError

NAME = "decentral.envs.adapters.classic:env"
SMALL = [id for id in GAMES if id not in ("chess_v6", "go_v5", "hanabi_v5")]


def game_of(id: str, **options: Any) -> Game:
    if id == "hanabi_v5":
        pytest.importorskip("shimmy")
        pytest.importorskip("pyspiel")
    return Game(adapter.env(id, **options))


def played(id: str, *moves: str) -> Game:
    game = game_of(id)
    game.reset(0)
    for move in moves:
        game.step({game.turns()[0].agent: move})
    return game


def scores(game: Game) -> list[float | None]:
    return [outcome.success for outcome in game.outcomes().values()]


@pytest.mark.parametrize("id", [*SMALL, "hanabi_v5"])
def test_it_checks(id: str) -> None:
    game_of(id)
    report = check_env(EnvConfig(name=NAME, options={"id": id}))
    assert report.ok, [row for row in report.rows if not row.ok]
    assert "by replay" in report.rows[-1].detail


@pytest.mark.parametrize("id", [id for id in GAMES if id not in ("chess_v6", "hanabi_v5", "rps_v2")])
def test_success_goes_with_the_reward(id: str) -> None:
    options = {"board_size": 3} if id == "go_v5" else {}
    game, seen = game_of(id, **options), set()
    for seed in range(40):
        trace = play(game, seed)
        for outcome in trace.outcomes.values():
            if outcome.terminated:
                assert outcome.success == (1 + np.sign(outcome.total)) / 2
                seen.add(outcome.success)
    assert {0.0, 1.0} <= seen


def test_three_in_a_row_win_and_a_full_board_is_a_draw() -> None:
    game = played("tictactoe_v3", "1", "5", "9", "3")
    assert game.turns()[0].observation == "x 2 o / 4 o 6 / 7 8 x"
    assert game.turns()[0].legal == ("2", "4", "6", "7", "8")
    assert game.system("player_2").startswith("You are o.")
    for move in ("7", "8", "4"):
        game.step({game.turns()[0].agent: move})
    assert scores(game) == [1.0, 0.0]
    assert scores(played("tictactoe_v3", *"123546879")) == [0.5, 0.5]


def test_a_cut_game_is_half_won() -> None:
    for id, options in (("tictactoe_v3", {}), ("texas_holdem_v4", {}), ("go_v5", {"board_size": 3})):
        game = Game(adapter.env(id, **options), max_rounds=200)
        play(game, 0)  # whose payoffs must not be taken for those of the next
        short = Game(game.env, max_rounds=1)
        short.reset(1)
        while not short.over:
            short.step({turn.agent: next(m for m in turn.legal if m != "fold") for turn in short.turns()})
        assert scores(short) == [0.5, 0.5]


@pytest.mark.parametrize(("moves", "won"), [("1717171", 1), ("1213245", None), ("12132453", None)])
def test_discs_fall_and_four_win(moves: str, won: int | None) -> None:
    game = played("connect_four_v3", *moves)
    if won:
        assert scores(game) == [1.0, 0.0]
    else:
        rows = [row.split() for row in game.turns()[0].observation.split(" / ")]
        for column in "1234567":
            fallen = [row[int(column) - 1] for row in rows[::-1] if row[int(column) - 1] != "."]
            assert fallen == ["xo"[i % 2] for i, move in enumerate(moves) if move == column]


def test_four_in_a_row_are_seen_in_every_direction() -> None:
    board = np.zeros((6, 7), dtype=bool)
    for down, right, row, column in ((0, 1, 5, 3), (1, 0, 2, 6), (1, 1, 2, 3), (1, -1, 0, 3)):
        board[:] = False
        for k in range(4):
            assert not _four(board)
            board[row + k * down, column + k * right] = True
        assert _four(board)
    board[:] = False
    board[5, [0, 1, 5, 6]] = True  # no row goes round the edge
    assert not _four(board)


def test_cards_are_ones_own_and_the_public_ones() -> None:
    for id, publics in (("leduc_holdem_v4", 1), ("texas_holdem_v4", 5), ("texas_holdem_no_limit_v6", 5)):
        game, most = game_of(id), 0
        for seed in range(20):
            draw = random.Random(seed)
            game.reset(seed)
            while not game.over:
                (turn,) = game.turns()
                rules = game.env.unwrapped.env.game
                seat = game.agents.index(turn.agent)
                hand = rules.players[seat].hand
                board = getattr(rules, "public_cards", None) or [c for c in [getattr(rules, "public_card", None)] if c]
                name = (lambda c: c.rank) if id.startswith("leduc") else (lambda c: c.rank + c.suit.lower())
                shown = re.fullmatch(
                    r"(?:card|hand) (.*) board (.*) you (\d+) others (\d+)( left \d+)?", turn.observation
                )
                assert shown
                assert shown[1].split() == [name(c) for c in (hand if isinstance(hand, list) else [hand])]
                assert shown[2].split() == ([name(c) for c in board] or ["none"])
                assert [int(shown[3]), int(shown[4])] == [rules.players[i].in_chips for i in (seat, 1 - seat)]
                most = max(most, len(board))
                game.step({turn.agent: draw.choice([move for move in turn.legal if move != "fold"])})
        assert most == publics


def test_bets_are_called_what_they_do() -> None:
    game = game_of("leduc_holdem_v4")
    game.reset(0)
    assert set(game.turns()[0].legal) == {"call", "raise", "fold"}
    assert " you 1 others 2" in game.turns()[0].observation
    game.step({game.turns()[0].agent: "raise"})
    assert " you 2 others 4" in game.turns()[0].observation
    before = game.turns()[0].agent
    game.step({before: "fold"})
    assert game.outcomes()[before].success == 0.0
    game = game_of("texas_holdem_no_limit_v6")
    game.reset(0)
    first = game.turns()[0].agent
    game.step({first: "all in"})
    assert " others 100 left" in game.turns()[0].observation


def test_chess_moves_are_uci_for_both_colours_and_queens_are_named() -> None:
    import chess

    game, board = game_of("chess_v6"), chess.Board()
    draw, promoted = random.Random(4), False
    game.reset(0)
    while not game.over:
        (turn,) = game.turns()
        assert turn.observation == board.board_fen()
        assert set(turn.legal) == {move.uci() for move in board.legal_moves}
        queens = [move for move in turn.legal if move.endswith("q")]
        promoted |= bool(queens)
        pawns = [move for move in turn.legal if str(board.piece_at(chess.parse_square(move[:2]))) in "pP"]
        move = draw.choice(queens or pawns or turn.legal)
        board.push_uci(move)
        game.step({turn.agent: move})
    assert promoted


def test_mate_is_a_win() -> None:
    assert scores(played("chess_v6", "f2f3", "e7e5", "g2g4", "d8h4")) == [0.0, 1.0]
    assert scores(played("chess_v6", "e2e4", "e7e5", "d1h5", "b8c6", "f1c4", "g8f6", "h5f7")) == [1.0, 0.0]


def test_stones_are_named_by_their_points() -> None:
    game = game_of("go_v5", board_size=5)
    game.reset(0)
    for move in ("a1", "e5", "c3", "pass"):
        game.step({game.turns()[0].agent: move})
    assert game.turns()[0].observation == "black c3 a1; white e5"
    game.step({"black_0": "pass"})
    assert scores(game) == [0.0, 1.0]  # komi


def test_hanabi_shows_the_others_cards_and_counts_the_score() -> None:
    game = game_of("hanabi_v5")
    game.reset(3)
    (turn,) = game.turns()
    state = game.env.unwrapped.hanabi_env.game_state
    own, other = (re.findall(r"^(\w\w) \|\|", part, re.M) for part in state.observation_string(0).split("-----"))
    assert own == ["XX"] * 5
    assert turn.observation.partition(" next ")[2].split() == other
    ones = [card for card in other if card[1] == "1"]
    assert ("hint 1" in " ".join(turn.legal)) == bool(ones)
    while not game.over:
        (turn,) = game.turns()
        game.step({turn.agent: next(move for move in turn.legal if move.startswith("discard") or "hint" in move)})
    assert scores(game)[0] in {i / 25 for i in range(26)}


def test_a_copy_goes_on_like_its_original() -> None:
    for id in ("connect_four_v3", "leduc_holdem_v4"):
        game = game_of(id)
        game.reset(5)
        twin = snapshot(game)
        assert twin.view.raw is twin.env.unwrapped
        assert play_on(twin, random.Random(1)) == play_on(game, random.Random(1))


def test_unknown_ids_and_broken_options_are_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'chess_v6'"):
        adapter.env("chess_v5")
    with pytest.raises(ConfigError, match="random_start_player asks the wrong player"):
        adapter.env("hanabi_v5", random_start_player=True)
