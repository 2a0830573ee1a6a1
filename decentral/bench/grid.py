"""A grid of measurements that survives being stopped: what was measured once is read, not measured again.

A cell is named by its settings; its result is one line of ``cells.jsonl``, synced before the next cell starts. Knows
nothing about what is measured.
"""

from __future__ import annotations

__all__ = ["Grid", "code_hash"]

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from decentral.disk import Lock
from decentral.errors import RunError

FILE = "cells.jsonl"


class Grid:
    """The cells in one folder. A context manager: one process at a time writes to it."""

    def __init__(self, folder: Path) -> None:
        """Reads what is there and takes the folder's lock.

        A last line that was not finished is removed. Raises RunError if the folder is in use or cannot be read.
        """
        self._file = folder / FILE
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(folder / ".lock", f"the folder {str(folder)!r}")
        data = self._file.read_bytes() if self._file.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            os.truncate(self._file, len(whole))
        try:
            cells = [json.loads(line) for line in whole.splitlines()]
            self._results = {_key(cell["settings"], cell["fingerprint"]): cell["result"] for cell in cells}
        except (ValueError, KeyError, TypeError) as error:
            self._lock.release()
            raise RunError(f"{str(self._file)!r} holds a line that is no cell ({error}); move it away") from error

    def __enter__(self) -> Grid:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def has(self, settings: Mapping[str, Any], fingerprint: Mapping[str, Any]) -> bool:
        """Says whether a cell was measured."""
        return _key(settings, fingerprint) in self._results

    def cell(self, settings: Mapping[str, Any], fingerprint: Mapping[str, Any], measure: Callable[[], Any]) -> Any:
        """Returns a cell's result, measured now if it was not before.

        Args:
            settings: what names the cell, e.g. ``{"model": "pocket", "batch": 8}``.
            fingerprint: what else its result depends on: versions, hashes, sizes.
            measure: returns the result. It, settings and fingerprint must be JSON.
        """
        key = _key(settings, fingerprint)
        if key not in self._results:
            cell = {"settings": settings, "fingerprint": fingerprint, "result": measure()}
            line = json.dumps(cell) + "\n"
            with self._file.open("a") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            self._results[key] = json.loads(line)["result"]
        return self._results[key]


def code_hash(*paths: Path) -> str:
    """Returns a hash of the code that is measured, so that figures of older code are not kept: 12 hex digits.

    A folder stands for all Python files below it.
    """
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _key(settings: Mapping[str, Any], fingerprint: Mapping[str, Any]) -> str:
    return json.dumps([settings, fingerprint], sort_keys=True)
