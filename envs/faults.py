"""What went wrong in an environment and where, told in one sentence.

Knows nothing about how an environment is played.
"""

from __future__ import annotations

__all__ = ["ANYTHING", "Place", "fault", "location"]

import os
import shlex
import sysconfig
import traceback
from collections.abc import Mapping
from typing import NamedTuple

from decentral import errors
from decentral.envs.drivers import DEAD_STEP, Breach, Driver, ParallelDriver
from decentral.envs.text import SpaceView
from decentral.errors import EnvError, said

ANYTHING = BaseException
"""What an environment may raise: a closed window, or a script's sys.exit(), must not end a run as if it were over. The
interrupt alone is the user's, and goes on."""
_METHODS = {"reset", "step", "observe", "last", "observation_space", "action_space"}
_HERE = os.path.dirname(__file__)
_FOREIGN = (*(sysconfig.get_path(key) for key in ("purelib", "platlib", "stdlib")), os.path.dirname(errors.__file__))
"""Folders whose code the author of an environment did not write."""


class Place(NamedTuple):
    """Where a game stands."""

    name: str
    seed: int
    step: int
    actions: Mapping[str, str] | None
    """The last answers, if any."""


def fault(error: BaseException, where: str, agent: str | None, driver: Driver, place: Place) -> EnvError:
    """Returns the EnvError that tells one sentence: what, where in the episode, and what to do.

    ``where`` is the method that was called, and ``agent`` whom it was about, as far as the caller knows.
    """
    for seat in driver.seats.values():
        info: object = seat.info
        if not isinstance(info, Mapping):
            kind = type(info).__name__
            error = Breach(f"the info of {seat.name!r} is a {kind}, not a dict", "return a dict", agent=seat.name)
            where = "step" if place.step else "reset"
    method = _called(error, where)
    at = f"round {driver.round}, seed {place.seed}, step {place.step}"
    if place.actions:
        at += f", actions {place.actions}"
    if isinstance(error, Breach | EnvError):
        method, agent = _teller(error.method or method, driver, place.step), error.agent or agent
        detail, at = said(error), f"in {method}, {at}"
        fix = more = f"; {error.fix}" if isinstance(error, Breach) else ""
        line = ""
    else:
        agent = agent or driver.asked(method)
        line = location(error)
        at = f"agent {agent}, {at}" if agent else at
        at += f", {line}" if line else ""
        detail = f"{method} raised {type(error).__name__}: {said(error)}"
        fix = f"; {DEAD_STEP}" if DEAD_STEP in getattr(error, "__notes__", ()) else "; repair it"
        more = f"{fix}, or try it alone with decentral envs check {shlex.quote(place.name)} --seed {place.seed}"
    return EnvError(
        f"{place.name}: {detail} ({at}){more}",
        detail=detail + (f" ({line})" if line else "") + fix,
        method=method,
        agent=agent,
        step=place.step,
        seed=place.seed,
    )


def location(error: BaseException) -> str:
    """Returns the file and line where an exception left its author's code, or else where it was raised.

    Files below the current folder are named from there. Empty for an exception that was never raised.
    """
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    own = [frame for frame in frames if not _foreign(frame.filename)]
    frame = (own or frames)[-1]
    here = os.path.join(os.getcwd(), "")
    return f"{frame.filename.removeprefix(here)}:{frame.lineno}"


def _foreign(file: str) -> bool:
    compiled = file.startswith("<frozen") or file.endswith(".pyx")
    return compiled or any(file.startswith(os.path.join(folder, "")) for folder in _FOREIGN)


def _teller(method: str, driver: Driver, step: int) -> str:
    """Returns by which method an environment tells what ``method`` means: only AEC has an ``observe``."""
    if method == "observe" and isinstance(driver, ParallelDriver):
        method = "step"
    return "reset" if method == "step" and not step else method


def _called(error: BaseException, where: str) -> str:
    """Returns which method of an environment raised: the first on the way there that is not of these files."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_name
        if os.path.dirname(frame.f_code.co_filename) == _HERE:
            if isinstance(frame.f_locals.get("self"), SpaceView):  # which only shows what an environment says
                masked = frame.f_locals.get("mask") is not None
                where = "observe" if name == "observe" or masked else "action_space"
        elif where == "text_view" and name in ("observe", "actions"):
            return f"text_view.{name}"
        else:
            return name if name in _METHODS else where
    return where
