"""Actions as texts: which there are in a Gymnasium space, and which raw action each text stands for.

An action of several parts is listed whole where that leaves few enough, and else chosen part by part. Knows nothing
about environments, agents or turns.
"""

from __future__ import annotations

__all__ = ["MOST_ACTIONS", "Factors", "Free", "list_actions"]

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from math import prod
from typing import Any

import msgspec
import numpy as np
from gymnasium import spaces

from decentral.errors import EnvError

MOST_ACTIONS = 1024
"""More legal actions than this at once are not offered as a list."""
_LONGEST = 256
"""Tokens of a free answer, at most."""

Choice = tuple[str, Any]
"""The text of an action, and the action as the environment takes it."""


class Free(msgspec.Struct, frozen=True):
    """The answer is any text; the environment gets the text itself."""

    max_tokens: int


class Factors(msgspec.Struct, frozen=True):
    """The action is chosen part by part, each in a turn of its own, before the environment is stepped.

    Only the first of these turns tells the observation.
    """

    parts: tuple[tuple[str, Mapping[str, Any]], ...]
    """What each part is called, and its choices: text -> raw part."""
    join: Callable[[list[Any]], Any]
    """Makes the action of the raw parts."""


def list_actions(
    space: spaces.Space[Any], mask: Any | None = None, bins: int | None = None
) -> Mapping[str, Any] | Free | Factors:
    """Returns the allowed actions of a space, in the space's order: text -> action.

    Args:
        space: of the actions.
        mask: what Gymnasium's ``space.sample(mask)`` takes; for MultiDiscrete it may also be flat (the masks of the
            components one after another).
        bins: values, evenly spaced from the lowest to the highest, that stand for the numbers of a Box.

    Raises:
        EnvError: the space cannot be listed, or the mask does not fit it.
    """
    if isinstance(space, spaces.Text):
        return Free(min(space.max_length, _LONGEST))
    found = _parts(space, mask, bins)
    if prod(len(part) for _, part in found.parts) <= MOST_ACTIONS:
        return dict(found.product())
    for name, part in found.parts:
        if len(part) > MOST_ACTIONS:
            raise _too_many(len(part), f" for part {name}" if name else "")
    return Factors(tuple((name, dict(part)) for name, part in found.parts), found.join)


class _Parts(msgspec.Struct, frozen=True):
    """The parts of an action, each with a name and its choices, and what makes a text and an action of them."""

    parts: list[tuple[str, list[Choice]]]
    text: Callable[[list[str]], str]
    join: Callable[[list[Any]], Any]

    def product(self) -> Iterable[Choice]:
        """Yields every combination."""
        for combo in product(*(part for _, part in self.parts)):
            yield self.text([text for text, _ in combo]), self.join([raw for _, raw in combo])


def _parts(space: spaces.Space[Any], mask: Any | None, bins: int | None) -> _Parts:
    if isinstance(space, spaces.Discrete):
        start, kind = int(space.start), space.dtype.type
        listed = [(str(start + i), kind(start + i)) for i in _allowed(mask, int(space.n))]
        return _Parts([("", listed)], _only, _only)
    if isinstance(space, spaces.MultiDiscrete):
        return _vector(space, _multi_discrete(space, mask))
    if isinstance(space, spaces.MultiBinary):
        size = prod(space.shape)
        bits = [2] * size if mask is None else np.asarray(mask).ravel().tolist()
        if len(bits) != size:
            raise _misfit(space, len(bits), size)
        return _vector(space, [[0, 1] if bit == 2 else [int(bit)] for bit in bits])
    if isinstance(space, spaces.Box) and bins:
        return _vector(space, _levels(space, bins))
    if isinstance(space, spaces.Tuple):
        masks = (None,) * len(space.spaces) if mask is None else mask
        parts = [_parts(part, one, bins) for part, one in zip(space.spaces, masks, strict=True)]
        return _nest([str(i) for i in range(1, len(parts) + 1)], parts, "; ".join, tuple)
    if isinstance(space, spaces.Dict):
        keys = list(space.spaces)
        parts = [_parts(space.spaces[key], None if mask is None else mask[key], bins) for key in keys]
        return _nest(
            keys,
            parts,
            lambda texts: "; ".join(f"{key} {text}" for key, text in zip(keys, texts)),
            lambda raws: dict(zip(keys, raws)),
        )
    if isinstance(space, spaces.Box):
        raise EnvError(
            f"the actions of {space} are continuous: set env.bins (5 offers five values of every number), or give a "
            "text view whose actions() names those worth choosing"
        )
    raise EnvError(
        f"the actions of {space} cannot be listed; take discrete actions, or give a text view whose actions() names "
        "those worth choosing"
    )


