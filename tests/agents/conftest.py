"""Test doubles: a tiny Llama with random weights and a small word tokenizer, made in memory."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from decentral.agents.vocabulary import build_tokenizer

torch.set_num_threads(1)

TEXTS = ["north south east west stay you 1 2 3 bob unseen red redder go go on open door error wrong"] * 50


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a two-layer Llama and its tokenizer."""
    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = build_tokenizer(iter(TEXTS))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=len(tokenizer),
                hidden_size=32,
                intermediate_size=48,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=2,
                max_position_embeddings=256,
                tie_word_embeddings=True,
                initializer_range=0.3,
            )
        )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
