"""The catalogue as a whole: enough tasks, no two alike, none trivial, and all of them fit for composition."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from random import Random
from statistics import fmean

import pytest

from decentral.envs.tasks.gates import check
from decentral.envs.tasks.ids import base_tasks
from decentral.envs.tasks.task import Mapped
from decentral.envs.tasks.values import LEVELS, OutOfDomain

TASKS = tuple(base_tasks().values())


def test_there_are_enough_tasks_and_families() -> None:
    sizes = Counter(task.family for task in TASKS)
    assert len(TASKS) >= 64
    assert len(sizes) >= 9
    assert min(sizes.values()) >= 4


def test_the_first_fifty_tasks_connect_to_thousands_of_chains() -> None:
    """``1^T A^(n-1) 1`` with ``A_ij`` = task i gives what task j takes."""
    base = TASKS[:50]
    ways = [1] * len(base)
    chains = []
    for _ in range(2):
        ways = [sum(way for way, after in zip(ways, base) if one.gives is after.takes) for one in base]
        chains.append(sum(ways))
    assert len({task.family for task in base}) >= 9
    assert chains[0] >= 600
    assert chains[1] >= 12_000


def test_no_kind_of_value_is_a_dead_end() -> None:
    taken = {task.takes for task in TASKS}
    assert {task.gives for task in TASKS} == taken


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_every_task_passes_every_gate(task: Mapped) -> None:
    report = check(task, range(4))
    assert report.ok, report


def test_no_two_tasks_are_the_same_map() -> None:
    seen: dict[object, str] = {}
    for task in TASKS:
        random = Random(1)
        inputs = [task.takes.draw(random, at % LEVELS) for at in range(40)]
        key = (task.takes, task.gives, tuple(applied(task, value) for value in inputs))
        assert key not in seen, f"{task.name} and {seen[key]} give the same"
        seen[key] = task.name


def test_whatever_a_task_gives_another_takes_or_refuses() -> None:
    """Chains of three from random inputs; a fault would raise EnvError, not OutOfDomain."""
    random = Random(2)
    takers: dict[object, list[Mapped]] = {}
    for task in TASKS:
        takers.setdefault(task.takes, []).append(task)
    refused = 0
    for first in TASKS:
        for level in range(LEVELS):
            value, task = first.takes.draw(random, level), first
            for _ in range(3):
                found = applied(task, value)
                if found is None:
                    refused += 1
                    break
                hash(found)
                value, task = found, random.choice(takers[task.gives])
    assert refused < 0.2 * len(TASKS) * LEVELS


def test_questions_start_tiny_and_grow() -> None:
    for task in TASKS:
        drawn = [[task.instance(seed, level) for seed in range(12)] for level in (0, 4, 9)]
        easy, middle, hard = (fmean(task.steps(one.input) for one in instances) for instances in drawn)
        assert easy < middle < hard, task.name
        assert max(len(task.takes.show(one.input)) + len(one.answer) for one in drawn[0]) <= 60, task.name
        assert max(len(one.prompt) for instances in drawn for one in instances) <= 320, task.name


def test_few_inputs_are_their_own_answers() -> None:
    for task in TASKS:
        instances = [task.instance(seed) for seed in range(40)]
        same = sum(task.takes.show(one.input) == one.answer for one in instances)
        assert same <= 0.25 * len(instances), task.name


def test_any_first_tasks_are_a_mix_of_the_families() -> None:
    families = {task.family for task in TASKS}
    assert {task.family for task in islice(TASKS, len(families))} == families


def applied(task: Mapped, value: object) -> object:
    try:
        return task.apply(value)
    except OutOfDomain:
        return None
