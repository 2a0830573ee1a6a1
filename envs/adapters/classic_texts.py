"""How PettingZoo's classic games read: positions, moves, rules, and who has won.

A text may say what the reader's observation does not spell out, such as which of the cards are on the table, but
nothing that is hidden from it. Knows nothing about turns or tokens.
"""

from __future__ import annotations

__all__ = ["GAMES", "Game"]

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from decentral.envs.adapters.openspiel_texts import Words

COLUMNS = "abcdefghjklmnopqrstuvwxyz"
"""Of a board for go, without the i."""
BETS = ("call", "raise", "fold", "check")
NO_LIMIT = ("fold", "call", "half pot", "pot", "all in")
"""In the order of rlcard's actions."""


class Game(NamedTuple):
    """How one game reads: each is a function of the environment and the seat of who reads."""

    read: Callable[[Any, int, Any], str]
    """(environment, seat, observation)."""
    name: Callable[[Any, int, int], str]
    """(environment, seat, action)."""
    told: Callable[[Any, int], str]
    success: Callable[[Any, int], float] | None
    rule: str = ""
    """What a success is, in a few words."""
    cards: bool = False
    """Whether success is read from the payoffs of a hand."""
    shared: bool = False
    """Whether all play for one score."""


def _score(sign: float) -> float:
    return (1 + float(np.sign(sign))) / 2


def _marks(seat: int, observation: npt.NDArray[np.int8], marks: str) -> list[list[str]]:
    """Returns rows of marks of a board whose first plane is the reader's."""
    mine, theirs = marks[seat], marks[1 - seat]
    return [[mine if a else theirs if b else "." for a, b in row] for row in observation.tolist()]


def _tictactoe(raw: Any, seat: int, observation: npt.NDArray[np.int8]) -> str:
    """Reads as ``1 x 3 / 4 o 6 / 7 8 9``: a free square shows what its move is called."""
    rows = _marks(seat, observation, "xo")
    cells = [str(i + 1) if mark == "." else mark for i, mark in enumerate(rows[0] + rows[1] + rows[2])]
    return " / ".join(" ".join(cells[i : i + 3]) for i in (0, 3, 6))


def _tictactoe_won(raw: Any, seat: int) -> float:
    winner = raw.board.game_status()
    return _score(0 if winner not in (0, 1) else 1 if winner == seat else -1)


def _connect_four(raw: Any, seat: int, observation: npt.NDArray[np.int8]) -> str:
    """Reads as ``. . . x . . . / . . o x . . .``, from the highest row that is not empty."""
    rows = [" ".join(row) for row in _marks(seat, observation, "xo")]
    return " / ".join(row for row in rows if set(row) != {".", " "}) or "empty"


def _connect_four_won(raw: Any, seat: int) -> float:
    board = np.array(raw.board).reshape(6, 7)
    return _score(_four(board == seat + 1) - _four(board == 2 - seat))


def _four(mine: npt.NDArray[np.bool_]) -> bool:
    """Says whether four stand in a row."""
    padded = np.pad(mine, 3)
    return any(
        bool(np.logical_and.reduce([np.roll(padded, (k * down, k * right), (0, 1)) for k in range(4)]).any())
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1))
    )


def _chess(raw: Any, seat: int, observation: Any) -> str:
    """Reads as the first field of FEN; the legal moves say the rest."""
    return str(raw.board.board_fen())


def _chess_move(raw: Any, seat: int, action: int) -> str:
    from pettingzoo.classic.chess import chess_utils

    return str(chess_utils.action_to_move(raw.board, action, seat).uci())


def _chess_won(raw: Any, seat: int) -> float:
    sign = {"1-0": 1, "0-1": -1}.get(raw.board.result(claim_draw=True), 0)
    return _score(-sign if seat else sign)


def _go(raw: Any, seat: int, observation: Any) -> str:
    """Reads as ``black c3 d4; white e5``."""
    stones = [
        " ".join([name, *(_point(raw, int(at)) for at in np.flatnonzero(raw._go.board.ravel() == colour))])
        for name, colour in (("black", 1), ("white", -1))
    ]
    return "; ".join(stones)


def _point(raw: Any, action: int) -> str:
    down, right = divmod(action, raw._N)
    return "pass" if down == raw._N else f"{COLUMNS[right]}{raw._N - down}"


def _go_move(raw: Any, seat: int, action: int) -> str:
    return _point(raw, action)


def _go_won(raw: Any, seat: int) -> float:
    sign = raw._go.result() if raw._go.is_game_over() else 0
    return _score(-sign if seat else sign)


