"""TextArena's games as AEC environments: what a player was told since its last turn is what it reads.

Owns the walls around a game: its chance is its own, it fetches nothing and cannot go round in circles. How it reads is
in ``textarena_texts.py``. Knows nothing about turns, tokens or models.
"""

from __future__ import annotations

__all__ = ["GAMES", "Arena", "env"]

import contextlib
import random
import re
import string
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import nltk
import numpy as np
import textarena
from gymnasium.spaces import Text
from pettingzoo import AECEnv

from decentral.envs.actions import Free
from decentral.envs.adapters.textarena_texts import MOVES, SEEN, TOLD, cut, feedback, hear, plain
from decentral.errors import ConfigError, EnvError, said, suggest

GAMES = (
    ("TicTacToe-v0", "the smallest board game"),
    ("ConnectFour-v0", "a board game of threats, with at most seven moves a turn"),
    ("Nim-v0", "a short game with a perfect strategy to find"),
    ("LiarsDice-v0-small", "bluffing with hidden dice, for 2 to 15 players"),
    ("GameOfPureStrategy-v0", "sealed bids, in which every card counts once"),
    ("FrozenLake-v0", "a way between holes, for one"),
    ("GuessTheNumber-v0", "a puzzle for one, solved by bisection"),
    ("TowerOfHanoi-v0", "a puzzle for one, solved by seven moves of foresight"),
    ("IteratedPrisonersDilemma-v0", "free talk before every choice to cooperate or defect"),
    ("TruthAndDeception-v0", "free talk between one who knows a truth and one who has to guess it"),
)
"""Games that work offline and read well, and what is in them. Other ids run too, most of them with free text."""

GLANCES = 10_000
"""How often a game may ask within a step who is out: once everyone is, it would look for the next player forever."""


def env(id: str, *, players: int | None = None, talk: int = 32, **options: Any) -> Arena:
    """Makes the game that TextArena registers as ``id``, with ``options`` of its own.

    ``players`` is 2 by default, or the least that the game takes; ``talk`` is the most tokens of a free answer. Raises
    ConfigError for an unknown id or a number of players that the game refuses, EnvError if it lacks its word lists.
    """
    known = textarena.envs.registration.ENV_REGISTRY
    if id not in known:
        raise ConfigError(f"TextArena has no game {id!r}{suggest(id, known)}; take one of its {len(known)} ids")
    why = ""
    for count in (2, 1, *range(3, 16)) if players is None else (players,):
        try:
            return Arena(id, count, talk, options)
        except AssertionError as error:  # with which a game says whom it takes
            why = why or said(error)
    raise ConfigError(f"{id} refuses players = {players} with the options {options}: {why}; change them")


