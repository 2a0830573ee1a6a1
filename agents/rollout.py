"""The rollout engine: plays turns of many episodes at once with one policy.

Keeps a key-value cache across the turns of an episode, computes a group's common opening once, feeds forced tokens
together with the next text, and drops rows from the batch as they finish. Records for every sampled token the exact
distribution it was drawn from. Knows nothing about environments, rewards or learning.
"""

from __future__ import annotations

__all__ = ["Rollouts"]

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from decentral.agents.cache import RowCache
from decentral.agents.distribution import entropy, pick, restricted
from decentral.agents.draws import Words, fold, uniform
from decentral.agents.format import Kind
from decentral.agents.policy import Policy
from decentral.agents.rules import FreeRule, LegalRule, Rule
from decentral.agents.stream import Choice, Segment, Stream
from decentral.envs.turn import Turn


@dataclass(slots=True)
class _Row:
    """An open episode: its stream, its row of the cache, and how much of the open chunk lies there."""

    stream: Stream
    slot: int
    episode: int
    cached: int = 0
    key: Words = field(default_factory=lambda: np.zeros(1, dtype=np.uint64))
    position: int = 0


@dataclass(slots=True)
class _Draft:
    """A segment being sampled."""

    row: _Row
    rule: Rule
    ids: list[int] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)

    def take(self, token: int, logp: float, nats: float, allowed: tuple[int, ...] | None, forced: bool) -> None:
        stream = self.row.stream
        if not forced:
            stream.chunks[-1].choices.append(Choice(len(stream.ids), stream.turns, allowed, logp, nats))
        stream.ids.append(token)
        self.ids.append(token)
        self.logp.append(logp)
        self.entropy.append(nats)
        self.row.position += 1
        self.rule.push(token)

    def run_forced(self) -> bool:
        """Takes tokens that have no alternative; returns whether a choice is left to make."""
        while (allowed := self.rule.allowed) is not None and len(allowed) == 1:
            self.take(allowed[0], 0.0, 0.0, allowed, forced=True)
        return allowed is None or len(allowed) > 1


