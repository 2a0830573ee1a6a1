"""OpenSpiel's games (package ``open-spiel``) as PettingZoo environments, on pyspiel's own states.

Games in which players move one at a time are AEC, games of simultaneous moves are Parallel. Chance is drawn from the
episode's own generator, rewards are the differences of pyspiel's returns. How a game reads is in
``openspiel_texts.py``. Knows nothing about turns, agents or models.
"""

from __future__ import annotations

__all__ = ["env"]

import copy
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyspiel
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

from decentral.envs.adapters.openspiel_texts import CHARACTERS, Words
from decentral.errors import ConfigError, said, suggest

LARGEST = 100_000
"""An action mask is not made longer than this."""
_SHARED = {"bargaining", "lewis_signaling", "trade_comm"}
"""Of general sum by type, but the return over the largest utility is an honest share of a success."""
_PARTNERS = {"bridge", "euchre", "spades"}
"""Who sits opposite is on the same side."""
_UTMOST = {"coop_box_pushing": 100.0}
"""Where pyspiel's largest utility is out of reach: all three boxes, with no step lost, would pay about this."""


def env(id: str, **options: Any) -> Turns | Moves:
    """Makes a game from the string that pyspiel takes, such as ``hanabi(players=2)``; options are its parameters.

    A game that draws by itself has its ``rng_seed`` set by every reset. Raises ConfigError for a game or parameter that
    is unknown, and for a game that cannot be served.
    """
    game = _load(id, options)
    kind = game.get_type()
    if why := _refusal(game):
        raise ConfigError(f"OpenSpiel's game {id!r} cannot be served: {why}; choose another game")
    return Moves(game) if kind.dynamics == kind.Dynamics.SIMULTANEOUS else Turns(game)


class SpielView:
    """Reads a game through the texts of ``openspiel_texts.py``."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def observe(self, agent: str, observation: str) -> str:
        """Returns the observation, which is a text already."""
        return observation

    def actions(self, agent: str, mask: Any) -> Mapping[str, int]:
        """Returns the legal actions; where pyspiel gives two one text, their numbers tell them apart."""
        table, player = self.table, self.table.players[agent]
        return table.words.actions(table.state, player, mask)


class Table:
    """What both kinds of environment have in common: a game, the state it is in, and the episode's own chance."""

    def __init__(self, game: Any) -> None:
        kind = game.get_type()
        self.game = game
        self.words = Words(game)
        self.metadata = {"name": kind.short_name, "render_modes": []}
        self.possible_agents = [f"player_{player}" for player in range(game.num_players())]
        self.players = {agent: player for player, agent in enumerate(self.possible_agents)}
        self.teams = _teams(kind, self.possible_agents)
        self.agents: list[str] = []
        self.text_view = SpielView(self)
        self.state = game.new_initial_state()
        self.random = random.Random()
        self.returns = [0.0] * game.num_players()
        self.success_rule, self._success = _judge(game)
        self._stepwise = kind.reward_model == kind.RewardModel.REWARDS
        size = game.num_distinct_actions()
        self._action_spaces = {agent: spaces.Discrete(size) for agent in self.possible_agents}
        self._observation_spaces = {
            agent: spaces.Dict(
                observation=spaces.Text(100_000, min_length=0, charset=CHARACTERS),
                action_mask=spaces.Box(0, 1, (size,), np.int8),
            )
            for agent in self.possible_agents
        }

    def __deepcopy__(self, memo: dict[int, Any]) -> Table:
        """Returns a copy that goes on by itself; pyspiel clones a state faster than Python can copy it."""
        for shared in (self.game, self.words, self._action_spaces, self._observation_spaces):
            memo[id(shared)] = shared
        memo[id(self.state)] = self.state.clone()
        twin = memo[id(self)] = object.__new__(type(self))
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def observation_space(self, agent: str) -> spaces.Dict:
        """Returns the agent's own space, always the same object."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """Returns the agent's own space, always the same object."""
        return self._action_spaces[agent]

    def instructions(self, agent: str) -> str:
        """Returns what the agent is told once."""
        return self.words.rules(self.players[agent])

    def success(self, agent: str) -> float | None:
        """Returns 1, 0.5 or 0 for an end above, at or below zero in a game of zero sum (one that is cut ends at zero).

        Where all share one score it is the share of the best one; elsewhere there is none.
        """
        return self._success(self.returns[self.players[agent]])

    def look(self, agent: str) -> dict[str, Any]:
        """Returns the agent's observation; when all is over there is nothing left to say."""
        state, player = self.state, self.players[agent]
        mask = np.zeros(self.game.num_distinct_actions(), np.int8)
        if state.is_terminal():
            return {"observation": "", "action_mask": mask}
        mask[state.legal_actions(player)] = 1
        return {"observation": self.words.observe(state, player), "action_mask": mask}

    def open(self, seed: int | None) -> None:
        """Starts an episode and plays chance up to the first decision."""
        if seed is not None:
            self.random.seed(seed)
        parameters = self.game.get_parameters()
        if "rng_seed" in parameters:  # the game draws by itself, so that only another game draws otherwise
            parameters["rng_seed"] = self.random.randrange(1, 2**31)
            self.game = pyspiel.load_game(self.game.get_type().short_name, parameters)
        self.agents = list(self.possible_agents)
        self.returns = [0.0] * len(self.agents)
        self.state = self.game.new_initial_state()
        self.chance()

    def chance(self) -> None:
        """Plays chance up to the next decision or the end."""
        state = self.state
        while state.is_chance_node():
            actions, weights = zip(*state.chance_outcomes())
            state.apply_action(self.random.choices(actions, weights)[0])

    def earn(self) -> dict[str, float]:
        """Returns what each got since it was last asked; games without rewards on the way pay at the end."""
        before = self.returns
        if self._stepwise or self.state.is_terminal():
            self.returns = self.state.returns()
        return {agent: now - then for agent, now, then in zip(self.possible_agents, self.returns, before)}


