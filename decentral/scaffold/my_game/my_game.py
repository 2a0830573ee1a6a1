"""A corridor too narrow for two: ada starts at its west end, bob at its east end, and each must get to the other end.

One of them has to step south into the doorway and let the other pass. Nobody says who: they have to find a habit.
What every environment has is marked 1 to 6; put your own game in its place.
"""

import numpy as np
from gymnasium.spaces import Discrete, MultiDiscrete
from pettingzoo import ParallelEnv

CELLS = 4  # with 5, a door in the middle is equally near to both, which is harder
ROUNDS = 6
DOORWAY = 0  # beside the corridor, whose cells are 1, 2, ...
START = {"ada": 1, "bob": CELLS}
GOAL = {"ada": CELLS, "bob": 1}
AHEAD = {"ada": 1, "bob": -1}
STAY, WALK, DOOR = range(3)
WORDS = {"ada": ("stay", "east", "south"), "bob": ("stay", "west", "south")}


class CorridorView:
    """1. What agents read and say. Short texts are fast; words of the built-in games are known from the start."""

    def observe(self, agent, observation):
        mine, other, door, left = observation.tolist()
        return f"you {mine or 'door'} other {other or 'door'} door {door} left {left}"

    def actions(self, agent, mask):
        return {word: action for action, word in enumerate(WORDS[agent]) if mask[action]}


class Corridor(ParallelEnv):
    """2. Who plays, and what can be seen and done: own place, the other's, the door's, rounds left; its actions."""

    metadata = {"name": "my_game", "render_modes": ["ansi"]}
    render_mode = "ansi"
    text_view = CorridorView()
    possible_agents = ["ada", "bob"]

    def __init__(self):
        places = MultiDiscrete([CELLS + 1, CELLS + 1, CELLS + 1, ROUNDS + 1])
        self.observation_spaces = dict.fromkeys(self.possible_agents, places)
        self.action_spaces = {agent: Discrete(len(WORDS[agent])) for agent in self.possible_agents}
        self.random = np.random.default_rng()

    def observation_space(self, agent):
        return self.observation_spaces[agent]

    def action_space(self, agent):
        return self.action_spaces[agent]

    def instructions(self, agent):
        """3. What an agent is told once, before its first turn."""
        return f"you are {agent} walk to {GOAL[agent]}"

    def reset(self, seed=None, options=None):
        """4. How an episode starts. All chance must follow from the seed."""
        if seed is not None:
            self.random = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self.place, self.left = dict(START), ROUNDS
        self.door = int(self.random.integers(2, CELLS))
        return self.observations(), self.infos("")

    def step(self, actions):
        """5. The rules: both move at once; if they would meet in one place, or pass through each other, both stay."""
        ada, bob = (self.target(agent, actions[agent]) for agent in self.agents)
        met = ada == bob or (ada, bob) == (self.place["bob"], self.place["ada"])
        if not met:
            self.place = {"ada": ada, "bob": bob}
        self.left -= 1
        over = self.place == GOAL
        late = not over and self.left == 0
        every = self.agents
        if over or late:
            self.agents = []
        ends = (dict.fromkeys(every, float(over)), dict.fromkeys(every, over), dict.fromkeys(every, late))
        return self.observations(), *ends, self.infos("met" if met else "")

    def success(self, agent):
        """6. What counts when an episode is over, from 0 to 1."""
        return float(self.place == GOAL)

    def target(self, agent, action):
        """Returns where an action leads; from the doorway the way goes on along the corridor."""
        place = self.place[agent]
        if action == STAY or not self.mask(agent)[action]:
            return place
        return DOORWAY if action == DOOR else (place or self.door) + AHEAD[agent]

    def mask(self, agent):
        """Returns which actions are legal: who has arrived stays, and the doorway holds one."""
        place, free = self.place[agent], DOORWAY not in self.place.values()
        return np.array([True, place != GOAL[agent], place == self.door and free], dtype=np.int8)

    def observations(self):
        ada, bob = self.place["ada"], self.place["bob"]
        return {"ada": np.array([ada, bob, self.door, self.left]), "bob": np.array([bob, ada, self.door, self.left])}

    def infos(self, feedback):
        """Returns what comes beside an observation: the mask, and what the agent is told about its last action."""
        return {agent: {"action_mask": self.mask(agent), "feedback": feedback} for agent in self.possible_agents}

    def render(self):
        """Returns the picture that `decentral watch` shows; without one it shows the texts."""
        shown = {place: agent[0].upper() for agent, place in self.place.items()}
        corridor = " ".join(shown.get(cell, ".") for cell in range(1, CELLS + 1))
        return f"{corridor}\n{'  ' * (self.door - 1)}{shown.get(DOORWAY, '^')}"


def env():
    return Corridor()
