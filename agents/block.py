"""One decoder block of a Llama, written out, with a third of the calls: a small model spends its time in Python.

Query, key and value are one product, gate and up another, and rotation is three. The attention itself is the caller's:
over a cache in a rollout, over whole rows in training. Knows nothing about models, caches or tokens.
"""

from __future__ import annotations

__all__ = ["Attend", "Block", "Rope", "Rotation", "Shape", "rms_norm"]

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

Attend = Callable[[Tensor, Tensor], Tensor]
"""From queries (B, n, heads, D) and keys and values side by side (B, n, 2 groups, D) of new tokens to what they see,
(B, heads, n, D)."""


Rotation = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Shape:
    """The sizes of a block."""

    heads: int
    groups: int
    """Of heads, each with keys and values in common."""
    width: int
    """Of a head."""
    eps: float
    """Of the norms."""


class Rope:
    """Rotary position embeddings, looked up; they turn queries and keys and leave values as they are."""

    def __init__(self, frequencies: Tensor, window: int, shape: Shape, dtype: torch.dtype, scale: float = 1.0) -> None:
        """
        Args:
            frequencies: (D / 2,) radians per position.
            window: how many positions there are.
            shape: of the blocks.
            dtype: of what is rotated.
            scale: of what is rotated, 1 but for some long-context models.
        """
        angle = torch.arange(window, device=frequencies.device)[:, None] * frequencies.float()[None]
        turned, left = shape.heads + shape.groups, angle.new_zeros(window, shape.groups, shape.width)
        cos = (torch.cat([angle, angle], -1).cos() * scale)[:, None].expand(-1, turned, -1)
        sin = (torch.cat([-angle.sin(), angle.sin()], -1) * scale)[:, None].expand(-1, turned, -1)
        self._cos = torch.cat([cos, left + 1], 1).to(dtype)
        self._sin = torch.cat([sin, left], 1).to(dtype)

    @classmethod
    def of(cls, trunk: Any, window: int, shape: Shape) -> Rope:
        """Returns the rotation of a transformers trunk."""
        weight, rotary = trunk.embed_tokens.weight, trunk.rotary_emb
        return cls(rotary.inv_freq.to(weight.device), window, shape, weight.dtype, rotary.attention_scaling)

    def at(self, positions: Tensor) -> Rotation:
        """Returns cosines and signed sines, each (B, n, heads + 2 groups, D), of (B, n) positions."""
        return self._cos[positions], self._sin[positions]


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Returns x / sqrt(mean(x^2) + eps) * weight over the last axis; in float32 in two thirds of torch's time."""
    if x.dtype != torch.float32:
        return F.rms_norm(x, weight.shape, weight.to(x.dtype), eps)
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x * torch.addcmul(_scalar(eps, x.device), length, length, value=1 / len(weight)).rsqrt_() * weight


@lru_cache
def _scalar(value: float, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        return torch.tensor(value, device=device)


@dataclass(frozen=True)
class Block:
    """The weights of a block. A norm is its (H,) weight, a linear map its (out, in) weight; there are no biases."""

    before: Tensor
    qkv: Tensor
    out: Tensor
    between: Tensor
    gate_up: Tensor
    down: Tensor
    shape: Shape

    def __call__(self, x: Tensor, rotation: Rotation, attend: Attend) -> Tensor:
        """Returns (B, n, H) for (B, n, H) at positions whose ``rotation`` ``Rope.at`` gave."""
        b, n, _ = x.shape
        shape = self.shape
        cos, sin = rotation
        h = rms_norm(x, self.before, shape.eps)
        qkv = F.linear(h, self.qkv).view(b, n, shape.heads + 2 * shape.groups, shape.width)
        qkv = torch.addcmul(qkv * cos, qkv.roll(shape.width // 2, -1), sin)
        seen = attend(qkv[:, :, : shape.heads], qkv[:, :, shape.heads :])
        x = x + F.linear(seen.transpose(1, 2).reshape(b, n, -1), self.out)
        gate, up = F.linear(rms_norm(x, self.between, shape.eps), self.gate_up).chunk(2, -1)
        return x + F.linear(F.silu(gate) * up, self.down)
