"""The return that an agent expects from a moment on, read from its policy's hidden state by a small network.

Knows nothing about rewards: it is given returns, and does not ask how they were made.
"""

from __future__ import annotations

__all__ = ["ValueHead"]

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from decentral.agents.mind import Metrics
from decentral.agents.probe import Probe, Scale

_BATCH = 512
"""Rows of a step at most."""


class ValueHead(Probe):
    """A regression of returns on hidden states, d -> 64 -> 1; the scale of the returns does not matter."""

    def __init__(self, width: int, seed: int, steps: int = 8) -> None:
        """
        Args:
            width: d, of the hidden states.
            seed: of the first weights and of all draws.
            steps: optimiser steps per iteration.
        """
        super().__init__("value", (width, 64, 1), seed)
        self._returns = Scale(1)
        self._steps = steps
        for p in self.layers[-1].parameters():
            nn.init.zeros_(p)  # it says 0 until it has learnt

    @property
    def learnt(self) -> bool:
        """Whether it has ever been given returns."""
        return bool(self.scale.batches > 0)

    @torch.no_grad()
    def predict(self, h: Tensor) -> Tensor:
        """Returns (N,) expected returns, on the CPU, of (N, d) hidden states."""
        value: Tensor = self._returns.inverse(self.layers(self.standard(h)))
        return value[:, 0]

    def learn(self, h: Tensor, returns: Tensor) -> Metrics:
        """Makes a few steps on the rows of one iteration.

        Args:
            h: (N, d) hidden states.
            returns: (N,).

        Returns:
            ``value_explained``, the share of the returns' variance that the predictions explained before these steps
            (0 where returns do not vary; below 0: the errors vary more than they do), and ``value_loss``, the mean
            squared error of the steps in units of the returns' running variance. Nothing without rows.
        """
        if not len(h):
            return {}
        returns = returns.detach().double().cpu()
        varies = bool(returns.std(correction=0) > 1e-7 * returns.abs().max())
        missed = (returns - self.predict(h)).var(correction=0)
        self.scale.watch(h.detach().cpu())
        self._returns.watch(returns[:, None])
        x, y = self.standard(h), self._returns(returns[:, None])
        losses = []
        for _ in range(self._steps):
            rows = self.draw(len(h), _BATCH)
            loss = F.mse_loss(self.layers(x[rows]), y[rows])
            self.step(loss)
            losses.append(loss.item())
        return {
            "value_loss": sum(losses) / len(losses),
            "value_explained": float(1 - missed / returns.var(correction=0)) if varies else 0.0,
        }
