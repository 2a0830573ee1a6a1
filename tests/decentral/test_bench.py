"""The benchmark's arithmetic, and a smoke run of the whole of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from decentral.bench.core import measure


def rates(values: list[float]) -> Iterator[float]:
    return iter(values)


def test_ratios_are_paired_whichever_went_first() -> None:
    ours, peer = rates([1, 2, 4, 8]), rates([1, 1, 2, 4])
    found = measure(lambda: next(ours), lambda: next(peer), 3)
    assert found["ratio"] == 2.0
    assert (found["ours"], found["peer"]) == (4, 2)


def test_the_range_of_the_median_grows_narrower_than_all_pairs() -> None:
    ours, peer = rates([1, *range(1, 16)]), rates([1] * 16)
    found = measure(lambda: next(ours), lambda: next(peer), 15)
    assert found["ratio"] == 8
    assert (found["low"], found["high"]) == (4, 12)  # 15 pairs: the 4th and the 12th hold the median with 96.5 %


def test_quick_ends_with_one_json_object() -> None:
    pytest.importorskip("pygame")
    command = [sys.executable, "-m", "decentral", "bench", "core", "--quick", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert found["aec_ratio"] > 0
    assert [row["batch"] for row in found["decode"]] == [1, 8, 32]
    assert set(found["updates"]) == {"ours", "peer", "ratio"}
    assert found["versions"]["models"]["pocket"]
