"""Engines: who runs the host and the agents. `local` gives each a process; `inline` has them all in this one.

Both run in a loop of their own, in a thread of its own, so that they work wherever they are called from, a notebook's
running loop included. Host and agent know nothing of either.
"""

from __future__ import annotations

__all__ = ["Emit", "drive"]

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from decentral.messages import Event

Emit = Callable[[Event], None]


def drive(job: Callable[[Emit], Coroutine[Any, Any, None]], on_event: Emit) -> None:
    """Runs a job in its own thread and hands its events to ``on_event`` in the caller's thread, until it is done.

    Raises what the job raises. An interrupt, or an error of ``on_event``, cancels the job, waits until it has cleaned
    up, and is raised again.
    """
    events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []
    errors: list[BaseException] = []

    async def supervised() -> None:
        task = asyncio.current_task()
        assert task is not None
        running.append((asyncio.get_running_loop(), task))
        await job(events.put)

    def body() -> None:
        try:
            asyncio.run(supervised())
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001  raised again in the caller's thread
            errors.append(error)
        finally:
            events.put(None)

    thread = threading.Thread(target=body, name="decentral", daemon=True)
    thread.start()
    try:
        while (event := events.get()) is not None:
            on_event(event)
    except BaseException:
        if running:
            loop, task = running[0]
            if not loop.is_closed():
                loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    thread.join()
    if errors:
        raise errors[0]
