"""What the owners see of a run across machines: the host's who is awaited, an agent's its own phases and updates.

Fed by the events of an engine; knows no link, no process and no run folder.
"""

from __future__ import annotations

__all__ = ["AgentLines", "HostLines"]

from collections.abc import Callable

from decentral.agents.mind import Phase
from decentral.messages import Event, Progress, Status
from decentral.progress import Board, number

_FIGURES = ("success", "return", "entropy", "kl")


class HostLines:
    """Says whom the host waits for before a phase, beside what a view of the run shows."""

    def __init__(self, view: Callable[[Event], None], say: Callable[[str], object]) -> None:
        self._view = view
        self._say = say
        self._awaited: tuple[str, ...] = ()

    def __call__(self, event: Event) -> None:
        self._view(event)
        if not isinstance(event, Progress):
            return
        awaited = () if event.phase else event.waiting
        if awaited and awaited != self._awaited:
            self._say(f"waiting for {', '.join(awaited)}")
        self._awaited = awaited


class AgentLines:
    """Says which phase an agent plays, and how each of its updates went."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._board = Board()
        self._phase: Phase | None = None
        self._updates = 0

    def __call__(self, event: Event) -> None:
        if not isinstance(event, Status):
            return
        if event.updates > self._updates and event.metrics:
            known = (f"{key} {number(event.metrics[key])}" for key in _FIGURES if key in event.metrics)
            self._say(f"update {event.updates}: {', '.join(known)}")
        if event.phase is not None and event.phase != self._phase:
            self._say(self._board.title(event.phase))
        self._phase, self._updates = event.phase, event.updates
