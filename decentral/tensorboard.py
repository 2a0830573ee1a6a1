"""TensorBoard files of a run, written while it goes on. Needs the extra ``tensorboard``.

Fed by the events of an engine; the figures come from the agents' own journals, which are whole when a phase closes.
"""

from __future__ import annotations

__all__ = ["EventFiles"]

from pathlib import Path

from decentral import journal
from decentral.errors import MissingExtra
from decentral.messages import Event, PhaseClosed


class EventFiles:
    """Writes ``success/ada``, ``kl/ada``, ... by iteration into the folder ``tensorboard`` of a run."""

    def __init__(self, run: Path) -> None:
        """Raises MissingExtra where TensorBoard is not installed."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtra("tensorboard = true", "tensorboard") from error
        folder = run / "tensorboard"
        self._journals = {path.name: path / "metrics.jsonl" for path in sorted((run / "agents").glob("*"))}
        self._done = {name: len(self._lines(name)) if folder.exists() else 0 for name in self._journals}
        self._writer = SummaryWriter(str(folder))

    def __call__(self, event: Event) -> None:
        if not isinstance(event, PhaseClosed):
            return
        if event.phase.kind == "eval":
            for name, success in event.success.items():
                if success is not None:
                    self._writer.add_scalar(f"eval success/{name}", success, event.phase.iteration)
        for name in self._journals:
            lines = self._lines(name)
            for line in lines[self._done[name] :]:
                for key, value in line.items():
                    if key not in ("iteration", "attempt") and isinstance(value, int | float):
                        self._writer.add_scalar(f"{key}/{name}", value, line["iteration"])
            self._done[name] = len(lines)
        self._writer.flush()

    def _lines(self, name: str) -> list[dict[str, float]]:
        return journal.read(self._journals[name])[0]
