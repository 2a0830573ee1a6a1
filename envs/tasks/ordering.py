"""SORT and SELECT: find the order of steps that leads from each x to its y, in SELECT among distractors.

Answers are verified by execution, so that a second order that is also right is not marked wrong. Source: RACES, arXiv
2606.12373, section 3.2; the rewards are ours.
"""

from __future__ import annotations

__all__ = ["PAIRS", "SELECT_SIZES", "SORT_SIZES", "Labels", "Puzzle", "Select", "Sort"]

from collections.abc import Sequence
from random import Random
from string import ascii_lowercase
from typing import Any

import msgspec

from decentral.envs.tasks.chain import follows, need_chain, need_size, run_chain
from decentral.envs.tasks.task import DRAWS, Map, Missing, Task
from decentral.envs.tasks.values import Kind, OutOfDomain
from decentral.errors import ConfigError, DecentralError, short

SORT_SIZES = (2, 6)
SELECT_SIZES = (3, 6)
"""Of steps and distractors together."""
PAIRS = 2
"""How many pairs of x and y are shown: with one, a wrong order is right by accident too often."""


class Labels(Kind):
    """Some of the first letters, each at most once: ``b a c``."""

    name = "order"

    def __init__(self, count: int, *, every: bool) -> None:
        """There are ``count`` letters; ``every`` says whether an order has all of them."""
        self.letters = tuple(ascii_lowercase[:count])
        self.every = every

    def check(self, value: Any) -> None:
        if (
            type(value) is not tuple
            or not value
            or len({*value} & {*self.letters}) != len(value)
            or (self.every and len(value) != len(self.letters))
        ):
            raise self._refuse(value, f"{'all' if self.every else 'some'} of {' '.join(self.letters)}, each once")

    def show(self, value: tuple[str, ...]) -> str:
        return " ".join(value)

    def read(self, text: str) -> tuple[str, ...]:
        return tuple(text.split())

    def draw(self, random: Random, level: int) -> tuple[str, ...]:
        return tuple(random.sample(self.letters, len(self.letters)))

    def guess(self, random: Random, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(random.sample(self.letters, len(value)))

    def near(self, random: Random, value: tuple[str, ...]) -> tuple[str, ...]:
        """Exchanges two letters, which may both stand in the order or one of them."""
        one = random.choice(value)
        other = random.choice([letter for letter in self.letters if letter != one])
        return tuple(other if letter == one else one if letter == other else letter for letter in value)

    def size(self, value: tuple[str, ...]) -> int:
        return len(value)


class Puzzle(msgspec.Struct, frozen=True):
    """How the steps are shuffled, and what they do together."""

    order: tuple[int, ...]
    """For each letter, which of the options it stands for."""
    shown: tuple[tuple[Any, Any], ...]
    """Pairs of x and y."""


class Sort(Task):
    """All steps are to be put in order."""

    family = "sort"
    exact = False
    _asks = "In which order do the steps lead from each left to its right?"

    def __init__(self, steps: Sequence[Task]) -> None:
        """Raises ConfigError if the steps are too few or many, or do not form a chain."""
        self.name = f"sort({','.join(step.name for step in steps)})"
        need_size(self.name, len(steps), SORT_SIZES)
        self.chain = need_chain(self.name, steps)
        self.options = self.chain
        self.answers = (Labels(len(self.options), every=True),)

    def draw(self, random: Random, level: int) -> Puzzle:
        pairs: dict[Any, Any] = {}
        for _ in range(DRAWS):
            value = self.chain[0].draw(random, level)
            try:
                pairs[value] = run_chain(self.chain, value)[-1]
            except OutOfDomain:
                continue
            if len(pairs) == PAIRS:
                order = random.sample(range(len(self.options)), len(self.options))
                return Puzzle(tuple(order), tuple(pairs.items()))
        raise OutOfDomain(f"{len(pairs)} of {DRAWS} inputs differ and are taken by all steps")

    def prompt(self, value: Puzzle) -> str:
        takes, gives = self.chain[0].takes, self.chain[-1].gives
        steps = [f"{letter}) {self.options[option].describe}" for letter, option in zip(ascii_lowercase, value.order)]
        pairs = [f"> {takes.show(x)} -> {gives.show(y)}" for x, y in value.shown]
        return "\n".join([self._asks, *steps, *pairs])

    def solve(self, value: Puzzle) -> tuple[tuple[str, ...], ...]:
        return (tuple(ascii_lowercase[value.order.index(step)] for step in range(len(self.chain))),)

    def grade(self, value: Puzzle, reference: tuple[Any, ...], found: Sequence[Any]) -> float:
        """Returns 1 if the steps in the order found map each x to its y, else 0."""
        if found[0] is Missing.MISSING:
            return 0.0
        return float(
            self._leads([self.options[value.order[ascii_lowercase.index(letter)]] for letter in found[0]], value)
        )

    def steps(self, value: Puzzle) -> int:
        """Returns the steps of the whole chain for all pairs."""
        return sum(
            step.steps(taken) for x, _ in value.shown for step, taken in zip(self.chain, (x, *run_chain(self.chain, x)))
        )

    def _leads(self, steps: Sequence[Map], value: Puzzle) -> bool:
        if steps[0].takes is not self.chain[0].takes or steps[-1].gives is not self.chain[-1].gives:
            return False
        try:
            return follows(steps) and all(run_chain(steps, x)[-1] == y for x, y in value.shown)
        except DecentralError:  # a wrong order leads to values that a step does not take
            return False


class Select(Sort):
    """Some of the steps are to be chosen and put in order; the others are distractors."""

    family = "select"
    _asks = "Which steps, in which order, lead from each left to its right?"

    def __init__(self, steps: Sequence[Task], distractors: Sequence[Task]) -> None:
        """Raises ConfigError as ``Sort`` does, or if types alone give a distractor away."""
        every = ",".join(step.name for step in steps), ",".join(other.name for other in distractors)
        self.name = f"select({'|'.join(every)})"
        need_size(self.name, len(steps) + len(distractors), SELECT_SIZES)
        self.chain = need_chain(self.name, steps)
        others: list[Map] = []
        for other in distractors:
            if other.name in {one.name for one in (*steps, *others)}:
                raise ConfigError(
                    f"{self.name} names {other.name} twice; let distractors be other tasks than the steps"
                )
            if not isinstance(other, Map) or not any(
                (other.takes, other.gives) == (step.takes, step.gives) for step in self.chain
            ):
                raise ConfigError(
                    f"{self.name}: the types of {short(other)} give it away as a distractor; choose one that takes and "
                    "gives the kinds of one of the steps"
                )
            others.append(other)
        if not others:
            raise ConfigError(f"{self.name} has no distractors; name some behind |, or use sort(...)")
        self.options = (*self.chain, *others)
        self.answers = (Labels(len(self.options), every=False),)
