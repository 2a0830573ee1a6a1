from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decentral.intervals import mean_interval, paired_difference, paired_mean_difference, wilson

outcomes = st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=60)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_wilson_holds_the_mean_and_stays_in_range(values: list[float]) -> None:
    found = wilson(values)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high


def test_wilson_agrees_with_published_figures() -> None:
    """Newcombe, Statistics in Medicine 17 (1998) 857, table I: 81/263, 0/20, 1/29."""
    for hits, count, low, high in ((81, 263, 0.2553, 0.3662), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)):
        found = wilson([1.0] * hits + [0.0] * (count - hits))
        assert found.low == pytest.approx(low, abs=5e-5)
        assert found.high == pytest.approx(high, abs=5e-5)


def test_no_values_say_that_nothing_is_known() -> None:
    assert wilson([])[1:] == (0.0, 1.0)
    assert mean_interval([1.0])[1:] == (-math.inf, math.inf)


@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0])), min_size=1, max_size=60))
def test_a_paired_difference_turns_round_with_its_sides(pairs: list[tuple[float, float]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    there, back = paired_difference(first, second), paired_difference(second, first)
    assert there.low <= there.value <= there.high
    assert there.value == pytest.approx(-back.value)
    assert there.low == pytest.approx(-back.high)


def test_pairs_that_agree_make_the_difference_surer() -> None:
    agreeing = paired_difference([1.0, 0.0] * 20, [1.0, 0.0] * 20)
    opposed = paired_difference([1.0, 0.0] * 20, [0.0, 1.0] * 20)
    assert agreeing.high - agreeing.low < 0.3 * (opposed.high - opposed.low)


def test_all_against_none_is_not_certain() -> None:
    found = paired_difference([1.0] * 20, [0.0] * 20)
    assert found.value == 1.0
    assert 0.7 < found.low < 0.8


def test_mean_differences_use_the_pairs() -> None:
    found = paired_mean_difference([1.0, 2.0, 3.0], [0.0, 1.0, 2.0])
    assert found == (1.0, 1.0, 1.0)