class ArenaView:
    """Moves without their brackets where a game's legal ones are known, else free text."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena

    def observe(self, agent: str, observation: str) -> str:
        """Returns the observation, which is a text already."""
        return observation

    def actions(self, agent: str, mask: object) -> Mapping[str, str] | Free:
        """Returns what the game takes now: move -> the same in brackets."""
        moves = self._arena.moves
        return {move: f"[{move}]" for move in moves} if moves else Free(self._arena.talk)


class Arena(AECEnv):  # type: ignore[misc]
    """One game. Rewards come when it ends; until then nobody leaves, so that who is out gets its share as well."""

    def __init__(self, id: str, players: int, talk: int, options: Mapping[str, Any]) -> None:
        self.metadata = {"name": id, "render_modes": [], "is_parallelizable": False}
        self.render_mode = None
        self.id, self.talk, self.options = id, talk, options
        self.possible_agents = [f"player_{seat}" for seat in range(players)]
        self.teams = {agent: (agent,) for agent in self.possible_agents} if players == 2 else {}
        self.text_view = ArenaView(self)
        self.success_rule = "win 1, draw 0.5, loss 0" if players > 1 else "share of what can be had"
        self._texts, self._answers = Anything(1), Text(1000, min_length=0, charset=string.printable)
        self._seeds = random.Random(0)
        self._begin()

    def observation_space(self, agent: str) -> Text:
        """Returns the space of all texts, always the same object."""
        return self._texts

    def action_space(self, agent: str) -> Text:
        """Returns the space of printable texts, always the same object. A move stands in brackets in one of them."""
        return self._answers

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Starts a game; ``options`` are not used."""
        if seed is not None:
            self._seeds = random.Random(seed)
        self._begin()
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, str]] = {agent: {} for agent in self.agents}
        self._read = dict.fromkeys(self.agents, "")
        with self._chance.alone():
            self._turn()

    def step(self, action: str | None) -> None:
        """Passes a text on to the game; what that calls invalid is told as ``feedback``.

        A game that breaks on a free text, or leaves nobody to act, ends truncated and with nothing for anybody; what
        it raises on a move that was offered is raised on.
        """
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self._out.glances = 0
        try:
            with self._chance.alone():
                done, _ = self._table.step(action)
                if not done:
                    self._turn()
        except _Circle:
            self._end(f"everyone is out, and {self.id} looked for the next player until it was stopped")
        except Exception as error:  # whatever a game makes of a text that it did not expect
            if action in {f"[{move}]" for move in self.moves}:
                raise
            self._end(f"{self.id} broke on that text with {type(error).__name__}: {said(error)}")
        else:
            if done:
                self._end()
        self._accumulate_rewards()

    def observe(self, agent: str) -> str:
        """Returns what the agent was told before its last turn."""
        return self._read[agent]

    def instructions(self, agent: str) -> str:
        """Returns what the game tells a player before all else, or the same in short."""
        seat = self.possible_agents.index(agent)
        short = TOLD.get(self._kind)
        return short(self.game, self.state.game_state, seat) if short else cut(self._prompts[seat], self._kind in MOVES)

    def success(self, agent: str) -> float | None:
        """Returns 1 for a win, 0.5 for a draw, 0 for a loss; shares of what can be had, in [0, 1], are taken as such.

        None for a game that counts in other units.
        """
        rewards: dict[int, float] = self.state.rewards
        if not rewards:
            return 0.0
        every, mine = rewards.values(), rewards.get(self.possible_agents.index(agent), 0.0)
        if max(map(abs, every)) > 1:
            return None
        if len(self.possible_agents) == 1:
            return max(0.0, mine)
        return mine if min(every) >= 0 and max(every) > 0 else (1 + mine) / 2

    def close(self) -> None:
        """Does nothing: a game holds nothing open."""

    def _begin(self) -> None:
        """Makes the game anew, since many keep something of their last episode."""
        seed = self._seeds.getrandbits(31)
        self._chance = _Chance(PYTHON, NUMPY)
        try:
            with self._chance.alone(), _offline():
                random.seed(seed)
                np.random.seed(seed)
                self._table = textarena.make(self.id, **self.options)
                self.game = self._table
                while isinstance(self.game, textarena.Wrapper):
                    self.game = self.game.env
                self._table.reset(num_players=len(self.possible_agents), seed=seed)
        except LookupError as error:
            wanted = re.search(r"nltk\.download\('(\w+)'\)", str(error))
            if wanted is None:
                raise
            raise EnvError(
                f"{self.id} needs the word lists {wanted[1]!r} of nltk, which are not on this machine; get them once "
                f"with: python -m nltk.downloader {wanted[1]}"
            ) from error
        except SyntaxError as error:
            raise EnvError(
                f"{self.id} is written for Python 3.12 and this is {sys.version.split()[0]}; take that, or another game"
            ) from error
        self._kind = type(self.game).__name__.removesuffix("Env")
        self._chance.keep(_sources(type(self.game).__module__))
        self.state = self.game.state
        self._out = _Out()
        if hasattr(self.state, "elimination_order"):
            self.state.elimination_order = self._out
        self._prompts = [_prompt(messages) for messages in self.state.observations.values()]

    def _turn(self) -> None:
        """Selects who acts, and lets that player read what was said since its last turn."""
        seat, messages = self.game.get_observation()
        state, agent = self.state.game_state, self.possible_agents[seat]
        find, see = MOVES.get(self._kind), SEEN.get(self._kind)
        self.moves = list(find(self.game, state, seat)) if find else []
        """What the player to act may put in brackets; nothing where that is not known."""
        text = see(self.game, state, seat) if see else hear(messages, seat, self.state.role_mapping, bool(self.moves))
        self.agent_selection = agent
        self._read[agent] = text or "your turn"
        self.infos[agent] = {"feedback": feedback(messages)}

    def _end(self, broken: str = "") -> None:
        """Ends the game for all: with its rewards and its reason, or truncated if it is broken."""
        rewards = {} if broken else self.state.rewards or {}
        # some games give a sentence as the reward of an invalid move, and the reward as its reason
        self.state.rewards = {seat: float(one) for seat, one in rewards.items() if isinstance(one, int | float)}
        infos = self.state.game_info
        invalid = [f"Player {seat} made an invalid move" for seat in infos if infos[seat].get("invalid_move")]
        for seat, agent in enumerate(self.agents):
            self.rewards[agent] = self.state.rewards.get(seat, 0.0)
            self.terminations[agent], self.truncations[agent] = not broken, bool(broken)
            why = broken or ": ".join([*invalid, str(infos[seat].get("reason") or "")])
            self.infos[agent] = {"feedback": plain(why, True)}


