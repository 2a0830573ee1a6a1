"""Which tokens may come next in a sampled segment, and when it is over.

A rule is asked for the allowed tokens, told the token that was taken, and asked again. One allowed token is forced:
it costs no forward pass and no draw.
"""

from __future__ import annotations

__all__ = ["FreeRule", "LegalRule", "Rule"]

from typing import Protocol

from decentral.agents.trie import Node

Ids = tuple[int, ...]


class Rule(Protocol):
    """One segment in the making."""

    @property
    def allowed(self) -> Ids | None:
        """The tokens that may come next: none for the whole vocabulary, empty when the segment is over."""
        ...

    @property
    def ahead(self) -> int:
        """The most tokens with an alternative that may still come."""
        ...

    def push(self, token: int) -> None:
        """Takes the next token."""
        ...


class LegalRule:
    """Walks the trie of the legal actions."""

    def __init__(self, root: Node) -> None:
        self._node = root

    @property
    def allowed(self) -> Ids:
        return self._node.tokens

    @property
    def ahead(self) -> int:
        return self._node.choices

    @property
    def action(self) -> int:
        """The index of the action that was chosen."""
        return self._node.action

    def push(self, token: int) -> None:
        self._node = self._node.nodes[token]


class FreeRule:
    """Lets anything come until the end token, which is forced after ``most`` tokens."""

    def __init__(self, end: int, most: int, early: bool = True) -> None:
        """``early``: whether the end token ends the text before; else it has its full length, for measurements."""
        self._end = end
        self._left = most
        self._early = early
        self._over = False

    @property
    def allowed(self) -> Ids | None:
        if self._over:
            return ()
        return None if self._left > 0 else (self._end,)

    @property
    def ahead(self) -> int:
        return 0 if self._over else max(0, self._left)

    def push(self, token: int) -> None:
        self._over = token == self._end and (self._early or self._left <= 0)
        self._left -= 1
