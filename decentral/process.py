"""What every process of a run does around its own job: links, thread, lock, parent, and a last word if it fails.

A process ends when its job is done, when the supervisor says Stop, or when the supervisor is gone. An error that was
raised on purpose is told to the supervisor in one sentence; any other is left to stderr and the exit code.
"""

from __future__ import annotations

__all__ = ["Endpoints", "Life", "live"]

import asyncio
import logging
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NoReturn

import zmq.asyncio

from decentral.disk import Lock
from decentral.errors import DecentralError, RunError, said
from decentral.folder import RunFolder
from decentral.journal import Dropped
from decentral.links import Dealer, Link
from decentral.messages import MAX_CONTROL, Decoder, Failed, FromSupervisor
from decentral.threads import Worker
from decentral.waits import Stopped, beside

_log = logging.getLogger("decentral")
_PREDECESSOR = 10.0
"""Seconds to wait for an earlier process of the same place to let go of its files."""


class Endpoints:
    """The sockets of one run on this machine, in a folder that only its user can enter."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.world = f"ipc://{folder}/world"
        self.control = f"ipc://{folder}/control"

    def peer(self, number: int) -> str:
        """The door of the agent with this place in the environment's order."""
        return f"ipc://{self.folder}/peer{number}"

    @property
    def parent(self) -> Path:
        """The file that holds the supervisor's process id."""
        return self.folder / "supervisor"


class Life:
    """What a process's job is given."""

    def __init__(self, name: str, run: Path, endpoints: Endpoints) -> None:
        self.name = name
        self.run = run
        self.endpoints = endpoints
        self.context = zmq.asyncio.Context()
        self.work = Worker(name)
        channel = Dealer(self.context, endpoints.control, name, MAX_CONTROL)
        decoder = Decoder[FromSupervisor](FromSupervisor, MAX_CONTROL)
        self.control: Link[FromSupervisor] = Link(channel, decoder, self.refused("supervisor"))

    def refused(self, sender: str) -> Callable[[str], None]:
        """Returns what a link tells about a frame that it drops."""
        return Dropped(lambda why, count: _log.warning("%s dropped frame %d of %s: %s", self.name, count, sender, why))


def live(name: str, run: Path, links: Path, job: Callable[[Life, RunFolder], Coroutine[Any, Any, None]]) -> NoReturn:
    """Does a job and ends the process with 0, with 2 for an error that was reported, or with 1 for any other."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    code = asyncio.run(_live(Life(name, run, Endpoints(links)), job))
    logging.shutdown()
    sys.stderr.flush()
    os._exit(code)  # the worker thread may be deep in a call that nobody needs any more


async def _live(life: Life, job: Callable[[Life, RunFolder], Coroutine[Any, Any, None]]) -> int:
    try:
        folder = RunFolder.open(life.run)
        Lock(folder.place(life.name) / "lock", f"the place of {life.name}", wait=_PREDECESSOR)
        await beside(job(life, folder), _watch_parent(life.endpoints))
        return 0
    except Stopped:
        return 0
    except DecentralError as error:
        _log.error("%s: %s", type(error).__name__, error)
        await life.control.send(Failed(type(error).__name__, said(error)))
        return 2
    except Exception:  # noqa: BLE001  a crash: the supervisor sees the exit code, stderr has the rest
        traceback.print_exc()
        return 1
    finally:
        life.work.close()
        life.context.destroy(linger=1000)


async def _watch_parent(endpoints: Endpoints) -> None:
    """Ends the process soon after its supervisor, however that ended. Raises RunError."""
    parent = int(endpoints.parent.read_text())
    while os.getppid() == parent:
        await asyncio.sleep(0.5)
    shutil.rmtree(endpoints.folder, ignore_errors=True)
    raise RunError("the supervisor is gone: go on with `decentral train --resume` and the run's folder")
