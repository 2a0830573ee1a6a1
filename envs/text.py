"""Text views: how observations are read and actions are named.

Owns the default text of Gymnasium's spaces. Knows nothing about environments, turns or tokens.
"""

from __future__ import annotations

__all__ = ["SpaceView", "TextView", "describe", "has_nan"]

from collections.abc import Callable, Mapping
from math import isfinite, isnan
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from decentral.envs.actions import Factors, Free, list_actions
from decentral.envs.images import Picture, as_image, colour_grid
from decentral.errors import EnvError

MOST_NUMBERS = 64
"""Arrays of more numbers than this are written as runs."""
MOST_RUNS = 48
PLANES = "xoabcdefg"
"""Marks of a board whose cells are coded one-hot in the last axis; an empty cell is a dot."""
CACHED = 4096
CACHED_BYTES = 512


@runtime_checkable
class TextView(Protocol):
    """How an environment reads as text. It gives its own as ``text_view``, a user theirs through ``EnvConfig.view``."""

    def observe(self, agent: str, observation: Any) -> str:
        """Returns what the agent reads. A mask beside the observation has been taken off."""
        ...

    def actions(self, agent: str, mask: Any | None) -> Mapping[str, Any] | Free | Factors:
        """Returns the legal actions only, text -> action, all texts different, in an order that does not change."""
        ...


class SpaceView:
    """The default view: numbers as short as they stay readable, actions by their numbers."""

    def __init__(
        self,
        observation_space: Callable[[str], spaces.Space[Any]],
        action_space: Callable[[str], spaces.Space[Any]],
        bins: int | None = None,
        picture: Picture = colour_grid,
    ) -> None:
        """
        Args:
            observation_space: by agent.
            action_space: by agent.
            bins: see ``list_actions``.
            picture: reads images.
        """
        self._observation_space = observation_space
        self._action_space = action_space
        self._bins = bins
        self._picture = picture
        self._offered: dict[str, spaces.Space[Any]] = {}
        self._observed: dict[str, spaces.Space[Any]] = {}
        self._texts: dict[tuple[Any, ...], str] = {}
        self._actions: dict[tuple[Any, ...], Mapping[str, Any] | Free | Factors] = {}

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
            return describe(observation, space, self._picture)
        key = (agent, observation.dtype.char, observation.shape, observation.tobytes())
        text = self._texts.get(key)
        if text is None:
            if len(self._texts) >= CACHED:
                self._texts.clear()
            text = self._texts[key] = describe(observation, space, self._picture)
        return text

    def actions(self, agent: str, mask: Any | None) -> Mapping[str, Any] | Free | Factors:
        """Returns the legal actions. Raises EnvError if they cannot be listed or the mask does not fit the space."""
        space = self._action_space(agent)
        known_space = self._offered.get(agent)
        if space is not known_space and space != known_space:  # some change it, though PettingZoo forbids that
            self._offered[agent] = space
            self._actions.clear()
        key = (agent, None) if mask is None else (agent, mask.tobytes()) if type(mask) is np.ndarray else None
        known = None if key is None else self._actions.get(key)
        if known is not None:
            return known
        found = list_actions(space, mask, self._bins)
        if key is not None:
            if len(self._actions) >= CACHED:
                self._actions.clear()
            self._actions[key] = found
        return found


def describe(value: Any, space: spaces.Space[Any] | None = None, picture: Picture = colour_grid) -> str:
    """Returns a short text of a value.

    ``space`` orders keys and says how fine its numbers are, ``picture`` reads images.

    >>> describe({"at": np.array([0.25, 3.0]), "door": 1})
    'at 0.2 3; door 1'
    """
    if isinstance(value, str):
        return value
    if (image := as_image(value, space)) is not None:
        return picture(image)
    if isinstance(value, np.ndarray):
        return _array(value, space)
    if isinstance(value, bool | int | np.integer | np.bool_):
        return str(int(value))
    if isinstance(value, float | np.floating):
        return _array(np.asarray(value), space)
    if isinstance(value, Mapping):
        parts = space.spaces if isinstance(space, spaces.Dict) else {}
        keys = [*(key for key in parts if key in value), *(key for key in value if key not in parts)]
        return "; ".join(f"{key} {_nested(value[key], parts.get(key), picture)}" for key in keys)
    if isinstance(value, tuple | list):
        inner = space.spaces if isinstance(space, spaces.Tuple) else ()
        return "; ".join(_nested(item, inner[i] if i < len(inner) else None, picture) for i, item in enumerate(value))
    if value is None:
        return "nothing"
    raise EnvError(
        f"an observation of type {type(value).__name__} has no default text; give the environment a text_view"
    )


def has_nan(value: Any) -> bool:
    """Says whether a number anywhere in an observation is not a number."""
    if type(value) is np.ndarray:
        if value.dtype.kind == "f":  # a sum of squares is not a number only if one of them is not
            return isnan(np.vdot(value, value))
        return value.dtype.kind == "c" and bool(np.isnan(value).any())
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


def _nested(value: Any, space: spaces.Space[Any] | None, picture: Picture) -> str:
    text = describe(value, space, picture)
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
