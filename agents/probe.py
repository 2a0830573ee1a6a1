"""A small network that reads a policy's hidden states: its own draws, its own optimiser, its own files.

Nothing flows back into the policy. Knows nothing about what the network is trained for.
"""

from __future__ import annotations

__all__ = ["Probe", "Scale"]

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from decentral.agents.moments import load_optimiser, read_tensors, save_optimiser
from decentral.errors import ModelError

_LR = 1e-3
_RATE = 0.1
"""How far the running mean and variance move to those of a new batch."""
_CLIP = 10.0
"""Deviations: a feature that hardly varied so far must not drown the others once it does."""


class Scale(nn.Module):
    """Mean and deviation of each column, over batches that count less the older they are."""

    mean: Tensor
    variance: Tensor
    batches: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(width, dtype=torch.float64))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    def watch(self, x: Tensor) -> None:
        """Takes a batch of (N, width), N > 0; the first one counts in full."""
        self.batches += 1
        rate = max(_RATE, 1 / int(self.batches))
        shift = x.double().mean(0) - self.mean
        spread = x.double().var(0, correction=0) + (1 - rate) * shift.square()
        self.mean += rate * shift
        self.variance.lerp_(spread, rate)

    @property
    def deviation(self) -> Tensor:
        """(width,) the deviation; 1 for a column that does not vary."""
        deviation = self.variance.sqrt()
        return torch.where(deviation > 1e-7 * self.mean.abs(), deviation, 1.0)

    def forward(self, x: Tensor) -> Tensor:
        """Returns (N, width) float32 of mean 0 and deviation 1."""
        return ((x - self.mean) / self.deviation).float()

    def inverse(self, x: Tensor) -> Tensor:
        """Returns what ``forward`` made (N, width) of."""
        return (x * self.deviation + self.mean).float()


class Probe(nn.Module):
    """Layers with GELU between them, on standardised hidden states.

    Most of a hidden state's length is a mean that all contexts share (about 0.98 of it in SmolLM2, 0.8 in pocket):
    unscaled, everything would look alike. The probe stays on the CPU, whatever the policy's device.
    """

    def __init__(self, name: str, widths: Sequence[int], seed: int) -> None:
        """
        Args:
            name: of the files.
            widths: of the input and of every layer.
            seed: of the first weights and of all draws; the global generator is left alone.
        """
        super().__init__()
        self.name = name
        self.draws = torch.Generator().manual_seed(seed)
        self.scale = Scale(widths[0])
        layers = [_linear(*shape, self.draws) for shape in pairwise(widths)]
        self.layers = nn.Sequential(*[part for layer in layers for part in (nn.GELU(), layer)][1:])
        self._optimiser = torch.optim.Adam(self.layers.parameters(), lr=_LR)

    def standard(self, h: Tensor) -> Tensor:
        """Returns (N, d) hidden states as the layers want them."""
        return self.scale(h.detach().cpu()).clamp(-_CLIP, _CLIP)  # type: ignore[no-any-return]

    def draw(self, among: int, most: int) -> Tensor:
        """Returns at most so many different numbers below ``among``."""
        return torch.randperm(among, generator=self.draws)[:most]

    def step(self, loss: Tensor) -> None:
        """Makes one optimiser step."""
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()

    def save(self, folder: Path) -> None:
        """Writes weights, running figures, draws and the optimiser's moments as safetensors."""
        state, moments = self._files(folder)
        save_file(self.state_dict() | {"draws": self.draws.get_state()}, state)
        save_optimiser(self._optimiser, self._trained(), moments, int(self.scale.batches))

    def load(self, folder: Path) -> None:
        """Restores what ``save`` wrote. Raises ModelError."""
        file, moments = self._files(folder)
        state = read_tensors(file)
        draws = state.pop("draws")
        if {k: v.shape for k, v in state.items()} != {k: v.shape for k, v in self.state_dict().items()}:
            raise ModelError(f"checkpoint {file} was made for hidden states of another model; resume with its config")
        self.load_state_dict(state)
        self.draws.set_state(draws)
        load_optimiser(self._optimiser, self._trained(), moments)

    def _files(self, folder: Path) -> tuple[Path, Path]:
        return folder / f"{self.name}.safetensors", folder / f"{self.name}_optimiser.safetensors"

    def _trained(self) -> dict[str, Tensor]:
        return dict(self.layers.named_parameters())


def _linear(inputs: int, outputs: int, draws: torch.Generator) -> nn.Linear:
    # Made without values, since the usual ones are drawn from the global generator.
    layer: nn.Linear = nn.Linear(inputs, outputs, device="meta").to_empty(device="cpu")
    nn.init.normal_(layer.weight, std=inputs**-0.5, generator=draws)
    nn.init.normal_(layer.bias, std=0.01, generator=draws)
    return layer
