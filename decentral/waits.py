"""Waiting without hanging: a deadline that names whom was waited for, and tasks that end together."""

from __future__ import annotations

__all__ = ["Stopped", "beside", "within"]

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from decentral.errors import DeadlineError

_T = TypeVar("_T")


class Stopped(Exception):
    """The supervisor said Stop."""


async def within(seconds: float | None, wait: Awaitable[_T], sentence: Callable[[], str]) -> _T:
    """Awaits; after ``seconds`` (None: no clock) raises DeadlineError with ``sentence()``, which names the missing."""
    try:
        async with asyncio.timeout(seconds):
            return await wait
    except TimeoutError as error:
        raise DeadlineError(sentence()) from error


async def beside(main: Coroutine[Any, Any, _T], *others: Coroutine[Any, Any, Any]) -> _T:
    """Runs ``main`` and returns its result; the others end with it, and the first error of any ends them all."""
    leader = asyncio.create_task(main)
    tasks: list[asyncio.Task[Any]] = [leader, *map(asyncio.create_task, others)]
    running = set(tasks)
    try:
        while True:
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task in done:
                    result = task.result()
                    if task is leader:
                        return result  # type: ignore[no-any-return]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
