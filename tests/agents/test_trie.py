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
    assert rule.allowed == (2, END)
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


def test_a_full_length_text_goes_on_past_the_end_token() -> None:
    rule = FreeRule(END, 2, early=False)
    rule.push(END)
    assert rule.allowed is None
    rule.push(1)
    assert rule.allowed == (END,)
    rule.push(END)
    assert rule.allowed == ()


def test_how_many_choices_may_still_come() -> None:
    rule = LegalRule(trie.build(("a", "b", "c"), [(1, 2, 3, END), (1, 2, 4, END), (5, 6, END)]))
    assert rule.ahead == 2
    rule.push(1)
    assert rule.ahead == 1
    rule.push(2)
    assert rule.ahead == 1
    rule.push(3)
    assert rule.ahead == 0
    free = FreeRule(END, 2)
    assert free.ahead == 2
    free.push(1)
    assert free.ahead == 1
    free.push(END)
    assert free.ahead == 0
