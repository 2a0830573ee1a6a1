from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from decentral.bench.grid import FILE, Grid, code_hash
from decentral.errors import RunError


class Counted:
    """A measurement that knows how often it was made."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Any:
        self.calls += 1
        return {"rate": self.calls, "by": [1.5, None]}


def test_a_cell_is_measured_once_whatever_the_order_of_its_settings(tmp_path: Path) -> None:
    work = Counted()
    with Grid(tmp_path) as grid:
        first = grid.cell({"model": "m", "batch": 1}, {"v": 1}, work)
        assert grid.cell({"batch": 1, "model": "m"}, {"v": 1}, work) == first
    with Grid(tmp_path) as grid:
        assert grid.has({"model": "m", "batch": 1}, {"v": 1})
        assert grid.cell({"model": "m", "batch": 1}, {"v": 1}, work) == first
    assert work.calls == 1


@pytest.mark.parametrize(("settings", "fingerprint"), [({"batch": 2}, {"v": 1}), ({"batch": 1}, {"v": 2})])
def test_other_settings_or_another_fingerprint_are_another_cell(
    tmp_path: Path, settings: dict[str, int], fingerprint: dict[str, int]
) -> None:
    work = Counted()
    with Grid(tmp_path) as grid:
        grid.cell({"batch": 1}, {"v": 1}, work)
        assert not grid.has(settings, fingerprint)
        assert grid.cell(settings, fingerprint, work)["rate"] == 2


@pytest.mark.parametrize("cut", [1, 10])
def test_a_torn_last_line_is_measured_again_and_the_others_are_kept(tmp_path: Path, cut: int) -> None:
    work = Counted()
    with Grid(tmp_path) as grid:
        kept = grid.cell({"batch": 1}, {}, work)
        grid.cell({"batch": 2}, {}, work)
    file = tmp_path / FILE
    file.write_bytes(file.read_bytes()[:-cut])
    for _ in range(2):
        with Grid(tmp_path) as grid:
            assert grid.cell({"batch": 1}, {}, work) == kept
            assert grid.cell({"batch": 2}, {}, work)["rate"] == 3
    assert len(file.read_text().splitlines()) == 2


def test_a_measurement_that_is_stopped_leaves_no_cell(tmp_path: Path) -> None:
    def stopped() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Grid(tmp_path) as grid:
        grid.cell({"batch": 1}, {}, stopped)
    with Grid(tmp_path) as grid:
        assert not grid.has({"batch": 1}, {})


def test_two_processes_cannot_fill_one_folder(tmp_path: Path) -> None:
    with Grid(tmp_path), pytest.raises(RunError, match="in use"):
        Grid(tmp_path)


def test_a_broken_line_before_the_last_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{}\n")
    with pytest.raises(RunError, match="move it away"):
        Grid(tmp_path)


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
