"""An agent's earlier weights, which play some of its training groups in place of the newest.

Who learns against it then meets more than its newest habits, as in fictitious self-play (Heinrich, Lanctot and Silver,
ICML 2015). The weights stay with their agent. Knows nothing about environments or learning.
"""

from __future__ import annotations

__all__ = ["PastSelves"]

from pathlib import Path

import msgspec
import torch
from safetensors.torch import save_file
from torch import Tensor

from decentral.agents.config import AgentConfig
from decentral.agents.draws import name_word, uniform
from decentral.agents.mind import Phase
from decentral.agents.moments import read_tensors
from decentral.agents.policy import Policy
from decentral.agents.rollout import Rollouts
from decentral.errors import ModelError

_MOST = 6
"""Earlier weights that are kept at once."""
_FILE = "past.safetensors"
_WORD = name_word("past")
"""Keeps these draws apart from those of tokens."""


class PastSelves:
    """At most six earlier weights, evenly spaced over all updates, and an engine of their own that plays one of them.

    Takes the memory of a second model.
    """

    def __init__(self, name: str, config: AgentConfig, seed: int) -> None:
        """Loads the model a second time. Raises ModelError, ConfigError."""
        word = name_word(name)
        self._share = config.past
        self._temperature = config.temperature
        self._key = (seed, word, _WORD)
        self._policy = Policy(msgspec.structs.replace(config, kl=0.0), seed ^ word & 0x7FFFFFFF)
        self.rollouts = Rollouts(self._policy, seed, word, config.reasoning_tokens)
        self._kept: dict[int, dict[str, Tensor]] = {}
        self._spacing = 1
        self._plays = False

    def begin(self, phase: Phase) -> None:
        """Starts a phase; in a training phase one of the earlier weights is drawn, which plays in all of it."""
        self._plays = phase.kind == "train" and bool(self._kept)
        if self._plays:
            place = int(uniform(*self._key, phase.iteration)[0] * len(self._kept))
            weights = list(self._kept.values())[place]
            with torch.no_grad():
                for name, p in self._policy.trained().items():
                    p.copy_(weights[name])
        self.rollouts.clear(self._temperature)

    def play(self, group: int) -> bool:
        """Says whether earlier weights play a group; always the same for one group of one phase."""
        return self._plays and bool(uniform(*self._key, group, 1)[0] < self._share)

    def keep(self, updates: int, trained: dict[str, Tensor]) -> None:
        """Takes the weights after an update; where there are too many, every second one goes and fewer follow."""
        if updates % self._spacing:
            return
        self._kept[updates] = {name: p.detach().cpu().clone().contiguous() for name, p in trained.items()}
        while len(self._kept) > _MOST:
            self._spacing *= 2
            self._kept = {at: weights for at, weights in self._kept.items() if at % self._spacing == 0}

    def save(self, folder: Path) -> None:
        """Writes all kept weights as safetensors."""
        flat = {f"{at}/{name}": p for at, weights in self._kept.items() for name, p in weights.items()}
        save_file(flat | {"spacing": torch.tensor(self._spacing)}, folder / _FILE)

    def load(self, folder: Path) -> None:
        """Restores what ``save`` wrote. Raises ModelError."""
        flat = read_tensors(folder / _FILE)
        self._spacing = int(flat.pop("spacing"))
        found: dict[int, dict[str, Tensor]] = {}
        for key, p in flat.items():
            at, name = key.split("/", 1)
            found.setdefault(int(at), {})[name] = p
        for update, weights in found.items():
            if weights.keys() != self._policy.trained().keys():
                raise ModelError(
                    f"checkpoint {folder} holds, after update {update}, other parameters than model "
                    f"{self._policy.name!r}; resume with its config"
                )
        self._kept = dict(sorted(found.items()))
