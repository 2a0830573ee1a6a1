"""Vault: agents open one code lock by turns; each has a clue to a digit of its own, and the answers are public.

Ada knows of the first digit, bob of the second. The next agent reads the last try and the vault's answer to it in its
observation; the one who tried gets the answer as feedback. A code that was tried before costs a try and teaches
nothing. On harder levels a clue leaves several digits open, and at the top there are three agents, each of whom misses
one try in three.
"""

from __future__ import annotations

__all__ = ["LEVELS", "Vault", "env", "scratch"]

import itertools
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete, MultiDiscrete
from gymnasium.utils import seeding
from pettingzoo import AECEnv

from decentral.envs.games.lines import NAMES, pick

ORDINALS = ("first", "second", "third")
Code = tuple[int, ...]
"""One digit per agent, each from 1 to ``Rules.digits``."""


class Rules(msgspec.Struct, frozen=True):
    """What makes a level hard."""

    agents: int
    """How many agents there are, and how long the code is."""
    digits: int
    """A digit of the code is one of 1 to this; at most 9."""
    clue: int
    """How many digits a clue leaves open, the right one among them."""
    tries: int
    """How many tries all have together; at most 9, so that it is one digit."""


RULES = (
    Rules(agents=2, digits=4, clue=1, tries=4),
    Rules(agents=2, digits=6, clue=1, tries=3),
    Rules(agents=2, digits=5, clue=2, tries=5),
    Rules(agents=2, digits=8, clue=3, tries=8),
    Rules(agents=3, digits=4, clue=2, tries=9),
)
LEVELS = len(RULES)


def env(level: int = 0) -> Vault:
    """Makes the game. Raises ConfigError for an unknown level."""
    return Vault(pick("vault", RULES, level))


def scratch(observation: str) -> str:
    """Returns what the last answer says of every digit of the last try; nothing of the clue.

    >>> scratch("first is 2 last try 3 1 error first wrong left 3")
    'first 3 wrong second 1 right'
    """
    words = observation.split()
    if "try" not in words:
        return "nothing tried"
    start, error, end = words.index("try") + 1, words.index("error"), words.index("left")
    code, said = words[start:error], words[error + 1 : end]
    if said == ["repeated"]:
        return "nothing new"
    every = said[0] in ("both", "all")
    return " ".join(f"{o} {d} {'wrong' if every or o in said else 'right'}" for o, d in zip(ORDINALS, code))


def answer(code: Code, wrong: tuple[bool, ...]) -> str:
    """Returns what the vault says to a new code."""
    if not any(wrong):
        return "open"
    if all(wrong):
        return f"error {'both' if len(code) == 2 else 'all'} wrong"
    return f"error {' '.join(ordinal for ordinal, bad in zip(ORDINALS, wrong) if bad)} wrong"


class VaultView:
    """Reads as ``first is 2 or 4 last try 3 1 error first wrong left 3`` and offers the codes, such as ``2 4``."""

    def __init__(self, rules: Rules, codes: tuple[Code, ...]) -> None:
        self.rules = rules
        self.codes = {" ".join(map(str, code)): action for action, code in enumerate(codes)}

    def observe(self, agent: str, observation: npt.NDArray[np.int64]) -> str:
        """Returns the agent's clue, the last try with its answer, and the tries left."""
        rules, values = self.rules, observation.tolist()
        clue, rest = values[: rules.digits], values[rules.digits :]
        code, rest = tuple(rest[: rules.agents]), rest[rules.agents :]
        *marks, repeated, left = rest
        digits = " or ".join(str(place + 1) for place, open_ in enumerate(clue) if open_)
        text = f"{ORDINALS[NAMES.index(agent)]} is {digits}"
        if code[0]:
            said = "error repeated" if repeated else answer(code, tuple(map(bool, marks)))
            text += f" last try {' '.join(map(str, code))} {said}"
        return f"{text} left {left}"

    def actions(self, agent: str, mask: npt.NDArray[np.int8] | None) -> Mapping[str, int]:
        """Returns all codes; each is legal at any time."""
        return self.codes


