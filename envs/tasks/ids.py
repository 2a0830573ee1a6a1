"""Ids: from ``seq(reverse,total)`` to the task, anywhere.

id      = name | "seq(" ids ")" | "par(" ids ")" | "sort(" ids ")" | "select(" ids "|" ids ")"
ids     = id {"," id}
name    = a task of the catalogue, or file.py:task, or package.module:task
"""

from __future__ import annotations

__all__ = ["OPERATORS", "base_tasks", "build"]

import importlib
import pkgutil
import re
from collections.abc import Mapping
from copy import copy
from functools import cache
from itertools import zip_longest
from types import MappingProxyType

from decentral.envs.tasks.ordering import Select, Sort
from decentral.envs.tasks.parallel import Parallel
from decentral.envs.tasks.sequential import Sequential
from decentral.envs.tasks.task import Mapped, Task
from decentral.errors import ConfigError, short, suggest

OPERATORS = {"seq": "SEQUENTIAL", "par": "PARALLEL", "sort": "SORT", "select": "SELECT"}
_LONGEST = 1000
_TOKENS = re.compile(r"[(),|]|[^(),|]+")


@cache
def base_tasks() -> Mapping[str, Mapped]:
    """Returns the catalogue by name: the first task of every family, the second of every family, and so on."""
    from decentral.envs.tasks import catalogue

    families = [
        [
            found
            for found in vars(importlib.import_module(f"{catalogue.__name__}.{module.name}")).values()
            if _own(found, module.name)
        ]
        for module in pkgutil.iter_modules(catalogue.__path__)
    ]
    tasks: dict[str, Mapped] = {}
    for rank in zip_longest(*families):
        for task in rank:
            if task is not None and tasks.setdefault(task.name, task) is not task:
                raise ConfigError(
                    f"task {task.name} is in the families {tasks[task.name].family} and {task.family}; rename one"
                )
    return MappingProxyType(tasks)


def build(id_: str, base: Mapping[str, Task] | None = None) -> Task:
    """Returns the task of an id; ``base`` stands in for the catalogue. Raises ConfigError for what is no id.

    >>> build("seq(reverse,reverse)").name
    'seq(reverse,reverse)'
    """
    if len(id_) > _LONGEST:
        raise ConfigError(f"task id {short(id_)} has {len(id_)} characters; name a task with at most {_LONGEST}")
    return _Reader(id_, base_tasks() if base is None else base).whole()


class _Reader:
    """Reads one id, token by token."""

    def __init__(self, id_: str, base: Mapping[str, Task]) -> None:
        self.id = id_
        self.base = base
        self.tokens = [token.strip() for token in _TOKENS.findall(id_) if token.strip()]
        self.place = 0

    def whole(self) -> Task:
        task = self.task()
        if self.place < len(self.tokens):
            raise self.error("the end")
        return task

    def task(self) -> Task:
        name = self.next
        if name in ("", "(", ")", ",", "|"):
            raise self.error("a task")
        self.place += 1
        return self.composite(name) if self.next == "(" else self.named(name)

    def composite(self, operator: str) -> Task:
        if operator not in OPERATORS:
            raise ConfigError(
                f"task id {short(self.id)}: {short(operator)} is no operator{suggest(operator, OPERATORS)}; there are "
                f"{', '.join(OPERATORS)}"
            )
        parts = self.parts()
        others = self.parts() if self.next == "|" and operator == "select" else []
        if self.next != ")":
            raise self.error(", or )")
        self.place += 1
        match operator:
            case "seq":
                return Sequential(parts)
            case "par":
                return Parallel(parts)
            case "sort":
                return Sort(parts)
            case _:
                return Select(parts, others)

    def parts(self) -> list[Task]:
        """Reads tasks behind an opening bracket or a bar."""
        found: list[Task] = []
        while not found or self.next == ",":
            self.place += 1
            found.append(self.task())
        return found

    def named(self, name: str) -> Task:
        if name in self.base:
            return self.base[name]
        if ":" in name:
            return _load(name)
        raise ConfigError(
            f"task {short(name)} is not in the catalogue{suggest(name, self.base)}; see decentral tasks list, or name "
            "one of your own as file.py:task"
        )

    @property
    def next(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def error(self, wanted: str) -> ConfigError:
        got = repr(self.next) if self.next else "the end"
        return ConfigError(
            f"task id {short(self.id)} has {got} where {wanted} should be; write e.g. seq(reverse,total) or "
            "select(reverse,total|sort)"
        )


def _own(found: object, family: str) -> bool:
    return isinstance(found, Mapped) and found.family == family


def _load(name: str) -> Task:
    from decentral.envs.names import load

    found = load(name, "task")
    if not isinstance(found, Mapped):
        raise ConfigError(
            f"task {name!r} is a {type(found).__name__} and not a task; put @task(...) above the function"
        )
    renamed = copy(found)
    renamed.name = name
    return renamed
