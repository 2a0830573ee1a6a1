"""Every example runs, shortened; so do the notebooks, which stand there as they were executed."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

import decentral
from decentral.envs.names import suites
from decentral.envs.turn import Turn

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=300, env=os.environ, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_script_runs(tmp_path: Path) -> None:
    """With a process per agent."""
    out = run(sys.executable, EXAMPLES / "two_models.py", tmp_path / "run", "2", cwd=tmp_path)
    assert "success" in out
    assert (tmp_path / "run" / "summary.json").exists()


def test_agents_of_a_built_in_game_are_trained_shown_and_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, with few episodes."""
    few: dict[str, Any] = {"engine": "inline", "groups": 1, "group": 4, "eval_episodes": 4}
    monkeypatch.setattr(decentral, "train", partial(decentral.train, **few))
    monkeypatch.setattr(sys, "argv", ["train_builtin.py", str(tmp_path / "run"), "2"])
    runpy.run_path(str(EXAMPLES / "train_builtin.py"), run_name="__main__")
    assert "ada, at 1 3, sees nobody and goes" in capsys.readouterr().out
    assert {"summary.json", "learning.png", "report.html"} <= {file.name for file in (tmp_path / "run").iterdir()}


def test_rivals_learn_against_a_script_a_frozen_model_and_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, with few episodes."""
    few: dict[str, Any] = {"engine": "inline", "groups": 1, "group": 4, "eval_episodes": 4}
    monkeypatch.setattr(decentral, "train", partial(decentral.train, **few))
    monkeypatch.setattr(sys, "argv", ["nim.py", str(tmp_path / "runs"), "1"])
    runpy.run_path(str(EXAMPLES / "nim.py"), run_name="__main__")
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in said] == ["taught"] * 2 + ["self_play"] * 4
    assert said[0].endswith("against bob: scripted")
    assert said[1].endswith("against ada: random")
    assert said[4].endswith("taught")


def test_the_perfect_player_of_nim_never_loses_from_a_good_place() -> None:
    game = runpy.run_path(str(EXAMPLES / "nim.py"))
    for stones in range(1, 10):
        taken = game["perfect"](Turn("bob", 0, f"stones {stones}", tuple("123"[:stones])))
        assert stones % 4 == 0 or (stones - int(taken)) % 4 == 0


def test_the_gallery_shows_every_suite_and_trains_on_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, as if one suite were not installed."""
    for module in [name for name in sys.modules if name.partition(".")[0] == "mpe2"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delitem(sys.modules, "decentral.envs.adapters.mpe2", raising=False)
    monkeypatch.setitem(sys.modules, "mpe2", None)
    monkeypatch.setattr(sys, "argv", ["gallery.py", "classic/leduc_holdem_v4", str(tmp_path / "run"), "1"])
    runpy.run_path(str(EXAMPLES / "gallery.py"), run_name="__main__")
    shown, training = capsys.readouterr().out.split("training on classic/leduc_holdem_v4")
    parts = {part.splitlines()[0].partition("/")[0]: part for part in shown.strip().split("\n\n")}
    assert parts.keys() == set(suites())
    for suite, part in parts.items():
        ending = "pip install 'decentral[suites]'" if "skipped" in part else "turns in an episode"
        assert part.endswith(ending), suite
    assert "skipped" in parts["mpe2"]
    assert "at random" in parts["classic"]
    assert "report.html" in training


SHORTER = {
    "advice.ipynb": {"ITERATIONS = 8": "ITERATIONS = 4"},
    "study_a_run.ipynb": {'"iterations": 40': '"iterations": 2', '"eval_episodes": 100': '"eval_episodes": 10'},
    "why_drafts_are_accepted.ipynb": {", 3000, seed": ", 600, seed", "range(8, 16)": "range(8, 9)"},
    "your_environment.ipynb": {"iterations=24, eval_episodes=100": "iterations=2, eval_episodes=10"},
}
"""Per notebook, what stands in it and what is run in its place."""


@pytest.fixture(scope="module")
def kernel() -> Iterator[KernelManager]:
    """One for all notebooks, since what they import takes longer than what they do."""
    manager = KernelManager()
    yield manager
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("name", SHORTER)
def test_a_notebook_runs(name: str, kernel: KernelManager, tmp_path: Path) -> None:
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells)
    for long, short in SHORTER[name].items():
        assert long in text
        for cell in notebook.cells:
            cell.source = cell.source.replace(long, short)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(f"%reset -f\n%cd -q {tmp_path}"))
    NotebookClient(notebook, km=kernel, timeout=300).execute()
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    assert any("image/png" in o.get("data", {}) for o in outputs)
