"""The tree of errors. It belongs to no room: every room raises from it.

    DecentralError
    ├── ConfigError          a field, flag or name that cannot be used as given
    │   └── MissingExtra     a package that an extra installs is absent
    ├── EnvError             an environment that cannot be played
    ├── ModelError           a model that cannot be loaded or served
    ├── RunError             a run folder that cannot be opened, resumed or written
    ├── LinkError            a message that breaks the protocol
    ├── AdviceError          a question or an answer of a peer that no honest one sends
    └── DeadlineError        a wait that ended without its answer

Every message is one sentence with the value, the reason and the fix; the command line prints it and exits with 2.
"""

from __future__ import annotations

__all__ = [
    "AdviceError",
    "ConfigError",
    "DeadlineError",
    "DecentralError",
    "EnvError",
    "LinkError",
    "MissingExtra",
    "ModelError",
    "RunError",
    "said",
    "short",
    "suggest",
]

import difflib
from collections.abc import Iterable
from typing import Any


class DecentralError(Exception):
    """Base of everything this library raises on purpose."""


class ConfigError(DecentralError):
    """A field, flag or name that cannot be used as given."""


class MissingExtra(ConfigError):
    """A package that an optional extra installs is absent."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra {extra!r}: pip install 'decentral[{extra}]'")


class EnvError(DecentralError):
    """An environment that cannot be played: it breaks its API, raises, or offers no legal action.

    Where it shows is also told by attributes, each None where it is not known or has no meaning: the environment's
    ``method``, the ``agent``, the ``step`` (0: the reset) and the ``seed`` of the episode. ``detail`` is the message
    without these.
    """

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        method: str | None = None,
        agent: str | None = None,
        step: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(message)
        self.detail = detail or message
        self.method = method
        self.agent = agent
        self.step = step
        self.seed = seed


class ModelError(DecentralError):
    """A model that cannot be loaded, served or saved."""


class RunError(DecentralError):
    """A run folder that cannot be created, opened, resumed or written."""


class LinkError(DecentralError):
    """A message that breaks the protocol."""


class AdviceError(DecentralError):
    """A question or an answer of a peer that no honest one sends: not well-formed, too large, or no distribution."""


class DeadlineError(DecentralError):
    """A wait that ended without its answer; the message names whom it waited for."""


def said(error: BaseException) -> str:
    """Returns what an exception says, on one line and in characters that every file and every link takes."""
    text = " ".join(str(error).split()) or "no message"
    return text.encode(errors="backslashreplace").decode()


def short(value: Any) -> str:
    """Returns how a value stands in a message: its repr, of at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def suggest(name: str, known: Iterable[str]) -> str:
    """Returns ``"; did you mean 'x'?"`` for the closest known name, else the empty string."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
