"""A grid of measurements: what its figures depend on."""

from __future__ import annotations

from pathlib import Path

from decentral.bench.grid import code_hash


def test_the_hash_of_code_is_that_of_all_python_below(tmp_path: Path) -> None:
    inner = tmp_path / "room" / "inner"
    inner.mkdir(parents=True)
    one, two = inner / "one.py", tmp_path / "two.py"
    one.write_text("1")
    two.write_text("2")
    first = code_hash(two, tmp_path / "room")
    assert len(first) == 12
    assert int(first, 16) >= 0
    (inner / "notes.txt").write_text("no code")
    assert code_hash(two, tmp_path / "room") == first
    one.write_text("3")
    assert code_hash(two, tmp_path / "room") != first
