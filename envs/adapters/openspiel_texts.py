"""How OpenSpiel's games read: observations, actions and rules as short plain words.

Owns the texts, one small function per game that needs one and a default for the rest. Every observation is made from
the string that pyspiel gives to the player who reads it, and from nothing else. Knows nothing about PettingZoo.
"""

from __future__ import annotations

__all__ = ["CHARACTERS", "Words"]

import re
import string
import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from decentral.envs.actions import MOST_ACTIONS
from decentral.errors import EnvError

CHARACTERS = frozenset(string.ascii_letters + string.digits + string.punctuation + " \n")
"""All that an observation is written in."""

_RANKS = {"TWO": "2", "THREE": "3", "FOUR": "4", "FIVE": "5", "SIX": "6", "SEVEN": "7", "EIGHT": "8", "NINE": "9"}
_SIGNS = str.maketrans("♠♥♦♣←", "SHDC<")
_COLOURS = re.compile(r"\x1b\[[\d;]*m")
_BORDER = re.compile(r"\+[-|]+\+")
_WHO = re.compile(r"^(\[P\d+\]|(Player|Proposer|Pl):? ?\d+:?( Action:)?) ?")
"""An action need not say whose it is."""
CACHED = 1024
"""Tables of actions that are kept."""
_TOLD_MORE = {"coordinated_mp", "first_sealed_auction"}
"""Here the observation leaves out what the player knows; its information state does not."""


class Words:
    """The words of one game; they hold nothing of an episode, so that copies of an environment share them."""

    def __init__(self, game: Any) -> None:
        self._game = game
        self._kind = kind = game.get_type()
        self._read = _READERS.get(kind.short_name)
        self._blind = kind.information == kind.Information.ONE_SHOT
        self._steady = kind.short_name in _NAMERS
        """Whether an action has the same name in every state."""
        self._tables: dict[tuple[int, bytes], dict[str, int]] = {}
        self._observes = kind.provides_observation_string and kind.short_name not in _TOLD_MORE

    def __deepcopy__(self, memo: dict[int, Any]) -> Words:
        return self

    def observe(self, state: Any, player: int) -> str:
        """Returns what ``player`` may know of a state."""
        if self._blind:
            return "choose"
        raw = state.observation_string(player) if self._observes else state.information_state_string(player)
        return self._read(raw, player, self._game) if self._read else _plain(raw) or "nothing"

    def actions(self, state: Any, player: int, mask: npt.NDArray[np.int8]) -> Mapping[str, int]:
        """Returns the legal actions by name; where pyspiel gives two one name, their numbers tell them apart.

        Raises EnvError for more than can be listed.
        """
        if not self._steady:
            return self._table(state, player, mask)
        key = player, mask.tobytes()
        if key not in self._tables:
            if len(self._tables) >= CACHED:
                self._tables.clear()
            self._tables[key] = self._table(state, player, mask)
        return self._tables[key]

    def _table(self, state: Any, player: int, mask: npt.NDArray[np.int8]) -> dict[str, int]:
        legal = mask.nonzero()[0].tolist()
        if len(legal) > MOST_ACTIONS:
            raise EnvError(
                f"player_{player} has {len(legal)} legal actions, more than {MOST_ACTIONS} to list; "
                "make the game smaller"
            )
        texts = [self.action(state, player, action) for action in legal]
        if len(set(texts)) < len(texts):
            texts = [f"{text} {action}" if texts.count(text) > 1 else text for text, action in zip(texts, legal)]
        return dict(zip(texts, legal))

    def action(self, state: Any, player: int, action: int) -> str:
        """Returns the name of an action; two actions of one state may still share one."""
        return _named(self._kind.short_name, state.action_to_string(player, action))

    def rules(self, player: int) -> str:
        """Returns what ``player`` is told once."""
        kind, players = self._kind, self._game.num_players()
        known = _RULES.get(kind.short_name)
        if known:
            return known.format(ranks=players + 1, mark="xo"[player % 2])
        aim = {
            kind.Utility.ZERO_SUM: "Beat the other." if players == 2 else "Beat the others.",
            kind.Utility.IDENTICAL: "All share one score.",
        }.get(kind.utility, "Score as much as you can.")
        return f"You are player {player} in {_plain(kind.long_name)}. {aim}"


@lru_cache(maxsize=2**16)
def _named(game: str, raw: str) -> str:
    text = _WHO.sub("", " ".join(_plain(raw).split()))
    name = _NAMERS.get(game)
    return name(text) if name else text


