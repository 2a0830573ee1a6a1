"""Tables in the terminal."""

from __future__ import annotations

__all__ = ["table", "turn_table"]

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from decentral.envs.turn import Turn


def table(*titles: str) -> Table:
    """A table without lines; without titles it has no head and takes what its rows have."""
    made = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", show_header=bool(titles))
    for title in titles:
        made.add_column(title)
    return made


def turn_table(turn: Turn) -> Table:
    """What an agent is told in a turn, and what it may do."""
    made = table()
    choices = ", ".join(turn.legal) if turn.legal else f"any text of at most {turn.free} tokens"
    for word, text in (
        ("is told once", turn.system),
        ("got", turn.feedback),
        ("reads", turn.observation),
        ("may do", choices),
    ):
        if text:
            made.add_row(Text(word, "dim"), Text(text))
    return made
