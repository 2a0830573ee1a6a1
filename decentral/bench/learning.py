"""``decentral bench learning``: agents of the pocket model on third-party environments, beside random-legal play.

A cell is a task and a seed. It trains as a user would, one process per agent, and is evaluated on seeds that training
never saw; a cell that was stopped goes on. Where there are teams, each in turn plays against random opponents.
"""

from __future__ import annotations

__all__ = ["TASKS", "chips", "run", "won"]

import hashlib
import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from decentral import agents, envs
from decentral.agents.config import AgentConfig
from decentral.bench.grid import Grid, code_hash
from decentral.bench.trainings import heirs
from decentral.config import Config
from decentral.disk import write_whole
from decentral.errors import ConfigError, suggest
from decentral.evaluate import Evaluation
from decentral.folder import RunFolder
from decentral.intervals import Interval, student
from decentral.run import Run
from decentral.train import train
from decentral.versions import commit, model_hashes, versions

SEEDS = (1, 2, 3)
"""Settings were tried on seeds of 100 and more; but the second stage of foraging and the rate of tic-tac-toe were
changed after seeds 1 and 2 had been seen."""
EPISODES = 200
SIDES = ("trained", "random", "difference")


class Task(NamedTuple):
    """What is learnt, and how."""

    stages: tuple[dict[str, Any], ...]
    """Fields of ``Config`` that train one after the other; agents start where those of the stage before ended."""
    success: str = ""
    """What is measured in the end, if not what the environment calls success."""


def won(env: Any, agent: str, total: float) -> float:
    """Returns 1 for a game that was won, 0 for a draw and for a loss."""
    return float(total > 0)


def chips(env: Any, agent: str, total: float) -> float:
    """Returns 0.5 for a hand of Leduc poker that breaks even, and 1 for one that wins the most there is, 13 chips."""
    return 0.5 + total / 26


_WON = "decentral.bench.learning:won"
_CHIPS = "decentral.bench.learning:chips"
_RANDOM = {"kind": "random"}
_SHORT = {"lr": 1e-3, "kl": 1e-4}
"""Episodes of a few turns, whose reward comes last."""
_LONG = {"lr": 5e-4, "kl": 0.0}
"""Episodes of many turns, of which few can be played."""
_TRY = {"uniform_steps": 48}
_SELF = {"lr": {"start": 8e-4, "end": 1e-4, "steps": 240}, "kl": 0.0, "uniform_steps": 16, "past": 0.25}
_FEW = {"groups": 4, "group": 8, "eval_episodes": 16}
TASKS: dict[str, Task] = {
    "tictactoe": Task(
        (
            {
                "env": "classic/tictactoe_v3",
                "agent": {"lr": {"start": 8e-4, "end": 5e-5, "steps": 350}, "kl": 0.0, "uniform_steps": 16},
                "agents": {"player_2": _RANDOM},
                "iterations": 350,
            },
        ),
        _WON,
    ),
    "tictactoe self-play": Task(({"env": "classic/tictactoe_v3", "agent": _SELF, "iterations": 240},), _WON),
    "leduc self-play": Task(({"env": "openspiel/leduc_poker", "agent": _SELF, "iterations": 240},), _CHIPS),
    "tiny hanabi": Task(({"env": "openspiel/tiny_hanabi", "agent": _SHORT | {"lr": 5e-4}, "iterations": 60},)),
    "foraging": Task(
        (
            {
                "env": "lbforaging/Foraging-5x5-2p-2f-v3",
                "agent": _LONG | _TRY | {"discount": 0.9},
                "iterations": 16,
                **_FEW,
            },
            {
                "env": "lbforaging/Foraging-8x8-2p-2f-coop-v3",
                "agent": _LONG | {"lr": 1e-4, "discount": 0.9},
                "iterations": 6,
                **_FEW,
            },
        )
    ),
    "spread": Task(
        (
            {
                "env": "mpe2/simple_spread_v3",
                "agent": {"lr": 1e-3, "kl": 0.1, "discount": 0.8, "window": 128},
                "iterations": 60,
                "groups": 8,
                "group": 2,
                "eval_episodes": 16,
            },
        )
    ),
}
QUICK: dict[str, Any] = {"iterations": 1, "groups": 2, "group": 4, "eval_episodes": 4, "engine": "inline"}


