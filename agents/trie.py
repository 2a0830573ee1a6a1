"""The legal actions of a turn as a trie of token ids.

Each action is its text's tokens and then the end-of-action token, so no encoding is a prefix of another. The policy's
distribution over actions is the product, along the path, of its softmax restricted to the children of each node.
"""

from __future__ import annotations

__all__ = ["Node", "build"]

from collections.abc import Sequence

from decentral.errors import EnvError

Ids = tuple[int, ...]


class Node:
    """Actions that agree so far. ``tokens``, ascending, may come next; a leaf has none and names its ``action``."""

    __slots__ = ("action", "choices", "nodes", "tokens")

    def __init__(self) -> None:
        self.tokens: Ids = ()
        self.nodes: dict[int, Node] = {}
        self.action: int = -1
        self.choices: int = 0
        """The most tokens with an alternative on any way down from here."""


def build(legal: Sequence[str], encodings: Sequence[Ids]) -> Node:
    """Builds the trie of ``encodings``, each ended by the same token; leaf ``action`` is the index into ``legal``.

    Raises:
        EnvError: two actions have one encoding.
    """
    root = Node()
    for action, ids in enumerate(encodings):
        node = root
        for token in ids:
            node = node.nodes.setdefault(token, Node())
        if node.action >= 0:
            raise EnvError(
                f"actions {legal[node.action]!r} and {legal[action]!r} have one encoding for this model's tokenizer; "
                "give them texts that differ in its vocabulary"
            )
        node.action = action
    _freeze(root)
    return root


def _freeze(node: Node) -> None:
    node.tokens = tuple(sorted(node.nodes))
    for child in node.nodes.values():
        _freeze(child)
        node.choices = max(node.choices, child.choices)
    node.choices += len(node.tokens) > 1
