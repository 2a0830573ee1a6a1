"""The rollout engine: plays turns of many episodes at once with one policy.

Keeps a key-value cache across the turns of an episode, computes a group's common opening once, feeds forced tokens
together with the next text, and drops rows from the batch as they finish. Records for every sampled token the exact
distribution it was drawn from. Knows nothing about environments, rewards or learning.
"""

from __future__ import annotations

__all__ = ["Outlook", "Rollouts", "Spent"]

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from decentral.agents.bands import bands
from decentral.agents.cache import HIDDEN, RowCache, causal, closing, side_by_side
from decentral.agents.candidates import DRAWS, candidates
from decentral.agents.distribution import entropy, pick, probabilities, restricted
from decentral.agents.drafter import Drafter
from decentral.agents.draws import fold, name_word, uniform
from decentral.agents.format import Kind
from decentral.agents.policy import Policy
from decentral.agents.row import Row, Span
from decentral.agents.rules import FreeRule, LegalRule, Rule
from decentral.agents.stream import Segment, Stream
from decentral.agents.trie import conditionals, forks, likelihoods
from decentral.envs.turn import Turn
from decentral.errors import EnvError

Floats = NDArray[np.float64]
Context = Sequence[tuple[Kind, str]]
"""Kinds and texts of segments, in order."""
Read = tuple[Tensor, Tensor | None]
"""Logits, and the states of the last layer if the model shows them."""

_CANDIDATE = name_word("candidate")
"""Keeps the draws of candidates apart from those of what is said."""


@dataclass(slots=True)
class Spent:
    """What an engine did since it was made, and the seconds that went into it."""

    tokens: int = 0
    """Drawn or accepted; forced tokens do not count."""
    forwards: int = 0
    """Of the policy."""
    rows: int = 0
    """Rows times steps: tokens that plain sampling would have drawn in as many steps."""
    draft_s: float = 0.0
    read_s: float = 0.0
    choose_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the policy makes of a turn before an action is taken."""

    legal: tuple[str, ...]
    """The turn's legal actions, or of a free turn its candidates, at times none."""
    probabilities: Floats
    """(A,) of these actions, after temperature."""
    hidden: Tensor | None
    """(H,) state of the last layer at the context's last token, float32; none if the model does not show it."""


