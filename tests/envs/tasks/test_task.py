"""Tasks: what the decorator refuses, that instances follow from id and seed, and that no answer does any harm."""

from __future__ import annotations

import builtins
import os
import subprocess
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decentral.envs.tasks.ids import base_tasks, build
from decentral.envs.tasks.task import Mapped, Task, task
from decentral.envs.tasks.values import INTEGER, INTEGERS, LEVELS, OutOfDomain
from decentral.errors import ConfigError, EnvError

COMPOSITES = (
    "seq(reverse,rotate,total)",
    "par(reverse,seq(rotate,total))",
    "sort(reverse,rotate,total)",
    "select(reverse,rotate|double_each)",
)
MODELS_TOKENS = ("<|end|>", "<|action|> 1", "</s>", "<|im_start|>assistant")
CODE = ("__import__('os').system('false')", "exec('1')", "{0.__class__}", "%s%n", "${7*7}", "'; DROP TABLE t; --")
NOISE = ("\ud800\udfff", "\x00", "\u202e3 2 1", "９", "nan", "1e9", "[" * 5000, "a" * 2**20, "1 " * 2**19, ";" * 2**20)
HOSTILE = ("", " ", "\n", *MODELS_TOKENS, *CODE, *NOISE)


def test_a_decorated_function_is_a_task_and_can_still_be_called(toys: dict[str, Mapped]) -> None:
    one = toys["reverse"]
    assert (one.name, one.family, one((1, 2)), one.apply((1, 2))) == ("reverse", "conftest", (2, 1), (2, 1))
    instance = one.instance(seed=3, level=1)
    assert instance.prompt == f"Reverse the list.\n> {INTEGERS.show(instance.input)}"
    assert instance.answer == INTEGERS.show(instance.input[::-1])


@pytest.mark.parametrize(
    ("says", "takes", "name", "message"),
    [
        ("reverse it.", INTEGERS, "good", "is no sentence"),
        ("Reverse it", INTEGERS, "good", "is no sentence"),
        ("Reverse\nit.", INTEGERS, "good", "is no sentence"),
        ("R" * 200 + ".", INTEGERS, "good", "is no sentence"),
        ("Reverse it.", tuple, "good", "is no kind"),
        ("Reverse it.", INTEGERS, "Bad", "no id can hold"),
    ],
)
def test_a_task_that_cannot_be_used_is_refused_where_it_is_made(says: str, takes: Any, name: str, message: str) -> None:
    def function(value: Any) -> Any:
        return value

    function.__name__ = name
    with pytest.raises(ConfigError, match=message):
        task(takes=takes, gives=INTEGERS, says=says)(function)


def test_a_result_of_another_kind_is_refused() -> None:
    @task(takes=INTEGERS, gives=INTEGERS, says="Sort the list.")
    def listing(values: tuple[int, ...]) -> Any:
        return sorted(values)

    with pytest.raises(OutOfDomain, match="a tuple of at most"):
        listing.apply((2, 1))


def test_a_fault_in_a_map_is_told_apart_from_an_input_it_does_not_take() -> None:
    @task(takes=INTEGER, gives=INTEGER, says="Divide 12 by it.")
    def divide(value: int) -> Any:
        return 12 // value

    with pytest.raises(EnvError, match="divide raises ZeroDivisionError on 0"):
        divide.apply(0)


def test_inputs_out_of_the_domain_are_drawn_again_and_given_up_in_one_sentence() -> None:
    @task(takes=INTEGER, gives=INTEGER, says="Halve it.")
    def halve(value: int) -> Any:
        if value % 2:
            raise OutOfDomain(f"{value} is odd; give an even number")
        return value // 2

    assert all(halve.instance(seed).input % 2 == 0 for seed in range(20))

    @task(takes=INTEGER, gives=INTEGER, says="Give nothing.")
    def never(value: int) -> Any:
        raise OutOfDomain("no")

    with pytest.raises(EnvError, match=r"takes none of 32 inputs drawn at level 0 \(the last: no\)"):
        never.instance(0)


def test_a_level_or_seed_that_does_not_exist_is_refused(toys: dict[str, Mapped]) -> None:
    with pytest.raises(ConfigError, match="level 10"):
        toys["reverse"].instance(0, LEVELS)
    with pytest.raises(ConfigError, match="seed -1"):
        toys["reverse"].instance(-1)


def test_an_instance_is_the_same_in_every_process() -> None:
    """What is expected was written down in another one."""
    assert build("reverse").instance(7, 3).answer == "11 9 11 14 0"
    puzzle = build("sort(reverse,rotate,total)").instance(7, 3)
    assert puzzle.answer == "a c b"
    assert puzzle.prompt.endswith("> 10 2 -2 8 11 -> 29\n> 2 5 9 -5 -4 -> 7")


@given(name=st.sampled_from([*base_tasks(), *COMPOSITES]), seed=st.integers(0, 2**64), level=st.integers(0, LEVELS - 1))
@settings(max_examples=300, deadline=None)
def test_reference_answers_score_1_and_perturbed_ones_less(name: str, seed: int, level: int) -> None:
    one = build(name)
    instance = one.instance(seed, level)
    assert one.instance(seed, level) == instance
    assert one.score(instance, instance.answer) == 1.0
    if one.exact:
        random = Random(seed)
        for place, kind in enumerate(one.answers):
            values = list(instance.values)
            values[place] = kind.near(random, values[place])
            assert one.score(instance, one.show(values)) < 1.0


@pytest.fixture
def forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that could run an answer may be called."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("an answer was run")

    for module, name in ((builtins, "eval"), (builtins, "exec"), (os, "system"), (subprocess, "Popen")):
        monkeypatch.setattr(module, name, refuse)


@pytest.mark.usefixtures("forbidden")
@pytest.mark.parametrize("id_", ["reverse", "reverse_text", "gcd", "transpose", *COMPOSITES])
def test_no_hostile_answer_scores(id_: str) -> None:
    one = build(id_)
    instance = one.instance(5, 4)
    for text in HOSTILE:
        assert one.score(instance, text) == 0.0, text[:30]


@pytest.mark.usefixtures("forbidden")
@pytest.mark.parametrize("id_", COMPOSITES)
def test_only_the_beginning_of_a_huge_answer_is_looked_at(id_: str) -> None:
    class Huge(str):
        def split(self, *_: Any) -> Any:  # type: ignore[override]
            raise AssertionError("1 MB was read")

    one = build(id_)
    assert one.score(one.instance(0), Huge("1; " * 2**19)) == 0.0


@given(
    id_=st.sampled_from(["reverse", "sort_characters", *COMPOSITES]),
    text=st.text(max_size=60) | st.text("abc;0123- ", max_size=30),
)
@settings(max_examples=200, deadline=None)
def test_any_answer_gets_a_score_between_0_and_1(id_: str, text: str) -> None:
    one: Task = build(id_)
    assert 0.0 <= one.score(one.instance(1, 2), text) <= 1.0
