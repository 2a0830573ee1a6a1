"""How TextArena's games read: the legal moves of those where they are known, and short plain words.

Owns tables keyed by the names of the games' classes, and a default for games that are in none. Knows nothing about
PettingZoo.
"""

from __future__ import annotations

__all__ = ["MOVES", "SEEN", "TOLD", "cut", "feedback", "hear", "plain"]

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from textarena import GAME_ID, ObservationType

Message = tuple[int, Any, Any]
"""Sender, text, kind; the text is now and then a number."""
State = Mapping[str, Any]

LONG = 600
"""Instructions of more characters are cut after a sentence."""

INVALID = re.compile(r"attempted an invalid move\. Reason: (.*?)\s*Please resubmit", re.DOTALL)
MENU = re.compile(r"(?i)\s*(your )?(current )?(available|valid|remaining) .*\[")
"""A line that lists the moves, which are offered anyhow."""
RULER = re.compile(r"[-=#*+_]{2,}|\|")
BRACKETS = re.compile(r"'?\[([^\[\]]*)\]'?")


def hear(messages: Sequence[Message], seat: int, names: Mapping[int, str], listed: bool) -> str:
    """Returns what a player reads of its messages; ``listed`` says that its moves are offered beside them.

    Left out are its own words, moves of others that the game describes as well, boards that a newer one replaces, and
    whatever is said twice.
    """
    described = any(kind == ObservationType.GAME_ACTION_DESCRIPTION for _, _, kind in messages)
    latest = {_opening(text): i for i, (_, text, kind) in enumerate(messages) if kind == ObservationType.GAME_BOARD}
    heard = []
    for i, (sender, text, kind) in enumerate(messages):
        if kind == ObservationType.PLAYER_ACTION:
            bare = listed and described and BRACKETS.fullmatch(str(text).strip())
            if sender not in (seat, GAME_ID) and not bare:
                heard.append(f"{names.get(sender, f'Player {sender}')}: {plain(text, listed)}")
        elif kind == ObservationType.GAME_BOARD:
            if latest[_opening(text)] == i:
                heard.append(plain(text, listed, " / "))
        elif not _invalid(text, kind):
            heard.append(plain(text, listed))
    return " ".join(filter(None, dict.fromkeys(heard)))


def feedback(messages: Sequence[Message]) -> str:
    """Returns why a player's last move did not count, if it did not."""
    found = [reason[1] for _, text, kind in messages if (reason := _invalid(text, kind))]
    return f"invalid: {plain(found[-1], True)}" if found else ""


def plain(text: object, listed: bool, between: str = " ") -> str:
    """Returns a text on one line and without rulers; where moves are listed, without menus and brackets too."""
    lines = [line for line in str(text).splitlines() if not (listed and MENU.match(line))]
    lines = [" ".join(RULER.sub(" ", line).split()) for line in lines]
    joined = between.join(filter(None, lines))
    return BRACKETS.sub(r"\1", joined) if listed else joined


def cut(prompt: str, listed: bool) -> str:
    """Returns the first sentences of a prompt, as many as are not too long in all."""
    text = plain(prompt, listed)
    return text if len(text) <= LONG else re.sub(r"(?<=[.!?:]) [^.!?:]*$", "", text[:LONG]) + " ..."


def _invalid(text: object, kind: object) -> re.Match[str] | None:
    return INVALID.search(str(text)) if kind == ObservationType.GAME_ADMIN else None


def _opening(text: object) -> tuple[str, ...]:
    """Returns the two words by which a board is known as a newer one of the same."""
    return tuple(str(text).split()[:2])


def _cells(game: Any, state: State, me: int) -> list[str]:
    return [str(cell) for cell, (row, column) in game.cell_mapping.items() if not state["board"][row][column]]


def _bids(game: Any, state: State, me: int) -> list[str]:
    count, face = state["current_bid"]["quantity"], state["current_bid"]["face_value"]
    higher = product(range(max(count, 1), sum(state["remaining_dice"].values()) + 1), range(max(face, 1), 7))
    return ["call"] * (count > 0) + [f"bid: {n}, {pips}" for n, pips in higher if (n, pips) != (count, face)]


def _disks(game: Any, state: State, me: int) -> list[str]:
    tops = {name: disks[-1] if disks else 99 for name, disks in state["towers"].items()}
    return [f"{a} {b}" for a, b in product(tops, tops) if tops[a] < tops[b]]


def _steps(game: Any, state: State, me: int) -> list[str]:
    row, column = state["player_pos"]
    inside = range(game.size)
    return [word for word, (down, right) in game.actions.items() if row + down in inside and column + right in inside]


