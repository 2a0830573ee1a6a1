"""Random numbers that are looked up, not consumed.

A draw is a pure function of its key, so neither the order of rows in a batch nor an extra draw somewhere shifts
another row's draws (DESIGN.md, Determinism). The generator is SplitMix64's finaliser, folded over the key's words.
"""

from __future__ import annotations

__all__ = ["fold", "name_word", "uniform"]

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MUL1 = np.uint64(0xBF58476D1CE4E5B9)
_ALL = 0xFFFFFFFFFFFFFFFF
_MUL2 = np.uint64(0x94D049BB133111EB)


def _mix(x: Words) -> Words:
    x = (x ^ (x >> np.uint64(30))) * _MUL1
    x = (x ^ (x >> np.uint64(27))) * _MUL2
    return x ^ (x >> np.uint64(31))


def name_word(name: str) -> int:
    """Returns a stable 64-bit word for a name."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def fold(*words: int | Sequence[int] | Words) -> Words:
    """Folds key words, each an int or (N,) non-negative ints, into (N,) states; ints are broadcast.

    >>> bool(fold(1, [2, 3])[0] == fold(1, 2)[0])
    True
    """
    state = np.zeros(1, dtype=np.uint64)
    for word in words:
        bits = np.asarray([word & _ALL] if isinstance(word, int) else word, dtype=np.uint64)
        state = _mix((state ^ bits) * _MUL2 + _GAMMA)
    return state


def uniform(*words: int | Sequence[int] | Words) -> NDArray[np.float64]:
    """Returns (N,) numbers in [0, 1), one per key; see ``fold``."""
    return (fold(*words) >> np.uint64(11)).astype(np.float64) * 2.0**-53
