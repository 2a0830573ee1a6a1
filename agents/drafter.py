"""Speculative decoding of a batch of rows: a head drafts over the rollout's cache, and the policy's verdict is applied.

Owns the head's part of the cache, the draws that drafting needs, and the count of what was accepted. Exact in every
mode: what comes out is distributed as plain sampling. Knows nothing about turns or episodes.
"""

from __future__ import annotations

__all__ = ["Drafter", "Mode", "Proposal"]

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from decentral.agents.block import Rotation
from decentral.agents.cache import HIDDEN, RowCache, causal
from decentral.agents.distribution import entropy, pick, probabilities, tempered
from decentral.agents.draft import DraftHead
from decentral.agents.draws import Words, uniform
from decentral.agents.lean import cached
from decentral.agents.pace import Pace
from decentral.agents.row import Row, Span
from decentral.agents.rules import Rule
from decentral.agents.verify import verify

Mode = Literal["rejection", "target_only"]
Ids = tuple[int, ...]

_APART = np.array([1 << 32, 2 << 32, 0], dtype=np.uint64)[:, None, None]
"""Added to a position for the draws of a draft and of its acceptance; what follows is drawn as in plain sampling."""


@dataclass(frozen=True)
class Proposal:
    """Drafts for a batch of B rows, at most K each."""

    feeds: list[list[int]]
    """Per row what the policy must read: what it has not read yet, the drafts, and what is forced after them."""
    columns: list[list[int]]
    """Per row K+1 indices into its feed: after these tokens a draft, and at last one more token, is chosen."""
    allowed: list[list[Ids | None]]
    """Per row and choice the tokens it may take; none: any."""
    lengths: list[int]
    """Drafts per row."""
    drafted: Tensor
    """(B, K) token ids."""
    q: Tensor
    """(B, K, V) probabilities from which they were drawn."""
    draws: Tensor
    """(2, B, K+1) uniform: to accept, and for what follows the accepted drafts."""


