"""Guide: ada sees behind which coloured door the goal is and shows flags; bob walks to the doors and opens one.

Bob sees the flag of the round before. The first door he opens ends the game. At first he can only follow a flag, which
opens the door of its colour; then he may also name a door, and then he must. Harder levels have more doors and a longer
corridor; flags are seen at the doors only, and fog hides one in three; at the top there are fewer flags than doors, so
that two flags in a row must name one.
"""

from __future__ import annotations

__all__ = ["LEVELS", "Guide", "env", "scratch"]

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete, MultiDiscrete
from gymnasium.utils import seeding
from pettingzoo import ParallelEnv

from decentral.envs.games.lines import NAMES, pick

GUIDE, WALKER = NAMES[:2]
COLOURS = ("red", "blue", "green", "gold", "pink", "white", "black", "grey")
WAIT, WALK, FOLLOW, DOORS = 0, 1, 2, 3
"""The walker's actions; from ``DOORS`` on they are doors. The guide's 0 is no flag; from 1 on they are flags."""
NONE, HIDDEN, FLAGS = 0, 1, 2
"""What the walker may see; from ``FLAGS`` on these are flags."""


class Rules(msgspec.Struct, frozen=True):
    """What makes a level hard."""

    doors: int
    """How many colours of doors there are."""
    flags: int
    """How many colours of flags there are, the first ones of the doors' colours."""
    corridor: int
    """How many steps the walker is away from the doors."""
    sight: int
    """Flags are hidden from a walker who is farther from the doors than this."""
    fog: float
    """The probability that a flag is hidden for a round."""
    rounds: int
    """The time there is; at most 9, so that it is one digit."""
    follow: bool = False
    """Whether the walker may open the door of the flag it sees without naming it."""
    name: bool = True
    """Whether the walker may name the door it opens."""


RULES = (
    Rules(doors=4, flags=4, corridor=1, sight=9, fog=0.0, rounds=5, follow=True, name=False),
    Rules(doors=4, flags=4, corridor=1, sight=9, fog=0.0, rounds=5, follow=True),
    Rules(doors=6, flags=6, corridor=2, sight=0, fog=0.0, rounds=6),
    Rules(doors=8, flags=8, corridor=1, sight=0, fog=1 / 3, rounds=9),
    Rules(doors=8, flags=3, corridor=1, sight=9, fog=0.0, rounds=6),
)
LEVELS = len(RULES)


def env(level: int = 0) -> Guide:
    """Makes the game. Raises ConfigError for an unknown level."""
    return Guide(pick("guide", RULES, level))


def scratch(observation: str) -> str:
    """Returns where the walker is and whether a flag can be seen, but no colour.

    >>> scratch("steps 0 flag red left 4")
    'bob at doors flag up'
    """
    words = observation.split()
    steps = words[words.index("steps") + 1]
    place = f"{WALKER} {'at doors' if steps == '0' else 'in corridor'}"
    if "flag" not in words:
        return place
    flag = words[words.index("flag") + 1]
    return f"{place} flag {flag if flag in ('none', 'hidden') else 'up'}"


class GuideView:
    """Reads as ``goal red steps 1 left 4`` for the guide and ``steps 1 flag red left 4`` for the walker."""

    def __init__(self, rules: Rules) -> None:
        self.words = {
            GUIDE: ("none", *COLOURS[: rules.flags]),
            WALKER: ("wait", "walk", "follow", *COLOURS[: rules.doors]),
        }

    def observe(self, agent: str, observation: npt.NDArray[np.int64]) -> str:
        """Returns the walker's steps to the doors, the rounds left, and the goal or the flag of the round before."""
        sign, steps, left = observation.tolist()
        if agent == GUIDE:
            return f"goal {COLOURS[sign]} steps {steps} left {left}"
        return f"steps {steps} flag {('none', 'hidden', *COLOURS)[sign]} left {left}"

    def actions(self, agent: str, mask: npt.NDArray[np.int8] | None) -> Mapping[str, int]:
        """Returns the guide's flags, or what the walker can do where it stands."""
        return {word: action for action, word in enumerate(self.words[agent]) if mask is None or mask[action]}