class Turns(Table, AECEnv):  # type: ignore[misc]
    """A game in which one player moves at a time."""

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Starts an episode; ``options`` are not used."""
        self.open(seed)
        every = self.agents
        self.rewards = self.earn()
        self._cumulative_rewards = dict(self.rewards)
        self.terminations = dict.fromkeys(every, False)
        self.truncations = dict.fromkeys(every, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in every}
        self._next()

    def observe(self, agent: str) -> dict[str, Any]:
        """Returns what the agent may know, and which actions it has."""
        return self.look(agent)

    def step(self, action: int | None) -> None:
        """Plays the selected agent's action, then chance."""
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        self.state.apply_action_with_legality_check(int(action))  # type: ignore[arg-type]
        self.chance()
        self.rewards = self.earn()
        self._accumulate_rewards()
        self._next()

    def _next(self) -> None:
        if self.state.is_terminal():
            self.terminations = dict.fromkeys(self.agents, True)
            self.agent_selection = self.agents[0]
        else:
            self.agent_selection = self.possible_agents[self.state.current_player()]


class Moves(Table, ParallelEnv):  # type: ignore[misc]
    """A game in which all players move at once."""

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Starts an episode; ``options`` are not used."""
        self.open(seed)
        return {agent: self.look(agent) for agent in self.agents}, {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> tuple[dict[str, Any], ...]:
        """Plays everyone's action, then chance."""
        self.state.apply_actions_with_legality_checks([int(actions[agent]) for agent in self.possible_agents])
        self.chance()
        over, every = self.state.is_terminal(), self.agents
        looks = {agent: self.look(agent) for agent in every}
        if over:
            self.agents = []
        infos: dict[str, dict[str, Any]] = {agent: {} for agent in every}
        return looks, self.earn(), dict.fromkeys(every, over), dict.fromkeys(every, False), infos


def _teams(kind: Any, agents: list[str]) -> dict[str, list[str]]:
    """Returns the sides of a game of zero sum, none for others and where somebody plays alone."""
    if kind.short_name in _PARTNERS:
        return {"even": agents[::2], "odd": agents[1::2]}
    if kind.utility != kind.Utility.ZERO_SUM or len(agents) < 2:
        return {}
    return {agent: [agent] for agent in agents}


def _judge(game: Any) -> tuple[str, Callable[[float], float | None]]:
    """Returns in a few words what a success is, and what makes one of a return."""
    kind = game.get_type()
    if kind.utility == kind.Utility.ZERO_SUM:
        return "win 1, draw 0.5, loss 0", lambda total: 0.5 if total == 0 else float(total > 0)
    best = _UTMOST.get(kind.short_name, game.max_utility())
    if best > 0 and (kind.utility == kind.Utility.IDENTICAL or kind.short_name in _SHARED):
        return "share of the best score", lambda total: float(min(max(total / best, 0.0), 1.0))
    return "", lambda total: None


def _load(id: str, options: dict[str, Any]) -> Any:
    """Returns pyspiel's game. Raises ConfigError."""
    name = id.partition("(")[0]
    if name not in pyspiel.registered_names():
        raise ConfigError(
            f"OpenSpiel has no game {name!r}{suggest(name, pyspiel.registered_names())}; see pyspiel.registered_names()"
        )
    known = next(one for one in pyspiel.registered_games() if one.short_name == name).parameter_specification
    for key in options:
        if key not in known:
            raise ConfigError(
                f"option {key!r} is unknown to {name}{suggest(key, known)}; it takes {', '.join(known) or 'none'}"
            )
    try:
        parameters = pyspiel.game_parameters_from_string(id)
        parameters.update({key: _parameter(value, known[key]) for key, value in options.items()})
        return pyspiel.load_game(parameters.pop("name"), parameters)
    except Exception as error:  # missing files and parameters come as several kinds
        what = f"{id!r} with {options}" if options else repr(id)
        raise ConfigError(f"OpenSpiel cannot load {what}: {said(error)}; correct its parameters") from error


def _parameter(value: Any, example: Any) -> Any:
    """Returns a value as pyspiel insists on it: a game inside a game as parameters, a whole number as a fraction."""
    if isinstance(example, dict) and isinstance(value, str):
        return pyspiel.game_parameters_from_string(value)
    return float(value) if isinstance(example, float) else value


def _refusal(game: Any) -> str:
    """Returns why a game cannot be served, or the empty string."""
    kind, size = game.get_type(), game.num_distinct_actions()
    if kind.dynamics == kind.Dynamics.MEAN_FIELD:
        return "it is a mean field game, whose players are a distribution"
    if not (kind.provides_observation_string or kind.provides_information_state_string):
        return "it describes no state as text"
    if not 0 < size <= LARGEST:
        return f"it has {size} different actions, and 1 to {LARGEST} can be listed"
    sampled = kind.chance_mode == kind.ChanceMode.SAMPLED_STOCHASTIC
    if kind.short_name == "add_noise" or (sampled and "rng_seed" not in game.get_parameters()):
        return "it draws from a generator of its own that no reset seeds"
    return ""
