"""What the rollout benchmark measures: a model, its draft head, and prompts for it. Measures nothing itself."""

from __future__ import annotations

__all__ = ["FIRST_SEED", "Subject"]

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np

from decentral.agents.config import AgentConfig
from decentral.agents.drafter import Drafter
from decentral.agents.drafting import make_drafter
from decentral.agents.folders import head_folder, weights_hash
from decentral.agents.pace import Measured
from decentral.agents.policy import Policy
from decentral.envs.config import EnvConfig
from decentral.envs.names import make
from decentral.envs.turn import Turn

OPENINGS = 40
"""Episodes of each environment whose first turns are prompts."""
FIRST_SEED = 900_000_000
"""Of the episodes: far from those that heads are trained on."""


class Subject:
    """A model, its draft head, and first turns for it to answer."""

    def __init__(self, model: str, head: Path | None, envs: Sequence[EnvConfig]) -> None:
        """Loads the model; ``head`` is the folder of its head, by default beside the model. Raises ModelError."""
        self.model = model
        self.head = head or head_folder(model)
        self.policy = Policy(AgentConfig(model=model, kind="frozen"))
        self.envs = envs
        self.drafter("rejection")
        known = Measured.load(self.head)
        self.hashes = {
            "model": weights_hash(model),
            "head": weights_hash(str(self.head)),
            "measured": msgspec.to_builtins(known),
        }

    def drafter(self, mode: str, length: int = 0) -> Drafter:
        """Makes the drafter of an arm; length 0 adapts."""
        config = {"model": self.model, "draft": mode, "draft_head": str(self.head), "draft_tokens": length}
        drafter = make_drafter(self.policy, msgspec.convert(config, AgentConfig))
        assert drafter is not None
        return drafter

    def prompts(self, count: int, tokens: int, seed: int, level: bool) -> tuple[list[Turn], list[list[int]]]:
        """Draws first turns that ask for ``tokens`` of free text, and the ids that stand before the answers.

        ``level``: only those of one length, as frequent over the seeds as it is, so that ``generate`` needs no padding.
        """
        random = np.random.default_rng(seed)
        length = random.choice([len(ids) for _, ids in self._openings])
        pool = [one for one in self._openings if not level or len(one[1]) == length]
        order = np.resize(random.permutation(len(pool)), count)
        turns = [pool[i][0] for i in order]
        asked = [Turn(turn.agent, turn.round, turn.observation, (), tokens, turn.system) for turn in turns]
        return asked, [pool[i][1] for i in order]

    @cached_property
    def _openings(self) -> list[tuple[Turn, list[int]]]:
        fmt = self.policy.format
        found = {}
        for env in self.envs:
            game = make(env)
            for seed in range(FIRST_SEED, FIRST_SEED + OPENINGS):
                game.reset(seed)
                for turn in game.turns():
                    told = fmt.given("system", turn.system) if turn.system else ()
                    read = fmt.given("observation", turn.observation)
                    found[*fmt.start, *told, *read, *fmt.opening("action")] = turn
            game.close()
        return [(turn, list(ids)) for ids, turn in found.items()]