class Guide(ParallelEnv):  # type: ignore[misc]
    """The game. Reward: 1 to both for the right door. A door ends the game, the time limit truncates it.

    Observation: (goal or flag seen, steps to the doors, rounds left).
    """

    metadata: dict[str, Any] = {"name": "guide", "render_modes": ["ansi"], "is_parallelizable": True}  # noqa: RUF012
    render_mode = "ansi"
    success_rule = "the goal's door is open"

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.possible_agents = [GUIDE, WALKER]
        self.agents: list[str] = []
        self.text_view = GuideView(rules)
        self._action_spaces = {agent: Discrete(len(words)) for agent, words in self.text_view.words.items()}
        rest = [rules.corridor + 1, rules.rounds + 1]
        self._observation_spaces = {
            GUIDE: MultiDiscrete([rules.doors, *rest]),
            WALKER: MultiDiscrete([rules.flags + FLAGS, *rest]),
        }
        self._walking = np.zeros(rules.doors + DOORS, dtype=np.int8)
        self._walking[[WAIT, WALK]] = 1
        self._at_doors = np.zeros_like(self._walking)
        self._at_doors[WAIT] = 1
        self._at_doors[DOORS:] = rules.name
        self._at_flag = self._at_doors.copy()
        self._at_flag[FOLLOW] = rules.follow
        self._flags = np.ones(rules.flags + 1, dtype=np.int8)
        for mask in (self._at_doors, self._at_flag, self._walking, self._flags):
            mask.flags.writeable = False  # they are handed out in infos
        self.random = seeding.np_random(None)[0]
        self.goal = self.flag = self.steps = self.round = 0
        self.seen = NONE
        self.opened: int | None = None

    def observation_space(self, agent: str) -> MultiDiscrete:
        """Returns the agent's own space, always the same object."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        """Returns the agent's own space, always the same object."""
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Draws the goal; ``options`` are not used."""
        if seed is not None:
            self.random = seeding.np_random(seed)[0]
        self.agents = list(self.possible_agents)
        self.goal = int(self.random.integers(self.rules.doors))
        self.flag, self.steps, self.round, self.opened = 0, self.rules.corridor, 0, None
        self._look()
        return self._observe(), self._infos(dict.fromkeys(self.agents, ""))

    def step(self, actions: dict[str, int]) -> tuple[dict[str, Any], ...]:
        """Shows the guide's flag and moves the walker; what it cannot do where it stands is a wait and ``blocked``."""
        move = int(actions[WALKER])
        legal = bool(self._mask(WALKER)[move])
        if legal and move == WALK:
            self.steps -= 1
        elif legal and move == FOLLOW:
            self.opened = self.seen - FLAGS
        elif legal and move >= DOORS:
            self.opened = move - DOORS
        self.flag = int(actions[GUIDE])
        self.round += 1
        self._look()
        ended = self.opened is not None
        late = not ended and self.round >= self.rules.rounds
        feedback = {GUIDE: "", WALKER: "" if legal else "blocked"}
        if ended or late:
            feedback = dict.fromkeys(self.agents, "late" if late else "goal" if self._won else "wrong door")
        every = self.agents
        results = (
            self._observe(),
            dict.fromkeys(every, float(self._won)),
            dict.fromkeys(every, ended),
            dict.fromkeys(every, late),
            self._infos(feedback),
        )
        if ended or late:
            self.agents = []
        return results

    def instructions(self, agent: str) -> str:
        """Returns what the agent is told once."""
        return f"you are {agent} " + (f"show {WALKER} the goal" if agent == GUIDE else "open the goal door")

    def success(self, agent: str) -> float:
        """Returns 1 if the goal's door is open."""
        return float(self._won)

    def render(self) -> str:
        """Returns the corridor with the walker in it, the doors with the goal marked, and the flag."""
        path = ["."] * (self.rules.corridor + 1)
        path[self.rules.corridor - self.steps] = WALKER[0].upper()
        doors = [f"({name})" if door == self.goal else name for door, name in enumerate(COLOURS[: self.rules.doors])]
        end = "" if self.opened is None else f", {WALKER} opened {COLOURS[self.opened]}"
        seen = ("none", "hidden", *COLOURS)[self.seen]
        return "\n".join(
            [
                f"round {self.round} of {self.rules.rounds}{end}",
                f"{' '.join(path)} | {' '.join(doors)}",
                f"{GUIDE}'s flag: {self.text_view.words[GUIDE][self.flag]}, {WALKER} sees: {seen}",
            ]
        )

    @property
    def _won(self) -> bool:
        return self.opened == self.goal

    def _mask(self, agent: str) -> npt.NDArray[np.int8]:
        if agent == GUIDE:
            return self._flags
        if self.steps:
            return self._walking
        return self._at_flag if self.seen >= FLAGS else self._at_doors

    def _look(self) -> None:
        """Draws what the walker sees of the flag."""
        foggy = self.random.random() < self.rules.fog
        hidden = foggy or self.steps > self.rules.sight
        self.seen = HIDDEN if hidden else self.flag - 1 + FLAGS if self.flag else NONE

    def _observe(self) -> dict[str, Any]:
        rest = [self.steps, self.rules.rounds - self.round]
        return {
            GUIDE: np.array([self.goal, *rest], dtype=np.int64),
            WALKER: np.array([self.seen, *rest], dtype=np.int64),
        }

    def _infos(self, feedback: dict[str, str]) -> dict[str, dict[str, Any]]:
        return {agent: {"feedback": text, "action_mask": self._mask(agent)} for agent, text in feedback.items()}
