"""What a rollout keeps of a batch of rows, each as long as it likes: keys, values, and a draft head's hidden states.

Row r's token number p lies in slot p, so a key may be seen exactly when its slot is not after the query's position:
one rule covers the causal order, ragged rows, rejected drafts and whatever an earlier, longer use left in a slot. The
owner keeps each row's length: to drop tokens it lowers the number, and the slots are written again. Knows nothing about
episodes or tokens.
"""

from __future__ import annotations

__all__ = ["HIDDEN", "RowCache", "causal", "closing", "side_by_side"]

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import Cache

HIDDEN = (-1, 0)
"""The field of hidden states; layer l's keys and values are (l, 0) and (l, 1)."""
Field = tuple[int, int]

_GRAIN = 32


class RowCache(Cache):  # type: ignore[misc]
    """Fields of (rows, slots, ...), grown on demand."""

    def __init__(self, rows: int) -> None:
        super().__init__(layers=[])
        self.rows = rows
        self.slots = 0
        self._kept: dict[Field, Tensor] = {}
        self._aimed: tuple[Sequence[int], int] = ((), 0)
        self._rows: Tensor | slice = slice(0)
        self._first = torch.zeros(0, 1, dtype=torch.long)
        self._places: Tensor | slice = slice(0)
        self._seen = 0
        self._flat = torch.zeros(0, dtype=torch.long)

    def aim(self, rows: Sequence[int], positions: Tensor | slice, seen: int) -> None:
        """Says where what follows is written and read.

        Args:
            rows: B row numbers; where they lie side by side, nothing is copied.
            positions: (B, n) slots of the new tokens, or one slice that is the same for every row.
            seen: how many slots, from the first, are read.
        """
        if seen > self.slots:
            self._resize(-(-max(seen, self.slots * 5 // 4) // _GRAIN) * _GRAIN)
        if self._aimed != (rows, self.slots):
            self._aimed = rows, self.slots
            self._rows = slice(rows[0], rows[0] + len(rows)) if side_by_side(rows) else torch.tensor(rows)
            self._first = torch.tensor([[row * self.slots] for row in rows])
        self._places, self._seen = positions, seen
        if isinstance(positions, Tensor):
            self._flat = (self._first.to(positions.device) + positions).flatten()

    def write(self, field: Field, new: Tensor) -> None:
        """Puts (B, n, ...) at the aim."""
        kept = self._kept.get(field)
        if kept is None:
            kept = self._kept[field] = new.new_zeros(self.rows, self.slots, *new.shape[2:])
        if isinstance(self._places, slice):
            kept[self._rows, self._places] = new
        else:
            kept.flatten(0, 1).index_copy_(0, self._flat, new.flatten(0, 1))

    def read(self, field: Field) -> Tensor:
        """Returns (B, seen, ...): what the aimed rows may look at."""
        return self._kept[field][self._rows, : self._seen]

    def take(self, field: Field) -> Tensor:
        """Returns (B, n, ...) from the slots at the aim, which must be given as a tensor."""
        assert isinstance(self._places, Tensor)
        kept = self._kept[field]
        return kept.flatten(0, 1)[self._flat].view(*self._places.shape, *kept.shape[2:])

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Writes (B, heads, n, width) of one layer and returns its keys and values, as transformers asks for them."""
        found = []
        for side, new in enumerate((key_states, value_states)):
            self.write((layer_idx, side), new.transpose(1, 2))
            found.append(self.read((layer_idx, side)).transpose(1, 2))
        return found[0], found[1]

    def copy(self, source: int, targets: Tensor, length: int) -> None:
        """Gives the (T,) target rows the first ``length`` slots of one row: a common prefix is computed once."""
        for kept in self._kept.values():
            kept[targets, :length] = kept[source, :length].clone()

    def swap(self, pairs: Sequence[tuple[int, int]], length: int) -> None:
        """Lets the rows of each pair change places, as far as the first ``length`` slots go; no row is in two pairs."""
        here = torch.tensor([*pairs, *((b, a) for a, b in pairs)])
        for kept in self._kept.values():
            kept[here[:, 0], :length] = kept[here[:, 1], :length]

    def grow(self, rows: int) -> None:
        """Makes room for ``rows`` rows."""
        for field, kept in self._kept.items():
            self._kept[field] = torch.cat([kept, kept.new_zeros(rows - self.rows, *kept.shape[1:])])
        self.rows = rows

    def _resize(self, slots: int) -> None:
        for field, kept in self._kept.items():
            self._kept[field] = torch.cat([kept, kept.new_zeros(self.rows, slots - self.slots, *kept.shape[2:])], 1)
        self.slots = slots

    def get_seq_length(self, layer_idx: int = 0, *_: Any) -> int:
        """Part of transformers' interface; positions are always given, so nothing may depend on it."""
        return 0


def side_by_side(rows: Sequence[int]) -> bool:
    """Says whether row numbers follow each other without a gap."""
    return all(b - a == 1 for a, b in pairwise(rows))


def closing(rows: Sequence[int], total: int) -> list[tuple[int, int]]:
    """Returns the fewest swaps after which some of ``total`` rows lie side by side: pairs of one of them and another.

    >>> closing([0, 1, 3], 6), closing([4, 3], 6)
    ([(0, 2)], [])
    """
    taken = np.isin(np.arange(total), rows)
    held = np.convolve(taken, np.ones(len(rows), dtype=int), "valid")
    room = np.arange(total) - held.argmax()
    inside = (room >= 0) & (room < len(rows))
    return [*zip(np.flatnonzero(taken & ~inside).tolist(), np.flatnonzero(inside & ~taken).tolist())]


def causal(positions: Tensor, seen: int, dtype: torch.dtype) -> Tensor:
    """Returns the (B, 1, n, seen) mask to be added to attention scores: 0 where slot <= position, else -inf."""
    hidden = torch.arange(seen, device=positions.device) > positions[:, None, :, None]
    return torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(hidden, -torch.inf)
