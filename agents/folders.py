"""Where models lie on this machine, and the hash by which a result names its weights. Needs no torch."""

from __future__ import annotations

__all__ = ["POCKET", "head_folder", "model_folder", "smollm2_cache", "weights_hash"]

import hashlib
import os
from pathlib import Path

POCKET = Path(__file__).parent / "pocket"


def smollm2_cache() -> Path:
    """Returns the folder in the user's cache where SmolLM2-135M-Instruct is kept once it was unpacked."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "decentral" / "smollm2-135m-instruct"


def model_folder(name: str) -> Path:
    """Returns the folder that a model name stands for, whether or not it exists."""
    return {"pocket": POCKET, "smollm2": smollm2_cache()}.get(name, Path(name))


def head_folder(model: str, configured: str = "") -> Path:
    """Returns where a model's draft head is, or would be: as configured, else in a folder of the model's."""
    return Path(configured) if configured else model_folder(model) / "mtp"


def weights_hash(name: str) -> str:
    """Returns the first 12 hex digits of the SHA-256 of a model folder's safetensors, "" if it has none here."""
    files = sorted(model_folder(name).glob("*.safetensors"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12] if files else ""
