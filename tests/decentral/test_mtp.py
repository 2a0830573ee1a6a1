"""Draft heads from the command line: text gathered, a head trained, its use in a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import decentral.commands
from decentral import mtp
from decentral.agents.config import AgentConfig
from decentral.agents.draft import DraftHead
from decentral.agents.pace import Measured
from decentral.agents.policy import Policy
from decentral.envs.config import EnvConfig
from decentral.errors import ConfigError, RunError
from decentral.gather import gather, sample

GUIDE = EnvConfig(name="guide")
SCRATCH = "agent.reasoning_tokens=8"


def call(*words: object) -> Result:
    return CliRunner().invoke(decentral.commands.app, [str(word) for word in words])


@pytest.fixture(scope="module")
def policy() -> Policy:
    return Policy(AgentConfig(kind="frozen", draft="plain"))


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A head trained for a few steps on little text."""
    out = tmp_path_factory.mktemp("heads") / "guide"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mtp, "_cycle", lambda policy, head, size, length, cycles: 1.0 + 0.2 * length)
        done = call("mtp", "train", "guide", "--set", SCRATCH, "--tokens", 2000, "--steps", 12, "--out", out)
    assert done.exit_code == 0, done.output
    assert "draft_head" in done.output
    assert "rejection" in done.output
    return out


def test_text_is_what_was_sampled_and_goes_on_after_an_interrupt(policy: Policy, tmp_path: Path) -> None:
    file = tmp_path / "text.jsonl"
    settings = {"seed": 0, "reasoning_tokens": 8, "file": file}
    whole = sample(policy, [GUIDE], [1.0, 0.5], 3000, **settings)
    passages = [passage for found in whole for passage in found]
    assert sum(passage.sampled for passage in passages) >= 3000
    assert {passage.temperature for passage in passages} == {1.0, 0.5}
    text = file.read_bytes()
    file.write_bytes(text[: text.index(b"\n", text.index(b"\n") + 1) + 40])
    for _ in range(2):
        assert sample(policy, [GUIDE], [1.0, 0.5], 3000, **settings) == whole
        assert file.read_bytes() == text
    with pytest.raises(RunError, match="another model, environment, temperature, seed or version"):
        sample(policy, [GUIDE], [1.0], 3000, **settings)


def test_text_that_runs_on_has_its_full_length(policy: Policy) -> None:
    for passage in gather(policy, GUIDE, seed=0, temperature=1.0, run_on=20):
        assert passage.sampled == 20


def test_nothing_to_draft_is_a_sentence(policy: Policy) -> None:
    with pytest.raises(ConfigError, match="reasoning_tokens"):
        sample(policy, [GUIDE], [1.0], 100, seed=0, reasoning_tokens=0)


def test_a_trained_head_plays_in_a_run_and_comes_with_the_export(head: Path, tmp_path: Path) -> None:
    assert Measured.load(head).costs is not None
    settings = [f"agent.draft_head={head}", SCRATCH, "groups=2", "group=2", "eval_episodes=4", "agent.draft_tokens=3"]
    flags = [word for setting in settings for word in ("--set", setting)]
    done = call("train", "guide", "--engine", "inline", "--iterations", 2, *flags, "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    run = decentral.Run.load(tmp_path / "run")
    metrics = run.metrics()
    assert metrics["acceptance_1"].between(0, 1).all()
    assert metrics["drafts"].gt(0).all()
    assert str(head) in run.versions["models"]
    assert DraftHead.exists(tmp_path / "run" / "agents" / "ada" / "model" / "mtp")


def test_measure_keeps_its_costs_with_the_head(head: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mtp, "_cycle", lambda policy, head, size, length, cycles: 2.0 + length)
    words = ["mtp", "measure", "guide", "--set", SCRATCH, "--set", f"agent.draft_head={head}", "--tokens", 500]
    before = Measured.load(head)
    assert call(*words).exit_code == 0
    assert Measured.load(head) == before
    done = call(*words, "--write")
    assert "times as fast as plain" in done.output
    found = Measured.load(head).costs
    assert found is not None
    assert found.cycle(1, 2) == 4.0


def test_a_start_that_is_no_head_is_refused(policy: Policy, tmp_path: Path) -> None:
    rounds = [[*gather(policy, GUIDE, seed=seed, temperature=1.0, reasoning_tokens=8)] for seed in range(2)]
    with pytest.raises(ConfigError, match="no draft head to start from"):
        mtp.fit(policy, rounds, steps=2, start=tmp_path / "typo")
    with pytest.raises(ConfigError, match="too little"):
        mtp.fit(policy, rounds[:1], steps=2)
    assert not (tmp_path / "typo").exists()


def test_wrong_uses_are_one_sentence(head: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="overwritten"):
        mtp.train(AgentConfig(reasoning_tokens=8), [GUIDE], head, tokens=100, steps=1)
    for words, part in (
        (["measure", "guide", "--set", f"agent.draft_head={tmp_path}"], "no draft head"),
        (["train", "guide", "--set", SCRATCH, "--loss", "tvd", "--out", tmp_path / "x"], "ce, kl, tv, e2e"),
        (["train", "guid", "--out", tmp_path / "y"], "guide"),
        (["train", "guide", "--set", SCRATCH, "--tokens", 2000, "--out", "/proc/x"], "cannot write"),
    ):
        done = call("mtp", *words)
        assert done.exit_code == 2
        assert part in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
