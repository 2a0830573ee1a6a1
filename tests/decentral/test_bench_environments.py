"""The benchmark of environments: both sides play the same, what is measured is kept, and the page is the results'."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from decentral.bench import environments
from decentral.bench.environment_page import page
from decentral.bench.environments import FULL, NAMES, Plan, _draw, _ours, _race, _told, run
from decentral.bench.raw import raw
from decentral.envs.config import EnvConfig
from decentral.envs.names import make

DOCS = Path(__file__).parents[2] / "docs"
PACKAGES = {
    "guide": "decentral",
    "classic/connect_four_v3": "pygame",
    "gymnasium/FrozenLake-v1": "gymnasium",
    "openspiel/kuhn_poker": "pyspiel",
}


@pytest.mark.parametrize("name", PACKAGES)
def test_both_sides_play_the_same_episodes(name: str) -> None:
    pytest.importorskip(PACKAGES[name])
    game, env, seeds = make(EnvConfig(name=name, max_rounds=10_000)), raw(name), range(3, 9)
    lengths = [_ours(game, [seed], _draw(seed), {}) for seed in seeds]
    assert lengths == [env.play([seed], _draw(seed), {}) for seed in seeds]
    assert len(set(lengths)) > 1


def test_a_race_is_a_ratio_with_its_range_and_a_game_tells_its_sizes() -> None:
    found = _race(make(EnvConfig(name="meet")), raw("meet"), Plan((), 3, 0.001))
    assert 0 < found["low"] <= found["ratio"] <= found["high"]
    told = _told(make(EnvConfig(name="meet")), len)
    assert told["success"] == "all have met"
    assert told["legal"][0] >= 3
    assert told["legal"][2] == 5
    assert told["free_turns"] == 0
    assert 0 < told["tokens"][0] < told["tokens"][1]


def row(name: str, plan: Plan) -> dict[str, Any]:
    if name != "guide":
        raise ImportError(f"no package for {name}")
    speed = {"raw_us": 30.0, "ours_us": 40.0, "ratio": 0.75, "low": 0.7, "high": 0.8}
    told = {"tokens": [7, 14], "legal": [1, 5, 5], "free_turns": 0, "success": ""}
    return {"api": "Parallel", "read": "", "fork": None, "failed": [], **speed, **told}


def test_what_was_measured_is_not_measured_again_and_what_is_absent_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "QUICK", Plan(("guide", "mpe2/simple_v3"), 1, 0.001))
    monkeypatch.setattr(environments, "_row", row)
    said: list[str] = []
    first, again = (run(True, said.append, tmp_path) for _ in range(2))
    assert first["rows"] == again["rows"] == json.loads((tmp_path / "environments.json").read_text())["rows"]
    assert said[:2] == [
        "guide: 30.0 us a step, ours / raw 0.75 [0.70, 0.80]",
        "mpe2/simple_v3: skipped: no package for mpe2/simple_v3",
    ]
    assert said[2:] == [f"{said[0]} (kept)", said[1]]
    text = page(first)
    cells = "| `guide` | Parallel | 7 / 14 | 1 / 5 / 5 | none: the return | no | pass | 30 | 0.75 [0.70, 0.80] |"
    assert cells in text
    assert "Not installed when this was measured: mpe2/simple_v3." in text


def test_the_page_of_environments_is_made_from_the_results() -> None:
    found = json.loads((DOCS / "results" / "environments.json").read_text())
    assert (DOCS / "environments.md").read_text() == page(found)
    assert tuple(row["environment"] for row in found["rows"]) == NAMES == FULL.names
