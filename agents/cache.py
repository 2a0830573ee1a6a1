"""The key-value cache of a batch of rows, each as long as it likes.

Row r's token number p lies in slot p, so a key may be seen exactly when its slot is not after the query's position:
one rule covers the causal order, ragged rows and whatever an earlier, longer use left in a slot. The owner keeps each
row's length: to drop tokens it lowers the number. Knows nothing about episodes or tokens.
"""

from __future__ import annotations

__all__ = ["RowCache"]

from typing import Any

import torch
from torch import Tensor
from transformers import Cache

_GRAIN = 64


class RowCache(Cache):  # type: ignore[misc]
    """Keys and values per layer: (rows, heads, slots, head width), grown on demand."""

    def __init__(self, rows: int) -> None:
        super().__init__(layers=[])
        self.rows = rows
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []
        self._aim: tuple[Tensor | slice, Tensor | slice, int] = (slice(0), slice(0), 0)

    def aim(self, rows: Tensor | slice, positions: Tensor | slice, seen: int) -> None:
        """Says where the next forward writes and reads.

        Args:
            rows: (B,) row numbers, or a slice of rows, which is read without a copy.
            positions: (B, n) slots of the new tokens, or one slice that is the same for every row.
            seen: how many slots, from the first, the attention reads.
        """
        self._aim = (rows, positions, seen)
        for layer in range(len(self._keys)):
            self._reserve(layer, seen)

    def _reserve(self, layer: int, seen: int) -> None:
        for kept in (self._keys, self._values):
            have = kept[layer].shape[2]
            if have < seen:
                more = -(-max(seen, have * 3 // 2) // _GRAIN) * _GRAIN - have
                kept[layer] = torch.nn.functional.pad(kept[layer], (0, 0, 0, more))

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Writes (B, heads, n, width) at the aim and returns what the aimed rows may look at."""
        rows, positions, seen = self._aim
        if layer_idx == len(self._keys):
            for side, new in ((self._keys, key_states), (self._values, value_states)):
                slots = -(-seen // _GRAIN) * _GRAIN
                side.append(new.new_zeros(self.rows, new.shape[1], slots, new.shape[3]))
        found: list[Tensor] = []
        for kept, new in ((self._keys[layer_idx], key_states), (self._values[layer_idx], value_states)):
            if isinstance(positions, slice):
                kept[rows, :, positions] = new
            else:
                row = torch.arange(rows.start, rows.stop, device=new.device) if isinstance(rows, slice) else rows
                kept[row[:, None], :, positions] = new.transpose(1, 2)
            found.append(kept[rows, :, :seen])
        return found[0], found[1]

    def copy(self, source: int, targets: Tensor, length: int) -> None:
        """Gives the (T,) target rows the first ``length`` slots of one row: a common prefix is computed once."""
        for kept in (*self._keys, *self._values):
            kept[targets, :, :length] = kept[source, :, :length].clone()

    def gather(self, rows: Tensor) -> RowCache:
        """Returns a copy of some rows, contiguous, for a stretch of decoding."""
        part = RowCache(len(rows))
        part._keys = [kept.index_select(0, rows) for kept in self._keys]
        part._values = [kept.index_select(0, rows) for kept in self._values]
        return part

    def put(self, rows: Tensor, part: RowCache) -> None:
        """Writes gathered rows back."""
        for layer in range(len(self._keys)):
            slots = part._keys[layer].shape[2]
            self._reserve(layer, slots)
            self._keys[layer][rows, :, :slots] = part._keys[layer]
            self._values[layer][rows, :, :slots] = part._values[layer]

    def grow(self, rows: int) -> None:
        """Makes room for ``rows`` rows."""
        for kept in (self._keys, self._values):
            for layer, tensor in enumerate(kept):
                kept[layer] = torch.cat([tensor, tensor.new_zeros(rows - self.rows, *tensor.shape[1:])])
        self.rows = rows

    def get_seq_length(self, layer_idx: int = 0, *_: Any) -> int:
        """Part of transformers' interface; positions are always given, so nothing may depend on it."""
        return 0
