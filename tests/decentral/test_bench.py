"""The benchmark's arithmetic, and a smoke run of the whole of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from decentral.agents.config import AgentConfig
from decentral.agents.draft import DraftHead
from decentral.agents.policy import Policy
from decentral.agents.rollout import Rollouts
from decentral.bench.core import measure
from decentral.bench.rollouts import _slopes
from decentral.bench.subject import Subject
from decentral.commands import app
from decentral.envs.config import EnvConfig


def rates(values: list[float]) -> Iterator[float]:
    return iter(values)


def test_ratios_are_paired_whichever_went_first() -> None:
    ours, peer = rates([1, 2, 4, 8]), rates([1, 1, 2, 4])
    found = measure(lambda: next(ours), lambda: next(peer), 3)
    assert found["ratio"] == 2.0
    assert (found["ours"], found["peer"]) == (4, 2)


def test_the_range_of_the_median_grows_narrower_than_all_pairs() -> None:
    ours, peer = rates([1, *range(1, 16)]), rates([1] * 16)
    found = measure(lambda: next(ours), lambda: next(peer), 15)
    assert found["ratio"] == 8
    assert (found["low"], found["high"]) == (4, 12)  # 15 pairs: the 4th and the 12th hold the median with 96.5 %


def bench(*words: str) -> list[str]:
    """Returns the lines that a short benchmark writes."""
    done = CliRunner().invoke(app, ["bench", *words, "--quick", "--json"])
    assert done.exit_code == 0, done.output
    return done.stdout.strip().splitlines()


def test_quick_ends_with_one_json_object() -> None:
    pytest.importorskip("pygame")
    found = json.loads(bench("core")[-1])
    assert found["aec_ratio"] > 0
    assert [row["batch"] for row in found["decode"]] == [1, 8, 32]
    assert set(found["updates"]) == {"ours", "peer", "ratio"}
    assert found["versions"]["models"]["pocket"]


@pytest.fixture
def head(tmp_path: Path) -> Path:
    """A draft head of pocket as it is before training."""
    policy = Policy(AgentConfig(model="pocket", kind="frozen"))
    DraftHead(policy.shared(), policy.window).save(tmp_path / "head")
    return tmp_path / "head"


def test_both_sides_read_the_same_ids_and_all_prompts_are_equally_long(head: Path) -> None:
    subject = Subject("pocket", head, [EnvConfig(name="guide"), EnvConfig(name="vault")])
    turns, ids = subject.prompts(6, 4, seed=1, level=True)
    engine = Rollouts(subject.policy, 0, 0, ends=False)
    engine.play(range(6), turns)
    assert len(set(map(len, ids))) == 1
    assert len(set(map(tuple, ids))) == 6
    for episode, prompt in enumerate(ids):
        stream = engine.close(episode)
        assert stream.ids[: len(prompt)] == prompt
        assert len(stream.chunks[0].choices) == 4
    assert subject.prompts(6, 4, seed=2, level=True)[1] != ids


def test_the_slope_is_of_acceptance_over_entropy() -> None:
    points = [
        {
            "head": "default",
            "mode": "rejection",
            "seeds": {"reached": [100.0] * 3, "accepted": [90 - 20 * x] * 3, "entropy": [x - 0.1, x, x + 0.1]},
        }
        for x in (0.0, 1.0, 2.0)
    ]
    (found,) = _slopes(points)
    assert found["slope"] == pytest.approx(-0.2)
    assert (found["low"], found["high"]) == pytest.approx((-0.2, -0.2))


def test_quick_rollouts_end_with_one_json_object_and_are_not_measured_twice(tmp_path: Path, head: Path) -> None:
    out = tmp_path / "out"
    lines = [bench("rollouts", "--out", str(out), "--pocket-head", str(head)) for _ in range(2)]
    first, again = (json.loads(line[-1]) for line in lines)
    assert again["rows"] == first["rows"]
    assert not any(line.endswith("(kept)") for line in lines[0])
    assert all(line.endswith("(kept)") for line in lines[1][:-1])
    assert json.loads((out / "rollouts.json").read_text()) == again
    rows = {row["mode"]: row for row in first["rows"]}
    assert list(rows) == ["plain", "rejection", "target_only", "generate"]
    assert rows["plain"]["speedup_vs_plain"] == rows["generate"]["speedup_vs_generate"] == 1
    for row in rows.values():
        assert (row["model"], row["batch"], row["temperature"]) == ("pocket", 8, 1.0)
        low, high = row["speedup_vs_plain_interval"]
        assert 0 < low <= row["speedup_vs_plain"] <= high
        assert (row["acceptance"] is None) == (row["mode"] in ("plain", "generate"))
    drafted = rows["rejection"]
    assert 0 < drafted["accepted_of_proposed"] < drafted["acceptance"] < 1
    assert 2.5 < drafted["drafts_per_step"] <= 3
    assert drafted["forwards_per_token"] < rows["plain"]["forwards_per_token"] == 1
    assert sum(drafted[f"{part}_share"] for part in ("draft", "read", "choose", "python")) == pytest.approx(1)
    assert {(line["head"], line["mode"]) for line in first["entropy"]["slopes"]} == {
        ("default", "rejection"),
        ("default", "target_only"),
    }
    assert [row["draft_tokens"] for row in first["environments"]] == [3, "adaptive"] * 2
    assert first["model_hash"]["pocket"]
    assert first["head_hash"]["pocket"]
    assert first["versions"]["torch"]
    assert {"command", "commit", "seeds"} <= set(first)
    assert all((out / name).stat().st_size > 1000 for name in ("acceptance.png", "speedup.png"))
