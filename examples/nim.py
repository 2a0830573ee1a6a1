"""Nim, for two who play against each other: take 1 to 3 of the stones; who takes the last one wins.

An environment of one's own in which agents take turns (PettingZoo's AEC), a scripted opponent, a frozen one, and
self-play: ``python examples/nim.py RUNS [ITERATIONS]``.
"""

import sys
from pathlib import Path

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from pettingzoo import AECEnv

import decentral

STONES = 9
HERE = Path(__file__).resolve()


class NimView:
    def observe(self, agent, observation):
        return f"stones {observation}"

    def actions(self, agent, mask):
        return {str(taken + 1): taken for taken in np.flatnonzero(mask).tolist()}


class Nim(AECEnv):
    metadata = {"name": "nim", "is_parallelizable": False}
    render_mode = None
    text_view = NimView()
    possible_agents = ["ada", "bob"]
    teams = {"ada": ["ada"], "bob": ["bob"]}  # who plays against whom

    def __init__(self):
        seen = Dict(observation=Discrete(STONES + 1), action_mask=Box(0, 1, (3,), np.int8))
        self.observation_spaces = dict.fromkeys(self.possible_agents, seen)
        self.action_spaces = {agent: Discrete(3) for agent in self.possible_agents}
        self.random = np.random.default_rng()

    def observation_space(self, agent):
        return self.observation_spaces[agent]

    def action_space(self, agent):
        return self.action_spaces[agent]

    def instructions(self, agent):
        return f"you are {agent} take the last"

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.random = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self.stones = int(self.random.integers(STONES - 3, STONES + 1))
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict(self.rewards)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict(self.terminations)
        self.infos = {agent: {} for agent in self.agents}
        self.agent_selection = str(self.random.choice(self.agents))

    def observe(self, agent):
        mask = np.array([taken < self.stones for taken in range(3)], np.int8)
        return {"observation": np.int64(self.stones), "action_mask": mask}

    def step(self, action):
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        other = next(one for one in self.agents if one != agent)
        self.stones -= int(action) + 1
        self._cumulative_rewards[agent] = 0.0
        if self.stones == 0:
            self.winner = agent
            self.rewards = {agent: 1.0, other: -1.0}
            self.terminations = dict.fromkeys(self.agents, True)
            self._accumulate_rewards()
        self.agent_selection = other

    def success(self, agent):
        return float(agent == self.winner)


def env():
    return Nim()


def perfect(turn):
    """Leaves a multiple of four, where that can be done."""
    best = str(int(turn.observation.split()[1]) % 4)
    return best if best in turn.legal else turn.legal[0]


def main(folder, iterations):
    game, learning = f"{HERE}:env", {"lr": 1e-3, "kl": 1e-3}
    teacher = {"bob": {"kind": "scripted", "script": f"{HERE}:perfect"}}
    taught = decentral.train(game, iterations=iterations, agent=learning, agents=teacher, out=folder / "taught")
    frozen = {"bob": {"kind": "frozen", "model": str(taught.path / "agents" / "ada" / "model")}}
    decentral.train(game, iterations=iterations, agent=learning, agents=frozen, out=folder / "against_the_taught")
    alone = decentral.train(game, iterations=iterations, agent=learning | {"past": 0.25}, out=folder / "self_play")
    for run, rivals in ((taught, None), (alone, None), (alone, taught)):
        for score in run.evaluate(100, against=rivals).scores:
            print(f"{run.path.name}: {score.name} wins {score.trained.value:.0%}, against {score.against}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/nim"), int(sys.argv[2]) if len(sys.argv) > 2 else 30)
