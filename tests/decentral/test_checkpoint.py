from __future__ import annotations

from pathlib import Path

import pytest

from decentral.checkpoint import Checkpoints, write_folder
from decentral.disk import Lock, write_whole
from decentral.errors import ModelError, RunError


def text(value: str):
    return lambda folder: (folder / "weights").write_text(value)


def tree(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_was_saved_can_be_found_and_the_last_two_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    for iteration in range(5):
        checkpoints.save(iteration, text(f"{iteration}"))
        checkpoints.prune(iteration - 1)  # the newest is not committed yet
    assert checkpoints.saved() == [2, 3, 4]
    checkpoints.prune(4)
    assert checkpoints.saved() == [3, 4]
    assert (checkpoints.path(3) / "weights").read_text() == "3"
    with pytest.raises(RunError, match=r"checkpoint 2 is missing .*there: 3, 4"):
        checkpoints.path(2)


def test_saving_again_replaces(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, text("old"))
    checkpoints.save(1, text("new"))
    assert (checkpoints.path(1) / "weights").read_text() == "new"
    assert tree(tmp_path) == ["00001"]


@pytest.mark.parametrize(
    ("error", "expected", "match"),
    [
        (OSError(28, "No space left on device"), RunError, "No space left on device.*make room"),
        (RuntimeError("IoError: code 28, No space left"), RunError, "code 28.*make room"),
        (ModelError("no weights"), ModelError, "no weights"),
    ],
)
def test_a_failed_save_leaves_the_old_one(tmp_path: Path, error: Exception, expected: type, match: str) -> None:
    def write(folder: Path) -> None:
        (folder / "weights").write_text("half")
        raise error

    write_folder(tmp_path / "model", text("old"))
    with pytest.raises(expected, match=match):
        write_folder(tmp_path / "model", write)
    assert (tmp_path / "model" / "weights").read_text() == "old"
    assert tree(tmp_path) == ["model"]


def test_what_a_killed_writer_left_is_no_checkpoint_and_is_cleared(tmp_path: Path) -> None:
    (tmp_path / ".00002.tmp").mkdir()
    (tmp_path / ".00002.tmp" / "weights").write_text("half")
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.saved() == []
    checkpoints.save(2, text("whole"))
    assert tree(tmp_path) == ["00002"]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.json"
    write_whole(path, b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RunError, match=r"state\.json.*No space left"):
        write_whole(path, b"new")
    assert (path.read_bytes(), tree(tmp_path)) == (b"old", ["state.json"])


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "lock", "the run")
    with pytest.raises(RunError, match="the run is in use"):
        Lock(tmp_path / "lock", "the run", wait=0.1)
    lock.release()
    Lock(tmp_path / "lock", "the run").release()
