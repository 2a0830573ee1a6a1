"""Two agents that have nothing in common: other models, other ways to train, other schedules.

usage: python examples/two_models.py [FOLDER [ITERATIONS]]
"""

import sys
import tempfile

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

import decentral
from decentral.agents.folders import POCKET

folder = sys.argv[1] if len(sys.argv) > 1 else None
iterations = int(sys.argv[2]) if len(sys.argv) > 2 else 40

# Any folder that save_pretrained wrote will do. Here: two layers of random weights that know nothing yet.
other = tempfile.mkdtemp()
tokenizer = AutoTokenizer.from_pretrained(POCKET)
torch.manual_seed(0)
size = {"hidden_size": 96, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4}
LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=512, **size)).save_pretrained(other)
tokenizer.save_pretrained(other)

run = decentral.train(
    "guide",
    out=folder,
    iterations=iterations,
    agents={
        "ada": {"model": "pocket", "lr": {"start": 1e-3, "end": 2e-4, "steps": 40, "shape": "cosine"}},
        "bob": {"model": other, "lr": 2e-3, "update_every": 2, "kl": 0.0},
    },
)
print(run.results().to_string())