def run(quick: bool, report: Callable[[str], object], out: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Trains and evaluates what is not in ``out`` yet, writes ``learning.json`` there, and returns all figures.

    Args:
        quick: one iteration of the first task only.
        report: called with a line as each cell is ready.
        out: folder of the cells and of the runs, which are kept.
        names: of tasks; none: all.

    Raises:
        ConfigError: there is no such task.
    """
    for name in names:
        if name not in TASKS:
            raise ConfigError(f"no task is called {name!r}{suggest(name, TASKS)}; there are {', '.join(TASKS)}")
    tasks = {name: TASKS[name] for name in names or list(TASKS)[: 1 if quick else None]}
    rows: list[dict[str, Any]] = []
    with Grid(out) as grid:
        for name, task in tasks.items():
            plan = [stage | QUICK for stage in task.stages] if quick else [*task.stages]
            configs = [Config.of(**stage) for stage in plan]
            hashes = model_hashes([config.agent for config in configs])
            for seed in SEEDS[: 1 if quick else None]:
                settings = {"task": name, "seed": seed}
                episodes = int(QUICK["eval_episodes"]) if quick else EPISODES
                fingerprint = {
                    "stages": plan,
                    "success": task.success,
                    "episodes": episodes,
                    "versions": versions(),
                    "models": hashes,
                    "code": code_hash(Path(agents.__file__).parent, Path(envs.__file__).parent, Path(__file__)),
                }
                mark = hashlib.sha256(json.dumps(fingerprint, sort_keys=True).encode()).hexdigest()[:8]
                folder = out / "runs" / f"{_slug(name)}-{seed}-{mark}"
                measure = partial(_measure, task, plan, seed, episodes, folder)
                for row in grid.cell(settings, fingerprint, measure):
                    rows.append(settings | row)
                    report(_line(rows[-1]))
    found = {
        "command": shlex.join(["decentral", *sys.argv[1:]]),
        "commit": commit(),
        "rows": rows,
        "tasks": [{"task": name, **_pooled([row for row in rows if row["task"] == name])} for name in tasks],
        "stages": {name: task.stages for name, task in tasks.items()},
        "versions": versions() | {"models": model_hashes([AgentConfig()])},
    }
    write_whole(out / "learning.json", json.dumps(found, indent=1).encode())
    return found


def _measure(task: Task, plan: list[dict[str, Any]], seed: int, episodes: int, folder: Path) -> list[dict[str, Any]]:
    """Trains through all stages and evaluates; returns a row per agent."""
    before: Run | None = None
    seconds = 0.0
    for number, stage in enumerate(plan):
        place = folder / str(number)
        config = Config.of(**stage, seed=seed)
        if before is not None:
            config = Config.of(**stage | {"seed": seed, "agents": heirs(config, before)})
        if (place / "state.json").exists():
            before = Run.load(place) if RunFolder.open(place).over else train(out=place, resume=True)
        else:
            before = train(config, out=place)
        seconds += before.state["train_seconds"]
    assert before is not None
    judged = before if not task.success else Run(before.path, before.config.with_set([f"env.success={task.success}"]))
    return [row | {"train_seconds": seconds} for row in _rows(judged.evaluate(episodes), before)]


def _rows(found: Evaluation, run: Run) -> list[dict[str, Any]]:
    learning = [score for score in found.scores if run.config.agent_config(score.name).kind == "learning"]
    return [
        {
            "agent": score.name,
            "measure": score.measure,
            "episodes": found.episodes,
            **{key: list(getattr(score, key)) for key in SIDES},
        }
        for score in learning
    ]


def _pooled(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the means over seeds and agents, and of the difference Student's 95 % interval over the seeds."""
    seeds = sorted({row["seed"] for row in rows})

    def means(key: str) -> list[float]:
        return [float(np.mean([row[key][0] for row in rows if row["seed"] == seed])) for seed in seeds]

    gap = student(means("difference"))
    return {
        "measure": rows[0]["measure"],
        "trained": float(np.mean(means("trained"))),
        "random": float(np.mean(means("random"))),
        "difference": gap.value,
        "interval": [gap.low, gap.high] if len(seeds) > 1 else None,
        "train_seconds": max(row["train_seconds"] for row in rows),
    }


def _line(row: Mapping[str, Any]) -> str:
    from decentral.report import interval_text

    word = row["measure"]
    trained, random, gap = (Interval(*row[key]) for key in SIDES)
    apart = interval_text(gap, "points" if word == "success" else word)
    return (
        f"{row['task']}, seed {row['seed']}, {row['agent']}: {word} {interval_text(trained, word)}, random "
        f"{interval_text(random, word)}, difference {apart}, {row['train_seconds']:.0f} s"
    )


def _slug(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)
