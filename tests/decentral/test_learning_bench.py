"""The learning benchmark: stages follow each other, nothing is trained twice, and means come with their intervals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from decentral.bench import learning
from decentral.errors import ConfigError
from decentral.run import Run


def test_each_stage_starts_where_the_one_before_ended_and_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = {"env": "classic/tictactoe_v3", "agents": {"player_2": {"kind": "random"}}}
    monkeypatch.setattr(learning, "TASKS", {"two": learning.Task((stage, stage), learning._WON)})
    lines: list[str] = []
    found = learning.run(True, lines.append, tmp_path)
    (folder,) = (tmp_path / "runs").glob("two-1-*")
    first, second = (Run.load(folder / str(number)) for number in range(2))
    assert second.config.agent_config("player_1").model == str(first.path / "agents" / "player_1" / "model")
    assert second.config.agent_config("player_2").kind == "random"
    assert [row["agent"] for row in found["rows"]] == ["player_1"], "who does not learn is not measured"
    assert found["tasks"][0]["train_seconds"] >= first.state["train_seconds"] + second.state["train_seconds"]
    assert json.loads((tmp_path / "learning.json").read_text())["rows"] == found["rows"]
    assert lines[0].startswith("two, seed 1, player_1: success ")

    monkeypatch.setattr(learning, "train", None)
    assert learning.run(True, lines.append, tmp_path)["rows"] == found["rows"]


def test_the_interval_is_students_over_the_seeds() -> None:
    rows = [
        {"seed": seed, "measure": "return", "train_seconds": seed, **{key: [value, 0, 0] for key in learning.SIDES}}
        for seed, values in enumerate([(1.0, 3.0), (3.0, 3.0), (4.0, 4.0)])
        for value in values
    ]
    found = learning._pooled(rows)
    assert found["difference"] == pytest.approx(3.0)
    assert found["interval"] == pytest.approx([3 - 4.303 / 3**0.5, 3 + 4.303 / 3**0.5])
    assert found["train_seconds"] == 2


def test_an_unknown_task_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no task is called 'tictactoes'; did you mean 'tictactoe'"):
        learning.run(True, print, tmp_path, ["tictactoes"])