def _plain(raw: str) -> str:
    """Returns the lines that say something, in ASCII; spaces stay, since in some games they place things."""
    text = _COLOURS.sub("", raw).translate(_SIGNS)
    if not text.isascii():
        text = "".join(map(_ascii, text))
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(line for line in lines if line and not _BORDER.fullmatch(line))


def _ascii(sign: str) -> str:
    """Returns a playing card as rank and suit, lines as lines, anything else unknown as a question mark."""
    words = unicodedata.name(sign, "").split()
    if words[:2] == ["PLAYING", "CARD"] and len(words) == 5:
        return _RANKS.get(words[2], words[2][0]) + words[4][0]
    if words[:2] == ["BOX", "DRAWINGS"]:
        down, along = {"VERTICAL", "UP", "DOWN"} & set(words), {"HORIZONTAL", "LEFT", "RIGHT"} & set(words)
        return "+" if down and along else "|" if down else "-"
    return sign if sign.isascii() else "?"


def _fields(raw: str) -> dict[str, str]:
    """Returns what stands behind the colon in each line of ``key: value``."""
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in raw.splitlines())}


def _numbers(text: str) -> str:
    return " ".join(re.findall(r"\d+", text))


def _tic_tac_toe(raw: str, player: int, game: Any) -> str:
    """Reads as ``1 x 3 / 4 o 6 / 7 8 9``: a free square shows what its action is called."""
    cells = [str(i + 1) if mark == "." else mark for i, mark in enumerate(raw.replace("\n", ""))]
    return " / ".join(" ".join(cells[i : i + 3]) for i in (0, 3, 6))


def _connect_four(raw: str, player: int, game: Any) -> str:
    """Reads as ``. . . x . . . / . . o x . . .``, from the highest row that is not empty."""
    rows = [" ".join(row) for row in raw.split() if row.strip(".")]
    return " / ".join(rows) or "empty"


def _kuhn_poker(raw: str, player: int, game: Any) -> str:
    """Reads as ``card 3 you 1 others 2``; pyspiel writes the card and then what each has paid, all in one."""
    players = game.num_players()
    card, paid = int(raw[:-players]), raw[-players:]
    return f"card {card + 1} {_paid(list(paid), player)}"


def _leduc_poker(raw: str, player: int, game: Any) -> str:
    """Reads as ``card 1 board none you 1 others 3``."""
    parts = dict(re.findall(r"\[(\w+): ([^\]]*)\]", raw))
    suits = 1 if game.get_parameters()["suit_isomorphism"] else 2
    board = int(parts["Public"]) // suits + 1 if "Public" in parts else "none"
    return f"card {int(parts['Private']) // suits + 1} board {board} {_paid(parts['Ante'].split(), player)}"


def _paid(paid: list[str], player: int) -> str:
    return f"you {paid[player]} others {' '.join(paid[:player] + paid[player + 1 :])}"


def _hanabi(raw: str, player: int, game: Any) -> str:
    """Reads as ``life 3 info 7 fire R0 Y1 deck 1 out R1 you ? R 12 next Y1:Y R2``.

    Of a card stands what it is, if the reader sees it, and what its holder knows of it, if that is anything: the
    colours that it may have, unless these are all, and the ranks, unless these are all.
    """
    head, _, tail = raw.partition("Hands:\n")
    hands, _, tail = tail.partition("Deck size:")
    top, end = _fields(head), _fields(f"Deck size:{tail}")
    fireworks = top["Fireworks"].split()
    ranks = int(game.max_utility()) // len(fireworks)
    anything = "".join(pile[0] for pile in fireworks), "".join(map(str, range(1, ranks + 1)))
    text = f"life {top['Life tokens']} info {top['Info tokens']} fire {' '.join(fireworks)} deck {end['Deck size']}"
    if end.get("Discards"):
        text += f" out {end['Discards']}"
    for seat, hand in enumerate(hands.split("-----\n")):
        cards = []
        for card, known in re.findall(r"^(\w\w)(?: \|\| \w\w\|(\w*))?$", hand, re.MULTILINE):
            parts = known.rstrip(string.digits), known.lstrip(string.ascii_uppercase)
            told = "".join(part for part, every in zip(parts, anything) if part != every)
            cards.append(told or "?" if card == "XX" else f"{card}:{told}" if told else card)
        text += f" {'you' if seat == 0 else 'next' if seat == 1 else f'+{seat}'} {' '.join(cards)}"
    return text


