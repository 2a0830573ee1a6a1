"""Watches a draft head through an agent's updates: is it still believed, and should it be trained again?

A head that was good for the old weights may be stale for the new ones, so acceptance is computed after every update, on
text that the agent has just sampled.
"""

from __future__ import annotations

__all__ = ["DraftWatch"]

import copy
from collections.abc import Sequence
from pathlib import Path

from decentral.agents.config import AgentConfig
from decentral.agents.draft_trainer import DraftTrainer, batches, measure, read
from decentral.agents.drafter import Drafter
from decentral.agents.mind import Metrics
from decentral.agents.pace import Counts
from decentral.agents.passage import Passage
from decentral.agents.stream import Chunk

_PROBED = 32
"""Passages on which acceptance is computed after an update."""
_TOKENS, _BATCH = 8192, 2048
"""Most tokens (rows x longest) that are read at once, and that are trained on in a step."""
_PASSES, _DEPTH = 8, 2
"""Most times that the text of one iteration is trained on, and tokens that the head is unrolled over in that."""
_RATE = 1e-3
"""AdamW learning rate of retraining, with a clip of its own: a shared one has shrunk the policy's step."""
_STATE, _HEAD, _MOMENTS = "pace.json", "mtp", "draft_optimiser.safetensors"


class DraftWatch:
    """One agent's drafter and, if its head may be retrained, a trainer."""

    def __init__(self, drafter: Drafter, config: AgentConfig) -> None:
        self._drafter = drafter
        self._temperature = config.temperature
        self._threshold = config.draft_retrain if config.kind == "learning" else 0.0
        self._trainer = DraftTrainer(drafter.head, "kl", _RATE, depth=_DEPTH) if self._threshold else None
        self._kept = Counts()
        self._before = Counts()

    def begin(self) -> None:
        """Starts a phase from what the last update left: an evaluation, or a phase that is played again, leaves none.

        What was accepted under older weights counts half.
        """
        self._drafter.pace.counts = copy.deepcopy(self._kept)
        self._drafter.pace.counts.fade()
        self._before = copy.deepcopy(self._drafter.pace.counts)

    def played(self) -> Metrics:
        """Returns what was drafted and accepted since the phase began."""
        now, before = self._drafter.pace.counts, self._before
        self._kept = copy.deepcopy(now)
        reached = sum(now.reached) - sum(before.reached)
        if not reached:
            return {"drafts": 0}
        return {"drafts": reached, "drafts_accepted": (sum(now.accepted) - sum(before.accepted)) / reached}

    def updated(self, chunks: Sequence[Chunk]) -> Metrics:
        """Returns the expected acceptance by draft position under the new weights, retraining the head if it is low."""
        passages = [passage for chunk in chunks if (passage := Passage.of(chunk, self._temperature)).drafts]
        if not passages:
            return {}
        stride = max(2, -(-len(passages) // _PROBED))
        probed = passages[::stride]
        found = self._acceptance(probed)
        figures: Metrics = {}
        if self._trainer and found[0] < self._threshold:
            trained = [passage for i, passage in enumerate(passages) if i % stride]
            readings = read(self._drafter.head.trunk, trained, _TOKENS)
            for _ in range(_PASSES):
                for batch in batches(readings, _BATCH):
                    self._trainer.step(batch)
                found = self._acceptance(probed)
                if found[0] >= self._threshold:
                    break
        if self._trainer:
            figures["head_updates"] = self._trainer.updates
        return figures | {f"acceptance_{j}": value for j, value in enumerate(found, 1)}

    def save(self, folder: Path) -> None:
        """Writes what the next drafts depend on."""
        self._drafter.pace.save(folder / _STATE)
        if self._trainer:
            self._drafter.head.save(folder / _HEAD)
            self._trainer.save(folder / _MOMENTS)

    def load(self, folder: Path) -> None:
        """Restores what ``save`` wrote. Raises ModelError."""
        self._drafter.pace.load(folder / _STATE)
        self._kept = copy.deepcopy(self._drafter.pace.counts)
        if self._trainer:
            self._drafter.head.take(folder / _HEAD)
            self._trainer.load(folder / _MOMENTS)

    def _acceptance(self, passages: Sequence[Passage]) -> list[float]:
        """Returns expected acceptance by draft position."""
        head = self._drafter.head
        found = measure(head, read(head.trunk, passages, _TOKENS), self._drafter.pace.most, _TOKENS)
        by_mode = {"rejection": found.rejection, "target_only": found.target_only}
        return [value for value, count in zip(by_mode[self._drafter.mode], found.count) if count]
