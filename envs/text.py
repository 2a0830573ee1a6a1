"""Text views: how observations are read and actions are named.

Owns the default text of Gymnasium's spaces. Knows nothing about environments, turns or tokens.
"""

from __future__ import annotations

__all__ = ["Free", "SpaceView", "TextView", "choices", "describe", "has_nan"]

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from math import isfinite, prod
from typing import Any, Protocol, cast, runtime_checkable

import msgspec
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from decentral.errors import EnvError

MOST_ACTIONS = 1024
"""More legal actions than this at once are not offered as a list."""
MOST_NUMBERS = 64
"""Arrays of more numbers than this are written as runs."""
MOST_RUNS = 48
PLANES = "xoabcdefg"
"""Marks of a board whose cells are coded one-hot in the last axis; an empty cell is a dot."""
CACHED = 4096
CACHED_BYTES = 512

Choice = tuple[str, Any]
"""The text of an action, and the action as the environment takes it."""


class Free(msgspec.Struct, frozen=True):
    """The answer is any text; the environment gets the text itself."""

    max_tokens: int


@runtime_checkable
class TextView(Protocol):
    """How an environment reads as text. It gives its own as ``text_view``, a user theirs through ``EnvConfig.view``."""

    def observe(self, agent: str, observation: Any) -> str:
        """Returns what the agent reads. A mask beside the observation has been taken off."""
        ...

    def actions(self, agent: str, mask: Any | None) -> Mapping[str, Any] | Free:
        """Returns the legal actions only, text -> action, all texts different, in an order that does not change."""
        ...


class SpaceView:
    """The default view: numbers as short as they stay readable, actions by their numbers."""

    def __init__(
        self, observation_space: Callable[[str], spaces.Space[Any]], action_space: Callable[[str], spaces.Space[Any]]
    ) -> None:
        self._observation_space = observation_space
        self._action_space = action_space
        self._observed: dict[str, spaces.Space[Any]] = {}
        self._texts: dict[tuple[Any, ...], str] = {}
        self._actions: dict[tuple[Any, ...], dict[str, Any] | Free] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> SpaceView:
        """Returns the view itself: it only caches, so copies of an environment share it."""
        return self

    def observe(self, agent: str, observation: Any) -> str:
        """Returns the text of ``observation``. Raises EnvError for a type that has none."""
        space = self._observed.get(agent)
        if space is None:
            space = self._observed[agent] = _observed_space(self._observation_space(agent))
        small = (
            type(observation) is np.ndarray and observation.dtype.kind in "iub" and observation.nbytes <= CACHED_BYTES
        )
        if not small:
            return describe(observation, space)
        key = (observation.dtype.char, observation.shape, observation.tobytes())
        text = self._texts.get(key)
        if text is None:
            if len(self._texts) >= CACHED:
                self._texts.clear()
            text = self._texts[key] = describe(observation, space)
        return text

    def actions(self, agent: str, mask: Any | None) -> dict[str, Any] | Free:
        """Returns the legal actions. Raises EnvError if they cannot be listed or the mask does not fit the space."""
        key = (agent, None) if mask is None else (agent, mask.tobytes()) if type(mask) is np.ndarray else None
        known = None if key is None else self._actions.get(key)
        if known is not None:
            return known
        space = self._action_space(agent)
        found = Free(min(space.max_length, 256)) if isinstance(space, spaces.Text) else dict(choices(space, mask))
        if key is not None:
            if len(self._actions) >= CACHED:
                self._actions.clear()
            self._actions[key] = found
        return found


def describe(value: Any, space: spaces.Space[Any] | None = None) -> str:
    """Returns a short text of a value; ``space`` orders keys and says how fine its numbers are.

    >>> describe({"at": np.array([0.25, 3.0]), "door": 1})
    'at 0.2 3; door 1'
    """
    if isinstance(value, str):
        return value
    if isinstance(value, np.ndarray):
        return _array(value, space)
    if isinstance(value, bool | int | np.integer | np.bool_):
        return str(int(value))
    if isinstance(value, float | np.floating):
        return _array(np.asarray(value), space)
    if isinstance(value, Mapping):
        parts = space.spaces if isinstance(space, spaces.Dict) else {}
        keys = [*(key for key in parts if key in value), *(key for key in value if key not in parts)]
        return "; ".join(f"{key} {_nested(value[key], parts.get(key))}" for key in keys)
    if isinstance(value, tuple | list):
        inner = space.spaces if isinstance(space, spaces.Tuple) else ()
        return "; ".join(_nested(item, inner[i] if i < len(inner) else None) for i, item in enumerate(value))
    if value is None:
        return "nothing"
    raise EnvError(
        f"an observation of type {type(value).__name__} has no default text; give the environment a text_view"
    )


