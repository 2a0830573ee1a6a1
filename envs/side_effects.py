"""What an environment does beside being played: prints, warnings, threads, and randomness of the whole process.

Knows nothing about what is played.
"""

from __future__ import annotations

__all__ = ["SideEffects"]

import contextlib
import io
import random
import threading
import warnings
from types import TracebackType
from typing import Any

import numpy as np

from decentral.errors import said


class SideEffects:
    """Notes what happens while it is entered, keeps it from the terminal, and leaves global randomness as it was."""

    def __init__(self) -> None:
        self.touched: dict[str, int] = {}
        """Global generators that changed: name -> the step after which it was first seen, 0 for the reset."""
        self._printed = io.StringIO()
        self._warned: list[warnings.WarningMessage] = []
        self._threads = set(threading.enumerate())
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> SideEffects:
        self._stack.callback(random.setstate, random.getstate())
        self._stack.callback(np.random.set_state, np.random.get_state())
        self._stack.enter_context(contextlib.redirect_stdout(self._printed))
        warned = self._stack.enter_context(warnings.catch_warnings(record=True))
        assert warned is not None
        self._warned = warned
        warnings.simplefilter("always")
        self.start()
        return self

    def start(self) -> None:
        """Forgets what was printed, warned of and drawn so far, such as by imports when the environment was made."""
        self._known = _generators()
        self._warned.clear()
        self._printed.seek(0)
        self._printed.truncate()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def look(self, step: int) -> None:
        """Notes which generators changed since the last look."""
        now = _generators()
        for name, state in now.items():
            if state != self._known[name]:
                self.touched.setdefault(name, step)
        self._known = now

    def cause(self) -> str:
        """Names what may be why an episode does not repeat; empty if nothing."""
        found = [*(f"the global {name}" for name in self.touched), *(["threads of its own"] if self._started() else [])]
        return f" (it uses {' and '.join(found)})" if found else ""

    def remarks(self) -> list[str]:
        """Returns what was seen, a phrase each."""
        found = [
            f"draws from or seeds the global {name}, first seen {f'in step {step}' if step else 'in the reset'}, "
            "which is harmless as long as the row copies is ok"
            for name, step in self.touched.items()
        ]
        if names := self._started():
            found.append(f"leaves threads running: {', '.join(names)}")
        if text := self._printed.getvalue().strip():
            found.append(f"prints, first {text.splitlines()[0][:60]!r}")
        if self._warned:
            found.append(f"warns, first {said(self._warned[0].message)[:120]!r}")  # type: ignore[arg-type]
        return found

    def _started(self) -> list[str]:
        return sorted(one.name for one in set(threading.enumerate()) - self._threads)


def _generators() -> dict[str, Any]:
    state: Any = np.random.get_state()
    return {"random": random.getstate(), "numpy.random": (state[1].tobytes(), *state[2:])}
