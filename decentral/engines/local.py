"""The local engine: a process for the host and one for each agent, on this machine.

The supervisor starts them, watches them, and starts a lost one again; it never sees an observation or a weight. A lost
agent goes on from its last committed checkpoint, a lost host from ``state.json``; the open phase is then played again.
"""

from __future__ import annotations

__all__ = ["Supervisor"]

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import NoReturn

import zmq.asyncio

from decentral import errors
from decentral import messages as say
from decentral.engines import Emit
from decentral.errors import DecentralError, RunError
from decentral.folder import RunFolder
from decentral.journal import Dropped, Journal
from decentral.links import Link, Router
from decentral.process import Endpoints
from decentral.threads import caps, share
from decentral.waits import beside

_RESTARTS = 3
"""How often one process is started again in a run."""
_PARTING = 5.0
"""Seconds that processes have to end after Stop."""
_LAST_WORD = 2.0
"""Seconds in which the sentence of a process that ended with an error must arrive."""
_LONGEST_PATH = 90
"""Bytes of a socket's folder: macOS allows 104 for the whole name."""


class Supervisor:
    """Plays one run with processes of its own."""

    def __init__(self, folder: RunFolder, emit: Emit) -> None:
        self._folder = folder
        self._emit = emit
        self._names = ("host", *folder.agents)
        self._patience = folder.config.deadline / 2
        """Seconds without a sign of life, after which a process is ended: before the others give up on it."""
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self._heard: dict[str, float] = {}
        self._failed: dict[str, say.Failed] = {}
        self._links: dict[str, Link[say.FromProcess]] = {}

    async def run(self) -> None:
        """Plays until the run is over; ended or cancelled, it leaves no process behind.

        Raises what a process reported, and RunError if one is lost too often.
        """
        self._events = Journal(self._folder.path / "events.jsonl")
        self._endpoints = Endpoints(_private_folder())
        self._endpoints.parent.write_text(str(os.getpid()))
        context = zmq.asyncio.Context()
        router = Router(context, self._endpoints.control, self._names, say.MAX_CONTROL)
        decoder = say.Decoder[say.FromProcess](say.FromProcess, say.MAX_CONTROL)
        for name in self._names:
            dropped = Dropped(partial(self._events.event, "dropped message", name=name))
            self._links[name] = Link(router.channel(name), decoder, dropped)
        try:
            keepers = (self._keep(name) for name in self._folder.agents)
            await beside(self._keep("host"), *keepers, *(self._listen(name) for name in self._names))
        finally:
            await self._part()
            router.close()
            context.destroy(linger=0)
            shutil.rmtree(self._endpoints.folder, ignore_errors=True)
            self._events.close()

    # -- one process ----------------------------------------------------------------------------------------------

    async def _keep(self, name: str) -> None:
        """Has a process running until it ends well. Raises what it reported, and RunError if it is lost too often."""
        for count in range(_RESTARTS + 1):
            if count:
                self._emit(say.Restarted(name, count))
                self._events.event("restarted", name=name, count=count)
            why = await self._live(name)
            if not why:
                return
            self._emit(say.Lost(name, why))
            self._events.event("lost", name=name, why=why)
            if name != "host":
                await self._links["host"].send(say.Lost(name, why))
        raise RunError(
            f"{name} was lost {_RESTARTS + 1} times; at last it {why}; then go on with "
            f"`decentral train --resume {self._folder.path}`"
        )

    async def _live(self, name: str) -> str:
        """Runs a process once; returns how it was lost, or nothing if it ended well. Raises what it reported."""
        process = await self._start(name)
        watch = asyncio.create_task(self._watch(name, process))
        try:
            code = await process.wait()
        finally:
            watch.cancel()
        if code == 0 and name == "host" and self._folder.over:
            return ""
        if code == 2:
            await self._last_word(name)
        where = f"see {self._folder.stderr(name)}"
        if code == 0:  # an agent lives until it is told to stop
            return f"ended by itself (exit code 0) before the run was over; {where}"
        if code > 0:
            return f"ended with exit code {code}; {where}"
        silent = time.monotonic() - self._heard[name] > self._patience
        how = f"was silent for {self._patience:g} s and was ended" if silent else "was killed"
        return f"{how} by {signal.Signals(-code).name}; {where}"

    async def _start(self, name: str) -> asyncio.subprocess.Process:
        role = ["process", "host" if name == "host" else "agent"]
        options = ["--run", str(self._folder.path), "--links", str(self._endpoints.folder)]
        who = [] if name == "host" else ["--", name]  # a name may start with a dash
        threads = self._folder.config.threads or share(len(self._folder.agents))
        with self._folder.stderr(name).open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "decentral",
                *role,
                *options,
                *who,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | caps(threads),
                process_group=0,  # an interrupt from the terminal is the supervisor's alone
            )
        self._running[name] = process
        self._heard[name] = time.monotonic()
        self._events.event("started", name=name, pid=process.pid, threads=threads)
        return process

    async def _watch(self, name: str, process: asyncio.subprocess.Process) -> None:
        """Ends a process that gives no sign of life."""
        while time.monotonic() - self._heard[name] <= self._patience:
            await asyncio.sleep(0.5)
        process.kill()

    async def _last_word(self, name: str) -> None:
        """Raises the error that a process reported before it ended."""
        end = time.monotonic() + _LAST_WORD
        while name not in self._failed and time.monotonic() < end:
            await asyncio.sleep(0.02)
        if name in self._failed:
            raise _rebuilt(self._failed[name])

    async def _listen(self, name: str) -> NoReturn:
        while True:
            message = await self._links[name].recv()
            self._heard[name] = time.monotonic()
            if isinstance(message, say.Failed):
                self._failed[name] = message
            else:
                self._emit(message)

    async def _part(self) -> None:
        """Ends all processes: in order, then by force."""
        for name in self._running:
            await self._links[name].send(say.Stop())
        waits = [process.wait() for process in self._running.values() if process.returncode is None]
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*waits), _PARTING)
        for process in self._running.values():
            if process.returncode is None:
                process.kill()
                await process.wait()


def _private_folder() -> Path:
    """Makes a folder that only this user can enter, with a name short enough for a socket's."""
    folder = tempfile.mkdtemp(prefix="dec-")
    if len(folder.encode()) > _LONGEST_PATH:
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix="dec-", dir="/tmp")
    return Path(folder)


def _rebuilt(failed: say.Failed) -> DecentralError:
    """The error that another process raised, as the same class."""
    kind = getattr(errors, failed.kind, DecentralError)
    if not (isinstance(kind, type) and issubclass(kind, DecentralError)):
        kind = DecentralError
    error = kind.__new__(kind)
    error.args = (failed.text,)
    return error
