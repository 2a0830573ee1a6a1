"""The README, word for word: every command and every snippet runs, and the reference is the code's own."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

import decentral
from decentral.commands import app
from decentral.reference import reference

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(bash|python)\n(.*?)```", README, re.DOTALL)
COMMANDS = [
    line.split("  #")[0].strip() for kind, body in BLOCKS if kind == "bash" for line in body.splitlines() if line
]
SNIPPETS = [body for kind, body in BLOCKS if kind == "python"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples, in which the README is followed from top to bottom."""
    path = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "examples", path / "examples")
    return path


def run(command: str, folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("command", [c for c in COMMANDS if not c.startswith("make ")])
def test_a_command_runs(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is the command alone, without a shell's signs, runs in this process, which has imported all it needs.

    Trainings play few episodes, and only that of ``meet`` starts a process per agent.
    """
    program, *words = shlex.split(command)
    if program != "decentral" or set(command) & set("&|>;$"):
        run(command, folder)
        return
    if words[0] == "train":
        words += ["--set", "groups=2", "--set", "eval_episodes=8"]
        words += [] if words[1] == "meet" else ["--engine", "inline"]
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, f"{command}\n{done.output}"


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_runs(snippet: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, with few episodes."""
    monkeypatch.setattr(decentral, "train", partial(decentral.train, engine="inline", groups=2, eval_episodes=8))
    monkeypatch.chdir(folder)
    exec(compile(snippet, "README.md", "exec"), {"__name__": "__main__"})


def test_make_knows_the_two_commands_and_the_demo_is_an_ordinary_training() -> None:
    assert [c for c in COMMANDS if c.startswith("make ")] == ["make demo", "make test"]
    said = subprocess.run(["make", "-n", "demo"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "decentral train meet --iterations 30 --set agent.lr=1e-3 --set agent.kl=1e-3 --out runs/demo-" in said
    said = subprocess.run(["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert all(tool in said for tool in ("ruff check", "mypy", "pytest"))


def test_the_config_reference_is_the_codes_own() -> None:
    assert (ROOT / "docs" / "config.md").read_text() == reference()


def test_links_of_the_readme_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (ROOT / target).exists(), target


def test_measured_figures_are_those_of_the_results() -> None:
    result = json.loads((ROOT / "docs" / "results" / "core.json").read_text())
    for figure in (result["aec_ratio"], result["updates"]["ratio"], *(row["ratio"] for row in result["decode"])):
        assert f"{figure:.2f}" in README


def test_figures_of_learning_are_those_of_the_results() -> None:
    result = json.loads((ROOT / "docs" / "results" / "learning.json").read_text())
    for task in result["tasks"]:
        low, high = task["interval"]
        sides = f"| {100 * task['trained']:.1f} % | {100 * task['random']:.1f} % |"
        gap = f"{100 * task['difference']:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"
        assert f"{sides} {gap} | {task['train_seconds'] / 60:.1f} min |" in README, task["task"]


def test_figures_of_drafting_are_those_of_the_results() -> None:
    result = json.loads((ROOT / "docs" / "results" / "rollouts.json").read_text())
    for row in result["rows"]:
        if row["mode"] == "rejection" and row["temperature"] == 1.0:
            assert f"| {row['speedup_vs_plain']:.2f} [" in README
            assert f"| {row['speedup_vs_generate']:.2f} [" in README
    for slope in result["entropy"]["slopes"]:
        if slope["head"] == "default":
            assert f"{-100 * slope['slope']:.1f}" in README
