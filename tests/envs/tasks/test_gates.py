"""Gates: sound tasks pass, and a planted fault of each sort is named."""

from __future__ import annotations

import random as global_random
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from decentral.envs.tasks.gates import GATES, check
from decentral.envs.tasks.ids import build
from decentral.envs.tasks.space import Space
from decentral.envs.tasks.survey import survey
from decentral.envs.tasks.task import Mapped, task
from decentral.envs.tasks.values import BOOLEAN, INTEGER, INTEGERS, OutOfDomain


def made(function: Callable[[Any], Any], **changes: Any) -> Mapped:
    """Returns a task of integers to integers, but for ``changes``."""

    def planted(value: Any) -> Any:
        return function(value)

    return task(**{"takes": INTEGERS, "gives": INTEGERS, "says": "Do it."} | changes)(planted)


def squares(values: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(value * value + 1 for value in values)


class Lenient(Mapped):
    """Takes any list of the right length."""

    def grade(self, value: Any, reference: tuple[Any, ...], found: Sequence[Any]) -> float:
        return float(isinstance(found[0], tuple) and len(found[0]) == len(reference[0]))


class Strict(Mapped):
    """Takes nothing."""

    def grade(self, value: Any, reference: tuple[Any, ...], found: Sequence[Any]) -> float:
        return 0.0


class Telling(Mapped):
    """Says the answer."""

    def prompt(self, value: Any) -> str:
        return f"Do it, the answer is {self.gives.show(self.apply(value))}.\n{super().prompt(value)}"


def of(cls: type[Mapped]) -> Mapped:
    return cls(squares, name="planted", family="planted", takes=INTEGERS, gives=INTEGERS, says="Do it.")


class Garbled(type(INTEGERS)):  # type: ignore[misc]
    """Writes a list without spaces."""

    name = "garbled"

    def show(self, value: tuple[int, ...]) -> str:
        return "".join(map(str, value))


def odd(value: int) -> int:
    if value % 2 == 0:
        raise OutOfDomain("even")
    return value + 10000


FAULTS: dict[str, list[Callable[[], Mapped]]] = {
    "runs": [
        lambda: made(lambda values: values[99]),
        lambda: made(list),
        lambda: made(odd, takes=INTEGER, gives=INTEGER, draw=lambda random, level: 2),
        lambda: made(squares, draw=lambda random, level: random.nothing()),
    ],
    "parses": [lambda: made(squares, gives=Garbled())],
    "deterministic": [
        lambda: made(lambda values: tuple(value + global_random.randrange(99) for value in values)),
        lambda: made(squares, draw=lambda random, level: INTEGERS.draw(Random(), level)),
    ],
    "not_constant": [
        lambda: made(lambda values: (7, 7)),
        lambda: made(lambda values: int(sum(values) % 9 == 0), gives=INTEGER),
    ],
    "reference": [lambda: of(Lenient), lambda: of(Strict)],
    "no_leak": [
        lambda: made(lambda values: values),
        lambda: of(Telling),
        lambda: made(sorted_tuple, draw=lambda random, level: sorted_tuple(INTEGERS.draw(random, level))),
        lambda: made(lambda values: values if len(values) == 2 else squares(values)),
    ],
    "level": [
        lambda: made(squares, draw=lambda random, level: INTEGERS.draw(random, 4)),
        lambda: made(squares, draw=lambda random, level: INTEGERS.draw(random, 9 - level)),
        lambda: made(squares, draw=lambda random, level: INTEGERS.draw(random, level if level < 9 else 0)),
    ],
    "guessing": [
        lambda: made(lambda values: sum(values) % 2 == 0, gives=BOOLEAN),
        lambda: made(lambda values: (sum(values) % 2,), gives=INTEGERS),
    ],
}


def sorted_tuple(values: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(values))


def test_sound_tasks_and_composites_pass(toys: dict[str, Mapped]) -> None:
    for id_ in ("double", "total", "backwards", "seq(double,total)", "par(seq(double,total),digits)"):
        report = check(build(id_, toys))
        assert report.ok, report
        assert [one.gate for one in report.verdicts] == ["runs", *(gate.__name__ for gate in GATES)]


@pytest.mark.parametrize(
    ("gate", "plant"),
    [(gate, plant) for gate, plants in FAULTS.items() for plant in plants],
    ids=lambda one: str(one)[:14],
)
def test_a_planted_fault_is_named_with_the_instance_that_shows_it(gate: str, plant: Callable[[], Mapped]) -> None:
    report = check(plant())
    assert not report.ok
    failed = {one.gate: one for one in report.failures}
    assert gate in failed, report
    assert failed[gate].place
    assert gate in str(report)
    assert "\n" not in failed[gate].detail


def test_every_gate_has_a_planted_fault() -> None:
    assert set(FAULTS) == {"runs", *(gate.__name__ for gate in GATES)}


def test_steps_that_commute_and_orders_that_can_be_guessed_are_rejected(toys: dict[str, Mapped]) -> None:
    commuting = check(build("sort(reverse,double)", toys))
    assert {"reference", "guessing"} <= {one.gate for one in commuting.failures}
    two = check(build("sort(double,total)", toys))
    assert "guessing" in [one.gate for one in two.failures]
    assert check(build("sort(rest,reverse,double)", toys)).failures


def test_a_survey_counts_rejections_by_gate_and_operator_and_checks_again(toys: dict[str, Mapped]) -> None:
    space = Space(list(toys.values()))
    cells = space.cells(3)
    found = survey(space, cells, 40, seed=1, seeds=2)
    assert sum(found.drawn.values()) == 40
    assert found.admitted == 40 - sum(sum(here.values()) for here in found.rejected.values())
    assert found.rejected["guessing"]["sort"] > 0
    assert not found.again
    assert survey(space, cells, 40, seed=1, seeds=2) == found