class Rollouts:
    """Open episodes of one agent and the cache they share."""

    def __init__(
        self,
        policy: Policy,
        seed: int,
        agent: int,
        reasoning_tokens: int = 0,
        drafter: Drafter | None = None,
        ends: bool = True,
    ) -> None:
        """
        Args:
            policy: whose weights play.
            seed: of the run; with ``agent``, a word for the agent's name, it keys every draw.
            reasoning_tokens: scratch tokens sampled before each action.
            drafter: proposes tokens, so that one forward may yield several; none: plain sampling.
            ends: whether the end token ends a free text; else each has its full length, for measurements.
        """
        self.policy = policy
        self.temperature = 1.0
        self.drafter = drafter
        self.spent = Spent()
        self._key = fold(seed, agent)
        self._reasoning = reasoning_tokens
        self._ends = ends
        self._rows: dict[int, Row] = {}
        self._free: set[int] = set()
        self._cache = RowCache(0)

    def clear(self, temperature: float) -> None:
        """Forgets every open episode; the weights may change now."""
        self.temperature = temperature
        if self.drafter:
            self.drafter.refresh(temperature)
        self._rows.clear()
        self._cache = RowCache(0)
        self._free = set()

    def stream(self, episode: int) -> Stream | None:
        """Returns the stream of an open episode, or none."""
        row = self._rows.get(episode)
        return row.stream if row else None

    def close(self, episode: int) -> Stream:
        """Ends an episode, frees its row and returns its stream: an empty one if the agent never had a turn in it."""
        row = self._rows.pop(episode, None)
        if row is None:
            return Stream(self.policy.window, self.policy.format.start)
        self._free.add(row.slot)
        return row.stream

    def play(self, episodes: Sequence[int], turns: Sequence[Turn]) -> list[str]:
        """Reads each episode's new turn, samples an optional scratch text and an action, and returns the actions."""
        fmt = self.policy.format
        with torch.inference_mode():
            rows = self._begin(episodes, turns)
            rules: list[Rule] = [
                LegalRule(fmt.trie(turn.legal)) if turn.legal else self._free_rule(turn.free) for turn in turns
            ]
            texts = self._segment(rows, turns, "action", rules)
        for row in rows:
            row.stream.turns += 1
        return [
            turn.legal[rule.action] if isinstance(rule, LegalRule) else text
            for turn, rule, text in zip(turns, rules, texts)
        ]

    def read(self, episodes: Sequence[int], turns: Sequence[Turn]) -> list[Outlook]:
        """Reads each episode's new turn, and a scratch text if there is one to be; draws candidates of free turns.

        Every one of these turns is to be ended: by ``settle`` among the actions of its outlook, or by ``say``.
        """
        with torch.inference_mode():
            rows = self._begin(episodes, turns)
            for row in rows:
                row.stream.ids.extend(self.policy.format.opening("action"))
            free = [i for i, turn in enumerate(turns) if not turn.legal]
            found = self._candidates([rows[i] for i in free], [turns[i].free for i in free])
            legal = {i: turn.legal for i, turn in enumerate(turns)} | dict(zip(free, found))
            return self._look(rows, [legal[i] for i in range(len(turns))])

    def hear(self, episodes: Sequence[int], turns: Sequence[Turn], texts: Sequence[str]) -> list[Outlook]:
        """Adds advice to the contexts of turns that were read, and returns what the policy makes of them now."""
        fmt = self.policy.format
        opening = fmt.opening("action")
        rows = [self._rows[episode] for episode in episodes]
        for row, turn, text in zip(rows, turns, texts):
            stream = row.stream
            del stream.ids[-len(opening) :]
            row.cached, row.headed = min(row.cached, len(stream.ids)), min(row.headed, len(stream.ids))
            stream.append(Segment("advice", fmt.given("advice", text), turn.round, text))
            if stream.make_room(max(map(len, map(fmt.choice, turn.legal))) + len(opening) + len(fmt.after)):
                row.cached = row.headed = 0
            stream.ids.extend(opening)
        with torch.inference_mode():
            return self._look(rows, [turn.legal for turn in turns])

    def say(self, episodes: Sequence[int], turns: Sequence[Turn]) -> list[str]:
        """Ends free turns that were read, just as ``play`` does, as if there had been no candidates.

        With drafts the same text may not come: they can start a token earlier. Its distribution is the same.
        """
        rows = [self._rows[episode] for episode in episodes]
        spans = [Span(row, self._free_rule(turn.free)) for row, turn in zip(rows, turns)]
        with torch.inference_mode():
            for span in spans:
                span.undo()  # of nothing: the last token is read again, for its logits
            self._sample(spans)
        texts = [self._seal(span, turn, "action") for span, turn in zip(spans, turns)]
        for row in rows:
            row.stream.turns += 1
        return texts

    def settle(
        self, episodes: Sequence[int], turns: Sequence[Turn], policies: Sequence[Floats], behaviours: Sequence[Floats]
    ) -> list[int]:
        """Draws the actions of turns that were read and returns their indices.

        Args:
            episodes: as they were read.
            turns: theirs, with the actions of the outlook.
            policies: the (A,) probabilities that ``read`` returned.
            behaviours: the (A,) probabilities that the actions are drawn with, which are recorded token by token; the
                recorded entropy is the policy's own.
        """
        fmt = self.policy.format
        actions = []
        for episode, turn, policy, behaviour in zip(episodes, turns, policies, behaviours):
            row = self._rows[episode]
            draw = torch.from_numpy(uniform(row.key, row.position))
            actions.append(int(pick(torch.from_numpy(behaviour)[None], draw)[0]))
            root, ids = fmt.trie(turn.legal), fmt.choice(turn.legal[actions[-1]])
            own, drawn = conditionals(root, policy), conditionals(root, behaviour)
            weight = float(policy[actions[-1]] / behaviour[actions[-1]])
            rule = LegalRule(root)
            span = Span(row, rule)
            for place, token in enumerate(ids):
                allowed = rule.allowed
                if len(allowed) == 1:
                    span.take(token, 0.0, 0.0, allowed, forced=True)
                    continue
                p, b = own[ids[:place]], drawn[ids[:place]]
                nats = float(-(p * np.log(np.maximum(p, 1e-300))).sum())
                span.take(token, float(np.log(b[allowed.index(token)])), nats, allowed, False, weight)
                self.spent.tokens += 1
            self._seal(span, turn, "action")
            row.stream.turns += 1
        return actions

    def consult(self, contexts: Sequence[Context], legal: Sequence[tuple[str, ...]]) -> list[Outlook | None]:
        """Returns what the policy would make of contexts that it has never seen, and keeps nothing of them.

        None where it cannot: the newest text is too long for the window, or two actions are one to this tokenizer.
        """
        rows = self._open(range(len(contexts)))
        try:
            fit = [i for i, row in enumerate(rows) if self._overheard(row, contexts[i], legal[i])]
            with torch.inference_mode():
                outlooks = self._look([rows[i] for i in fit], [legal[i] for i in fit])
            found = dict(zip(fit, outlooks))
            return [found.get(i) for i in range(len(rows))]
        finally:
            for number in range(len(contexts)):
                self.close(number)

    def _overheard(self, row: Row, context: Context, legal: tuple[str, ...]) -> bool:
        """Puts a peer's context into an empty row, up to where an action begins; returns whether that can be done."""
        fmt = self.policy.format
        for kind, text in context:
            action = (*fmt.opening(kind), *fmt.choice(text), *fmt.after)
            row.stream.append(Segment(kind, action if kind == "action" else fmt.given(kind, text), 0, text))
        try:
            fmt.trie(legal)
            row.stream.make_room(max(map(len, map(fmt.choice, legal))) + len(fmt.opening("action")))
        except EnvError:
            return False
        row.stream.ids.extend(fmt.opening("action"))
        return True

    def _candidates(self, rows: Sequence[Row], most: Sequence[int]) -> list[tuple[str, ...]]:
        """Draws texts in rows whose stream ends where a free action begins, and forgets them; returns what to offer.

        One after the other: a row's cache then holds one text at a time, and needs no copy.
        """
        keys = [row.key for row in rows]
        draws: list[list[str]] = [[] for _ in rows]
        for number in range(DRAWS if rows else 0):
            for row, key in zip(rows, keys):
                row.key = fold(key, _CANDIDATE, number)
            spans = [Span(row, self._free_rule(tokens)) for row, tokens in zip(rows, most)]
            self._sample(spans)
            for span, drawn in zip(spans, draws):
                drawn.append(self.policy.format.decode(span.ids))
                span.undo()
        for row, key in zip(rows, keys):
            row.key = key
        return [candidates(drawn, self.policy.format.choice, tokens + 1) for drawn, tokens in zip(draws, most)]

    def _look(self, rows: Sequence[Row], legal: Sequence[tuple[str, ...]]) -> list[Outlook]:
        """Returns the policy's outlook in rows whose stream ends where an action begins; nothing is taken."""
        if not rows:
            return []
        # without an action there is nothing to weigh, and the state is read all the same
        tries = [self.policy.format.trie(actions or ("",)) for actions in legal]
        tables: list[dict[tuple[int, ...], Floats]] = [{} for _ in rows]
        self._pack(rows)
        order = sorted(range(len(rows)), key=lambda i: rows[i].slot)
        logits, hidden = self._logits([Span(rows[i], LegalRule(tries[i])) for i in order])
        place = {i: column for column, i in enumerate(order)}
        ways = [list(forks(root).items()) for root in tries]
        for number in range(max(map(len, ways), default=0)):
            some = sorted((i for i in range(len(rows)) if number < len(ways[i])), key=lambda i: rows[i].slot)
            deep = [i for i in some if ways[i][number][0]]
            after = {i: logits[place[i], 0] for i in some if not ways[i][number][0]}
            if deep:
                feeds = [ways[i][number][0] for i in deep]
                found, _ = self._run([rows[i] for i in deep], feeds, [[len(feed) - 1] for feed in feeds])
                after |= {i: found[column, 0] for column, i in enumerate(deep)}
            allowed = [ways[i][number][1].tokens for i in some]
            logp, _ = restricted(torch.stack([after[i] for i in some]), allowed, self.temperature)
            for i, ids, line in zip(some, allowed, probabilities(logp).double().cpu().numpy()):
                tables[i][ways[i][number][0]] = line[: len(ids)] / line[: len(ids)].sum()
        states = None if hidden is None else hidden[:, 0].float().cpu()
        return [
            Outlook(actions, likelihoods(root, table)[: len(actions)], None if states is None else states[place[i]])
            for i, (actions, root, table) in enumerate(zip(legal, tries, tables))
        ]

    def _begin(self, episodes: Sequence[int], turns: Sequence[Turn]) -> list[Row]:
        """Reads each episode's new turn, and samples a scratch text if there is one to be; returns their rows."""
        rows = self._open(episodes)
        for row, turn in zip(rows, turns):
            self._append(row, turn)
        if self._reasoning:
            self._segment(rows, turns, "reasoning", [self._free_rule(self._reasoning) for _ in rows])
        return rows

    def _free_rule(self, most: int) -> Rule:
        return FreeRule(self.policy.format.end, most, self._ends)

    def _open(self, episodes: Sequence[int]) -> list[Row]:
        """Returns the rows of episodes, of which new ones take free rows of the cache."""
        new = [episode for episode in episodes if episode not in self._rows]
        if (more := len(new) - len(self._free)) > 0:
            have = self._cache.rows
            self._cache.grow(have + more)
            self._free.update(range(have, have + more))
        for episode in new:
            stream = Stream(self.policy.window, self.policy.format.start)
            slot = min(self._free)
            self._free.remove(slot)
            self._rows[episode] = Row(stream, slot, episode)
        return [self._rows[episode] for episode in episodes]

    def _append(self, row: Row, turn: Turn) -> None:
        fmt, stream = self.policy.format, row.stream
        parts: list[tuple[Kind, str]] = [("system", turn.system), ("feedback", turn.feedback)]
        for kind, text in (*((k, t) for k, t in parts if t), ("observation", turn.observation)):
            stream.append(Segment(kind, fmt.given(kind, text), turn.round, text))
        most = max(map(len, map(fmt.choice, turn.legal))) if turn.legal else turn.free + 1
        most += len(fmt.opening("action")) + len(fmt.after)
        if self._reasoning:
            most += self._reasoning + 1 + len(fmt.opening("reasoning")) + len(fmt.after)
        if stream.make_room(most):
            row.cached = row.headed = 0
        row.key = fold(self._key, row.episode, stream.turns)
        row.position = 0

    def _segment(self, rows: Sequence[Row], turns: Sequence[Turn], kind: Kind, rules: Sequence[Rule]) -> list[str]:
        """Samples one segment for every row and seals it in the row's stream; returns the texts."""
        opening = self.policy.format.opening(kind)
        spans = [Span(row, rule) for row, rule in zip(rows, rules)]
        for row in rows:
            row.stream.ids.extend(opening)
        self._sample(spans)
        return [self._seal(span, turn, kind) for span, turn in zip(spans, turns)]

    def _seal(self, span: Span, turn: Turn, kind: Kind) -> str:
        """Closes a sampled segment and returns its text."""
        fmt = self.policy.format
        opening, text = fmt.opening(kind), fmt.decode(span.ids)
        span.row.stream.ids.extend(fmt.after)
        before, behind = (0.0,) * len(opening), (0.0,) * len(fmt.after)
        span.row.stream.seal(
            Segment(
                kind,
                (*opening, *span.ids, *fmt.after),
                turn.round,
                text,
                turn.legal if kind == "action" else (),
                (*before, *span.logp, *behind),
                (*before, *span.entropy, *behind),
            )
        )
        return text

    def _sample(self, spans: Sequence[Span]) -> None:
        """Draws tokens until every span's rule is over."""
        active: list[Span] = []
        going = [span for span in spans if span.run_forced()]
        while going:
            if len(going) != len(active) or not side_by_side([span.row.slot for span in active]):
                self._pack([span.row for span in going])
                active = sorted(going, key=lambda span: span.row.slot)
            self._advance(active)
            going = [span for span in active if span.run_forced()]

    def _pack(self, rows: Sequence[Row]) -> None:
        """Moves rows side by side in the cache, so that no step has to copy them."""
        if pairs := closing([row.slot for row in rows], self._cache.rows):
            by = {row.slot: row for row in self._rows.values()}
            self._cache.swap(pairs, max(by[slot].cached for pair in pairs for slot in pair if slot in by))
            for mine, other in pairs:
                if other in by:
                    by[other].slot = mine
                else:
                    self._free.symmetric_difference_update((mine, other))
                by[mine].slot = other

    def _advance(self, spans: Sequence[Span]) -> None:
        """Draws one token for every span, or more where the drafter's proposal is accepted."""
        started = perf_counter()
        proposal = self.drafter.propose(self._cache, spans) if self.drafter else None
        drafted = perf_counter()
        if proposal is None:
            logits, _ = self._logits(spans)
        else:
            logits, _ = self._run([span.row for span in spans], proposal.feeds, proposal.columns)
        read = perf_counter()
        if proposal is None or self.drafter is None:
            self._choose(logits[:, 0], spans)
            self.spent.tokens += len(spans)
        else:
            self.spent.tokens += self.drafter.settle(logits, proposal, spans)
        self.spent.rows += len(spans)
        self.spent.draft_s += drafted - started
        self.spent.read_s += read - drafted
        self.spent.choose_s += perf_counter() - read

    def _choose(self, logits: Tensor, spans: Sequence[Span]) -> None:
        """Draws the next token of every span from its (B, V) logits, restricted to what its rule allows."""
        draws = uniform(np.concatenate([span.row.key for span in spans]), [span.row.position for span in spans])
        allowed = [span.rule.allowed for span in spans]
        for free in (False, True):
            some = [i for i, ids in enumerate(allowed) if (ids is None) == free]
            if not some:
                continue
            part = logits if len(some) == len(spans) else logits[self._index(some)]
            logp, tokens = restricted(part, [allowed[i] for i in some], self.temperature)
            p = probabilities(logp)
            column = pick(p, torch.from_numpy(draws[some]).to(logp.device))
            token = column if tokens is None else tokens.gather(1, column[:, None])[:, 0]
            taken = logp.gather(1, column[:, None])[:, 0]
            for i, t, lp, nats in zip(some, token.tolist(), taken.tolist(), entropy(logp, p).tolist()):
                spans[i].take(t, lp, nats, allowed[i], forced=False)

    def _logits(self, spans: Sequence[Span]) -> Read:
        """Feeds every row what its cache lacks and returns the (B, 1, V) logits and (B, 1, H) states at its last token.

        Rows whose cache is empty and whose tokens are equal, as at the start of a group, are computed once.
        """
        rows = [span.row for span in spans]
        first: dict[tuple[int, ...], int] = {}
        source = list(range(len(rows)))
        for i, row in enumerate(rows):
            if row.cached == 0:
                source[i] = first.setdefault(tuple(row.stream.ids), i)
        leaders = [i for i in range(len(rows)) if source[i] == i]
        if len(leaders) == len(rows):
            return self._read(rows)
        logits, hidden = self._read([rows[i] for i in leaders])
        followed = sorted({leader for i, leader in enumerate(source) if leader != i})
        ahead = max(spans[leader].rule.ahead for leader in followed)
        if self.drafter and ahead > 2 and self.drafter.pace.length(len(rows)):
            self.drafter.read(self._cache, [rows[leader] for leader in followed])
        for leader in followed:
            row = rows[leader]
            twins = [i for i in range(len(rows)) if source[i] == leader and i != leader]
            self._cache.copy(row.slot, self._index([rows[i].slot for i in twins]), row.cached)
            for i in twins:
                rows[i].cached, rows[i].headed = row.cached, row.headed
        place = {leader: column for column, leader in enumerate(leaders)}
        return _rows((logits, hidden), self._index([place[leader] for leader in source]))

    def _read(self, rows: Sequence[Row]) -> Read:
        """Reads everything that is pending; returns the (B, 1, V) logits and (B, 1, H) states at its end."""
        parts = bands([row.pending for row in rows])
        found = []
        for part in parts:
            some = [rows[i] for i in part]
            if len(parts) > 1:
                self._pack(some)
                some.sort(key=lambda row: row.slot)
            feeds = [row.stream.ids[row.cached :] for row in some]
            read = self._run(some, feeds, [[len(feed) - 1] for feed in feeds])
            place = {id(row): column for column, row in enumerate(some)}
            for row, feed in zip(some, feeds):
                row.cached += len(feed)
            found.append(_rows(read, self._index([place[id(rows[i])] for i in part])) if len(parts) > 1 else read)
        if len(parts) == 1:
            return found[0]
        states = [hidden for _, hidden in found if hidden is not None]
        whole = torch.cat([logits for logits, _ in found]), torch.cat(states) if states else None
        return _rows(whole, self._index(np.argsort(np.concatenate(parts))))

    def _run(self, rows: Sequence[Row], feeds: Sequence[Sequence[int]], columns: Sequence[Sequence[int]]) -> Read:
        """Runs the policy over a feed per row; returns the (B, K, V) logits and (B, K, H) states at the K columns."""
        width = max(map(len, feeds))
        starts = np.array([row.cached for row in rows])
        seen = int(starts.max()) + width
        ids = self._index([[*feed, *[0] * (width - len(feed))] for feed in feeds])
        positions = self._index(starts[:, None] + np.arange(width))
        mask = causal(positions, seen, self.policy.model.dtype)
        level = bool((starts == starts[0]).all())
        self._cache.aim([row.slot for row in rows], slice(int(starts[0]), seen) if level else positions, seen)
        kept = sorted({column for some in columns for column in some})
        logits, hidden = self.policy.forward_cached(ids, positions, mask, self._cache, self._index(kept))
        if self.drafter and hidden is not None:
            self._cache.write(HIDDEN, hidden)
        self.spent.forwards += 1
        states = None if hidden is None else hidden[:, self._index(kept)]
        if all(list(some) == kept for some in columns):
            return logits, states
        place = {column: i for i, column in enumerate(kept)}
        at = self._index([[place[column] for column in some] for some in columns])
        line = torch.arange(len(rows), device=ids.device)[:, None]
        return logits[line, at], None if states is None else states[line, at]

    def _index(self, values: Any) -> Tensor:
        return torch.as_tensor(values, dtype=torch.long, device=self.policy.device)


def _rows(read: Read, index: Tensor) -> Read:
    logits, hidden = read
    return logits[index], None if hidden is None else hidden[index]
