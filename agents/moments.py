"""An optimiser's moments on disk, as safetensors."""

from __future__ import annotations

__all__ = ["load_optimiser", "read_tensors", "save_optimiser"]

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from decentral.errors import ModelError


def save_optimiser(optimiser: torch.optim.Optimizer, trained: Mapping[str, Tensor], file: Path, updates: int) -> None:
    """Writes the moments of named parameters and the number of updates made."""
    moments = {
        f"{kind}/{name}": torch.as_tensor(value).detach().contiguous()
        for name, p in trained.items()
        for kind, value in optimiser.state.get(p, {}).items()
    }
    save_file(moments | {"updates": torch.tensor(updates)}, file)


def load_optimiser(optimiser: torch.optim.Optimizer, trained: Mapping[str, Tensor], file: Path) -> int:
    """Restores what ``save_optimiser`` wrote and returns the number of updates. Raises ModelError."""
    moments = read_tensors(file)
    updates = int(moments.pop("updates"))
    optimiser.state.clear()
    for key, value in moments.items():
        kind, name = key.split("/", 1)
        p = trained[name]
        optimiser.state[p][kind] = value if kind == "step" else value.to(p.device)
    return updates


def read_tensors(file: Path) -> dict[str, Tensor]:
    """Reads a file of a checkpoint. Raises ModelError."""
    try:
        return dict(load_file(file))
    except (OSError, SafetensorError) as error:
        raise ModelError(
            f"checkpoint {file.parent} cannot be read ({error}); remove it, and the one before it is taken"
        ) from error