def _trade_comm(raw: str, player: int, game: Any) -> str:
    """Reads as ``item 1 heard 4 trade``."""
    fields = _fields(raw)
    said = fields["Comm history"].split()  # player 0 speaks first
    heard = f" heard {said[1 - player]}" if len(said) > 1 - player else ""
    return f"item {fields['My item']}{heard} {'speak' if fields['Phase'] == 'comm' else 'trade'}"


def _negotiation(raw: str, player: int, game: Any) -> str:
    """Reads as ``pool 5 5 5 worth 10 1 7 steps 7 offer 5 4 1 said 3 4 2 propose``."""
    fields = _fields(raw)
    text = f"pool {fields['Item pool']} worth {fields[f'Agent {player} util vec']} steps {fields['Max steps']}"
    for word, key in (("offer", "Most recent proposal"), ("said", "Most recent utterance")):
        if key in fields:
            text += f" {word} {_numbers(fields[key])}"
    return f"{text} {'propose' if fields['Turn Type'] == 'Proposal' else 'speak'}"


def _bargaining(raw: str, player: int, game: Any) -> str:
    """Reads as ``pool 4 1 1 worth 1 6 0 turn 2 other keeps 3 1 0``."""
    fields = _fields(raw)
    offers = int(fields["Number of offers"])
    text = f"pool {_numbers(fields['Pool'])} worth {_numbers(fields['My values'])} turn {offers + 1}"
    last = fields.get(f"P{1 - player} offers")
    return f"{text} other keeps {_numbers(last)}" if last else text


def _coop_box_pushing(raw: str, player: int, game: Any) -> str:
    """Reads as ``ahead big box``, or is the whole field where the game shows that."""
    return f"ahead {raw}" if "\n" not in raw else _plain(raw)


_READERS: dict[str, Callable[[str, int, Any], str]] = {
    "bargaining": _bargaining,
    "connect_four": _connect_four,
    "coop_box_pushing": _coop_box_pushing,
    "hanabi": _hanabi,
    "kuhn_poker": _kuhn_poker,
    "leduc_poker": _leduc_poker,
    "negotiation": _negotiation,
    "tic_tac_toe": _tic_tac_toe,
    "trade_comm": _trade_comm,
}


def _square(raw: str) -> str:
    row, column = map(int, re.findall(r"\d", raw))
    return str(3 * row + column + 1)


def _hint(raw: str) -> str:
    """Returns ``play 1``, ``discard 1`` (counted from 1), ``hint R`` or, to a later player, ``hint +2 R``."""
    words = raw.strip("()").lower().split()
    if words[0] != "reveal":
        return f"{words[0]} {int(words[1]) + 1}"
    return f"hint {words[-1].upper()}" if words[2] == "+1" else f"hint {words[2]} {words[-1].upper()}"


# Of games in which the name of a player's action does not depend on the state.
_NAMERS: dict[str, Callable[[str], str]] = {
    "bargaining": lambda raw: "agree" if raw == "Agree" else f"keep {_numbers(raw)}",
    "connect_four": lambda raw: str(int(raw[1:]) + 1),
    "coop_box_pushing": lambda raw: raw.split()[-1],
    "hanabi": _hint,
    "kuhn_poker": str.lower,
    "leduc_poker": str.lower,
    "negotiation": lambda raw: (
        f"say {_numbers(raw)}" if "Utterance" in raw else f"keep {_numbers(raw)}" if "[" in raw else "agree"
    ),
    "tic_tac_toe": _square,
    "trade_comm": lambda raw: (
        raw.removeprefix("Trade ").replace(":", " for ") if ":" in raw else raw.removeprefix("Utter ")
    ),
}

_SPLIT = "Split the pool with the other: you say what you keep, the rest is the other's. Without a deal nobody scores."

_RULES = {
    "bargaining": _SPLIT,
    "connect_four": "You are {mark}. Drop into a column, 1 is the left one. Four in a row win.",
    "coop_box_pushing": (
        "You and another push boxes to the far wall. A small box pays a little; the big one, which needs you both "
        "side by side, pays most. Bumps cost."
    ),
    "hanabi": (
        "Together play each colour upward from 1. You see the others' cards, not yours. "
        "A wrong card costs a life, a hint costs info."
    ),
    "kuhn_poker": "Poker with cards 1 to {ranks}, the highest wins. Pass after a bet gives up.",
    "leduc_poker": "Poker with two cards of each rank 1 to {ranks}. A pair with the board wins, else the highest.",
    "negotiation": _SPLIT,
    "tic_tac_toe": "You are {mark}. Take a free square. Three in a row win.",
    "trade_comm": (
        "You and another hold an item each. Say a number, then offer your item for theirs. "
        "You both win if both offers are true."
    ),
}