class Vault(AECEnv):  # type: ignore[misc]
    """The game. Reward: 1 to each agent when the vault opens, which ends it; the last try truncates it.

    Observation: a 1 for each digit that the agent's clue leaves open, the last try (zeros: none), a 1 for each wrong
    digit of it, 1 if it was a repeated one (then no digit is marked), the tries left.
    """

    metadata: dict[str, Any] = {"name": "vault", "render_modes": ["ansi"], "is_parallelizable": False}  # noqa: RUF012
    render_mode = "ansi"
    success_rule = "the vault is open"

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.possible_agents = list(NAMES[: rules.agents])
        self.agents: list[str] = []
        self.codes: tuple[Code, ...] = tuple(itertools.product(range(1, rules.digits + 1), repeat=rules.agents))
        self.text_view = VaultView(rules, self.codes)
        sides = [2] * rules.digits + [rules.digits + 1] * rules.agents + [2] * (rules.agents + 1) + [rules.tries + 1]
        self._observation_spaces = {agent: MultiDiscrete(sides) for agent in self.possible_agents}
        self._action_spaces = {agent: Discrete(len(self.codes)) for agent in self.possible_agents}
        self.random = seeding.np_random(None)[0]
        self.secret: Code = ()
        self.clues: dict[str, list[int]] = {}
        self.tried: list[tuple[str, Code, str]] = []
        """Who tried which code, and the vault's answer."""
        self.opened = False

    def observation_space(self, agent: str) -> MultiDiscrete:
        """Returns the agent's own space, always the same object."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        """Returns the agent's own space, always the same object."""
        return self._action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Draws the code and the clues; ``options`` are not used."""
        if seed is not None:
            self.random = seeding.np_random(seed)[0]
        self.agents = list(self.possible_agents)
        digits = range(1, self.rules.digits + 1)
        self.secret = tuple(int(digit) for digit in self.random.integers(1, self.rules.digits + 1, len(self.agents)))
        for agent, right in zip(self.agents, self.secret):
            others = [digit for digit in digits if digit != right]
            false = self.random.choice(others, size=self.rules.clue - 1, replace=False)
            self.clues[agent] = [int(digit == right or digit in false) for digit in digits]
        self.tried, self.opened = [], False
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {"feedback": ""} for agent in self.agents}
        self.agent_selection, self._skip_agent_selection = self.agents[0], None

    def step(self, action: int | None) -> None:
        """Tries a code for the agent whose turn it is."""
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if action is None:
            raise ValueError(f"{agent} is alive and must try a code, not None")
        code = self.codes[action]
        repeated = any(code == before for _, before, _ in self.tried)
        said = "error repeated" if repeated else answer(code, self._wrong(code))
        self.tried.append((agent, code, said))
        self.opened = said == "open"
        late = not self.opened and len(self.tried) >= self.rules.tries
        self.infos[agent] = {"feedback": said}
        if self.opened or late:
            self.infos = {
                each: {"feedback": said if each == agent else "open" if self.opened else "late"} for each in self.agents
            }
        self.terminations = dict.fromkeys(self.agents, self.opened)
        self.truncations = dict.fromkeys(self.agents, late)
        self._cumulative_rewards[agent] = 0.0
        self.rewards = dict.fromkeys(self.agents, float(self.opened))
        self._accumulate_rewards()
        self.agent_selection = self.agents[(self.agents.index(agent) + 1) % len(self.agents)]

    def observe(self, agent: str) -> npt.NDArray[np.int64]:
        """Returns what the agent reads now, as the class describes it."""
        code, marks, repeated = (0,) * self.rules.agents, (False,) * self.rules.agents, False
        if self.tried:
            _, code, said = self.tried[-1]
            repeated = said == "error repeated"
            marks = marks if repeated else self._wrong(code)
        left = self.rules.tries - len(self.tried)
        return np.array([*self.clues[agent], *code, *marks, repeated, left], dtype=np.int64)

    def instructions(self, agent: str) -> str:
        """Returns what the agent is told once."""
        others = " ".join(other for other in self.possible_agents if other != agent)
        return f"you are {agent} open the vault with {others}"

    def success(self, agent: str) -> float:
        """Returns 1 if the vault is open."""
        return float(self.opened)

    def render(self) -> str:
        """Returns the code, the clues and all tries so far."""
        clues = ", ".join(
            f"{agent} knows {' or '.join(str(place + 1) for place, open_ in enumerate(clue) if open_)}"
            for agent, clue in self.clues.items()
        )
        tries = [f"{agent} tries {' '.join(map(str, code))}: {said}" for agent, code, said in self.tried]
        return "\n".join([f"code {' '.join(map(str, self.secret))}; {clues}", *tries])

    def close(self) -> None:
        """Holds nothing open; PettingZoo's test asks for it beside ``render``."""

    def _wrong(self, code: Code) -> tuple[bool, ...]:
        return tuple(digit != right for digit, right in zip(code, self.secret))