class Source(NamedTuple):
    """A global generator."""

    owner: ModuleType
    get: Callable[[], Any]
    put: Callable[[Any], None]

    def __deepcopy__(self, memo: dict[int, Any]) -> Source:
        """Returns itself: a module cannot be copied, and there is one of each."""
        return self


PYTHON = Source(random, random.getstate, random.setstate)
NUMPY = Source(np, np.random.get_state, np.random.set_state)


class _Chance:
    """One game's stream of chance: while it is ``alone``, the global generators stand as it left them itself."""

    def __init__(self, *sources: Source) -> None:
        self.sources = sources
        self._states: dict[Source, Any] = {}

    def keep(self, sources: tuple[Source, ...]) -> None:
        """Takes only these apart from now on."""
        self.sources = sources
        self._states = {source: self._states[source] for source in sources}

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Lets the game draw, and leaves the generators to everybody else as they were."""
        before = {source: source.get() for source in self.sources}
        for source, state in self._states.items():
            source.put(state)
        try:
            yield
        finally:
            self._states = {source: source.get() for source in before}
            for source, state in before.items():
                source.put(state)


@contextlib.contextmanager
def _offline() -> Iterator[None]:
    """Keeps word games from the network, where they go for their lists whether or not these are there."""
    download, nltk.download = nltk.download, lambda *args, **options: True
    try:
        yield
    finally:
        nltk.download = download


class Anything(Text):  # type: ignore[misc]
    """All texts, in whatever alphabet."""

    def contains(self, x: Any) -> bool:
        """Says whether ``x`` is a text."""
        return isinstance(x, str)


class _Circle(Exception):
    """A game went round in a circle."""


class _Out(list[int]):
    """Who is out. Where that is everyone, textarena asks about one after the other without end."""

    glances = 0

    def __contains__(self, seat: object) -> bool:
        self.glances += 1
        if self.glances > GLANCES:
            raise _Circle
        return super().__contains__(seat)


def _prompt(messages: list[tuple[int, str, Any]]) -> str:
    """Takes the first message off, if it is the prompt."""
    first = messages[0] if messages else None
    return str(messages.pop(0)[1]) if first and first[2] == textarena.ObservationType.PROMPT else ""


@cache
def _sources(module: str) -> tuple[Source, ...]:
    """Returns the generators that a game's package imports. To swap one costs more than a step of a small game."""
    package = module.rpartition(".")[0]
    used = {
        id(value) for name, part in sys.modules.items() if name.startswith(package) for value in vars(part).values()
    }
    return tuple(source for source in (PYTHON, NUMPY) if id(source.owner) in used)