def choices(space: spaces.Space[Any], mask: Any | None = None) -> list[Choice]:
    """Returns the allowed actions of an enumerable space, in the space's order.

    The mask is what Gymnasium's ``space.sample(mask)`` takes; for MultiDiscrete it may also be flat (the masks of the
    components one after another). Raises EnvError if the space cannot be enumerated, or the mask does not fit it.
    """
    if isinstance(space, spaces.Discrete):
        start, kind = int(space.start), space.dtype.type
        return [(str(start + i), kind(start + i)) for i in _allowed(mask, int(space.n))]
    if isinstance(space, spaces.MultiDiscrete):
        return _vectors(space, _multi_discrete(space, mask))
    if isinstance(space, spaces.MultiBinary):
        size = prod(space.shape)
        bits = [2] * size if mask is None else np.asarray(mask).ravel().tolist()
        if len(bits) != size:
            raise _misfit(space, len(bits), size)
        return _vectors(space, [[0, 1] if bit == 2 else [int(bit)] for bit in bits])
    if isinstance(space, spaces.Tuple):
        masks = (None,) * len(space.spaces) if mask is None else mask
        parts = [choices(part, one) for part, one in zip(space.spaces, masks, strict=True)]
        return [
            ("; ".join(text for text, _ in combo), tuple(raw for _, raw in combo)) for combo in _product(space, parts)
        ]
    if isinstance(space, spaces.Dict):
        keys = list(space.spaces)
        parts = [choices(space.spaces[key], None if mask is None else mask[key]) for key in keys]
        return [
            (
                "; ".join(f"{key} {text}" for key, (text, _) in zip(keys, combo)),
                {key: raw for key, (_, raw) in zip(keys, combo)},
            )
            for combo in _product(space, parts)
        ]
    raise EnvError(
        f"the actions of {space} cannot be listed; take discrete actions, or give a text view whose actions() names "
        "those worth choosing"
    )


def has_nan(value: Any) -> bool:
    """Says whether a number anywhere in an observation is not a number."""
    if type(value) is np.ndarray:
        return value.dtype.kind in "fc" and bool(np.isnan(value).any())
    if isinstance(value, float | np.floating):
        return bool(value != value)
    if isinstance(value, Mapping):
        return any(has_nan(item) for item in value.values())
    return isinstance(value, tuple | list) and any(has_nan(item) for item in value)


def _observed_space(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """Returns the space of what is left when the mask is taken off."""
    if not isinstance(space, spaces.Dict) or "action_mask" not in space.spaces:
        return space
    if "observation" in space.spaces:
        return cast("spaces.Space[Any]", space.spaces["observation"])
    return spaces.Dict({key: part for key, part in space.spaces.items() if key != "action_mask"})


def _nested(value: Any, space: spaces.Space[Any] | None) -> str:
    text = describe(value, space)
    return f"({text})" if isinstance(value, Mapping | tuple | list) and "; " in text else text


def _array(array: npt.NDArray[Any], space: spaces.Space[Any] | None) -> str:
    """Returns numbers of rank 1 in a line, of rank 2 as rows, a one-hot board as marks, anything bigger as runs."""
    board = _board(array)
    if board is not None:
        return board
    if array.dtype.kind == "f":
        array = np.round(array.astype(np.float64), _decimals(space)) + 0.0
    numbers = [_number(number) for number in array.ravel().tolist()]
    if len(numbers) <= MOST_NUMBERS and array.ndim <= 2:
        if array.ndim < 2:
            return " ".join(numbers)
        width = array.shape[1]
        return " / ".join(" ".join(numbers[i : i + width]) for i in range(0, len(numbers), width or 1))
    runs: list[list[Any]] = []
    for number in numbers:
        if runs and runs[-1][0] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    text = " ".join(number if count == 1 else f"{number}*{count}" for number, count in runs[:MOST_RUNS])
    return text if len(runs) <= MOST_RUNS else f"{text} ... {array.size} numbers"


def _board(array: npt.NDArray[Any]) -> str | None:
    """Returns (rows, columns, planes) of zeros and ones as marks, if no cell is set in two planes."""
    if array.ndim != 3 or array.dtype.kind not in "iub" or array.shape[2] > len(PLANES) or array.shape[2] < 2:
        return None
    planes = array.astype(np.int64)
    if planes.min(initial=0) < 0 or planes.max(initial=0) > 1 or planes.sum(axis=2).max(initial=0) > 1:
        return None
    marks = np.where(planes.any(axis=2), planes.argmax(axis=2) + 1, 0).tolist()
    return " / ".join(" ".join(("." + PLANES)[mark] for mark in row) for row in marks)


def _decimals(space: spaces.Space[Any] | None) -> int:
    """Returns 2 for spaces at most 2 wide, such as [-1, 1]; 0 for those at least 100 wide; else 1."""
    if not isinstance(space, spaces.Box):
        return 1
    width = float(space.high.max(initial=0)) - float(space.low.min(initial=0))
    return 2 if width <= 2 else 0 if isfinite(width) and width >= 100 else 1


def _number(value: Any) -> str:
    return f"{value:.8g}" if isinstance(value, float) else str(int(value)) if isinstance(value, bool) else str(value)


def _allowed(mask: Any | None, size: int) -> list[int]:
    if mask is None:
        if size > MOST_ACTIONS:
            raise _too_many(size)
        return list(range(size))
    flags = np.asarray(mask).ravel()
    if flags.size != size:
        raise _misfit(f"{size} actions", flags.size, size)
    found = np.flatnonzero(flags).tolist()
    if len(found) > MOST_ACTIONS:
        raise _too_many(len(found))
    return found


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


def _vectors(space: spaces.MultiDiscrete | spaces.MultiBinary, values: list[list[int]]) -> list[Choice]:
    return [
        (" ".join(map(str, combo)), np.array(combo, dtype=space.dtype).reshape(space.shape))
        for combo in _product(space, values)
    ]


def _product(space: spaces.Space[Any], parts: list[list[Any]]) -> Iterable[tuple[Any, ...]]:
    count = prod(len(part) for part in parts)
    if count > MOST_ACTIONS:
        raise _too_many(count)
    return product(*parts)


def _too_many(count: int) -> EnvError:
    return EnvError(
        f"{count} legal actions at once are more than {MOST_ACTIONS}; mask most of them, or give a text view whose "
        "actions() names those worth choosing"
    )


def _misfit(space: Any, got: int, want: int) -> EnvError:
    return EnvError(f"an action mask of {got} entries does not fit {space}, which needs {want}; correct the mask")
