"""How many threads a process may use, and which thread does its heavy work. Knows no library that it caps.

OpenMP and BLAS pools spin: with more threads than cores a decode loop runs a hundred times slower. So the caps are put
into the environment before torch is imported; whoever starts a process passes `caps` along.
"""

from __future__ import annotations

__all__ = ["Direct", "Work", "Worker", "cap", "caps", "share"]

import asyncio
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, Protocol, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

_POOLS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def share(processes: int) -> int:
    """Returns the threads of one of ``processes`` equal processes on this machine's usable cores; at least 1."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, usable // max(1, processes))


def caps(threads: int) -> dict[str, str]:
    """Returns the environment variables that keep a process to ``threads``, waiting without spinning.

    >>> caps(1)["OMP_NUM_THREADS"]
    '1'
    """
    return dict.fromkeys(_POOLS, str(threads)) | {"OMP_WAIT_POLICY": "PASSIVE", "TOKENIZERS_PARALLELISM": "false"}


def cap(threads: int) -> None:
    """Keeps this process to ``threads``. Complete only before torch is imported; afterwards torch is told itself."""
    os.environ.update(caps(threads))
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)


class Work(Protocol):
    """Where heavy calls run: one after the other, in the order in which they were handed over."""

    async def __call__(self, call: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Returns what the call returns, raises what it raises."""
        ...

    def close(self) -> None:
        """Waits for no call."""
        ...


class Worker:
    """One thread of its own, so that the loop stays awake for the links."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def __call__(self, call: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: call(*args, **kwargs))

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class Direct:
    """The loop's own thread: nothing overlaps, so the order of messages is the same in every run."""

    async def __call__(self, call: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return call(*args, **kwargs)

    def close(self) -> None:
        pass
