"""``decentral bench advice``: what advice is worth, by the rule that uses it, with honest and with bad teachers.

A cell is a game, a setting, a rule and a seed: one training as a user would make it. All agents start together, or a
newcomer joins one that was trained before and is frozen. All rules see the same seeds, episodes and cap of bytes.
What counts is what the agents do alone: the evaluations of a run, in which nobody is asked.
"""

from __future__ import annotations

__all__ = ["GAMES", "PARTS", "RULES", "cell_rows", "run"]

import hashlib
import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

import decentral
from decentral.agents.advice_config import AdviceConfig
from decentral.agents.config import AgentConfig
from decentral.bad_teachers import KINDS
from decentral.bench.advice_costs import costs
from decentral.bench.grid import code_hash
from decentral.bench.messages import messages
from decentral.bench.trainings import Training, heirs, train_all
from decentral.config import Config
from decentral.disk import write_whole
from decentral.envs.games.lines import NAMES
from decentral.errors import ConfigError, suggest
from decentral.intervals import Interval, student
from decentral.run import Run
from decentral.versions import commit, model_hashes, versions

PARTS = ("cells", "hostile", "messages", "costs")
SETTINGS = ("together", "newcomer")
RULES = ("none", "follow", "majority", "ccks", "ours")
SEEDS = (1, 2, 3, 4, 5)
"""Settings were tried on seeds of 100 and more."""
TEACHER_SEED = 11
BYTES = 16_384
"""Cap of an episode, for every rule."""
LAST = 0.2
"""Success is the mean of the evaluations in this last part of a training."""
REACHED = 0.9
"""Of what learning without advice comes to in the end: the threshold that episodes are counted to."""

Curve = Mapping[int, float]
"""Success of those who learn, by episodes of training."""


class Game(NamedTuple):
    """What is played, and how its agents learn."""

    newcomer: str
    """Who joins in the setting of that name; the others are trained before, and frozen."""
    envs: dict[str, dict[str, Any]]
    """Per setting, of a size at which learning without advice begins, and is not over at once."""
    iterations: dict[str, int]
    """Per setting."""
    agent: dict[str, Any]
    """Settings of all."""
    teaching: tuple[dict[str, Any], ...]
    """Fields of `Config` that train those whom a newcomer joins, one after the other."""


class Bad(NamedTuple):
    """How a newcomer of the crowd meets a bad teacher."""

    share: str
    """Of bad teachers among its own."""
    topology: str
    teacher: str
    """Who is bad."""


_BATCH = {"groups": 2, "group": 4}
_TEACHING = {"groups": 6, "group": 8}
_MEET = {"name": "meet", "level": 2}
_SMALL_MEET = {"name": "meet", "level": 0}


def _foraging(kind: str, rounds: int) -> dict[str, Any]:
    return {"name": f"lbforaging/Foraging-{kind}-v3", "options": {"max_episode_steps": rounds}}


_FORAGER = {"kl": 0.0, "discount": 0.9, "uniform_steps": 24}
GAMES = {
    "meet": Game(
        "ada",
        {"together": _SMALL_MEET, "newcomer": _MEET},
        {"together": 50, "newcomer": 40},
        {},
        ({"iterations": 90},),
    ),
    "foraging": Game(
        "agent_0",
        {"together": _foraging("5x5-2p-1f", 12), "newcomer": _foraging("7x7-2p-1f-coop", 20)},
        {"together": 60, "newcomer": 40},
        _FORAGER,
        ({"env": _foraging("5x5-2p-1f-coop", 16), "agent": _FORAGER, "iterations": 50},),
    ),
}
CROWD = 4
"""Agents of the crowd, a `meet` in which a newcomer joins copies of those that learnt to meet in pairs."""
CROWD_ITERATIONS = 20
BADS = (Bad("1/3", "complete", "bob"), Bad("1/2", "ring", "bob"))
QUIET = ("silent", "slow", "flooding")
"""Bad teachers who tell the rules nothing to tell them apart by."""
QUICK: dict[str, Any] = {"iterations": 1, "groups": 1, "group": 2, "eval_episodes": 2, "eval_every": 0}


def run(
    quick: bool, report: Callable[[str], object], out: Path, parts: Sequence[str] = (), workers: int = 1
) -> dict[str, Any]:
    """Trains what is not in ``out`` yet, writes ``advice.json`` there, and returns all figures.

    Args:
        quick: one iteration of one game, rule and seed.
        report: called with a line as each training is over.
        out: folder of the runs, which are kept.
        parts: of `PARTS`; none: all.
        workers: trainings at a time, each a process of one thread; 1: in this process.

    Raises ConfigError if there is no such part, RunError if a training fails.
    """
    for part in parts:
        if part not in PARTS:
            raise ConfigError(f"no part is called {part!r}{suggest(part, PARTS)}; there are {', '.join(PARTS)}")
    bench = _Bench(quick, report, out, workers)
    made = {"cells": bench.cells, "hostile": bench.hostile, "messages": messages, "costs": bench.costs}
    found = {
        "command": shlex.join(["decentral", *sys.argv[1:]]),
        "commit": commit(),
        **{part: made[part]() for part in parts or PARTS},
        "games": {name: game._asdict() for name, game in GAMES.items()},
        "advice": msgspec.to_builtins(AdviceConfig(bytes=BYTES)),
        "seeds": SEEDS,
        "versions": versions() | {"models": model_hashes([AgentConfig()])},
    }
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / "advice.json", json.dumps(found, indent=1).encode())
    return found


