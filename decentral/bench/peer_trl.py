"""Times GRPO steps of TRL. Run by another interpreter, as a script; knows nothing of decentral.

usage: peer_trl.py MODEL_FOLDER STEPS ROLLOUTS TOKENS PROMPT
Prints one JSON object: {"updates_per_s": float, "version": str}
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from typing import Any

import torch

torch.set_num_threads(1)

import trl  # noqa: E402
from datasets import Dataset  # noqa: E402
from transformers import AutoTokenizer, TrainerCallback  # noqa: E402

WARM_UP = 2


class Clock(TrainerCallback):  # type: ignore[misc]
    """Notes when each step ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.ends.append(time.perf_counter())


def main(model: str, steps: int, rollouts: int, tokens: int, prompt: str) -> None:
    """Trains ``steps`` steps of ``rollouts`` completions of ``tokens`` tokens after one prompt."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        trainer = trl.GRPOTrainer(
            model=model,
            reward_funcs=lambda completions, **_: [float(len(text) % 7) for text in completions],
            args=trl.GRPOConfig(
                output_dir=folder,
                per_device_train_batch_size=rollouts,
                num_generations=rollouts,
                max_completion_length=tokens,
                max_steps=steps + WARM_UP,
                beta=1e-3,
                learning_rate=1e-6,
                use_cpu=True,
                report_to=[],
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
                gradient_checkpointing=False,
                bf16=False,
                generation_kwargs={"min_new_tokens": tokens},
            ),
            train_dataset=Dataset.from_list([{"prompt": prompt}] * 64),
            processing_class=AutoTokenizer.from_pretrained(model),
            callbacks=[clock],
        )
        trainer.train()
    rate = steps / (clock.ends[-1] - clock.ends[WARM_UP - 1])
    sys.stdout.write(json.dumps({"updates_per_s": rate, "version": trl.__version__}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
