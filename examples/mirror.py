"""An environment of one's own with its own text view: `decentral train examples/mirror.py:env`."""

import numpy as np
from gymnasium.spaces import Discrete
from pettingzoo import ParallelEnv

COLOURS = ("red", "green", "blue")


class MirrorView:
    def observe(self, agent, observation):
        return f"the other wears {COLOURS[observation]}"

    def actions(self, agent, mask):
        return {colour: number for number, colour in enumerate(COLOURS)}


class Mirror(ParallelEnv):
    """Each sees the other's hat and must press the button of its colour; both win or both lose."""

    metadata = {"name": "mirror"}
    possible_agents = ["left", "right"]
    text_view = MirrorView()

    def __init__(self):
        self.observation_spaces = dict.fromkeys(self.possible_agents, Discrete(3))
        self.action_spaces = dict.fromkeys(self.possible_agents, Discrete(3))

    def observation_space(self, agent):
        return self.observation_spaces[agent]

    def action_space(self, agent):
        return self.action_spaces[agent]

    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        hats = np.random.default_rng(seed).integers(3, size=2)
        self.seen = {"left": int(hats[1]), "right": int(hats[0])}
        return self.seen, {agent: {} for agent in self.agents}

    def step(self, actions):
        won = actions == self.seen
        every, self.agents = self.agents, []
        return self.seen, *(dict.fromkeys(every, v) for v in (float(won), True, False, {"is_success": won}))


def env():
    return Mirror()
