"""Dividing a ragged batch, against every way of doing it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from decentral.agents.bands import bands


def cost(lengths: list[int], parts: list[list[int]]) -> int:
    return sum(len(part) * max(lengths[i] for i in part) + 128 for part in parts)


def partitions(items: list[int]) -> list[list[list[int]]]:
    if not items:
        return [[]]
    head, found = items[0], []
    for rest in partitions(items[1:]):
        found.append([[head], *rest])
        found += [[*rest[:i], [head, *rest[i]], *rest[i + 1 :]] for i in range(len(rest))]
    return found


@given(st.lists(st.sampled_from([1, 3, 60, 200, 500]), min_size=1, max_size=6))
def test_no_other_division_costs_less(lengths: list[int]) -> None:
    found = bands(lengths)
    assert sorted(i for part in found for i in part) == list(range(len(lengths)))
    assert cost(lengths, found) == min(cost(lengths, parts) for parts in partitions(list(range(len(lengths)))))


@given(st.lists(st.integers(1, 600), min_size=1, max_size=96))
def test_rows_keep_their_order_within_a_band_and_many_rows_are_divided(lengths: list[int]) -> None:
    found = bands(lengths)
    assert all(part == sorted(part) for part in found)
    assert cost(lengths, found) <= cost(lengths, [list(range(len(lengths)))])
