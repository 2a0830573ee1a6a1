"""One agent's part in advice: which turns it asks about, what it answers, whom it believes, and what it learns of it.

Everything that decides is the agent's own: its policy, its consensus model, its value head, and the trust that it
learnt from outcomes. Knows no link: questions and answers come and go as plain structs that were checked before.
"""

from __future__ import annotations

__all__ = ["Advisor"]

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from decentral.agents.advice import (
    Answer,
    Question,
    answer_bytes,
    clean,
    clip_context,
    context_room,
    pack_embedding,
    pack_probabilities,
    pair_bytes,
    unpack_embedding,
    unpack_probabilities,
)
from decentral.agents.advice_config import AdviceConfig
from decentral.agents.arms import Decision, decide
from decentral.agents.asking import Budget, Gate
from decentral.agents.candidates import offer
from decentral.agents.consensus import Consensus
from decentral.agents.credibility import View, preference
from decentral.agents.credit import Plays, to_go
from decentral.agents.draws import fold, name_word, uniform
from decentral.agents.mind import Metrics, Request
from decentral.agents.policy import Policy
from decentral.agents.rollout import Context, Outlook, Rollouts
from decentral.agents.trust import Trust
from decentral.agents.value import ValueHead
from decentral.envs.turn import Turn
from decentral.errors import ModelError

Floats = NDArray[np.float64]
Moment = tuple[int, int]
"""(episode, round)."""

_FILE = "advice.json"
_WORD = name_word("advice")
"""Keeps these draws apart from those of tokens."""
_CERTAIN = 0.95
"""An answer is declined whose entropy is above this share of the largest possible: it would say nothing."""


@dataclass
class _Turn:
    """One of the agent's turns: what it made of it, what it was told, and what it did."""

    request: Request
    number: int
    """Which of the agent's turns of the episode it is."""
    outlook: Outlook
    own: View
    target: bytes
    """The agent's own embedding of the moment, as it goes to others."""
    asked: bool = False
    answers: dict[str, Answer] = field(default_factory=dict)
    decision: Decision | None = None
    action: int = -1

    @property
    def turn(self) -> Turn:
        """The turn with its actions: a free one, once it is asked about, offers its candidates."""
        return msgspec.structs.replace(self.request.turn, legal=self.outlook.legal, free=0)

    @property
    def offered(self) -> tuple[str, ...]:
        """The actions as a peer reads them."""
        legal = self.outlook.legal
        return legal if self.request.turn.legal else tuple(map(offer, legal))

    @property
    def free(self) -> bool:
        """Whether it is played as free text: a free turn that is not asked about.

        One that is asked about has its candidates as its legal actions, whoever answers: whether a peer does depends on
        them, so that to go back to free text would bias the probability that is recorded. For the same reason the text
        of a turn that is not asked about is drawn anew, and is none of the candidates by which the gate was set.
        """
        return not (self.request.turn.legal or self.asked)

    @property
    def moment(self) -> Moment:
        return self.request.episode, self.request.turn.round