MOVES: dict[str, Callable[[Any, State, int], Iterable[str]]] = {
    "Bandit": lambda game, state, me: game.buttons,
    "Blackjack": lambda game, state, me: ("hit", "stand"),
    "Chess": lambda game, state, me: (move.uci() for move in state["board"].legal_moves),
    "ConnectFour": lambda game, state, me: (str(i) for i, top in enumerate(state["board"][0]) if top == "."),
    "FrozenLake": _steps,
    "GameOfPureStrategy": lambda game, state, me: map(game._val_to_face, state["player_hands"][me]),
    "GuessTheNumber": lambda game, state, me: (
        str(i) for i in range(game.min_number, game.max_number + 1) if i not in game.guessed_numbers
    ),
    "IteratedMatchingPennies": lambda game, state, me: ("heads", "tails"),
    "IteratedPrisonersDilemma": lambda game, state, me: ("cooperate", "defect") if state["phase"] == "decision" else (),
    "IteratedRockPaperScissors": lambda game, state, me: ("rock", "paper", "scissors"),
    "IteratedStagHunt": lambda game, state, me: ("stag", "hare") if state["phase"] == "decision" else (),
    "IteratedUltimatumGame": lambda game, state, me: (
        (f"offer: {i}" for i in range(state["pool"] + 1)) if state["phase"] == "offering" else ("accept", "reject")
    ),
    "KuhnPoker": lambda game, state, me: state["current_legal_action_tree"],
    "LiarsDice": _bids,
    "Nim": lambda game, state, me: (f"{i} {n}" for i, size in enumerate(state["piles"]) for n in range(1, size + 1)),
    "Othello": lambda game, state, me: (f"{row}, {column}" for row, column in state["valid_moves"]),
    "PigDice": lambda game, state, me: ("roll", "hold"),
    "Secretary": lambda game, state, me: ("accept", "continue"),
    "SimpleTak": _cells,
    "ThreePlayerTicTacToe": _cells,
    "TicTacToe": _cells,
    "TowerOfHanoi": _disks,
    "TruthAndDeception": lambda game, state, me: ("fact 1", "fact 2") if game.state.turn == game.max_turns - 1 else (),
}
"""(game, state, player) -> what the player may put in brackets now. Nothing, or a game that is not here: any text."""


def _rows(rows: Iterable[Iterable[str]]) -> str:
    return " / ".join(" ".join(row) for row in rows)


def _numbered(game: Any, state: State, me: int) -> str:
    width = len(state["board"])
    return _rows((mark or str(width * i + j) for j, mark in enumerate(row)) for i, row in enumerate(state["board"]))


def _lake(game: Any, state: State, me: int) -> str:
    here = tuple(state["player_pos"])
    return _rows(
        ("P" if (i, j) == here else mark.strip() or "." for j, mark in enumerate(row))
        for i, row in enumerate(state["grid"])
    )


def _dice(game: Any, state: State, me: int) -> str:
    bid, left = state["current_bid"], " ".join(map(str, state["remaining_dice"].values()))
    last = f"bid {bid['quantity']} of {bid['face_value']}" if bid["quantity"] else "no bid"
    return f"your dice {' '.join(map(str, state['dice_rolls'][me]))}, left {left}, {last}"


SEEN: dict[str, Callable[[Any, State, int], str]] = {
    "Chess": lambda game, state, me: state["board"].board_fen(),
    "ConnectFour": lambda game, state, me: (
        _rows(row for row in state["board"] if set(row) != {"."}) or "empty" if game.is_open else "your turn"
    ),
    "FrozenLake": _lake,
    "LiarsDice": _dice,
    "Nim": lambda game, state, me: ", ".join(f"pile {i} has {size}" for i, size in enumerate(state["piles"])),
    "SimpleTak": _numbered,
    "ThreePlayerTicTacToe": _numbered,
    "TicTacToe": _numbered,
    "TowerOfHanoi": lambda game, state, me: " ".join(
        f"{name} {' '.join(map(str, disks)) or '-'}" for name, disks in state["towers"].items()
    ),
}
"""What a player sees in games whose state says all that it may know: shorter than the game's own words."""


def _dilemma(game: Any, state: State, me: int) -> str:
    return (
        f"You are Player {me}. {game.num_rounds} rounds of talk and then a choice: both cooperate, "
        f"{game.cooperate_reward} each; both defect, {game.mutual_defect_reward} each; who defects alone gets "
        f"{game.defect_reward}, the other {game.sucker_reward}. The higher total wins."
    )


def _truth(game: Any, state: State, me: int) -> str:
    facts = " ".join(f"Fact {i}: {state[f'fact{i}']['fact']}" for i in (1, 2))
    if me == 1:
        return f"You are the Guesser. {facts} One is true: talk, then guess which."
    true = 1 if state["fact1"]["is_correct"] else 2
    return f"You are the Deceiver. {facts} Fact {true} is true: talk the Guesser into the other."


TOLD: dict[str, Callable[[Any, State, int], str]] = {
    "Chess": lambda game, state, me: f"You play {'White' if me == 0 else 'Black'} in chess.",
    "ConnectFour": lambda game, state, me: f"You are {'XO'[me]}. Drop a disc into a column; four in a row win.",
    "FrozenLake": lambda game, state, me: "Walk from P to G; H is a hole and ends it.",
    "GameOfPureStrategy": lambda game, state, me: (
        f"You are Player {me}. Each round the higher card wins the prize, and a tie adds it to the next; every card "
        "can be played once. The higher total wins."
    ),
    "GuessTheNumber": lambda game, state, me: (
        f"Guess the number, {game.min_number} to {game.max_number}, in {game.max_turns} turns."
    ),
    "IteratedPrisonersDilemma": _dilemma,
    "LiarsDice": lambda game, state, me: (
        f"You are Player {me}. Bid how many of all dice show a face, never less than the last bid, or call it: the "
        "liar, or who called wrongly, loses a die. Who has dice left wins."
    ),
    "Nim": lambda game, state, me: "Take from one pile: its number, then how many. Who takes the last wins.",
    "TicTacToe": lambda game, state, me: f"You are {'OX'[me]}. Take a cell by its number; three in a row win.",
    "TowerOfHanoi": lambda game, state, me: (
        "Move all disks from A to C, one a turn and never onto a smaller one. A C moves the top of A to C."
    ),
    "TruthAndDeception": _truth,
}
"""What a player is told of a game whose own prompt is longer than it need be."""