class Rollouts:
    """Open episodes of one agent and the cache they share."""

    def __init__(self, policy: Policy, seed: int, agent: int, reasoning_tokens: int = 0) -> None:
        """
        Args:
            policy: whose weights play.
            seed: of the run; with ``agent``, a word for the agent's name, it keys every draw.
            reasoning_tokens: scratch tokens sampled before each action.
        """
        self.policy = policy
        self.temperature = 1.0
        self.sampled = 0
        """Tokens drawn since the engine was made; forced tokens do not count."""
        self._key = fold(seed, agent)
        self._reasoning = reasoning_tokens
        self._rows: dict[int, _Row] = {}
        self._free: list[int] = []
        self._cache = RowCache(0)

    def clear(self, temperature: float) -> None:
        """Forgets every open episode; the weights may change now."""
        self.temperature = temperature
        self._rows.clear()
        self._cache = RowCache(0)
        self._free = []

    def stream(self, episode: int) -> Stream | None:
        """Returns the stream of an open episode, or none."""
        row = self._rows.get(episode)
        return row.stream if row else None

    def close(self, episode: int) -> Stream:
        """Ends an episode, frees its row and returns its stream: an empty one if the agent never had a turn in it."""
        row = self._rows.pop(episode, None)
        if row is None:
            return Stream(self.policy.window, self.policy.format.start)
        heapq.heappush(self._free, row.slot)
        return row.stream

    def play(self, episodes: Sequence[int], turns: Sequence[Turn]) -> list[str]:
        """Reads each episode's new turn, samples an optional scratch text and an action, and returns the actions."""
        fmt = self.policy.format
        rows = [self._open(episode) for episode in episodes]
        for row, turn in zip(rows, turns):
            self._read(row, turn)
        with torch.inference_mode():
            if self._reasoning:
                self._segment(rows, turns, "reasoning", [FreeRule(fmt.end, self._reasoning) for _ in rows])
            rules: list[Rule] = [
                LegalRule(fmt.trie(turn.legal)) if turn.legal else FreeRule(fmt.end, turn.free) for turn in turns
            ]
            texts = self._segment(rows, turns, "action", rules)
        for row in rows:
            row.stream.turns += 1
        return [
            turn.legal[rule.action] if isinstance(rule, LegalRule) else text
            for turn, rule, text in zip(turns, rules, texts)
        ]

    def _open(self, episode: int) -> _Row:
        row = self._rows.get(episode)
        if row is None:
            if not self._free:
                have = self._cache.rows
                self._cache.grow(max(8, 2 * have))
                self._free = list(range(have, self._cache.rows))
            stream = Stream(self.policy.window, self.policy.format.start)
            row = self._rows[episode] = _Row(stream, heapq.heappop(self._free), episode)
        return row

    def _read(self, row: _Row, turn: Turn) -> None:
        fmt, stream = self.policy.format, row.stream
        parts: list[tuple[Kind, str]] = [("system", turn.system), ("feedback", turn.feedback)]
        for kind, text in (*((k, t) for k, t in parts if t), ("observation", turn.observation)):
            stream.append(Segment(kind, fmt.given(kind, text), turn.round, text))
        most = max(map(len, map(fmt.choice, turn.legal))) if turn.legal else turn.free + 1
        most += len(fmt.opening("action")) + len(fmt.after)
        if self._reasoning:
            most += self._reasoning + 1 + len(fmt.opening("reasoning")) + len(fmt.after)
        if stream.make_room(most):
            row.cached = 0
        row.key = fold(self._key, row.episode, stream.turns)
        row.position = 0

    def _segment(self, rows: Sequence[_Row], turns: Sequence[Turn], kind: Kind, rules: Sequence[Rule]) -> list[str]:
        """Samples one segment for every row and seals it in the row's stream; returns the texts."""
        fmt = self.policy.format
        opening = fmt.opening(kind)
        drafts = [_Draft(row, rule) for row, rule in zip(rows, rules)]
        for row in rows:
            row.stream.ids.extend(opening)
        self._sample(drafts)
        texts = []
        for draft, turn in zip(drafts, turns):
            draft.row.stream.ids.extend(fmt.after)
            texts.append(fmt.decode(draft.ids))
            before, behind = (0.0,) * len(opening), (0.0,) * len(fmt.after)
            draft.row.stream.seal(
                Segment(
                    kind,
                    (*opening, *draft.ids, *fmt.after),
                    turn.round,
                    texts[-1],
                    turn.legal if kind == "action" else (),
                    (*before, *draft.logp, *behind),
                    (*before, *draft.entropy, *behind),
                )
            )
        return texts

    def _sample(self, drafts: Sequence[_Draft]) -> None:
        """Draws tokens until every draft's rule is over.

        Rows that do not lie side by side are packed into a cache of their own for as long as they decode together;
        what a finished row added is put back.
        """
        cache = self._cache
        active = [draft for draft in drafts if draft.run_forced()]
        slots = [draft.row.slot for draft in active]
        while active:
            logits = self._logits(cache, [draft.row for draft in active], slots)
            self._choose(logits, active)
            going = [i for i, draft in enumerate(active) if draft.run_forced()]
            if cache is not self._cache and len(going) < len(active):
                over = [i for i in range(len(active)) if i not in set(going)]
                homes = self._index([active[i].row.slot for i in over])
                self._cache.put(homes, cache.gather(self._index(over)))
                cache = cache.gather(self._index(going))
                slots = list(range(len(going)))
            else:
                slots = [slots[i] for i in going]
                if going and not _side_by_side(slots):
                    cache = cache.gather(self._index(slots))
                    slots = list(range(len(going)))
            active = [active[i] for i in going]

    def _choose(self, logits: Tensor, drafts: Sequence[_Draft]) -> None:
        """Draws the next token of every draft from its (B, V) logits, restricted to what its rule allows."""
        draws = uniform(np.concatenate([d.row.key for d in drafts]), [d.row.position for d in drafts])
        allowed = [draft.rule.allowed for draft in drafts]
        for free in (False, True):
            some = [i for i, ids in enumerate(allowed) if (ids is None) == free]
            if not some:
                continue
            part = logits if len(some) == len(drafts) else logits[self._index(some)]
            logp, tokens = restricted(part, [allowed[i] for i in some], self.temperature)
            column = pick(logp, torch.from_numpy(draws[some]).to(logp.device))
            token = column if tokens is None else tokens.gather(1, column[:, None])[:, 0]
            taken = logp.gather(1, column[:, None])[:, 0]
            for i, t, lp, nats in zip(some, token.tolist(), taken.tolist(), entropy(logp).tolist()):
                drafts[i].take(t, lp, nats, allowed[i], forced=False)
            self.sampled += len(some)

    def _logits(self, cache: RowCache, rows: Sequence[_Row], slots: Sequence[int]) -> Tensor:
        """Feeds every row what its cache lacks and returns the (B, V) logits after its last token.

        Rows whose cache is empty and whose tokens are equal, as at the start of a group, are computed once.
        """
        first: dict[tuple[int, ...], int] = {}
        source = list(range(len(rows)))
        for i, row in enumerate(rows):
            if row.cached == 0:
                source[i] = first.setdefault(tuple(row.stream.ids), i)
        leaders = [i for i in range(len(rows)) if source[i] == i]
        if len(leaders) == len(rows):
            return self._run(cache, rows, slots)
        logits = self._run(cache, [rows[i] for i in leaders], [slots[i] for i in leaders])
        for leader in {source[i] for i in range(len(rows)) if source[i] != i}:
            twins = [i for i in range(len(rows)) if source[i] == leader and i != leader]
            cache.copy(slots[leader], self._index([slots[i] for i in twins]), rows[leader].cached)
            for i in twins:
                rows[i].cached = rows[leader].cached
        place = {leader: column for column, leader in enumerate(leaders)}
        return logits[self._index([place[leader] for leader in source])]

    def _run(self, cache: RowCache, rows: Sequence[_Row], slots: Sequence[int]) -> Tensor:
        news = [row.stream.ids[row.cached :] for row in rows]
        counts = [len(new) for new in news]
        width = max(counts)
        starts = np.array([row.cached for row in rows])
        seen = int(starts.max()) + width
        ids = self._index([new + [0] * (width - len(new)) for new in news])
        positions = self._index(starts[:, None] + np.arange(width))
        mask = torch.arange(seen, device=ids.device) <= positions[:, None, :, None]
        level = bool((starts == starts[0]).all())
        cache.aim(
            slice(slots[0], slots[0] + len(slots)) if _side_by_side(slots) else self._index(slots),
            slice(int(starts[0]), seen) if level else positions,
            seen,
        )
        ends = sorted(set(counts))
        keep = 1 if ends == [width] else self._index([end - 1 for end in ends])
        logits = self.policy.forward_cached(ids, positions, mask, cache, keep)
        for row, count in zip(rows, counts):
            row.cached += count
        if len(ends) == 1:
            return logits[:, -1]
        column = {end: i for i, end in enumerate(ends)}
        return logits[torch.arange(len(rows), device=ids.device), self._index([column[count] for count in counts])]

    def _index(self, values: Any) -> Tensor:
        return torch.as_tensor(values, dtype=torch.long, device=self.policy.device)


def _side_by_side(slots: Sequence[int]) -> bool:
    return all(b - a == 1 for a, b in pairwise(slots))
