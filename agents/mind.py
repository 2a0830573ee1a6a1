"""The interface of an agent: what its process asks of it, whatever it is made of.

A mind knows no link, no clock and no other agent. It is driven by one thread, one call at a time, in the order
``begin -> (ask? act | answer | end)* -> update``, again and again, without ``update`` after an evaluation or a phase
that is started over; ``save`` and ``load`` happen only between phases.
"""

from __future__ import annotations

__all__ = ["Ended", "Metrics", "Mind", "Phase", "Request"]

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from decentral.agents.advice import Answer, Question
from decentral.envs.turn import Outcome, Turn

Metrics = dict[str, float]


class Phase(msgspec.Struct, frozen=True):
    """A stretch of play without an update in it."""

    kind: Literal["train", "eval"]
    iteration: int
    """Train: the iteration, from 0. Eval: how many iterations came before."""
    attempt: int = 0
    """How often this phase was started over because a process was lost."""


class Request(msgspec.Struct, frozen=True):
    """A turn of one episode that waits for this agent's action."""

    episode: int
    """Unique in the run; a phase that is started over uses the same numbers again."""
    group: int
    """Episodes of one group started from the same environment, level and seed."""
    turn: Turn


class Ended(msgspec.Struct, frozen=True):
    """An episode that is over, as this agent sees it."""

    episode: int
    group: int
    outcome: Outcome
    fault: Literal["", "environment", "agent"] = ""
    """Who spoilt the episode, which then enters no statistic: the environment broke, or an agent answered nothing
    legal. A word and no more: the host's own record tells what happened, with the actions of all."""


class Mind(Protocol):
    """One agent: a language model that learns, a frozen one, a script, a random player or a person."""

    @property
    def updates(self) -> int:
        """How many updates the weights have seen."""
        ...

    def begin(self, phase: Phase) -> None:
        """Forgets every open episode and starts a phase."""
        ...

    def ask(self, requests: Sequence[Request]) -> Mapping[str, tuple[Question, ...]]:
        """Returns what it asks which peers about these turns, for which ``act`` is called next; often nothing."""
        ...

    def act(self, requests: Sequence[Request], answers: Mapping[str, Sequence[Answer]] = {}) -> list[str]:
        """Returns one action text per request, in order; on a legal turn it is one of ``turn.legal``.

        ``answers``: per peer, one to each question of the ``ask`` before; declined where none came in time.
        """
        ...

    def answer(self, questions: Sequence[Question]) -> tuple[Answer, ...]:
        """Returns an answer to each question of a peer; it may decline any."""
        ...

    def records(self) -> list[dict[str, Any]]:
        """Returns what is to be kept of the advice in the phase that ``update`` closed, and forgets it."""
        ...

    def end(self, ended: Sequence[Ended]) -> None:
        """Takes the outcomes of episodes that are over."""
        ...

    def update(self) -> Metrics:
        """Closes the phase; a learner makes at most one optimiser step. Returns flat figures to log."""
        ...

    def save(self, folder: Path) -> None:
        """Writes everything that ``load`` needs to go on exactly, into an existing empty folder."""
        ...

    def load(self, folder: Path) -> None:
        """Restores what ``save`` wrote. Raises ModelError."""
        ...

    def export(self, folder: Path) -> None:
        """Writes a plain Hugging Face or PEFT folder, usable outside a run. Raises ModelError without weights."""
        ...
