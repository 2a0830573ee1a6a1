"""Writing so that nothing half-written survives, and so that a full disk is one sentence. Knows no file of ours."""

from __future__ import annotations

__all__ = ["Lock", "disk_error", "sync_folder", "write_whole"]

import contextlib
import fcntl
import os
import time
from pathlib import Path

from decentral.errors import RunError

_RESUME = "make room or give access, then go on with `decentral train --resume` and the run's folder"


def disk_error(path: Path, error: Exception, fix: str = _RESUME) -> RunError:
    """Returns the error to raise when ``path`` could not be written, or holds what cannot be read."""
    return RunError(f"cannot write {str(path)!r}: {getattr(error, 'strerror', None) or error}; {fix}")


def write_whole(path: Path, data: bytes) -> None:
    """Replaces a file by a temporary neighbour, written and synced first: readers see the old file or the new one.

    Raises RunError; then the old file stands as it was.
    """
    beside = path.with_name(f".{path.name}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise disk_error(path, error) from error


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Lock:
    """A lock file that one process at a time can hold; it goes with the process, however that ends."""

    def __init__(self, path: Path, whose: str, wait: float = 0.0) -> None:
        """Takes the lock, trying for ``wait`` seconds. Raises RunError, which says that ``whose`` is in use."""
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise disk_error(path, error) from error
        end = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as error:
                if time.monotonic() >= end:
                    os.close(self._handle)
                    raise RunError(
                        f"{whose} is in use by another process, which holds {str(path)!r}: wait for its end, or stop it"
                    ) from error
            time.sleep(0.05)

    def release(self) -> None:
        """Gives the lock back."""
        os.close(self._handle)
