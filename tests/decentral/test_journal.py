from __future__ import annotations

import json
from pathlib import Path

import pytest

from decentral.errors import RunError
from decentral.journal import Dropped, Journal, read


def test_lines_come_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for start in (0, 3):
        journal = Journal(path)
        for number in range(start, start + 3):
            journal.write({"number": number, "text": "zwei\nZeilen"})
        journal.sync()
        journal.close()
        assert not journal.mended
    assert [line["number"] for line in read(path)[0]] == [0, 1, 2, 3, 4, 5]
    assert len(path.read_text().splitlines()) == 6


def test_an_event_says_when_and_what(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "a.jsonl")
    journal.event("lost", name="bob", why="was killed")
    (line,), torn = read(journal.path)
    assert (line["event"], line["name"], torn) == ("lost", "bob", 0)
    assert isinstance(line["time"], float)


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_torn_line_is_closed_not_cut_and_costs_nothing_but_itself(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.jsonl"
    whole = json.dumps({"n": 1}).encode() + b"\n"
    torn = json.dumps({"number": 22}).encode()[:cut]
    path.write_bytes(whole + torn)
    assert read(path) == ([{"n": 1}], 1)
    journal = Journal(path)
    assert journal.mended
    journal.write({"n": 3})
    assert read(path) == ([{"n": 1}, {"n": 3}], 1)
    assert path.read_bytes().startswith(whole + torn)


def test_no_file_has_no_lines(tmp_path: Path) -> None:
    assert read(tmp_path / "none.jsonl") == ([], 0)


def test_a_full_disk_is_one_sentence() -> None:
    journal = Journal(Path("/dev/full"))
    with pytest.raises(RunError, match=r"/dev/full.*No space left on device.*--resume"):
        journal.write({"n": 1})


def test_a_folder_that_is_missing_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="No such file"):
        Journal(tmp_path / "none" / "a.jsonl")


def test_of_a_flood_few_messages_are_told() -> None:
    told: list[int] = []
    dropped = Dropped(lambda why, count: told.append(count))
    for _ in range(1000):
        dropped("no")
    assert told == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    assert dropped.count == 1000
