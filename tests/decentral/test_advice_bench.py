"""The benchmark of advice: what is trained once is kept, and its figures are what their names say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from decentral.bench import advice, advice_costs, trainings
from decentral.bench.messages import ROUNDS, messages
from decentral.bench.trainings import Training, heirs, train_all
from decentral.config import Config
from decentral.errors import ConfigError, RunError
from decentral.run import Run

SMALL = {"env": "meet", "engine": "inline", "iterations": 1, "groups": 1, "group": 2, "eval_episodes": 2}


def test_a_quick_run_has_every_part_and_trains_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    found = advice.run(True, lines.append, tmp_path)
    assert json.loads((tmp_path / "advice.json").read_text())["cells"] == found["cells"]
    assert [(row["setting"], row["rule"]) for row in found["cells"]] == [
        ("newcomer", "none"), ("newcomer", "ours"), ("together", "none"), ("together", "ours"),
    ]  # fmt: skip
    assert [(row["kind"], row["share"], row["rule"]) for row in found["hostile"]] == [
        ("honest", "0", "none"), ("honest", "0", "ours"), ("random", "1/3", "ours"),
    ]  # fmt: skip
    (cost,) = found["costs"]
    assert cost["pairs"] == 1
    assert cost["percent"] > -100
    bad = found["hostile"][-1]
    assert 0 <= bad["trust_bad"] <= 1
    assert 0 <= bad["trust_good"] <= 1
    assert all((row["bytes_per_episode"] > 0) == (row["rule"] != "none") for row in found["cells"])
    (crowd,) = (tmp_path / "runs").glob("*/crowd-random-complete-ours-1")
    run = Run.load(crowd)
    assert [run.config.agent_config(name).advice.teacher for name in run.agents] == [
        "honest",
        "random",
        "honest",
        "honest",
    ]
    assert len([line for line in lines if line.startswith("trained ")]) == len(
        list((tmp_path / "runs").glob("*/*/summary.json"))
    )

    for module in (trainings, advice_costs):
        monkeypatch.setattr(module, "train", None)
    again = advice.run(True, lines.append, tmp_path)
    assert all(again[part] == found[part] for part in advice.PARTS)


def test_a_row_has_the_end_the_gain_and_the_episodes_to_the_threshold() -> None:
    none = [{0: 0.0, 40: 0.2, 80: 0.4, 100: 0.6}, {0: 0.0, 40: 0.4, 80: 0.6, 100: 0.8}]
    ours = [{0: 0.0, 40: 0.5, 80: 0.7, 100: 0.9}, {0: 0.0, 40: 0.9, 80: 0.7, 100: 0.7}]
    first, second = advice.cell_rows({"environment": "meet"}, {"none": none, "ours": ours}, {"none": 0.0, "ours": 9.0})
    assert first["success"] == pytest.approx(70)  # of the evaluations after more than 80 episodes
    assert first["over_none"] is None
    assert first["threshold"] == pytest.approx(63)
    assert first["episodes_to_threshold"] == 100
    assert second["episodes_to_threshold"] == 40
    assert second["over_none"][0] == pytest.approx(10)
    assert second["over_none"][1] == pytest.approx(10 - 12.706 * 20, abs=0.01)
    assert second["by_seed"] == pytest.approx([90, 70])
    never = advice.cell_rows({}, {"none": [{0: 0.0, 40: 0.0}]}, {"none": 0.0})[0]
    assert never["episodes_to_threshold"] is None, "a threshold of 0 is not reached by doing nothing"
    assert never["ci95"] == [None, None]


def test_frames_are_two_per_edge_and_round() -> None:
    found = {(row["topology"], row["agents"]): row["per_episode"] for row in messages(["complete", "ring"], [2, 5])}
    edges = {("complete", 2): 2, ("complete", 5): 20, ("ring", 2): 2, ("ring", 5): 10}
    assert found == {key: 2 * ROUNDS * count for key, count in edges.items()}
    assert [row["agents"] for row in messages(["regular:4"], [2, 4, 8])] == [8]


def test_an_unknown_part_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no part is called 'hostil'; did you mean 'hostile'"):
        advice.run(True, print, tmp_path, ["hostil"])


def test_a_training_that_fails_is_told_by_its_last_sentence(tmp_path: Path) -> None:
    config = Config.of(**SMALL | {"agent": {"model": str(tmp_path / "nowhere")}})
    with pytest.raises(RunError, match=r"ended with exit code 2: .*nowhere"):
        train_all([Training(tmp_path / "run", config)], 2, print)


def test_heirs_start_where_those_who_learnt_ended(tmp_path: Path) -> None:
    config = Config.of(**SMALL | {"agents": {"bob": {"kind": "random"}}})
    (run,) = train_all([Training(tmp_path / "run", config)], 1, print)
    model = str(run.path / "agents" / "ada" / "model")
    assert heirs(Config.of(env="meet", agents={"ada": {"lr": 0.1}}), run) == {
        "ada": {"lr": 0.1, "model": model},
        "bob": {},
    }
