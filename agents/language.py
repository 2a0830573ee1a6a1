"""The language agent: a policy that plays through the rollout engine and learns from its own plays."""

from __future__ import annotations

__all__ = ["LanguageAgent"]

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decentral.agents.advice import Answer, Question
from decentral.agents.advisor import Advisor
from decentral.agents.config import AgentConfig
from decentral.agents.draft_watch import DraftWatch
from decentral.agents.drafting import make_drafter
from decentral.agents.draws import name_word
from decentral.agents.learner import Learner, Play
from decentral.agents.mind import Ended, Metrics, Phase, Request
from decentral.agents.past import PastSelves
from decentral.agents.policy import Policy
from decentral.agents.rollout import Rollouts
from decentral.agents.stream import Stream

Floats = NDArray[np.float64]


class LanguageAgent:
    """A Mind with weights of its own; a frozen one plays the same way and never steps."""

    def __init__(
        self, name: str, config: AgentConfig, seed: int, teachers: Sequence[str] = (), askers: Sequence[str] = ()
    ) -> None:
        """Loads the model. Raises ModelError, ConfigError.

        Args:
            name: keys its draws.
            config: how it is made.
            seed: of the run.
            teachers: the peers that it may ask.
            askers: the peers that may ask it.
        """
        self.config = config
        self.policy = Policy(config, seed ^ name_word(name) & 0x7FFFFFFF)
        self.drafter = make_drafter(self.policy, config)
        self.rollouts = Rollouts(self.policy, seed, name_word(name), config.reasoning_tokens, self.drafter)
        self._watch = DraftWatch(self.drafter, config) if self.drafter else None
        self._learner = Learner(self.policy, config) if self.policy.learning else None
        self._past = PastSelves(name, config, seed) if self._learner and config.past else None
        self._advisor: Advisor | None = None
        if teachers or askers:
            discount = 1.0 if config.discount is None else config.discount
            self._advisor = Advisor(name, config.advice, self.policy, seed, teachers, discount)
        self._asked: list[int] = []
        self._records: list[dict[str, Any]] = []
        self._phase = Phase("eval", 0)
        self._plays: dict[int, Play] = {}
        self._rewards: dict[int, list[float]] = {}
        self._tally = _Tally()

    @property
    def updates(self) -> int:
        return self._learner.updates if self._learner else 0

    def begin(self, phase: Phase) -> None:
        self._phase = phase
        self._plays = {}
        self._rewards = {}
        self._tally = _Tally(sampled=self._spent())
        temperature = self.config.temperature if phase.kind == "train" else 1.0
        self.rollouts.clear(temperature)
        if self._advisor:
            self._advisor.begin(temperature)
        self._asked, self._records = [], []
        if self._watch:
            self._watch.begin()
        if self._past:
            self._past.begin(phase)

    def ask(self, requests: Sequence[Request]) -> Mapping[str, tuple[Question, ...]]:
        if self._advisor is None or not self._advisor.asks or self._phase.kind != "train":
            return {}
        started = time.perf_counter()
        mine = [r for r in requests if self._engine(r.group) is self.rollouts]
        questions = self._advisor.look(self.rollouts, mine) if mine else ()
        self._asked = [question.episode for question in questions]
        self._tally.seconds += time.perf_counter() - started
        return dict.fromkeys(self._advisor.teachers, questions) if questions else {}

    def act(self, requests: Sequence[Request], answers: Mapping[str, Sequence[Answer]] = {}) -> list[str]:
        started = time.perf_counter()
        for request in requests:
            if self._advisor and request.turn.system:
                self._advisor.system = request.turn.system
            got = self._rewards.setdefault(request.episode, [])
            if got:
                got[-1] = request.turn.reward
            got.append(0.0)
        looked = self._advisor.open if self._advisor else {}
        engines = [None if r.episode in looked else self._engine(r.group) for r in requests]
        actions = [""] * len(requests)
        for engine in dict.fromkeys(engines):
            mine = [i for i, one in enumerate(engines) if one is engine]
            texts = self._play(engine, [requests[i] for i in mine], answers)
            for i, text in zip(mine, texts):
                actions[i] = text
        self._tally.seconds += time.perf_counter() - started
        return actions

    def _play(
        self, engine: Rollouts | None, requests: Sequence[Request], answers: Mapping[str, Sequence[Answer]]
    ) -> list[str]:
        """Plays turns with an engine; without one, those that were looked at before."""
        if engine is not None:
            return engine.play([request.episode for request in requests], [request.turn for request in requests])
        assert self._advisor is not None
        by_episode = {peer: dict(zip(self._asked, given)) for peer, given in answers.items()}
        return self._advisor.choose(self.rollouts, requests, by_episode)

    def answer(self, questions: Sequence[Question]) -> tuple[Answer, ...]:
        return self._advisor.answer(questions) if self._advisor else (Answer(),) * len(questions)

    def records(self) -> list[dict[str, Any]]:
        records, self._records = self._records, []
        return records

    def end(self, ended: Sequence[Ended]) -> None:
        for over in ended:
            rollouts = self._engine(over.group)
            stream = rollouts.close(over.episode)
            rewards = self._rewards.pop(over.episode, [])
            if over.fault:
                self._tally.faults += 1
                continue
            if rollouts is not self.rollouts:
                self._tally.past += 1
                continue
            self._tally.add(over, stream)
            if self._phase.kind == "train" and self._learner:
                if rewards:
                    rewards[-1] = over.outcome.reward
                self._plays[over.episode] = Play(stream, over.group, over.outcome.total, rewards)

    def update(self) -> Metrics:
        figures = self._tally.figures(self._spent())
        if self._watch:
            figures |= self._watch.played()
        plays = [self._plays[episode] for episode in sorted(self._plays)]
        advantage, found = self._credit(sorted(self._plays), plays)
        figures |= found
        due = (self._phase.iteration + 1) % self.config.update_every == 0
        if self._learner and self._phase.kind == "train" and due:
            started = time.perf_counter()
            first = self.config.uniform_steps and self._learner.updates == 0
            even = self._learner.level(plays, self.config.uniform_steps) if first else {}
            figures |= even or self._learner.step(plays, advantage)
            if self._past:
                self._past.keep(self._learner.updates, self.policy.trained())
            if self._watch:
                chunks = [chunk for episode in sorted(self._plays) for chunk in self._plays[episode].stream.chunks]
                figures |= self._watch.updated(chunks)
            figures["update_s"] = time.perf_counter() - started
        self._plays = {}
        return figures

    def _credit(self, episodes: Sequence[int], plays: Sequence[Play]) -> tuple[Floats, Metrics]:
        """Returns the (N,) advantage of the sampled tokens; what advice there was is learnt from, and adds to it."""
        if self._learner is None or not plays:
            return np.zeros(0), {}
        arrays, advantage = self._learner.credit(plays)
        if self._advisor is None:
            return advantage, {}
        figures, self._records, added = self._advisor.learn(episodes, arrays, advantage)
        return advantage + added, figures

    def save(self, folder: Path) -> None:
        if self._learner:
            self._learner.save(folder)
        if self._advisor:
            self._advisor.save(folder)
        if self._past:
            self._past.save(folder)
        if self._watch:
            self._watch.save(folder)

    def load(self, folder: Path) -> None:
        if self._learner:
            self._learner.load(folder)
        if self._advisor:
            self._advisor.load(folder)
        if self._past:
            self._past.load(folder)
        if self._watch:
            self._watch.load(folder)

    def export(self, folder: Path) -> None:
        self.policy.export(folder)
        if self.drafter:
            self.drafter.head.save(folder / "mtp")
            self.drafter.pace.known.save(folder / "mtp")

    def _spent(self) -> int:
        """Returns how many tokens were sampled, by earlier weights too."""
        return self.rollouts.spent.tokens + (self._past.rollouts.spent.tokens if self._past else 0)

    def _engine(self, group: int) -> Rollouts:
        """Returns the engine that plays a group's episodes."""
        return self._past.rollouts if self._past and self._past.play(group) else self.rollouts

    def describe(self, episode: int) -> Stream | None:
        """Returns the stream of an open episode, or none."""
        return self.rollouts.stream(episode)


class _Tally:
    """Running sums of a phase."""

    def __init__(self, sampled: int = 0) -> None:
        self.seconds = 0.0
        self.faults = 0
        self.past = 0
        self._sampled = sampled
        self._episodes = self._turns = self._chunks = 0
        self._total = 0.0
        self._successes: list[float] = []

    def add(self, over: Ended, stream: Stream) -> None:
        self._episodes += 1
        self._turns += stream.turns
        self._chunks += len(stream.chunks) - 1
        self._total += over.outcome.total
        if over.outcome.success is not None:
            self._successes.append(over.outcome.success)

    def figures(self, sampled: int) -> Metrics:
        tokens = sampled - self._sampled
        figures: Metrics = {
            "episodes": self._episodes,
            "return": self._total / max(1, self._episodes),
            "turns": self._turns,
            "faults": self.faults,
            "past": self.past,
            "chunks": self._chunks,
            "tokens_sampled": tokens,
            "tokens_per_s": tokens / max(1e-9, self.seconds),
            "collect_s": self.seconds,
        }
        if self._successes:
            figures["success"] = sum(self._successes) / len(self._successes)
        return figures