class Advisor:
    """Takes and gives advice for one agent with a policy."""

    def __init__(
        self, name: str, config: AdviceConfig, policy: Policy, seed: int, teachers: Sequence[str], discount: float
    ) -> None:
        """``teachers``: the peers that may be asked. ``discount``: of the rewards that a value foretells."""
        self.trust = Trust()
        self._config = config
        self.teachers = tuple(teachers)
        self._discount = discount
        self._key = (seed, name_word(name), _WORD)
        width = int(policy.model.config.hidden_size)
        word = int(fold(*self._key)[0] >> np.uint64(33))
        self._consensus = Consensus(width, word, config.consensus)
        self._value = ValueHead(width, word)
        self._gate = Gate(config.gate, quantile=config.quantile)
        self._budget = Budget(config.bytes)
        self._tutor = Rollouts(policy, seed, name_word(name))
        self.system = ""
        """What the agent was told before its first turn; it reads a peer's context after it."""
        self.open: dict[int, _Turn] = {}
        """Turns that were looked at and wait for ``choose``, by episode."""
        self._latest: dict[int, tuple[int, bytes]] = {}
        self._turns: list[_Turn] = []
        self._heard: list[tuple[Moment, bytes]] = []
        self._unsure = 0

    @property
    def asks(self) -> bool:
        """Whether it ever asks."""
        return self._config.rule != "none" and self._config.gate != "never" and bool(self.teachers)

    def begin(self, temperature: float) -> None:
        """Starts a phase; what was open is forgotten."""
        self._tutor.clear(temperature)
        self._budget.renew()
        self.open.clear()
        self._latest.clear()
        self._turns, self._heard = [], []
        self._unsure = 0

    # -- asking ---------------------------------------------------------------------------------------------------

    def look(self, rollouts: Rollouts, requests: Sequence[Request]) -> tuple[Question, ...]:
        """Reads turns and returns questions about those that the gate lets pass, as far as the budget goes.

        The entropy of a free turn is that of the policy among its candidates. Every one of these turns is to be ended
        by ``choose``.
        """
        outlooks = rollouts.read([request.episode for request in requests], [request.turn for request in requests])
        views, targets = self._views(outlooks)
        for request, outlook, view, target in zip(requests, outlooks, views, targets):
            stream = rollouts.stream(request.episode)
            self._latest[request.episode] = (request.turn.round, target)
            self.open[request.episode] = _Turn(request, stream.turns if stream else 0, outlook, view, target)
        chosen = self._chosen([self.open[r.episode] for r in requests if len(self.open[r.episode].outlook.legal) > 1])
        questions = []
        for turn in chosen:
            question = self._question(rollouts, turn)
            # without a context, what is seen is too long to tell
            if question.context and self._budget.take(question.episode, len(self.teachers) * pair_bytes(question)):
                turn.asked = True
                questions.append(question)
        return tuple(questions)

    def _chosen(self, turns: Sequence[_Turn]) -> list[_Turn]:
        """Returns the turns that the gate lets pass."""
        if not turns:
            return []
        draws = uniform(*self._key, [turn.moment[0] for turn in turns], [turn.moment[1] for turn in turns])
        observations = [turn.request.turn.observation for turn in turns]
        passed = self._gate.choose(np.array([turn.own.entropy for turn in turns]), observations, draws)
        return [turn for turn, passes in zip(turns, passed) if passes]

    def _question(self, rollouts: Rollouts, turn: _Turn) -> Question:
        stream = rollouts.stream(turn.request.episode)
        segments = stream.segments if stream else []
        told = [(s.kind, s.text) for s in segments if s.kind in ("observation", "action", "feedback")]
        bare = Question(*turn.moment, (), turn.offered, turn.target)
        return msgspec.structs.replace(bare, context=clip_context(told, context_room(bare)))

    def choose(
        self, rollouts: Rollouts, requests: Sequence[Request], answers: Mapping[str, Mapping[int, Answer]]
    ) -> list[str]:
        """Draws the actions of turns that were looked at, and returns their texts.

        Args:
            rollouts: that read them.
            requests: the turns.
            answers: per peer and episode, what it answered about the open turn; declined answers may be among them.
        """
        turns = [self.open.pop(request.episode) for request in requests]
        for turn in turns:
            turn.answers = {
                peer: got[turn.request.episode] for peer, got in answers.items() if turn.request.episode in got
            }
            for answer in turn.answers.values():
                if answer.embedding and answer.round == turn.request.turn.round:
                    self._heard.append((turn.moment, answer.embedding))
            self._refund(turn)
            turn.answers = {peer: answer for peer, answer in turn.answers.items() if answer.probabilities}
        advised = [turn for turn in turns if turn.answers]
        if self._config.mode == "context":
            self._hear(rollouts, advised)
        for turn in advised:
            turn.decision = self._decide(turn)
        self._turns += turns
        texts = self._settle(rollouts, [turn for turn in turns if not turn.free])
        free = [turn.request for turn in turns if turn.free]
        episodes = [request.episode for request in free]
        texts |= dict(zip(episodes, rollouts.say(episodes, [request.turn for request in free])))
        return [texts[request.episode] for request in requests]

    def _refund(self, turn: _Turn) -> None:
        """Returns to the budget what answers did not take; a late one is not known yet, and may still take it all."""
        for answer in turn.answers.values():
            if answer != Answer():
                spare = answer_bytes(len(turn.outlook.legal)) - len(msgspec.msgpack.encode(answer))
                self._budget.give_back(turn.request.episode, spare)

    def _settle(self, rollouts: Rollouts, turns: Sequence[_Turn]) -> dict[int, str]:
        """Draws among legal actions; returns their texts by episode."""
        own = [turn.outlook.probabilities for turn in turns]
        drawn = [turn.decision.behaviour if turn.decision else p for turn, p in zip(turns, own)]
        actions = rollouts.settle([turn.request.episode for turn in turns], [t.turn for t in turns], own, drawn)
        for turn, action in zip(turns, actions):
            turn.action = action
        return {turn.request.episode: turn.outlook.legal[turn.action] for turn in turns}

    def _hear(self, rollouts: Rollouts, turns: Sequence[_Turn]) -> None:
        """Lets the agent read what its peers would do; what it makes of that is then its own outlook."""
        if not turns:
            return
        texts = ["; ".join(_told(turn, peer) for peer in turn.answers) for turn in turns]
        outlooks = rollouts.hear([turn.request.episode for turn in turns], [turn.turn for turn in turns], texts)
        for turn, outlook in zip(turns, outlooks, strict=True):
            turn.outlook = outlook

    def _decide(self, turn: _Turn) -> Decision:
        teachers = [
            View(unpack_probabilities(answer.probabilities), _unpacked(answer.embedding), answer.value)
            for answer in turn.answers.values()
        ]
        trust = self.trust.of(list(turn.answers))
        if self._config.mode == "context":
            even = np.full(len(teachers), 1 / len(teachers))
            return Decision(turn.outlook.probabilities, even, preference(even, teachers), 1.0)
        return decide(self._config.rule, turn.own, teachers, trust, self._config.strength)

    # -- answering ------------------------------------------------------------------------------------------------

    def answer(self, questions: Sequence[Question]) -> tuple[Answer, ...]:
        """Returns what the agent would do where a peer stands, read from what that told; declines if it has no idea."""
        system: Context = [("system", self.system)] if self.system else []
        contexts: list[Context] = [[*system, *question.context] for question in questions]
        outlooks = self._tutor.consult(contexts, [question.legal for question in questions])
        views = iter(self._views([outlook for outlook in outlooks if outlook])[0])
        found = []
        for question, outlook in zip(questions, outlooks):
            if question.embedding:
                self._heard.append(((question.episode, question.round), question.embedding))
            round_, embedding = self._latest.get(question.episode, (-1, b""))
            view = next(views) if outlook else None
            knows = view is not None and view.entropy <= _CERTAIN * math.log(len(question.legal))
            self._unsure += not knows
            said = pack_probabilities(view.probabilities) if view and knows else b""
            found.append(Answer(said, view.value if view else None, embedding, round_))
        return tuple(found)

    def _views(self, outlooks: Sequence[Outlook]) -> tuple[list[View], list[bytes]]:
        """Returns outlooks with the agent's own embedding and value, and the embeddings that go to others."""
        states = [outlook.hidden for outlook in outlooks if outlook.hidden is not None]
        if len(states) < len(outlooks) or not states:
            return [View(outlook.probabilities, None, None) for outlook in outlooks], [b""] * len(outlooks)
        hidden = torch.stack(states)
        embeddings, targets = self._consensus.project(hidden).numpy(), self._consensus.target(hidden).numpy()
        values = self._value.predict(hidden).tolist() if self._value.learnt else [None] * len(hidden)
        views = [View(o.probabilities, z, v) for o, z, v in zip(outlooks, embeddings, values)]
        return views, [pack_embedding(target) for target in targets]

    # -- learning -------------------------------------------------------------------------------------------------

    def learn(
        self, episodes: Sequence[int], plays: Plays, advantage: Floats
    ) -> tuple[Metrics, list[dict[str, Any]], Floats]:
        """Learns from a finished phase whom to trust, what peers see alike, and what a state is worth.

        Args:
            episodes: numbers of the E episodes.
            plays: these episodes as arrays.
            advantage: (N,) of their sampled tokens.

        Returns:
            figures, a record of every turn that was asked about, and (N,) what advice adds to the advantage.
        """
        place = {episode: e for e, episode in enumerate(episodes)}
        gain = {(int(e), int(t)): float(a) for e, t, a in zip(plays.episode, plays.turn, advantage)}
        turns = [turn for turn in self._turns if turn.request.episode in place]
        worth = to_go(plays.rewards, self._discount)
        evidence: dict[str, dict[int, list[float]]] = {}
        added = np.zeros(plays.rewards.shape)
        records = []
        for turn in turns:
            e = place[turn.request.episode]
            credit = gain.get((e, turn.number), 0.0)
            if turn.decision:
                decision, own = turn.decision, turn.own.probabilities[turn.action]
                added[e, turn.number] = self._config.shaping * decision.belief * decision.favour[turn.action]
                for peer, answer in turn.answers.items():
                    gap = float(unpack_probabilities(answer.probabilities)[turn.action]) - own
                    found = evidence.setdefault(peer, {}).setdefault(e, [])
                    found.append(credit * gap / decision.behaviour[turn.action])
            if turn.asked:
                records.append(self._record(turn, credit, float(plays.returns[e])))
        for peer, by_episode in evidence.items():
            self.trust.update(peer, by_episode.values())
        advised = [turn for turn in turns if turn.decision]
        figures: Metrics = {
            "asked": sum(turn.asked for turn in turns),
            "advised": len(advised),
            "moved": float(np.mean([_moved(turn) for turn in advised])) if advised else 0.0,
            "unsure": self._unsure,
            **{f"trust_{peer}": float(self.trust.of([peer])[0]) for peer in self.teachers},
        }
        seen = [turn for turn in turns if turn.outlook.hidden is not None]
        if seen:
            hidden = torch.stack([turn.outlook.hidden for turn in seen if turn.outlook.hidden is not None])
            row = {turn.moment: i for i, turn in enumerate(seen)}
            heard = [(row[moment], unpack_embedding(z)) for moment, z in self._heard if moment in row and z]
            moments = np.array([turn.moment for turn in seen])
            figures |= self._consensus.learn(hidden, moments[:, 0], moments[:, 1], heard)
            returns = [float(worth[place[turn.request.episode], turn.number]) for turn in seen]
            figures |= self._value.learn(hidden, torch.tensor(returns, dtype=torch.float64))
        return figures, records, added[plays.episode, plays.turn]

    def _record(self, turn: _Turn, credit: float, total: float) -> dict[str, Any]:
        decision = turn.decision
        return {
            "episode": turn.request.episode,
            "round": turn.request.turn.round,
            "legal": list(turn.outlook.legal),
            "action": turn.action,
            "own": _rounded(turn.own.probabilities),
            "value": turn.own.value,
            "behaviour": _rounded(decision.behaviour if decision else turn.own.probabilities),
            "score": _rounded(decision.favour) if decision else [],
            "peers": {
                peer: {
                    "probabilities": _rounded(unpack_probabilities(answer.probabilities)),
                    "distance": _distance(turn.own, answer),
                    "weight": _short(float(weight)),
                    "trust": _short(float(self.trust.of([peer])[0])),
                    "value": answer.value,
                }
                for (peer, answer), weight in zip(turn.answers.items(), decision.weights if decision else ())
            },
            "advantage": round(credit, 4),
            "return": round(total, 4),
        }

    def save(self, folder: Path) -> None:
        """Writes everything that ``load`` needs."""
        state = {"trust": self.trust.state(), "gate": self._gate.state(), "system": self.system}
        (folder / _FILE).write_text(json.dumps(state))
        self._consensus.save(folder)
        self._value.save(folder)

    def load(self, folder: Path) -> None:
        """Restores what ``save`` wrote. Raises ModelError."""
        try:
            state = json.loads((folder / _FILE).read_bytes())
            self.trust.restore(state["trust"])
            self._gate.restore(state["gate"])
            self.system = str(state["system"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(
                f"checkpoint {folder} cannot be read ({error}); remove it, and the one before it is taken"
            ) from error
        self._consensus.load(folder)
        self._value.load(folder)


def _told(turn: _Turn, peer: str) -> str:
    """Returns such as ``bob north 80 "it is locked"``: a peer, its likeliest action, its percentage, and why."""
    answer = turn.answers[peer]
    probabilities = unpack_probabilities(answer.probabilities)
    best = int(probabilities.argmax())
    line = f"{peer} {turn.offered[best]} {100 * probabilities[best]:.0f}"
    said = clean(answer.rationale).replace('"', "'")
    return f'{line} "{said}"' if said else line


def _unpacked(embedding: bytes) -> NDArray[np.float32] | None:
    return unpack_embedding(embedding) if embedding else None


def _distance(own: View, answer: Answer) -> float | None:
    """Returns how far a peer's embedding is from the agent's own; None where there are not both."""
    other = _unpacked(answer.embedding)
    return None if own.embedding is None or other is None else _short(float(np.linalg.norm(own.embedding - other)))


def _moved(turn: _Turn) -> float:
    """Returns how much probability advice moved: the total variation between own and behaviour distribution."""
    assert turn.decision is not None
    return float(np.abs(turn.decision.behaviour - turn.own.probabilities).sum() / 2)


def _rounded(values: Floats) -> list[float]:
    return [_short(value) for value in values]


def _short(value: float) -> float:
    return float(f"{value:.5g}")
