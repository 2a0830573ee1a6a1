"""A small head on the policy's hidden state that foretells an agent's own return from there on."""

from __future__ import annotations

__all__ = ["ValueHead"]

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor, nn

from decentral.agents.mind import Metrics
from decentral.agents.moments import load_optimiser, read_tensors, save_optimiser
from decentral.errors import ModelError

_STEPS, _BATCH, _RATE = 16, 512, 1e-3
_FADE = 0.9
"""Of the running mean and spread of returns, per iteration."""
_WEIGHTS, _MOMENTS = "value.safetensors", "value_optimiser.safetensors"


class ValueHead:
    """Regression on returns, whatever their scale: these are standardised by a running mean and deviation."""

    def __init__(self, width: int, seed: int) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._net = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 64), nn.GELU(), nn.Linear(64, 1))
        self._scale = torch.tensor([0.0, 1.0], dtype=torch.float64)
        self._optimiser = torch.optim.Adam(self._net.parameters(), lr=_RATE)
        self._random = torch.Generator().manual_seed(seed)
        self._updates = 0

    @torch.no_grad()
    def predict(self, hidden: Tensor) -> list[float | None]:
        """Returns the returns that are expected after (N, d) states; none before anything was learnt."""
        if not self._updates:
            return [None] * len(hidden)
        mean, spread = self._scale.tolist()
        return (self._net(hidden)[:, 0] * spread + mean).tolist()  # type: ignore[no-any-return]

    def learn(self, hidden: Tensor, returns: NDArray[np.float64]) -> Metrics:
        """Makes a few steps toward the (N,) returns that came after (N, d) states.

        Returns the share of their variance that was foretold before, at most 1; below 0 is worse than their mean.
        """
        if not len(returns):
            return {}
        before = np.array([value or 0.0 for value in self.predict(hidden)])
        spread = float(returns.std())
        explained = 1 - float(np.square(returns - before).mean()) / spread**2 if spread > 1e-9 else 0.0
        now = torch.tensor([returns.mean(), max(spread, 1e-6)], dtype=torch.float64)
        self._scale = now if self._updates == 0 else _FADE * self._scale + (1 - _FADE) * now
        goals = torch.from_numpy((returns - self._scale[0].item()) / self._scale[1].item()).float()
        for _ in range(_STEPS):
            some = torch.randint(len(goals), (min(_BATCH, len(goals)),), generator=self._random)
            self._optimiser.zero_grad(set_to_none=True)
            nn.functional.mse_loss(self._net(hidden[some])[:, 0], goals[some]).backward()  # type: ignore[no-untyped-call]
            self._optimiser.step()
            self._updates += 1
        return {"value_explained": explained}

    def save(self, folder: Path) -> None:
        """Writes everything that ``load`` needs."""
        tensors = {f"net.{name}": p.detach().contiguous() for name, p in self._net.state_dict().items()}
        save_file(tensors | {"scale": self._scale, "random": self._random.get_state()}, folder / _WEIGHTS)
        save_optimiser(self._optimiser, dict(self._net.named_parameters()), folder / _MOMENTS, self._updates)

    def load(self, folder: Path) -> None:
        """Restores what ``save`` wrote. Raises ModelError."""
        tensors = read_tensors(folder / _WEIGHTS)
        try:
            self._scale = tensors.pop("scale")
            self._random.set_state(tensors.pop("random"))
            self._net.load_state_dict({key.removeprefix("net."): p for key, p in tensors.items()})
        except (KeyError, RuntimeError) as error:
            raise ModelError(
                f"checkpoint {folder} holds another value head ({error}); resume with its config"
            ) from error
        self._updates = load_optimiser(self._optimiser, dict(self._net.named_parameters()), folder / _MOMENTS)
