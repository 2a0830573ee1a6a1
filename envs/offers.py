"""Whether what a view says and offers makes a turn: well-formed actions, just the legal ones, in texts that all take.

Knows nothing about how an environment is played.
"""

from __future__ import annotations

__all__ = ["PLAIN", "Sound", "encodable", "examine"]

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from gymnasium import spaces

from decentral.envs.actions import Factors, Free
from decentral.envs.drivers import Breach
from decentral.envs.text import SpaceView, TextView

PLAIN = frozenset((np.int64, int, str))
"""Actions of these types can be handed out again and again: nobody can change them."""


def examine(
    view: TextView, table: object, agent: str, mask: Any | None, space: Callable[[], spaces.Space[Any]]
) -> None:
    """Raises Breach if a view's actions make no turn. ``space`` returns the agent's action space."""
    foreign = type(view) is not SpaceView
    if foreign:
        _well_formed(view, table)
    parts = table.parts if isinstance(table, Factors) else [("", table)] if isinstance(table, Mapping) else []
    words = (word for part in parts for word in (part[0], *part[1]))
    encodable(agent, *words, sources=["text_view.actions" if foreign else "action_space"])
    if foreign and isinstance(table, Mapping) and table:
        _distinct(agent, table, mask, space())


def _distinct(agent: str, table: Mapping[str, Any], mask: Any | None, space: spaces.Space[Any]) -> None:
    """Raises Breach if a view's actions are not just the legal ones: a mapping hides two with one text."""
    if not isinstance(space, spaces.Discrete):
        return
    count = int(space.n) if mask is None else int(np.count_nonzero(mask))
    if len(table) < count:
        raise Breach(
            f"{agent!r} has {count} legal actions but only {len(table)} texts {list(table)}, so two share one, or one "
            "is missing",
            "give each legal action a text of its own",
            method="text_view.actions",
        )
    if len(table) > count:
        raise Breach(
            f"the view offers {agent!r} {len(table)} actions and only {count} are legal",
            "leave out those that the action mask, which the view is given, forbids",
            method="text_view.actions",
        )
    start, stop = int(space.start), int(space.start) + int(space.n)
    for text, action in table.items():
        if not (type(action) is int and start <= action < stop) and not space.contains(action):
            raise Breach(
                f"the view's action {text!r} is {action!r}, which {space} does not hold",
                "return its own",
                method="text_view.actions",
            )


class Sound:
    """Tables of actions that were examined, by agent and mask. Copies of a game share them: they are true for ever."""

    MOST = 4096
    LARGEST = 512
    """Bytes of a mask."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, bytes] | None, tuple[dict[str, Any], list[type]]] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Sound:
        return self

    def has(self, name: str, table: object, mask: Any | None) -> bool:
        """Says whether the very same was added; equal actions of other types are not the same."""
        known = self._known.get(_mask_key(name, mask))
        if known is None or type(table) is not dict:
            return False
        return known[0] == table and known[1] == [*map(type, table.values())]

    def add(self, name: str, table: object, mask: Any | None) -> None:
        """Adds a table, unless its actions can be changed or its mask is large."""
        key = _mask_key(name, mask)
        if key is None or type(table) is not dict or not PLAIN.issuperset(map(type, table.values())):
            return
        if len(self._known) >= self.MOST:
            self._known.clear()
        self._known[key] = dict(table), [*map(type, table.values())]


def _mask_key(name: str, mask: Any | None) -> tuple[str, str, bytes] | None:
    """Returns an agent and all that its mask says; None for a mask that is not worth a comparison."""
    if mask is None:
        return name, "", b""
    if type(mask) is not np.ndarray or mask.nbytes > Sound.LARGEST or mask.dtype.kind not in "biu":
        return None
    return name, mask.dtype.char, mask.tobytes()


def _well_formed(view: TextView, table: object) -> None:
    """Raises Breach if a view returned what no turn can be made of."""
    what = type(view).__name__
    if isinstance(table, Free):
        return
    parts = [part for _, part in table.parts] if isinstance(table, Factors) else [table]
    wrong = fix = ""
    for part in parts:
        if not (isinstance(part, Mapping) and all(isinstance(key, str) for key in part)):
            wrong = f"a {type(part).__name__} that is no mapping of texts to actions"
            fix = "return a dict whose keys are str, a Free, or Factors of such dicts"
        elif "" in part:
            wrong, fix = "an empty text for an action", "give every action a text"
    if isinstance(table, Factors) and not (parts and all(parts)):
        wrong, fix = "Factors with no part, or with one without choices", "leave that out"
    if wrong:
        raise Breach(f"{what}.actions returned {wrong}", fix, method="text_view.actions")


def encodable(agent: str, *texts: str, sources: Sequence[str | None] = (None,)) -> None:
    """Raises Breach for a text that no link and no file takes: half of a surrogate pair, as bad decoding leaves it.

    ``sources`` are the methods from which the texts come; the last holds for all further ones.
    """
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        bad = error.object[max(0, error.start - 20) : error.end]
        first = next(i for i, end in enumerate(accumulate(map(len, texts))) if error.start < end)
        raise Breach(
            f"a text for {agent!r} holds a lone surrogate ({bad!r})",
            "decode its bytes with errors='replace'",
            method=sources[min(first, len(sources) - 1)],
        ) from error