def _nest(
    names: list[str], parts: list[_Parts], text: Callable[[list[str]], str], join: Callable[[list[Any]], Any]
) -> _Parts:
    """Joins the parts of parts."""
    ends = np.cumsum([len(part.parts) for part in parts]).tolist()

    def split(values: list[Any]) -> list[list[Any]]:
        return [values[end - len(part.parts) : end] for part, end in zip(parts, ends)]

    return _Parts(
        [(f"{name} {inner}".strip(), listed) for name, part in zip(names, parts) for inner, listed in part.parts],
        lambda texts: text([part.text(some) for part, some in zip(parts, split(texts))]),
        lambda raws: join([part.join(some) for part, some in zip(parts, split(raws))]),
    )


def _vector(space: spaces.MultiDiscrete | spaces.MultiBinary | spaces.Box, values: list[list[Any]]) -> _Parts:
    shape, dtype = space.shape, space.dtype
    names = [str(i) if len(values) > 1 else "" for i in range(1, len(values) + 1)]
    return _Parts(
        [(name, list(zip(_texts(some), some))) for name, some in zip(names, values)],
        " ".join,
        lambda raws: np.array(raws, dtype=dtype).reshape(shape),
    )


def _levels(space: spaces.Box, bins: int) -> list[list[float]]:
    """Returns for every number of a Box the values that stand for it."""
    if not space.is_bounded("both"):
        raise EnvError(
            f"the actions of {space} have no lowest and highest value, so env.bins = {bins} cannot divide them; bound "
            "the space, or give a text view whose actions() names those worth choosing"
        )
    found = np.linspace(space.low.ravel().astype(float), space.high.ravel().astype(float), bins, axis=1)
    if np.issubdtype(space.dtype, np.integer):
        found = np.rint(found)
    return [list(dict.fromkeys(row)) for row in found.tolist()]


def _texts(values: list[Any]) -> list[str]:
    """Returns numbers with as few digits as tell them apart."""
    if not any(isinstance(value, float) for value in values):
        return [str(value) for value in values]
    for digits in range(2, 18):
        texts = [f"{value:.{digits}g}" for value in values]
        if len({*texts}) == len(values):
            break
    return texts


def _only(values: list[Any]) -> Any:
    (value,) = values
    return value


def _allowed(mask: Any | None, size: int) -> list[int]:
    if mask is None:
        if size > MOST_ACTIONS:
            raise _too_many(size)
        return list(range(size))
    flags = np.asarray(mask).ravel()
    if flags.size != size:
        raise _misfit(f"{size} actions", flags.size, size)
    return np.flatnonzero(flags).tolist()


def _multi_discrete(space: spaces.MultiDiscrete, mask: Any | None) -> list[list[int]]:
    """Returns the allowed values of each component."""
    sizes = space.nvec.ravel().tolist()
    starts = space.start.ravel().tolist()
    masks: list[Any]
    if mask is None:
        masks = [None] * len(sizes)
    elif isinstance(mask, np.ndarray) and mask.ndim == 1 and mask.dtype != object:
        if mask.size != sum(sizes):
            raise _misfit(space, mask.size, sum(sizes))
        masks = list(np.split(mask, np.cumsum(sizes)[:-1]))
    else:
        masks = list(_flat(mask)) if space.nvec.ndim > 1 else list(mask)
        if len(masks) != len(sizes):
            raise _misfit(space, len(masks), len(sizes))
    return [[start + i for i in _allowed(one, size)] for start, one, size in zip(starts, masks, sizes)]


def _flat(masks: Iterable[Any]) -> Iterable[Any]:
    """Yields the arrays of nested tuples, which Gymnasium takes for MultiDiscrete of rank 2 and more."""
    for mask in masks:
        if isinstance(mask, tuple):
            yield from _flat(mask)
        else:
            yield mask


def _too_many(count: int, where: str = "") -> EnvError:
    return EnvError(
        f"{count} legal actions at once{where} are more than {MOST_ACTIONS}; mask most of them, or give a text view "
        "whose actions() names those worth choosing"
    )


def _misfit(space: Any, got: int, want: int) -> EnvError:
    return EnvError(f"an action mask of {got} entries does not fit {space}, which needs {want}; correct the mask")
