"""The written-out Llama computes what transformers' own does."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from decentral.agents.cache import RowCache
from decentral.agents.lean import LeanLlama, serves


def llama(**fields: Any) -> LlamaForCausalLM:
    base: dict[str, Any] = {
        "vocab_size": 50,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 64,
        "initializer_range": 0.3,
    }
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return LlamaForCausalLM(LlamaConfig(**base | fields)).eval()


def run_lean(model: LlamaForCausalLM, lean: LeanLlama, ids: torch.Tensor, pieces: list[int]) -> torch.Tensor:
    cache = RowCache(len(ids))
    found, start = [], 0
    for piece in pieces:
        positions = torch.arange(start, start + piece).expand(len(ids), -1)
        mask = torch.arange(start + piece) <= positions[:, None, :, None]
        cache.aim(range(len(ids)), positions, start + piece)
        found.append(model.lm_head(lean(ids[:, start : start + piece], positions, mask, cache)))
        start += piece
    return torch.cat(found, 1)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"num_key_value_heads": 2, "tie_word_embeddings": True},
        {"head_dim": 16, "rms_norm_eps": 1e-5},
        {
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 500.0,
                "factor": 4.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 16,
            }
        },
    ],
)
def test_logits_agree_and_follow_the_weights(fields: dict[str, Any]) -> None:
    model = llama(**fields)
    assert serves(model)
    ids = torch.randint(0, 50, (3, 20), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        before = model(ids).logits.clone()
    lean = LeanLlama(model, 64)
    with torch.inference_mode():
        torch.testing.assert_close(run_lean(model, lean, ids, [7, 1, 12]), before, atol=2e-5, rtol=1e-4)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    model(ids).logits.square().mean().backward()
    optimiser.step()
    with torch.inference_mode():
        after = model(ids).logits
        assert not torch.allclose(before, after, atol=1e-2)
        torch.testing.assert_close(run_lean(model, lean, ids, [20]), after, atol=1e-4, rtol=1e-3)


def test_other_architectures_are_left_to_transformers() -> None:
    assert not serves(llama(hidden_act="gelu"))
    assert not serves(llama(attention_bias=True))
    other = Qwen2Config(vocab_size=50, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4)
    assert not serves(Qwen2ForCausalLM(other))
