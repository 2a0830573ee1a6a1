"""The legal actions of a turn as a trie of token ids.

Each action is its text's tokens and then the end-of-action token, so no encoding is a prefix of another. The policy's
distribution over actions is the product, along the path, of its softmax restricted to the children of each node; a
distribution over actions is such a product too.
"""

from __future__ import annotations

__all__ = ["Node", "build", "conditionals", "forks", "likelihoods"]

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from decentral.errors import EnvError

Ids = tuple[int, ...]
Floats = NDArray[np.float64]


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


def forks(root: Node) -> dict[Ids, Node]:
    """Returns the nodes at which several tokens may come next, by the tokens that lead there."""
    found: dict[Ids, Node] = {}
    open_: list[tuple[Ids, Node]] = [((), root)]
    while open_:
        way, node = open_.pop()
        if len(node.tokens) > 1:
            found[way] = node
        open_ += [((*way, token), child) for token, child in node.nodes.items()]
    return found


def likelihoods(root: Node, tokens: Mapping[Ids, Floats]) -> Floats:
    """Returns the (A,) probabilities of the actions from those of the next tokens, (K,) at every fork."""
    found: dict[int, float] = {}
    open_: list[tuple[Ids, Node, float]] = [((), root, 1.0)]
    while open_:
        way, node, p = open_.pop()
        if not node.tokens:
            found[node.action] = p
        shares = tokens[way] if len(node.tokens) > 1 else np.ones(1)
        open_ += [((*way, t), node.nodes[t], p * share) for t, share in zip(node.tokens, shares.tolist())]
    return np.array([found[action] for action in range(len(found))])


def conditionals(root: Node, actions: Floats) -> dict[Ids, Floats]:
    """Returns the (K,) probabilities of the next tokens at every fork, from the (A,) of the actions.

    Behind a token of probability 0 nothing is known, and all tokens are equally likely.
    """
    below: dict[Ids, float] = {}

    def mass(way: Ids, node: Node) -> float:
        inner = [mass((*way, token), child) for token, child in node.nodes.items()]
        below[way] = sum(inner) if inner else float(actions[node.action])
        return below[way]

    mass((), root)
    found = {}
    for way, node in forks(root).items():
        shares = np.array([below[(*way, token)] for token in node.tokens])
        total = shares.sum()
        found[way] = shares / total if total > 0 else np.full(len(shares), 1 / len(shares))
    return found


def _freeze(node: Node) -> None:
    node.tokens = tuple(sorted(node.nodes))
    for child in node.nodes.values():
        _freeze(child)
        node.choices = max(node.choices, child.choices)
    node.choices += len(node.tokens) > 1
