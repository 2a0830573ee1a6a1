"""Environments as their own users step them, without this library: the peers of ``decentral bench environments``.

One player per API. Each plays whole episodes of uniformly random legal actions and returns how many steps that took; a
step is one action of one agent (AEC, OpenSpiel's sequential games, TextArena) or one action of all (Parallel,
Gymnasium, OpenSpiel's simultaneous games). Knows nothing of views, turns or time.
"""

from __future__ import annotations

__all__ = ["Draw", "Raw", "raw"]

import importlib
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv

from decentral.envs.adapters import gymnasium
from decentral.envs.names import resolve

Draw = Callable[[], float]
"""The next of some prepared random numbers in [0, 1)."""
Script = Sequence[tuple[str, str]]
"""The answers of an episode, in order: as our view takes them, and as the environment itself does."""


class Raw(NamedTuple):
    """An environment of its own package."""

    api: str
    read: str
    """What is read in every step."""
    play: Callable[[Sequence[int], Draw, Mapping[int, Script]], int]
    """(seeds of the episodes, random numbers, scripts by seed) -> steps."""
    scripted: bool = False
    """Whether it cannot say which actions are legal, so that it has to be told what to play."""


def raw(name: str) -> Raw:
    """Makes the environment that our own name stands for. Raises ImportError where its package is missing."""
    suite, _, id_ = name.partition("/")
    if suite in _MAKERS:
        return _MAKERS[suite](id_)
    return _pettingzoo(resolve(name)())


def _pettingzoo(env: Any) -> Raw:
    if isinstance(env, AECEnv):
        return Raw("AEC", "last() and the mask", partial(_aec, env))
    return Raw("Parallel", "observations and masks", partial(_parallel, env))


def _gymnasium(id: str) -> Raw:
    env = gymnasium.make(id)
    if not isinstance(env.action_space, spaces.Tuple):
        return Raw("Gymnasium", "the observation", partial(_single, env))
    return Raw("Gymnasium tuple", "observations", partial(_tuple, env))


def _openspiel(id: str) -> Raw:
    game = importlib.import_module("pyspiel").load_game(id)
    return Raw("OpenSpiel", "observation_string and legal_actions of who acts", partial(_spiel, game))


def _textarena(id: str) -> Raw:
    players = len(resolve(f"textarena/{id}")().possible_agents)
    play = partial(_arena, importlib.import_module("textarena"), id, players)
    return Raw("TextArena", "get_observation()", play, scripted=True)


_MAKERS: dict[str, Callable[[str], Raw]] = {
    "classic": lambda id: _pettingzoo(importlib.import_module(f"pettingzoo.classic.{id}").env()),
    "gymnasium": _gymnasium,
    "lbforaging": _gymnasium,
    "mpe2": lambda id: _pettingzoo(importlib.import_module(f"mpe2.{id}").parallel_env()),
    "openspiel": _openspiel,
    "rware": _gymnasium,
    "textarena": _textarena,
}


def _pick(draw: Draw, size: int, observation: Any, info: Mapping[str, Any]) -> int:
    """Returns a uniformly random action among those that the mask allows, if there is one."""
    if isinstance(observation, dict) and "action_mask" in observation:
        mask = observation["action_mask"]
    elif "action_mask" in info:
        mask = info["action_mask"]
    else:
        return int(draw() * size)
    legal = np.flatnonzero(mask)
    return int(legal[int(draw() * len(legal))])


def _aec(env: Any, seeds: Sequence[int], draw: Draw, _: object) -> int:
    sizes = {agent: int(env.action_space(agent).n) for agent in env.possible_agents}
    steps = 0
    for seed in seeds:
        env.reset(seed=seed)
        for agent in env.agent_iter():
            observation, _, terminated, truncated, info = env.last()
            if terminated or truncated:
                env.step(None)
            else:
                env.step(_pick(draw, sizes[agent], observation, info))
                steps += 1
    return steps


def _parallel(env: Any, seeds: Sequence[int], draw: Draw, _: object) -> int:
    sizes = {agent: int(env.action_space(agent).n) for agent in env.possible_agents}
    steps = 0
    for seed in seeds:
        seen, infos = env.reset(seed=seed)
        while env.agents:
            actions = {agent: _pick(draw, sizes[agent], seen[agent], infos[agent]) for agent in env.agents}
            seen, _, _, _, infos = env.step(actions)
            steps += 1
    return steps


def _single(env: Any, seeds: Sequence[int], draw: Draw, _: object) -> int:
    size, steps = int(env.action_space.n), 0
    for seed in seeds:
        env.reset(seed=seed)
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(int(draw() * size))
            over = terminated or truncated
            steps += 1
    return steps


def _tuple(env: Any, seeds: Sequence[int], draw: Draw, _: object) -> int:
    sizes, steps = [int(space.n) for space in env.action_space], 0
    own = env.unwrapped
    for seed in seeds:
        env.reset(seed=seed)
        over = False
        while not over:
            if hasattr(own, "_valid_actions"):  # lbforaging: legal actions, which no observation tells
                valid = [own._valid_actions[player] for player in own.players]
                joint = tuple(actions[int(draw() * len(actions))].value for actions in valid)
            else:
                joint = tuple(int(draw() * size) for size in sizes)
            _, _, terminated, truncated, _ = env.step(joint)
            over = terminated or truncated
            steps += 1
    return steps


def _spiel(game: Any, seeds: Sequence[int], draw: Draw, _: object) -> int:
    kind = game.get_type()
    together, steps = kind.dynamics == kind.Dynamics.SIMULTANEOUS, 0
    players = range(game.num_players())
    for seed in seeds:
        chance = random.Random(seed)
        state = game.new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                actions, weights = zip(*state.chance_outcomes())
                state.apply_action(chance.choices(actions, weights)[0])
                continue
            chosen = []
            for player in players if together else (state.current_player(),):
                state.observation_string(player)
                legal = state.legal_actions(player)
                chosen.append(legal[int(draw() * len(legal))])
            if together:
                state.apply_actions(chosen)
            else:
                state.apply_action(chosen[0])
            steps += 1
        state.returns()
    return steps


def _arena(
    textarena: Any, id: str, players: int, seeds: Sequence[int], draw: Draw, scripts: Mapping[int, Script]
) -> int:
    steps = 0
    for seed in seeds:
        inner = random.Random(seed).getrandbits(31)  # as our adapter draws it, so that both play the same game
        random.seed(inner)
        np.random.seed(inner)
        env = textarena.make(id)
        env.reset(num_players=players, seed=inner)
        for _, answer in scripts[seed]:
            env.get_observation()
            steps += 1
            if env.step(answer)[0]:
                break
        env.close()
    return steps
