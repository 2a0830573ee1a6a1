"""A verifiable task (input sampler, map, description, verifier), and the decorator that makes one of a function.

Source: RACES, arXiv 2606.12373, section 3. Knows nothing about operators, ids or the catalogue.

    @task(takes=INTEGERS, gives=INTEGERS, says="Reverse the list.")
    def reverse(values):
        return values[::-1]

The task is named as its function, its family as the file. A file in ``catalogue/`` is a family: all tasks at its top
are in the catalogue, in the order written. A task of a user's own file is named ``file.py:reverse``. The function is
deterministic and pure, takes and returns immutable values of ``values.py``, and raises ``OutOfDomain`` for what it does
not take.
"""

from __future__ import annotations

__all__ = ["DRAWS", "Instance", "Map", "Mapped", "Missing", "Task", "task"]

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import msgspec

from decentral.envs.tasks.values import LEVELS, LONGEST, Kind, OutOfDomain
from decentral.errors import ConfigError, EnvError, said, short

DRAWS = 32
"""How many inputs are drawn for an instance until one is in the domain."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SENTENCE = re.compile(r"[A-Z][ -~]{1,158}\.")


class Missing(Enum):
    """What stands for an answer that was not given or cannot be read."""

    MISSING = "missing"


class Instance(msgspec.Struct, frozen=True):
    """One question of a task and its reference answer."""

    prompt: str
    """What the solver reads. Lines that begin with ``> `` hold data, the others the description."""
    input: Any
    values: tuple[Any, ...]
    """The reference answer, one value for each of the task's ``answers``."""
    answer: str
    """The same as text, values divided by ``; ``."""


class Task(ABC):
    """What can be asked and verified. Tasks of one ``name`` are the same everywhere."""

    name: str
    """Also the id from which it is built again."""
    family: str
    answers: tuple[Kind, ...]
    """The kinds of the values that are to be answered, in order."""
    exact: bool = True
    """Whether only one answer is right; otherwise the answer is verified by execution."""

    @abstractmethod
    def draw(self, random: Random, level: int) -> Any:
        """Returns an input, the larger the higher ``level`` (0 to 9). Not every input needs to be in the domain."""

    @abstractmethod
    def prompt(self, value: Any) -> str:
        """Returns what the solver reads for an input."""

    @abstractmethod
    def solve(self, value: Any) -> tuple[Any, ...]:
        """Returns the reference answer to an input. Raises OutOfDomain."""

    @abstractmethod
    def grade(self, value: Any, reference: tuple[Any, ...], found: Sequence[Any]) -> float:
        """Returns the score in [0, 1] of answers to the input ``value``; ``found`` is as long as ``reference``."""

    @abstractmethod
    def steps(self, value: Any) -> int:
        """Returns how many steps of work an input takes: what a level declares to be difficult."""

    def instance(self, seed: int, level: int = 0) -> Instance:
        """Returns the question of a seed, the same in every process. Raises EnvError if no input can be drawn."""
        if not 0 <= level < LEVELS:
            raise ConfigError(f"level {level} of task {self.name} does not exist: choose 0 to {LEVELS - 1}")
        if seed < 0:
            raise ConfigError(f"seed {seed} of task {self.name} is negative: choose one from 0 on")
        value, values = self.pose(Random((seed * LEVELS + level) << 32 | crc32(self.name.encode())), level)
        return Instance(self.prompt(value), value, values, self.show(values))

    def pose(self, random: Random, level: int) -> tuple[Any, tuple[Any, ...]]:
        """Returns an input in the domain and the answer to it. Raises EnvError if none can be drawn."""
        why = ""
        for _ in range(DRAWS):
            try:
                value = self.draw(random, level)
                return value, self.solve(value)
            except OutOfDomain as error:
                why = str(error)
        raise EnvError(
            f"task {self.name} takes none of {DRAWS} inputs drawn at level {level} (the last: {why}); "
            "let its draw make inputs that it takes"
        )

    def show(self, values: Sequence[Any]) -> str:
        """Returns the text of an answer: a value for each of ``answers``."""
        return "; ".join([kind.show(value) for kind, value in zip(self.answers, values, strict=True)])

    def score(self, instance: Instance, text: str) -> float:
        """Returns the score in [0, 1] of any text as an answer. Runs nothing of it."""
        count = len(self.answers)
        if len(text) > LONGEST * count:
            return 0.0
        fields = text.split(";")
        if len(fields) > count:
            return 0.0
        found: list[Any] = [Missing.MISSING] * count
        for place, field in enumerate(fields):
            try:
                found[place] = self.answers[place].parse(field)
            except ValueError:
                continue
        return self.grade(instance.input, instance.values, found)

    def __repr__(self) -> str:
        return self.name


