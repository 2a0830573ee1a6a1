"""Trainings that a benchmark needs, each a run in a folder of its own, several at a time.

What is over is not trained again, and what was interrupted goes on. Knows nothing about what is measured in the runs.
"""

from __future__ import annotations

__all__ = ["Training", "heirs", "train_all"]

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from decentral.config import Config
from decentral.disk import write_whole
from decentral.errors import RunError
from decentral.folder import RunFolder
from decentral.run import Run
from decentral.threads import caps
from decentral.train import train


class Training(NamedTuple):
    """One run that is to be trained."""

    folder: Path
    config: Config


def train_all(trainings: Iterable[Training], workers: int, report: Callable[[str], object]) -> list[Run]:
    """Returns the runs, in order, once all are over.

    Args:
        trainings: of which those that are over are only read.
        workers: processes at a time; 1: everything in this one.
        report: is called with a line as each is trained, in any order.

    Raises RunError for the first that fails; what runs beside it ends first.
    """
    work = _here if workers == 1 else _elsewhere
    with ThreadPoolExecutor(workers) as pool:
        found = [pool.submit(_trained, training, work, report) for training in trainings]
        try:
            return [one.result() for one in found]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def heirs(config: Config, before: Run) -> dict[str, dict[str, Any]]:
    """Returns a config's differences per agent, with the models in which those who learnt ended ``before``."""
    learning = [name for name in before.agents if before.config.agent_config(name).kind == "learning"]
    models = {name: {"model": str(before.path / "agents" / name / "model")} for name in learning}
    return {name: config.agents.get(name, {}) | models.get(name, {}) for name in before.agents}


def _trained(training: Training, work: Callable[[Training, bool], object], report: Callable[[str], object]) -> Run:
    begun = (training.folder / "state.json").exists()
    if not begun or not RunFolder.open(training.folder).over:
        work(training, begun)
        report(f"trained {training.folder.name}")
    return Run.load(training.folder)


def _here(training: Training, begun: bool) -> None:
    train(None if begun else training.config, out=training.folder, resume=begun)


def _elsewhere(training: Training, begun: bool) -> None:
    folder = training.folder
    settings = folder.with_name(f"{folder.name}.toml")
    settings.parent.mkdir(parents=True, exist_ok=True)
    write_whole(settings, training.config.to_toml().encode())
    where = ["--resume", str(folder)] if begun else ["--config", str(settings), "--out", str(folder)]
    command = [sys.executable, "-m", "decentral", "train", *where]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | caps(1), check=False)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()
        raise RunError(f"the training in {str(folder)!r} ended with exit code {done.returncode}: {said[-1]}")