class _Bench:
    """The runs of one benchmark, in a folder named after all that they depend on."""

    def __init__(self, quick: bool, report: Callable[[str], object], out: Path, workers: int) -> None:
        package = Path(decentral.__file__).parent
        rooms = [package / room for room in ("agents", "envs", "graphs")]
        talk = [package / f"{name}.py" for name in ("bad_teachers", "exchange", "host", "messages", "node", "plan")]
        hashes = model_hashes([AgentConfig()])
        words = [quick, GAMES, CROWD, CROWD_ITERATIONS, BYTES, versions(), hashes, code_hash(*rooms, *talk)]
        mark = hashlib.sha256(json.dumps(words, default=str, sort_keys=True).encode()).hexdigest()[:8]
        self._folder = out / "runs" / mark
        self._quick = quick
        self._report = report
        self._workers = workers
        self._seeds = SEEDS[: 1 if quick else None]
        self._rules = ("none", "ours") if quick else RULES
        self._games = dict(list(GAMES.items())[: 1 if quick else None])

    def cells(self) -> list[dict[str, Any]]:
        """Returns a row per game, setting and rule."""
        before = {name: self._taught(name, game) for name, game in self._games.items()}
        keys = [(name, setting) for setting in reversed(SETTINGS) for name in self._games]
        plan = {
            (name, setting, rule, seed): self._cell(name, setting, rule, seed, before[name])
            for name, setting in keys
            for seed in self._seeds
            for rule in self._rules
        }
        runs = dict(zip(plan, train_all(plan.values(), self._workers, self._report)))
        rows = []
        for name, setting in keys:
            found = {rule: [runs[name, setting, rule, seed] for seed in self._seeds] for rule in self._rules}
            curves = {rule: [_curve(run) for run in mine] for rule, mine in found.items()}
            size = {rule: float(np.mean([_bytes(run) for run in mine])) for rule, mine in found.items()}
            rows += cell_rows({"environment": _text(GAMES[name].envs[setting]), "setting": setting}, curves, size)
        return rows

    def hostile(self) -> list[dict[str, Any]]:
        """Returns a row per kind of bad teacher, its share among the newcomer's teachers, and rule."""
        before = self._taught("meet", GAMES["meet"])
        keys = [("honest", Bad("0", "complete", "")), *((kind, bad) for bad in BADS for kind in KINDS)]
        plan = {
            (kind, bad, rule, seed): self._crowd(kind, bad, rule, seed, before)
            for seed in self._seeds[:3]
            for kind, bad in keys[: 2 if self._quick else None]
            for rule in self._rules
            if kind == "honest" or rule == "ours" or (rule != "none" and bad == BADS[0] and kind not in QUIET)
        }
        runs = dict(zip(plan, train_all(plan.values(), self._workers, self._report)))
        rows = []
        for kind, bad in keys:
            for rule in self._rules:
                mine = [run for (*key, _), run in runs.items() if key == [kind, bad, rule]]
                if mine:
                    rows.append({"kind": kind, "share": bad.share, "rule": rule, **_trusted(mine, bad.teacher)})
        return rows

    def costs(self) -> list[dict[str, Any]]:
        """Returns a row per thing that costs time."""
        return costs(self._quick, self._report, self._folder / "costs", {"mark": self._folder.name})

    # -- what is trained ------------------------------------------------------------------------------------------

    def _taught(self, name: str, game: Game) -> Run:
        """Returns the run in which the agents that a newcomer joins were trained."""
        before: Run | None = None
        for number, stage in enumerate(game.teaching):
            fields = {"env": game.envs["newcomer"], "seed": TEACHER_SEED, "engine": "inline", **_TEACHING, **stage}
            config = Config.of(**fields | (QUICK if self._quick else {}))
            if before is not None:
                config = Config.of(**msgspec.to_builtins(config) | {"agents": heirs(config, before)})
            (before,) = train_all([Training(self._folder / f"{name}-taught-{number}", config)], 1, self._report)
        assert before is not None, "a newcomer joins somebody"
        return before

    def _cell(self, name: str, setting: str, rule: str, seed: int, before: Run) -> Training:
        game, advice = GAMES[name], _advice(rule)
        iterations = game.iterations[setting]
        fields = {"env": game.envs[setting], "iterations": iterations, "agent": game.agent}
        fields["eval_every"] = iterations // 10
        if setting == "together":
            fields["agent"] = game.agent | advice
        else:
            fields["agents"] = {one: _frozen(before, one) for one in before.agents} | {game.newcomer: advice}
        return self._training(f"{name}-{setting}-{rule}-{seed}", seed, fields)

    def _crowd(self, kind: str, bad: Bad, rule: str, seed: int, before: Run) -> Training:
        pair = before.agents
        agents = {one: _frozen(before, pair[place % len(pair)]) for place, one in enumerate(NAMES[:CROWD])}
        agents[GAMES["meet"].newcomer] = _advice(rule)
        if bad.teacher:
            agents[bad.teacher] |= {"advice": {"teacher": kind}}
        fields = {
            "env": _MEET | {"options": {"agents": CROWD}},
            "iterations": CROWD_ITERATIONS,
            "eval_every": CROWD_ITERATIONS // 5,
            "agents": agents,
            "topology": bad.topology,
        }
        return self._training(f"crowd-{kind}-{bad.topology}-{rule}-{seed}", seed, fields)

    def _training(self, name: str, seed: int, fields: Mapping[str, Any]) -> Training:
        config = {"seed": seed, "engine": "inline", "eval_episodes": 32, **_BATCH, **fields}
        return Training(self._folder / name, Config.of(**config | (QUICK if self._quick else {})))


