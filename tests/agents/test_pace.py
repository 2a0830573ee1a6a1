"""How many tokens are drafted: costs, acceptance, and what is kept of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from decentral.agents.pace import MOST, UNKNOWN, Costs, Counts, Measured, Pace
from decentral.errors import ModelError

CHEAP = Costs([1, 8], [[1.0 + 0.01 * k for k in range(6)], [2.0 + 0.02 * k for k in range(6)]])
DEAR = Costs([1, 8], [[1.0 + 1.0 * k for k in range(6)], [2.0 + 2.0 * k for k in range(6)]])


def test_costs_are_linear_between_the_sizes_measured_and_proportional_beyond() -> None:
    costs = Costs([2, 4, 8], [[1.0, 2.0], [3.0, 4.0], [4.0, 8.0]])
    assert [costs.cycle(batch, 0) for batch in (1, 2, 3, 4, 5, 8, 16)] == [1.0, 1.0, 2.0, 3.0, 3.25, 4.0, 8.0]
    assert costs.cycle(6, 1) == 6.0


def test_cheap_drafts_that_are_accepted_are_as_long_as_can_be_and_dear_ones_are_not_made() -> None:
    assert Pace(known=Measured([0.95] * 5, CHEAP)).length(4) == 5
    assert Pace(known=Measured([0.95] * 5, DEAR)).length(4) == 0
    assert Pace(known=Measured([0.001] * 5, CHEAP)).length(4) == 0


def test_the_length_is_the_one_with_most_tokens_a_second() -> None:
    seconds = [1.0, 1.2, 1.35, 1.9, 2.6]
    expected = [1.0, 1.8, 2.28, 2.472, 2.4912]  # acceptance 0.8, 0.6, 0.4, 0.1
    rates = [tokens / cost for tokens, cost in zip(expected, seconds)]
    pace = Pace(known=Measured([0.8, 0.6, 0.4, 0.1], Costs([1], [seconds])))
    assert pace.length(1) == rates.index(max(rates)) == 2


def test_the_length_follows_the_batch() -> None:
    costs = Costs([1, 64], [[1.0, 1.05, 1.1], [10.0, 30.0, 50.0]])
    pace = Pace(known=Measured([0.8, 0.8], costs))
    assert pace.length(1) == 2
    assert pace.length(64) == 0


def test_a_gain_too_small_to_be_real_is_not_taken() -> None:
    assert Pace(known=Measured([0.5], Costs([1], [[1.0, 1.4]]))).length(1) == 0
    assert Pace(known=Measured([0.5], Costs([1], [[1.0, 1.3]]))).length(1) == 1


def test_a_fixed_length_is_always_taken_and_without_costs_a_usual_one() -> None:
    assert Pace(2, Measured([0.9], DEAR)).length(8) == 2
    assert Pace(7).most == Pace(7).length(8) == 7
    assert Pace().length(8) == UNKNOWN


def test_acceptance_moves_from_what_was_known_to_what_is_counted() -> None:
    pace = Pace(known=Measured([0.9, 0.5], CHEAP))
    assert pace.acceptance()[:3] == pytest.approx([0.9, 0.5, 0.5])
    assert len(pace.acceptance()) == MOST
    for _ in range(10_000):
        pace.counts.add(2, 0)
    assert pace.acceptance()[0] < 0.01
    assert pace.acceptance()[1] == pytest.approx(0.5)
    assert pace.length(4) == 0


def test_counts_by_position() -> None:
    counts = Counts()
    counts.add(3, 1)
    counts.add(2, 2)
    counts.add(0, 0)
    assert counts.proposed[:4] == [2, 2, 1, 0]
    assert counts.reached[:4] == [2, 2, 0, 0]
    assert counts.accepted[:4] == [2, 1, 0, 0]
    counts.fade()
    assert counts.reached[:4] == [1, 1, 0, 0]
    assert counts.accepted[:4] == [1, 0.5, 0, 0]


def test_what_was_measured_is_kept_beside_the_head(tmp_path: Path) -> None:
    assert Measured.load(tmp_path) == Measured()
    measured = Measured([0.75, 0.5], CHEAP)
    measured.save(tmp_path)
    assert Measured.load(tmp_path) == measured


@pytest.mark.parametrize("text", ["", "{", '{"acceptance": "high"}', '{"speed": 1}', '{"costs": {"batches": []}}'])
def test_a_broken_file_is_named_with_a_way_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "measured.json").write_text(text)
    with pytest.raises(ModelError, match=r"measured\.json.*decentral mtp measure"):
        Measured.load(tmp_path)


@pytest.mark.parametrize("costs", [([1, 2], [[1.0, 2.0]]), ([1], [[1.0]]), ([2, 1], [[1.0, 2.0]] * 2), ([1], [[1, 0]])])
def test_a_table_of_costs_that_cannot_be_is_refused(costs: tuple[list[int], list[list[float]]], tmp_path: Path) -> None:
    (tmp_path / "measured.json").write_text(json.dumps({"costs": {"batches": costs[0], "seconds": costs[1]}}))
    with pytest.raises(ModelError, match=r"measured\.json"):
        Measured.load(tmp_path)
