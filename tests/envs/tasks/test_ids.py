"""Ids: a composite is rebuilt from its id, and what is no id is refused in one sentence."""

from __future__ import annotations

import contextlib
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decentral.envs.tasks.ids import base_tasks, build
from decentral.envs.tasks.space import Space
from decentral.envs.tasks.task import Mapped
from decentral.errors import ConfigError, EnvError

OWN = """
from decentral.envs.tasks.task import task
from decentral.envs.tasks.values import INTEGERS

@task(takes=INTEGERS, gives=INTEGERS, says="Negate each number.")
def negate(numbers):
    return tuple(-number for number in numbers)

def plain(numbers):
    return numbers
"""


def test_names_in_the_catalogue_are_unique_and_the_first_ones_are_of_different_families() -> None:
    tasks = base_tasks()
    assert all(name == task.name for name, task in tasks.items())
    families = [task.family for task in tasks.values()]
    assert len(set(families[: len(set(families))])) == len(set(families))


@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_a_composite_is_rebuilt_from_its_id(seed: int) -> None:
    space = Space(list(base_tasks().values()))
    name = space.draw(Random(seed), space.cells(4))
    assert build(name).name == name
    with contextlib.suppress(EnvError):  # of some composites no input can be drawn, which a gate finds
        assert build(build(name).name).prompt(build(name).pose(Random(1), 0)[0])


def test_composites_nest_and_blanks_do_not_matter(toys: dict[str, Mapped]) -> None:
    name = "par(select(reverse,seq(double,total)|largest),sort(seq(rest,double),reverse),backwards)"
    assert build(name, toys).name == build(name.replace(",", " , "), toys).name == name


@pytest.mark.parametrize(
    ("id_", "message"),
    [
        ("", "has the end where a task should be"),
        ("seq", "not in the catalogue"),
        ("reverze", "did you mean 'reverse'"),
        ("sek(reverse,double)", "did you mean 'seq'"),
        ("seq(reverse,double", "has the end where , or ) should be"),
        ("seq(reverse,,double)", "has ',' where a task should be"),
        ("seq(reverse,double)x", "has 'x' where the end should be"),
        ("seq(reverse|double)", "has '|' where , or ) should be"),
        ("select(reverse|double|rest)", "has '|' where , or ) should be"),
        ("seq()", "has ')' where a task should be"),
        (")", "has ')' where a task should be"),
        ("seq(" * 2000, "name a task with at most 1000"),
        ("seq(" * 249, "has the end where a task should be"),
        ("par(reverse, \ud800)", "not in the catalogue"),
    ],
)
def test_what_is_no_id_is_refused_in_one_sentence(toys: dict[str, Mapped], id_: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build(id_, toys)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_task_of_ones_own_file_composes_with_the_catalogue(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    task = build(f"seq({file}:negate,reverse)")
    assert task.name == f"seq({file}:negate,reverse)"
    assert task.solve((1, -2)) == ((-1, 2), (2, -1))
    assert build(f"{file}:negate").family == "mine"
    with pytest.raises(ConfigError, match="is a function and not a task; put @task"):
        build(f"{file}:plain")
    with pytest.raises(ConfigError, match="did you mean 'negate'"):
        build(f"{file}:negat")
