"""Every example runs, shortened; so do the notebooks, which stand there as they were executed."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import pytest
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


@pytest.mark.parametrize("name", ["train_builtin.py", "two_models.py"])
def test_a_script_runs(name: str, tmp_path: Path) -> None:
    out = run(sys.executable, EXAMPLES / name, tmp_path / "run", "2", cwd=tmp_path)
    assert "success" in out
    assert (tmp_path / "run" / "summary.json").exists()


def test_the_environment_of_ones_own_trains(tmp_path: Path) -> None:
    name = f"{EXAMPLES / 'mirror.py'}:env"
    out = run(
        sys.executable, "-m", "decentral", "train", name, "--iterations", "1", "--out", tmp_path / "run", cwd=tmp_path
    )
    assert "report:" in out


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


@pytest.mark.parametrize("name", ["study_a_run.ipynb", "why_drafts_are_accepted.ipynb", "your_environment.ipynb"])
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace("iterations=24", "iterations=2")
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    assert any("image/png" in o.get("data", {}) for o in outputs)
