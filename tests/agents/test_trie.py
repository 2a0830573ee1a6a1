"""The trie of legal actions and the rules that walk it."""

from __future__ import annotations

import pytest

from decentral.agents import trie
from decentral.agents.rules import FreeRule, LegalRule
from decentral.errors import EnvError

END = 9


def test_a_prefix_is_no_trouble_because_the_end_token_closes_each_action() -> None:
    root = trie.build(("go", "go on"), [(1, END), (1, 2, END)])
    rule = LegalRule(root)
    assert rule.allowed == (1,)
    rule.push(1)
    assert rule.allowed == (END, 2)
    rule.push(END)
    assert rule.allowed == ()
    assert rule.action == 0


def test_two_actions_with_one_encoding_are_named() -> None:
    with pytest.raises(EnvError, match="'Go' and 'go' have one encoding"):
        trie.build(("Go", "go"), [(1, END), (1, END)])


def test_a_free_segment_ends_by_its_token_or_is_ended() -> None:
    rule = FreeRule(END, 2)
    assert rule.allowed is None
    rule.push(END)
    assert rule.allowed == ()
    rule = FreeRule(END, 2)
    rule.push(1)
    rule.push(2)
    assert rule.allowed == (END,)
