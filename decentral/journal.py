"""Append-only JSON lines: each line is one write, so that a killed writer loses at most the line it was at.

Writers cut nothing: on re-opening, a torn last line is closed with a newline, and readers skip it.
"""

from __future__ import annotations

__all__ = ["Dropped", "Journal", "read"]

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from decentral.disk import disk_error
from decentral.errors import RunError


class Journal:
    """One JSONL file, open for appending."""

    def __init__(self, path: Path) -> None:
        """Opens or creates the file. Raises RunError."""
        self.path = path
        self.mended = False
        """Whether the last line was torn when the file was opened."""
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            size = os.fstat(self._handle).st_size
            self.mended = size > 0 and os.pread(self._handle, 1, size - 1) != b"\n"
        except OSError as error:
            raise disk_error(path, error) from error
        if self.mended:
            self._append(b"\n")

    def write(self, line: Mapping[str, Any]) -> None:
        """Appends one line. Raises RunError."""
        self._append(msgspec.json.encode(line) + b"\n")

    def event(self, event: str, **detail: Any) -> None:
        """Appends a line with the time (seconds since 1970), the event's name and what else it says."""
        self.write({"time": round(time.time(), 3), "event": event, **detail})

    def sync(self) -> None:
        """Makes everything written durable. Raises RunError."""
        try:
            os.fsync(self._handle)
        except OSError as error:
            raise disk_error(self.path, error) from error

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._handle)

    def _append(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._handle, data) :]
        except OSError as error:
            raise disk_error(self.path, error) from error


class Dropped:
    """Counts messages that are dropped, and tells of the 1st, 2nd, 4th, 8th, ...: a flood does not fill the disk."""

    def __init__(self, tell: Callable[..., object]) -> None:
        """``tell`` is called with ``why``, ``count`` and what else is known of the message."""
        self.count = 0
        self._tell = tell

    def __call__(self, why: str, **detail: Any) -> None:
        """Counts one message."""
        self.count += 1
        if self.count & (self.count - 1) == 0:
            self._tell(why=why, count=self.count, **detail)


def read(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Returns the whole lines of a journal, oldest first, and how many torn ones were skipped. Raises RunError."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise RunError(f"cannot read {str(path)!r}: {error.strerror}; give access to it") from error
    lines: list[dict[str, Any]] = []
    torn = 0
    for line in raw.split(b"\n"):
        if not line:
            continue
        try:
            lines.append(msgspec.json.decode(line, type=dict[str, Any]))
        except msgspec.DecodeError:
            torn += 1
    return lines, torn
