"""What an agent might say on a free turn, as actions among which it chooses once its peers were asked about them.

Owns which of its own draws can be offered, and how a peer reads them. Knows nothing about models or links.
"""

from __future__ import annotations

__all__ = ["DRAWS", "candidates", "offer"]

from collections.abc import Callable, Iterable

from decentral.agents.advice import clean

DRAWS = 8
"""Texts that are drawn for a turn."""
_MOST = 60
"""Characters of a candidate that a peer reads; eight of them leave room for a context."""


def offer(text: str) -> str:
    """Returns how a peer reads a candidate: the beginning of it, as one clean line."""
    return clean(text, _MOST)


def candidates(draws: Iterable[str], encode: Callable[[str], tuple[int, ...]], most: int) -> tuple[str, ...]:
    """Returns the draws among which one can choose, in order.

    Any two differ as a peer reads them and as ``encode`` gives them, each of at most ``most`` tokens; ended by the same
    token, no encoding is then a prefix of another.

    >>> candidates(["go", "go\\n", "", "stay"], lambda text: (*text.encode(), 0), 9)
    ('go', 'stay')
    """
    found: dict[tuple[int, ...], str] = {}
    offered = {""}
    for text in draws:
        ids = encode(text)
        if offer(text) not in offered and ids not in found and len(ids) <= most:
            offered.add(offer(text))
            found[ids] = text
    return tuple(found.values())
