from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import decentral.commands

CONSTANT = """
from decentral.envs.tasks.task import task
from decentral.envs.tasks.values import INTEGERS

@task(takes=INTEGERS, gives=INTEGERS, says="Give 7 and 7.")
def sevens(numbers):
    return 7, 7
"""


def call(*words: object, **more: Any) -> Result:
    return CliRunner().invoke(decentral.commands.app, ["tasks", *(str(word) for word in words)], **more)


def refused(result: Result, *parts: str) -> None:
    """Holds for one sentence on stderr, exit code 2, no traceback."""
    assert result.exit_code == 2, (result.exit_code, result.output, result.exception)
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.strip().splitlines()) == 1
    for part in parts:
        assert part in result.stderr


def test_the_list_shows_families_signatures_and_sentences() -> None:
    result = call("list", env={"COLUMNS": "160"})
    assert result.exit_code == 0
    assert "number_theory" in result.stdout
    assert ["reverse", "integers", "integers", "Reverse", "the", "list."] in [
        line.split() for line in result.stdout.splitlines()
    ]


def test_counts_are_one_json_object() -> None:
    found = json.loads(call("count", "--base", 20, "--parts", 2, "--json").stdout)
    assert set(found) == {"base", "composites", "by_operator", "distinct_sequential_maps"}
    assert found["base"] == 20
    assert found["by_operator"]["par"] == 190
    assert found["composites"] == sum(found["by_operator"].values())
    assert 0 < found["distinct_sequential_maps"] <= found["by_operator"]["seq"]
    table = call("count", "--base", 20, "--parts", 2).stdout
    assert f"{found['composites'] - 190:,} without par" in table
    refused(call("count", "--base", 100_000), "--base 100000", "choose 1 to")


def test_an_instance_is_shown_with_its_answer() -> None:
    shown = call("show", "seq(reverse,total)", "--level", 3, "--seed", 7).stdout.splitlines()
    *_, data, answer = shown
    numbers = data.removeprefix("> ").split()
    assert answer == f"answer: {' '.join(numbers[::-1])}; {sum(map(int, numbers))}"
    refused(call("show", "seq(reverse,totl)"), "did you mean 'total'")
    refused(call("show", "seq(total,reverse)"), "total gives integer and reverse takes integers")


def test_a_person_can_answer() -> None:
    answer = call("show", "reverse").stdout.splitlines()[-1].removeprefix("answer: ")
    result = call("play", "reverse", input=f"{answer}\nnonsense\n")
    assert result.exit_code == 0
    assert "right" in result.stdout
    assert "0.00; it is " in result.stdout
    assert result.stdout.rstrip().endswith("1.00 of 2")


def test_a_check_says_what_passes_and_names_the_gate_that_does_not(tmp_path: Path) -> None:
    sound = call("check", "reverse", "seq(reverse,total)", "--seeds", 4)
    assert sound.exit_code == 0
    assert "2 tasks pass all gates" in sound.stdout
    file = tmp_path / "mine.py"
    file.write_text(CONSTANT)
    result = call("check", f"{file}:sevens", "--seeds", 2)
    refused(result, "1 of 1 tasks fail", "not_constant")
    assert "level 0, seed 0" in result.stdout


def test_a_sample_reports_rejections_per_gate() -> None:
    found = json.loads(call("sample", "--count", 20, "--seeds", 2, "--operator", "sort", "--parts", 2, "--json").stdout)
    assert found["drawn"] == {"sort": 20}
    assert found["admitted"] == 0
    assert sum(here["sort"] for here in found["rejected"].values()) == 20
    table = call("sample", "--count", 6, "--seeds", 2).stdout
    assert "admitted" in table
    refused(call("sample", "--operator", "sord"), "did you mean 'sort'")


@pytest.mark.parametrize("command", ["list", "count", "show", "play", "check", "sample"])
def test_every_command_has_a_help(command: str) -> None:
    assert call(command, "--help").exit_code == 0
