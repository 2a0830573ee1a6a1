"""An open episode's row of the cache, and a segment being sampled in it."""

from __future__ import annotations

__all__ = ["Row", "Span"]

from dataclasses import dataclass, field

import numpy as np

from decentral.agents.draws import Words
from decentral.agents.rules import Rule
from decentral.agents.stream import Choice, Stream


@dataclass(slots=True)
class Row:
    """An open episode: its stream, its row of the cache, and how much of the open chunk lies there."""

    stream: Stream
    slot: int
    episode: int
    cached: int = 0
    """Tokens that the policy has read."""
    headed: int = 0
    """Of these, how many a draft head has read, each with the token after it."""
    key: Words = field(default_factory=lambda: np.zeros(1, dtype=np.uint64))
    position: int = 0
    """Tokens taken in this turn; with ``key`` it keys the draws."""

    @property
    def pending(self) -> int:
        """Tokens that the policy has yet to read."""
        return len(self.stream.ids) - self.cached


@dataclass(slots=True)
class Span:
    """A segment being sampled."""

    row: Row
    rule: Rule
    ids: list[int] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)

    def take(
        self,
        token: int,
        logp: float,
        nats: float,
        allowed: tuple[int, ...] | None,
        forced: bool,
        weight: float = 1.0,
    ) -> None:
        """Appends a token that was drawn among ``allowed``, or had no alternative."""
        stream = self.row.stream
        if not forced:
            stream.chunks[-1].choices.append(Choice(len(stream.ids), stream.turns, allowed, logp, nats, weight))
        stream.ids.append(token)
        self.ids.append(token)
        self.logp.append(logp)
        self.entropy.append(nats)
        self.row.position += 1
        self.rule.push(token)

    def undo(self) -> None:
        """Takes every token back, as if none had been drawn; the cache has to read the token before them again."""
        row, chunk = self.row, self.row.stream.chunks[-1]
        kept = len(chunk.ids) - len(self.ids)
        del chunk.ids[kept:]
        while chunk.choices and chunk.choices[-1].at >= kept:
            chunk.choices.pop()
        row.position -= len(self.ids)
        row.cached = min(row.cached, kept - 1)
        row.headed = min(row.headed, kept - 2)  # what a head read last, it read with a token that is gone

    def run_forced(self) -> bool:
        """Takes tokens that have no alternative; returns whether a choice is left to make."""
        while (allowed := self.rule.allowed) is not None and len(allowed) == 1:
            self.take(allowed[0], 0.0, 0.0, allowed, forced=True)
        return allowed is None or len(allowed) > 1
