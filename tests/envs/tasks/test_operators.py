"""Operators: what is asked, what each answer scores, and which parts do not fit."""

from __future__ import annotations

from random import Random

import pytest

from decentral.envs.tasks.ids import build
from decentral.envs.tasks.ordering import Puzzle, Select, Sort
from decentral.envs.tasks.task import Instance, Mapped, Task
from decentral.envs.tasks.values import OutOfDomain
from decentral.errors import ConfigError

Toys = dict[str, Mapped]


def given(task: Task, value: object) -> Instance:
    """Returns the instance of an input."""
    values = task.solve(value)
    return Instance(task.prompt(value), value, values, task.show(values))


def test_sequential_asks_for_all_results_and_pays_the_longest_right_prefix(toys: Toys) -> None:
    task = build("seq(reverse,double,total)", toys)
    instance = given(task, (1, 2))
    assert instance.answer == "2 1; 4 2; 6"
    assert instance.prompt.splitlines()[1:] == [
        "1) Reverse the list.",
        "2) Double each number.",
        "3) Add all numbers.",
        "> 1 2",
    ]
    scores = {
        "2 1; 4 2; 6": 1.0,
        "2 1;4 2;6": 1.0,
        "2 1; 4 2; 7": 2 / 3,
        "2 1; 4 2": 2 / 3,
        "2 1": 1 / 3,
        "2 1; 0 0; 6": 1 / 3,
        "1 2; 4 2; 6": 0.0,
        "6": 0.0,
        "2 1; 4 2; 6; 6": 0.0,
    }
    assert {text: task.score(instance, text) for text in scores} == scores


def test_a_sequential_part_of_a_sequential_task_is_replaced_by_its_parts(toys: Toys) -> None:
    task = build("seq(seq(reverse,double),seq(total,digits))", toys)
    assert task.name == "seq(reverse,double,total,digits)"
    assert task.solve((1, 12)) == ((12, 1), (24, 2), 26, (2, 6))


def test_parallel_pays_the_mean_of_its_parts(toys: Toys) -> None:
    task = build("par(total,seq(reverse,double))", toys)
    instance = given(task, ((1, 2), (3, 4)))
    assert instance.answer == "3; 4 3; 8 6"
    scores = {"3; 4 3; 8 6": 1.0, "3; 4 3; 0": 0.75, "0; 4 3; 8 6": 0.5, "3": 0.5, "; 4 3": 0.25, "": 0.0}
    assert {text: task.score(instance, text) for text in scores} == scores


def test_sort_pays_every_order_that_leads_from_each_x_to_its_y(toys: Toys) -> None:
    task = build("sort(reverse,rest,double)", toys)
    x, other = (1, 2, 3), (4, 5)
    instance = given(task, Puzzle((2, 0, 1), ((x, (4, 2)), (other, (8,)))))
    assert instance.answer == "b c a"
    assert instance.prompt.splitlines()[1:] == [
        "a) Double each number.",
        "b) Reverse the list.",
        "c) Leave out the first number.",
        "> 1 2 3 -> 4 2",
        "> 4 5 -> 8",
    ]
    right = [text for text in ("a b c", "b a c", "b c a", "a c b", "c a b", "c b a") if task.score(instance, text)]
    assert right == ["a b c", "b a c", "b c a"]
    assert [task.score(instance, text) for text in ("b c", "b c a a", "b b c", "b c d", "1 2 0")] == [0.0] * 5


def test_an_order_has_to_be_right_for_every_pair(toys: Toys) -> None:
    task = build("sort(reverse,rest)", toys)
    same = Puzzle((0, 1), (((1, 2, 1), (2, 1)), ((1, 2, 3), (2, 1))))
    assert task.score(given(task, same), "a b") == 1.0
    assert task.score(given(task, same), "b a") == 0.0
    palindrome = Puzzle((0, 1), (((5, 5), (5,)),))
    assert task.score(given(task, palindrome), "b a") == 1.0


def test_select_pays_the_steps_and_not_the_distractors(toys: Toys) -> None:
    task = build("select(rest,double|reverse)", toys)
    instance = given(task, Puzzle((0, 1, 2), (((1, 2, 3), (4, 6)), ((5, 6), (12,)))))
    assert instance.answer == "a b"
    assert [task.score(instance, text) for text in ("a b", "b a", "a c", "a", "a b c", "c a b")] == [1, 1, 0, 0, 0, 0]


def test_a_wrong_order_that_a_step_does_not_take_is_wrong_and_no_fault(toys: Toys) -> None:
    task = build("sort(digits,largest,digits)", toys)
    puzzle = Puzzle((0, 1, 2), ((35, (5,)), (12, (2,))))
    assert task.score(given(task, puzzle), "b a c") == 0.0
    emptied = build("select(rest,double,largest|reverse,total)", toys)
    shown = Puzzle((0, 1, 2, 3, 4), (((7, 2), 4), ((1, 3), 6)))
    assert emptied.score(given(emptied, shown), "a b c") == 1.0
    assert emptied.score(given(emptied, Puzzle(shown.order, (((7,), 0), ((9,), 0)))), "a c") == 0.0


def test_the_inputs_of_a_puzzle_differ_and_are_taken_by_all_steps(toys: Toys) -> None:
    task = Sort([toys["rest"], toys["largest"]])
    for seed in range(30):
        (x, y), (other, _) = task.instance(seed).input.shown
        assert x != other
        assert y == max(x[1:])
    with pytest.raises(OutOfDomain, match="0 of 32 inputs differ"):
        Sort([toys["rest"]] * 4 + [toys["largest"]]).draw(Random(0), 0)


@pytest.mark.parametrize(
    ("id_", "message"),
    [
        ("seq(total,reverse)", "total gives integer and reverse takes integers; put a task between them"),
        ("sort(reverse,total,reverse)", "total gives integer and reverse takes integers"),
        ("seq(reverse)", "has 1 parts; give 2 to 12"),
        ("par(reverse)", "has 1 parts; give 2 to 12"),
        ("sort(reverse)", "has 1 parts; give 2 to 6"),
        ("select(reverse|double)", "has 2 parts; give 3 to 6"),
        ("select(reverse,double,rest)", "has no distractors"),
        ("select(reverse,double|total)", "give it away as a distractor"),
        ("select(reverse,double|double)", "names double twice"),
        ("seq(par(reverse,total),reverse)", "is no map of one value to one"),
        ("sort(sort(reverse,double),double)", "is no map of one value to one"),
    ],
)
def test_parts_that_do_not_fit_are_refused_in_one_sentence(toys: Toys, id_: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build(id_, toys)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_prompts_grow_linearly_with_the_parts(toys: Toys) -> None:
    def length(parts: int) -> int:
        return len(build(f"seq({','.join(['reverse'] * parts)})", toys).instance(0).prompt)

    assert length(8) - length(7) == length(3) - length(2) == len("\n1) Reverse the list.")


def test_orders_are_guessed_and_perturbed_to_orders(toys: Toys) -> None:
    kind = Select([toys["reverse"], toys["double"]], [toys["rest"]]).answers[0]
    random = Random(0)
    for value in (("a",), ("b", "a"), ("c", "a", "b")):
        near = kind.near(random, value)
        assert near != value
        for made in (near, kind.guess(random, value), kind.draw(random, 0)):
            kind.check(made)
