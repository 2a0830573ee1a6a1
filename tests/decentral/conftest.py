"""A generated run folder, as the processes of a run write it."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

RunFolder = Callable[..., Path]


def lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def build_run(
    path: Path,
    *,
    iterations: int = 12,
    agents: tuple[str, ...] = ("anna", "ben"),
    success: bool = True,
    games: int = 24,
    trials: int = 40,
) -> Path:
    """Writes a run in which success rises from about 0.2 to about 0.98, the same for all agents of an episode."""
    draw = random.Random(5)
    episodes: list[dict[str, Any]] = []
    phases: list[dict[str, Any]] = []
    metrics: dict[str, list[dict[str, Any]]] = {name: [] for name in agents}

    def play(phase: str, iteration: int, chance: float, count: int) -> None:
        played = []
        for index in range(count):
            won = float(draw.random() < chance)
            rounds = [
                {
                    "agent": name,
                    "round": number,
                    "observation": f"you are at {number}, 2; <b>goal</b> at 3, 3",
                    "action": "move right",
                    "feedback": "there is a wall" if number == 1 else "",
                }
                for number in range(3)
                for name in agents
            ]
            played.append({
                "phase": phase, "iteration": iteration, "attempt": 0, "episode": len(episodes) + index,
                "group": index // 8, "seed": 1000 * iteration + index // 8,
                "agents": {
                    name: {"return": won - 0.1 * place, "success": won if success else None, "turns": 3,
                           "terminated": bool(won), "truncated": not won}
                    for place, name in enumerate(agents)
                },
                "fault": "", "steps": [dict.fromkeys(agents, "move right")] * 3,
                **({"rounds": rounds} if index == 0 else {}),
            })  # fmt: skip
        episodes.extend(played)
        mean = {
            key: {n: sum(e["agents"][n][key] or 0 for e in played) / count for n in agents}
            for key in ("return", "success")
        }
        phases.append(
            {
                "phase": phase,
                "iteration": iteration,
                "attempt": 0,
                "episodes": count,
                "faults": 0,
                "seconds": 1.5,
                "return": mean["return"],
                "success": mean["success"] if success else {},
            }
        )

    chances = [0.2 + 0.78 / (1 + math.exp(-8 * (i / max(1, iterations) - 0.45))) for i in range(iterations + 1)]
    play("eval", 0, chances[0], trials)
    for i in range(iterations):
        play("train", i, chances[i], games)
        for place, name in enumerate(agents):
            metrics[name].append({
                "iteration": i, "updates": i + 1, "success": phases[-1]["success"].get(name, 0.0),
                "return": phases[-1]["return"][name], "episodes": games,
                "entropy": 1.4 * (1 - chances[i]) + 0.05 * place,
                "kl": 0.02 * i * (1 + 0.3 * place), "grad_norm": 0.4 + 0.3 * draw.random(), "tokens_per_s": 900.0,
                "lr": 1e-3,
            })  # fmt: skip
    play("eval", iterations, chances[-1], trials)

    lines(path / "host" / "episodes.jsonl", episodes)
    lines(path / "host" / "phases.jsonl", phases)
    lines(path / "host" / "events.jsonl", [{"time": 1.7e9, "event": "started"}])
    for name in agents:
        lines(path / "agents" / name / "metrics.jsonl", metrics[name])
        lines(
            path / "agents" / name / "events.jsonl",
            [{"time": 1.7e9 + 5, "event": "restarted", "why": "lost", "count": 1}],
        )
    (path / "config.toml").write_text(f'seed = 3\niterations = {iterations}\n\n[env]\nname = "meet"\n')
    (path / "versions.json").write_text(json.dumps({"decentral": "0.1.0", "python": "3.11.2", "torch": "2.13.0"}))
    (path / "state.json").write_text(
        json.dumps(
            {
                "config": {},
                "agents": agents,
                "iteration": iterations,
                "closed": iterations + 2,
                "train_seconds": 80.5,
            }
        )
    )
    (path / "summary.json").write_text(json.dumps({
        "agents": {n: {"success_first": 0.2, "success_last": 0.98, "updates": iterations} for n in agents},
        "train_seconds": 80.5,
    }))  # fmt: skip
    return path


@pytest.fixture
def run_folder(tmp_path: Path) -> RunFolder:
    """Builds a run folder; keyword arguments are those of ``build_run``."""
    return lambda **options: build_run(tmp_path / "run", **options)
