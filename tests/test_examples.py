"""Every example runs, shortened; the notebooks run as they stand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

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


@pytest.mark.parametrize("name", ["study_a_run.ipynb", "why_drafts_are_accepted.ipynb"])
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    assert any("image/png" in o.get("data", {}) for o in outputs)