def _hanabi(raw: Any, seat: int, observation: Any) -> str:
    return _words(raw).observe(raw.hanabi_env.game_state, seat)


def _hanabi_move(raw: Any, seat: int, action: int) -> str:
    return _words(raw).action(raw.hanabi_env.game_state, seat, action)


def _hanabi_score(raw: Any, seat: int) -> float:
    """Returns the share of all cards that were played well; 0 if the last life was lost, as the game has it."""
    return float(raw.hanabi_env.game_state.returns()[seat] / raw.hanabi_env._env.max_utility())


def _words(raw: Any) -> Words:
    """Returns the words of the game that is under hanabi, made once."""
    if not hasattr(raw, "words"):
        raw.words = Words(raw.hanabi_env._env)
    words: Words = raw.words
    return words


def _hand(raw: Any, seat: int) -> dict[str, Any]:
    """Returns what rlcard tells a player: of the cards, its own and the public ones."""
    return dict(raw.env.get_state(seat)["raw_obs"])


def _leduc(raw: Any, seat: int, observation: Any) -> str:
    """Reads as ``card K board none you 1 others 2``; suits do not count."""
    hand = _hand(raw, seat)
    board = hand["public_card"]
    return f"card {hand['hand'][1]} board {board[1] if board else 'none'} {_chips(hand, seat)}"


def _texas(raw: Any, seat: int, observation: Any) -> str:
    """Reads as ``hand Ks 9h board 2c 3d Th you 3 others 5``; without a limit, what is left to bet stands after it."""
    hand = _hand(raw, seat)
    left = f" left {hand['stakes'][seat]}" if "stakes" in hand else ""
    return f"hand {_cards(hand['hand'])} board {_cards(hand['public_cards'])} {_chips(hand, seat)}{left}"


def _cards(cards: list[str]) -> str:
    return " ".join(card[1] + card[0].lower() for card in cards) or "none"


def _chips(hand: dict[str, Any], seat: int) -> str:
    chips = [int(number) for number in hand["all_chips"]]
    others = " ".join(map(str, chips[:seat] + chips[seat + 1 :]))
    return f"you {chips[seat]} others {others}"


def _cards_won(raw: Any, seat: int) -> float:
    return _score(raw.text_view.payoffs[seat] if raw.env.is_over() else 0)


def _throw(raw: Any, seat: int, observation: Any) -> str:
    move = int(observation)
    return "begin" if move == raw._none else f"other {_thrown(raw, seat, move)}"


def _thrown(raw: Any, seat: int, action: int) -> str:
    return str(raw._moves[action]).lower().replace("_", " ")


def _table(names: tuple[str, ...]) -> Callable[[Any, int, int], str]:
    return lambda raw, seat, action: names[action]


def _number(raw: Any, seat: int, action: int) -> str:
    return str(action + 1)


def _says(text: str, marks: tuple[str, str] = ("", "")) -> Callable[[Any, int], str]:
    return lambda raw, seat: text.format(mark=marks[seat % 2])


_POKER = "Poker. Numbers are chips put in: the best hand takes them, or who is left when the others fold."

WON = "win 1, draw 0.5, loss 0"

GAMES = {
    "tictactoe_v3": Game(
        _tictactoe, _number, _says("You are {mark}. Take a cell; three in a row win.", ("x", "o")), _tictactoe_won, WON
    ),
    "connect_four_v3": Game(
        _connect_four,
        _number,
        _says("You are {mark}. Drop into column 1 to 7; four in a row win.", ("x", "o")),
        _connect_four_won,
        WON,
    ),
    "leduc_holdem_v4": Game(
        _leduc,
        _table(BETS),
        _says("Poker with two each of J, Q, K. A pair with the board wins, else the highest."),
        _cards_won,
        WON,
        cards=True,
    ),
    "texas_holdem_v4": Game(_texas, _table(BETS), _says(_POKER), _cards_won, WON, cards=True),
    "texas_holdem_no_limit_v6": Game(_texas, _table(NO_LIMIT), _says(_POKER), _cards_won, WON, cards=True),
    "hanabi_v5": Game(
        _hanabi,
        _hanabi_move,
        lambda raw, seat: _words(raw).rules(seat),
        _hanabi_score,
        "share of all cards played well",
        shared=True,
    ),
    "chess_v6": Game(_chess, _chess_move, _says("You play {mark} in chess.", ("white", "black")), _chess_won, WON),
    "go_v5": Game(_go, _go_move, _says("You play {mark} in go.", ("black", "white")), _go_won, WON),
    "rps_v2": Game(_throw, _thrown, _says("Rock beats scissors, scissors beat paper, paper beats rock."), None),
}