def _advice(rule: str) -> dict[str, Any]:
    return {"advice": {"rule": rule, "bytes": BYTES}}


def _frozen(before: Run, name: str) -> dict[str, Any]:
    model = (before.path / "agents" / name / "model").resolve()
    return {"kind": "frozen", "uniform_steps": 0, "model": str(model)}


# -- what came of it --------------------------------------------------------------------------------------------------


def cell_rows(
    settings: Mapping[str, Any], curves: Mapping[str, Sequence[Curve]], size: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Returns the rows of one game and setting, a row per rule.

    Args:
        settings: what all rows say.
        curves: per rule, ``none`` among them, a curve per seed; all evaluated after the same episodes.
        size: per rule the bytes of an episode.
    """
    ends = {rule: [_end(curve) for curve in mine] for rule, mine in curves.items()}
    threshold = REACHED * float(np.mean(ends["none"]))
    rows = []
    for rule, mine in curves.items():
        success = student(ends[rule])
        gain = student([a - b for a, b in zip(ends[rule], ends["none"])])
        episodes, means = list(mine[0]), np.mean([list(curve.values()) for curve in mine], axis=0)
        rows.append(
            {
                **settings,
                "rule": rule,
                "success": _percent(success)[0],
                "ci95": _percent(success)[1:],
                "over_none": None if rule == "none" else _percent(gain),
                "episodes_to_threshold": next((e for e, mean in zip(episodes, means) if mean >= threshold > 0), None),
                "threshold": 100 * threshold,
                "bytes_per_episode": size[rule],
                "by_seed": [100 * end for end in ends[rule]],
                "curve": {"episodes": episodes, "success": (100 * means).round(1).tolist()},
            }
        )
    return rows


def _curve(run: Run) -> Curve:
    """Returns the success of those who learn, by episodes of training, of every evaluation."""
    phases = run.phases()
    learning = [name for name in run.agents if run.config.agent_config(name).kind == "learning"]
    mine = phases[(phases["phase"] == "eval") & phases["agent"].isin(learning)]
    each = run.config.groups * run.config.group
    return {int(str(i)) * each: float(v) for i, v in mine.groupby("iteration")["success"].mean().items()}


def _end(curve: Curve) -> float:
    last = max(curve)
    return float(np.mean([value for episodes, value in curve.items() if episodes > (1 - LAST) * last]))


def _bytes(run: Run) -> float:
    """Returns the bytes that all agents sent each other, per episode of training."""
    figures = run.metrics()
    sent = figures["bytes_out"].sum() if "bytes_out" in figures else 0
    return float(sent) / (run.config.iterations * run.config.groups * run.config.group)


def _trusted(runs: Sequence[Run], bad: str) -> dict[str, Any]:
    """Returns the success of a newcomer, and how far it trusts its teachers in the end."""
    found: dict[str, list[float]] = {"bad": [], "good": []}
    for run in runs:
        figures = run.metrics()
        newest = figures[figures["agent"] == GAMES["meet"].newcomer].iloc[-1]
        for peer in run.agents:
            value = newest.get(f"trust_{peer}")
            if value is not None and not np.isnan(value):
                found["bad" if peer == bad else "good"].append(float(value))
    ends = [_end(_curve(run)) for run in runs]
    success = _percent(student(ends))
    return {
        "success": success[0],
        "ci95": success[1:],
        "by_seed": [100 * end for end in ends],
        **{f"trust_{key}": float(np.mean(values)) if values else None for key, values in found.items()},
    }


def _percent(interval: Interval) -> list[float | None]:
    return [round(100 * value, 2) if np.isfinite(value) else None for value in interval]


def _text(env: Mapping[str, Any]) -> str:
    """Returns an environment with its options, as ``meet level=4``."""
    options = {**({"level": env["level"]} if "level" in env else {}), **env.get("options", {})}
    return " ".join([env["name"], *(f"{key}={value}" for key, value in options.items())])
