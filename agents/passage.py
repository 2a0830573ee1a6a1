"""A text with stretches that a policy sampled freely: what a draft head is trained on.

Made from the chunks of a stream; kept on disk as one JSON line each. Knows nothing about models.
"""

from __future__ import annotations

__all__ = ["Passage"]

from itertools import groupby

import msgspec

from decentral.agents.scoring import needed
from decentral.agents.stream import Chunk


class Passage(msgspec.Struct, frozen=True):
    """Token ids and where in them the policy chose."""

    ids: list[int]
    runs: list[tuple[int, int]]
    """Stretches (first, past the last) of tokens that were drawn from the whole vocabulary, one after the other."""
    temperature: float
    """At which they were drawn."""

    @classmethod
    def of(cls, chunk: Chunk, temperature: float) -> Passage:
        """Takes a chunk's ids up to its last choice, and its choices that nothing restricted."""
        free = [choice.at for choice in chunk.choices if choice.allowed is None]
        stretches = [
            [at for _, at in stretch] for _, stretch in groupby(enumerate(free), lambda pair: pair[1] - pair[0])
        ]
        return cls(chunk.ids[: needed(chunk) + 1], [(run[0], run[-1] + 1) for run in stretches], temperature)

    @property
    def sampled(self) -> int:
        """How many tokens were drawn."""
        return sum(end - start for start, end in self.runs)

    @property
    def drafts(self) -> int:
        """How many of them could have been drafted: all but the first of a run."""
        return self.sampled - len(self.runs)