class Drafter:
    """A head at work in one agent's rollouts."""

    def __init__(self, head: DraftHead, mode: Mode, pace: Pace) -> None:
        self.head = head
        self.mode = mode
        self.pace = pace
        self._layer = len(head.trunk.layers.layers)
        self.refresh(1.0)

    def refresh(self, temperature: float) -> None:
        """Takes the weights of head and policy as they are; called whenever they may have changed."""
        self.temperature = temperature
        self._live = self.head.live()

    def read(self, cache: RowCache, rows: Sequence[Row]) -> Tensor:
        """Lets the head read what the policy has read, up to the last token whose successor is known.

        Returns the (B, H) states from which the token after that successor follows.
        """
        news = [row.stream.ids[row.headed + 1 : row.cached + 1] for row in rows]
        counts = [len(new) for new in news]
        width = max(counts)
        starts = np.array([row.headed for row in rows])
        positions = self._index(starts[:, None] + np.arange(width))
        seen = int(starts.max()) + width
        cache.aim([row.slot for row in rows], positions, seen)
        tokens = self._index([new + [0] * (width - len(new)) for new in news])
        mask = causal(positions, seen, self._live.norm.dtype)
        states = self._live(tokens, cache.take(HIDDEN), self._rotation(positions), cached(cache, self._layer, mask))
        for row, count in zip(rows, counts):
            row.headed += count
        if min(counts) == width:
            return states[:, -1]
        return states[torch.arange(len(rows), device=states.device), self._index([count - 1 for count in counts])]

    def propose(self, cache: RowCache, spans: Sequence[Span]) -> Proposal | None:
        """Drafts for every row that can use a draft; returns none where nothing is worth drafting."""
        room = [max(0, span.rule.ahead - 1) if span.row.pending == 1 else 0 for span in spans]
        most = min(max(room), self.pace.length(len(spans)))
        if most == 0:
            return None
        some = [i for i, free in enumerate(room) if free]
        lengths = [min(most, free) for free in room]
        walks = [_Walk(span, length) for span, length in zip(spans, lengths)]
        rows = [spans[i].row for i in some]
        place = [row.slot for row in rows]
        states = self.read(cache, rows)
        starts = self._index([row.cached for row in rows])[:, None]
        seen = int(starts.max()) + most
        positions = starts + torch.arange(most, device=starts.device)
        mask = causal(positions, seen, states.dtype)
        cos, sin = self._rotation(positions)
        draws = self._draws([span.row for span in spans], most + 1)
        mine = draws[0] if len(some) == len(spans) else draws[0, some]
        drafted: list[Tensor] = []
        found: list[Tensor] = []
        for j in range(most):
            if j:
                now = slice(j - 1, j)
                cache.aim(place, positions[:, now], seen)
                attend = cached(cache, self._layer, mask[:, :, now])
                rotation = cos[:, now], sin[:, now]
                states = self._live(drafted[-1][:, None], states[:, None], rotation, attend)[:, 0]
            weights = self._weights(states, [walks[i] for i in some], j)
            if self.mode == "rejection":
                column = pick(weights, mine[:, j])
            else:
                column = weights.argmax(-1)
                weights = torch.zeros_like(weights).scatter(-1, column[:, None], 1.0)
            shortlist = self._live.shortlist
            drafted.append(column if shortlist is None else shortlist[column])
            found.append(weights)
            if any(walk.watched for walk in walks):
                for i, token in zip(some, drafted[-1].tolist()):
                    walks[i].push(token, j)
        return self._gathered(spans, some, walks, torch.stack(drafted, 1), torch.stack(found, 1), draws[1:])

    def settle(self, logits: Tensor, proposal: Proposal, spans: Sequence[Span]) -> int:
        """Takes what the policy accepts, and one token more, into every span; returns how many tokens that are.

        Args:
            logits: (B, K+1, V) of the policy after the proposal's columns.
            proposal: what was read.
            spans: the B segments.
        """
        logits = logits.float()
        for i, sets in enumerate(proposal.allowed):
            for j, allowed in enumerate(sets):
                if allowed is not None:
                    kept = logits[i, j, list(allowed)]
                    logits[i, j] = -torch.inf
                    logits[i, j, list(allowed)] = kept
        logp = tempered(logits, self.temperature).log_softmax(-1)
        p = probabilities(logp)
        lengths = self._index(proposal.lengths)
        accept, last = proposal.draws
        count, after = verify(p, proposal.q, proposal.drafted, lengths, accept[:, :-1], last)
        tokens = F.pad(proposal.drafted, (0, 1)).scatter(1, count[:, None], after[:, None])
        table = logp.gather(-1, tokens[..., None])[..., 0].tolist()
        nats = entropy(logp, p).tolist()
        total = 0
        for i, (span, ids, accepted) in enumerate(zip(spans, tokens.tolist(), count.tolist())):
            row, taken, going = span.row, 0, True
            before, length = row.cached, proposal.lengths[i]
            while going and taken <= accepted:
                span.take(ids[taken], table[i][taken], nats[i][taken], span.rule.allowed, forced=False)
                taken += 1
                going = span.run_forced()
            row.cached = before + proposal.columns[i][taken - 1] + 1
            self.pace.counts.add(length if going else min(length, taken), min(accepted, taken))
            total += taken
        return total

    def _rotation(self, positions: Tensor) -> Rotation:
        return self.head.rope.at(positions.clamp(max=self.head.window - 1))  # only padding lies beyond

    def _weights(self, states: Tensor, walks: Sequence[_Walk], j: int) -> Tensor:
        """Returns the head's (B, S) probabilities for draft number j."""
        logits = F.linear(states, self._live.output).float()
        for i, walk in enumerate(walks):
            if walk.watched and j < walk.length:
                allowed = torch.zeros(len(self._live.table), dtype=torch.bool, device=logits.device)
                allowed[list(walk.allowed[j] or ())] = True
                listed = allowed if self._live.shortlist is None else allowed[self._live.shortlist]
                if listed.any():
                    logits[i, ~listed] = -torch.inf
        return tempered(logits, self.temperature).softmax(-1)

    def _gathered(
        self,
        spans: Sequence[Span],
        some: list[int],
        walks: list[_Walk],
        drafted: Tensor,
        weights: Tensor,
        draws: Tensor,
    ) -> Proposal:
        """Lays out what was drafted for some rows beside the rows that draft nothing."""
        n, most = drafted.shape
        if self._live.shortlist is not None:
            whole = weights.new_zeros(n, most, len(self._live.table))
            weights = whole.index_copy_(-1, self._live.shortlist, weights)
        if n < len(spans):
            index = self._index(some)
            drafted = drafted.new_zeros(len(spans), most).index_copy_(0, index, drafted)
            weights = weights.new_zeros(len(spans), *weights.shape[1:]).index_copy_(0, index, weights)
        feeds, columns = [], []
        for span, walk, ids in zip(spans, walks, drafted.tolist()):
            unread = span.row.stream.ids[span.row.cached :]
            first = len(unread) - 1
            feeds.append([*unread, *ids[: walk.length], *walk.forced])
            ends = [*range(first, first + walk.length), first + walk.length + len(walk.forced)]
            columns.append(ends + ends[-1:] * (most - walk.length))
        lengths = [walk.length for walk in walks]
        return Proposal(feeds, columns, [walk.allowed for walk in walks], lengths, drafted, weights, draws)

    def _draws(self, rows: Sequence[Row], count: int) -> Tensor:
        """Returns (3, B, count) uniform draws for the next positions of every row; see ``_APART``."""
        keys = np.concatenate([row.key for row in rows])[:, None]
        positions = np.array([row.position for row in rows], dtype=np.uint64)[:, None]
        places: Words = np.asarray(positions + np.arange(count, dtype=np.uint64) + _APART, dtype=np.uint64)
        return torch.from_numpy(uniform(keys, places)).to(self.head.join.device)

    def _index(self, values: Any) -> Tensor:
        return torch.as_tensor(values, dtype=torch.long, device=self.head.join.device)


class _Walk:
    """How far a row's drafts may go, and what its rule allows on the way."""

    def __init__(self, span: Span, length: int) -> None:
        self.length = length
        self.forced: list[int] = []
        self.allowed: list[Ids | None] = [None] * (length + 1)
        self.watched = span.rule.allowed is not None
        if self.watched:
            self._rule: Rule = copy.copy(span.rule)
            self.allowed = [self._rule.allowed]

    def push(self, token: int, j: int) -> None:
        """Takes draft number j; drafting ends where something is forced, or the segment is over."""
        if not self.watched or j >= self.length:
            return
        if token not in (self.allowed[j] or ()):  # nothing allowed is on the shortlist
            self.length = j
            return
        self._rule.push(token)
        while len(allowed := self._rule.allowed or ()) == 1:
            self.forced.append(allowed[0])
            self._rule.push(allowed[0])
        if self.forced or not allowed:
            self.length = j + 1
        self.allowed.append(allowed or None)