class Map(Task):
    """A task that maps one value to one value, and so can be a part of any composite."""

    takes: Kind
    gives: Kind
    describe: str
    """One or more short imperative sentences that say the map."""

    @abstractmethod
    def apply(self, value: Any) -> Any:
        """Returns the value that ``value``, one of ``takes``, is mapped to, one of ``gives``. Raises OutOfDomain."""


class Mapped(Map):
    """The task of a function; made by ``@task``."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        name: str,
        family: str,
        takes: Kind,
        gives: Kind,
        says: str,
        draw: Callable[[Random, int], Any] | None = None,
        steps: Callable[[Any], int] | None = None,
    ) -> None:
        self.function = function
        self.name = name
        self.family = family
        self.takes = takes
        self.gives = gives
        self.describe = says
        self.answers = (gives,)
        self._draw = draw or takes.draw
        self._steps = steps or takes.size

    def __call__(self, value: Any) -> Any:
        """Calls the function, as if it had not been decorated."""
        return self.function(value)

    def apply(self, value: Any) -> Any:
        """Calls the function and checks what it returns. Raises EnvError for what only a fault can raise."""
        try:
            result = self.function(value)
        except OutOfDomain:
            raise
        except Exception as error:
            raise EnvError(
                f"task {self.name} raises {type(error).__name__} on {short(value)}: {said(error)}; let it raise "
                "OutOfDomain for what it does not take"
            ) from error
        self.gives.check(result)
        return result

    def draw(self, random: Random, level: int) -> Any:
        return self._draw(random, level)

    def prompt(self, value: Any) -> str:
        return f"{self.describe}\n> {self.takes.show(value)}"

    def solve(self, value: Any) -> tuple[Any, ...]:
        return (self.apply(value),)

    def grade(self, value: Any, reference: tuple[Any, ...], found: Sequence[Any]) -> float:
        """Returns 1 for the reference answer, else 0."""
        return float(found[0] == reference[0])

    def steps(self, value: Any) -> int:
        return self._steps(value)


def task(
    *,
    takes: Kind,
    gives: Kind,
    says: str,
    draw: Callable[[Random, int], Any] | None = None,
    steps: Callable[[Any], int] | None = None,
) -> Callable[[Callable[[Any], Any]], Mapped]:
    """Makes a task of the function below it, which can still be called.

    Args:
        takes: the kind of the function's one argument.
        gives: the kind of what it returns.
        says: one short imperative sentence that says exactly what it does.
        draw: returns an input for a random source and a level, 0 to 9; by default a value of ``takes``.
        steps: returns how many steps of work an input takes, on average more at a higher level; by default its size.

    Raises:
        ConfigError: a name, kind or sentence that cannot be used.
    """

    def made(function: Callable[[Any], Any]) -> Mapped:
        name = function.__name__
        if not _NAME.fullmatch(name):
            raise ConfigError(f"task {name!r} has a name that no id can hold; use small letters, digits and _")
        for word, kind in (("takes", takes), ("gives", gives)):
            if not isinstance(kind, Kind):
                raise ConfigError(f"task {name}: {word}={short(kind)} is no kind of value; use one of values.KINDS")
        if not _SENTENCE.fullmatch(says):
            raise ConfigError(
                f"task {name}: says={short(says)} is no sentence; write one line of at most 160 ASCII characters, "
                "from a capital letter to a full stop"
            )
        family = Path(inspect.getfile(function)).stem
        return Mapped(function, name=name, family=family, takes=takes, gives=gives, says=says, draw=draw, steps=steps)

    return made
