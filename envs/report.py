"""What a check found: rows, each with the place where it shows, and how they read.

Knows nothing about how anything is checked.
"""

from __future__ import annotations

__all__ = ["Report", "Row", "broken"]

import msgspec

from decentral.envs.fork import Forkable
from decentral.envs.turn import Turn
from decentral.errors import EnvError


class Row(msgspec.Struct, frozen=True):
    """One thing that was checked. Where it shows is None where that is not known or has no meaning."""

    name: str
    ok: bool
    detail: str
    """What was found; when it is not ok, what to do."""
    method: str | None = None
    """Of the environment, e.g. ``step``, ``observe``, ``text_view.actions``."""
    agent: str | None = None
    step: int | None = None
    """How often the environment had been stepped in the episode; 0 is the reset."""
    seed: int | None = None
    """Of the check that shows it."""

    @property
    def place(self) -> str:
        """Where it shows, e.g. ``in step, agent a_0, step 3, seed 0``; empty if nowhere."""
        known = (
            ("in", self.method),
            ("agent", self.agent),
            ("step", self.step),
            ("seed", self.seed),
        )
        return ", ".join(f"{word} {value}" for word, value in known if value is not None)


class Report(msgspec.Struct, frozen=True):
    """Everything that was checked, and a turn as an agent will read it. In a test: ``assert report.ok, report``."""

    name: str
    rows: tuple[Row, ...]
    turn: Turn | None = None
    fork: Forkable | None = None
    untried: tuple[str, ...] = ()
    """The checks that could not be made, since others failed."""

    @property
    def ok(self) -> bool:
        """Says whether training can run on this environment; that it cannot be forked does not stand against it."""
        return not self.failures

    @property
    def failures(self) -> tuple[Row, ...]:
        """The rows that are not ok."""
        return tuple(row for row in self.rows if not row.ok)

    @property
    def seed(self) -> int | None:
        """The seed with which a check shows its first failure again."""
        return next((row.seed for row in self.failures if row.seed is not None), None)

    def __str__(self) -> str:
        """Returns the failures, a line each with its place below; all rows if there is none."""
        many = len(self.rows)
        if self.ok:
            return "\n".join(
                [f"{self.name} passes {many} checks", *(f"  {row.name}: {row.detail}" for row in self.rows)]
            )
        more = f", {len(self.untried)} more not tried" if self.untried else ""
        lines = [f"{self.name} fails {len(self.failures)} of {many} checks{more}"]
        for row in self.failures:
            lines.append(f"  {row.name}: {row.detail}")
            if row.place:
                lines.append(f"    {row.place}")
        return "\n".join(lines)

    __repr__ = __str__  # what pytest shows of an assertion's message


def broken(name: str, error: EnvError) -> Row:
    """Returns the row of a check that an environment broke."""
    return Row(name, False, error.detail, error.method, error.agent, error.step, error.seed)
