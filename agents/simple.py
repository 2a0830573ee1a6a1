"""Agents without a model: a uniformly random player, a callable, and a person.

They never learn, so their checkpoints are empty folders. Knows nothing about links or tokens.
"""

from __future__ import annotations

__all__ = ["HumanMind", "RandomMind", "ScriptedMind"]

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from decentral.agents.advice import Answer, Question, pack_probabilities
from decentral.agents.draws import name_word, uniform
from decentral.agents.mind import Ended, Metrics, Phase, Request
from decentral.envs.turn import Turn
from decentral.errors import ConfigError, ModelError, said

_TRIES = 5
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class _Simple:
    """What the three have in common: no weights, and a count of what happened to them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._ended: list[Ended] = []

    @property
    def updates(self) -> int:
        return 0

    def begin(self, phase: Phase) -> None:
        self._ended.clear()

    def ask(self, requests: Sequence[Request]) -> Mapping[str, tuple[Question, ...]]:
        return {}

    def act(self, requests: Sequence[Request], answers: Mapping[str, Sequence[Answer]] = {}) -> list[str]:
        return [self._choose(request) for request in requests]

    def answer(self, questions: Sequence[Question]) -> tuple[Answer, ...]:
        return (Answer(),) * len(questions)

    def records(self) -> list[dict[str, Any]]:
        return []

    def end(self, ended: Sequence[Ended]) -> None:
        self._ended.extend(ended)

    def update(self) -> Metrics:
        played = [ended.outcome for ended in self._ended if not ended.fault]
        judged = [outcome.success for outcome in played if outcome.success is not None]
        figures = {
            "episodes": float(len(played)),
            "faults": float(len(self._ended) - len(played)),
            "turns": float(sum(outcome.turns for outcome in played)),
        }
        if played:
            figures["return"] = sum(outcome.total for outcome in played) / len(played)
        if judged:
            figures["success"] = sum(judged) / len(judged)
        return figures

    def save(self, folder: Path) -> None:
        pass

    def load(self, folder: Path) -> None:
        pass

    def export(self, folder: Path) -> None:
        raise ModelError(f"agent {self.name!r} has no weights to export: only agents with a model do")

    def _choose(self, request: Request) -> str:
        raise NotImplementedError


class RandomMind(_Simple):
    """Chooses uniformly among the legal actions; on a free turn it says a few letters.

    A draw is a function of (seed, agent, episode, how many turns the agent had in it), whatever the batches are.
    """

    def __init__(self, name: str, seed: int) -> None:
        super().__init__(name)
        self._key = (seed, name_word(name))
        self._turns: dict[int, int] = {}

    def begin(self, phase: Phase) -> None:
        super().begin(phase)
        self._turns.clear()

    def end(self, ended: Sequence[Ended]) -> None:
        super().end(ended)
        for one in ended:
            self._turns.pop(one.episode, None)

    def _choose(self, request: Request) -> str:
        number = self._turns.get(request.episode, 0)
        self._turns[request.episode] = number + 1
        turn = request.turn
        if turn.legal:
            return turn.legal[int(self._draw(request.episode, number, 0) * len(turn.legal))]
        draws = [self._draw(request.episode, number, place) for place in range(min(8, turn.free))]
        return "".join(_LETTERS[int(draw * len(_LETTERS))] for draw in draws)

    def _draw(self, *where: int) -> float:
        return float(uniform(*self._key, *where)[0])


class ScriptedMind(_Simple):
    """Asks a callable, which gets the turn and returns the action's text."""

    def __init__(self, name: str, script: Callable[[Turn], str]) -> None:
        super().__init__(name)
        self._script = script

    def answer(self, questions: Sequence[Question]) -> tuple[Answer, ...]:
        """Says what the script would do where the asker stands."""
        return tuple(self._advise(question) for question in questions)

    def _advise(self, question: Question) -> Answer:
        seen = [text for kind, text in question.context if kind == "observation"]
        turn = Turn(self.name, question.round, seen[-1] if seen else "", question.legal)
        action = self._said(turn)
        if not _fits(action, turn):  # the actions may be candidates of free text, which a script cannot know
            return Answer()
        return Answer(pack_probabilities([action == legal for legal in turn.legal]))

    def _choose(self, request: Request) -> str:
        turn = request.turn
        action = self._said(turn)
        if not isinstance(action, str) or not _fits(action, turn):
            raise ConfigError(
                f"the script of agent {self.name!r} answered {action!r} to {turn.observation!r}: "
                f"it must return {_wanted(turn)}"
            )
        return action

    def _said(self, turn: Turn) -> Any:
        """Returns whatever the script returns. Raises ConfigError if it raises."""
        try:
            return self._script(turn)
        except (Exception, SystemExit) as error:  # whatever a user's script raises
            raise ConfigError(
                f"the script of agent {self.name!r} raised {type(error).__name__}: {said(error)} at the observation "
                f"{turn.observation!r}; correct the script"
            ) from error


class HumanMind(_Simple):
    """Asks a person through ``ask``, which shows the turn and returns what was typed; asks again if it is illegal."""

    def __init__(self, name: str, ask: Callable[[Turn], str]) -> None:
        super().__init__(name)
        self._ask = ask

    def _choose(self, request: Request) -> str:
        turn = request.turn
        for _ in range(_TRIES):
            action = self._ask(turn).strip()
            if _fits(action, turn):
                return action
        raise ConfigError(
            f"the player of agent {self.name!r} gave {_TRIES} illegal answers in a row: type {_wanted(turn)}"
        )


def _fits(action: str, turn: Turn) -> bool:
    """Says whether the action is legal; half of a surrogate pair is no text, and a link cannot carry it."""
    if turn.legal:
        return action in turn.legal
    try:
        action.encode()
    except UnicodeEncodeError:
        return False
    return True


def _wanted(turn: Turn) -> str:
    return f"one of {', '.join(map(repr, turn.legal))}" if turn.legal else "a text of whole Unicode characters"
