"""What a person sees while agents train: a live table in a terminal, plain lines elsewhere.

Fed by the events of an engine; knows no link, no process and no run folder.
"""

from __future__ import annotations

__all__ = ["Board", "LiveView", "LogLines", "follow", "sparkline"]

import itertools
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Protocol

from msgspec.structs import replace
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from decentral.agents.mind import Phase
from decentral.messages import Event, Lost, PhaseClosed, Progress, Restarted, Status

_BARS = "▁▂▃▄▅▆▇█"
_COLOURS = ("bright_blue", "dark_orange", "green3", "orchid", "sky_blue1", "gold3")
_LINES = 4
"""Event lines under the table."""


class View(Protocol):
    """Takes the events of an engine; shown as long as its ``with`` block is open."""

    board: Board

    def __call__(self, event: Event) -> None: ...

    def __enter__(self) -> View: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def follow(env: str, console: Console) -> View:
    """Returns the view that fits the console: live on a terminal, lines in a file, a pipe or a dumb terminal."""
    return LiveView(env, console) if console.is_terminal and not console.is_dumb_terminal else LogLines(console)


class Row:
    """What is known of one agent."""

    def __init__(self) -> None:
        self.before: float | None = None
        """Success (else return) of the first evaluation."""
        self.success: float | None = None
        """Of the last closed phase: within a phase, short episodes would be counted first."""
        self.reward: float | None = None
        self.history: list[float] = []
        """Success (else return) of every closed phase."""
        self.metrics: dict[str, float] = {}
        self.updates = 0
        self.busy = ""


class Board:
    """The state that the views draw, and the words for what happened."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.progress: Progress | None = None
        self.news: deque[tuple[float, str]] = deque(maxlen=_LINES)
        self.has_success = True
        self._spent = 0.0

    def take(self, event: Event) -> str:
        """Takes an event in and returns the line that tells it; empty for one that only changes figures."""
        match event:
            case Progress():
                self.progress = event
                for name, row in self.rows.items():
                    if row.busy == "acting" and name not in event.waiting:
                        row.busy = ""
                return ""
            case Status():
                row = self._row(event.name)
                row.updates, row.busy = event.updates, event.busy
                row.metrics = dict(event.metrics) or row.metrics
                return ""
            case PhaseClosed():
                return self._closed(event)
            case Lost():
                line = f"{event.name} {event.why}"
            case Restarted():
                line = f"{event.name} was started again ({ordinal(event.count)} time); its phase is played once more"
        self.news.append((time.time(), line))
        return line

    def _closed(self, event: PhaseClosed) -> str:
        self.has_success = any(value is not None for value in event.success.values())
        if self.progress is not None:
            if event.phase.kind == "train":  # an engine without a clock says no Progress between phases
                self._spent = max(self.progress.train_seconds, self._spent + event.seconds)
            now = {"phase": event.phase, "done": event.episodes, "total": event.episodes}
            self.progress = replace(self.progress, **now, train_seconds=self._spent)
        told = []
        for name, reward in event.returns.items():
            row = self._row(name)
            row.success, row.reward = event.success.get(name), reward
            value = row.success if self.has_success else reward
            if event.phase.kind == "eval" and row.before is None and not row.history:
                row.before = value
            row.history.append(0.0 if value is None else value)
            told.append(f"{name} {percent(row.success)}" if self.has_success else f"{name} {number(reward)}")
        self.rows = {name: self.rows[name] for name in {**event.returns, **self.rows}}  # the environment's order
        word = "success" if self.has_success else "return"
        spoilt = f", {event.faults} spoilt" if event.faults else ""
        line = (
            f"{self.title(event.phase)}: {word} {', '.join(told)}"
            f" ({event.episodes} episodes{spoilt}, {event.seconds:.1f} s)"
        )
        if event.phase.kind == "eval" or event.faults:
            self.news.append((time.time(), line))
        return line

    def recall(self, closed: Iterable[PhaseClosed]) -> None:
        """Takes in what happened before a resume, without telling it."""
        for event in closed:
            self._closed(event)
        self.news.clear()

    def _row(self, name: str) -> Row:
        if name not in self.rows:
            self.rows = dict(sorted([*self.rows.items(), (name, Row())]))
        return self.rows[name]

    def title(self, phase: Phase | None) -> str:
        """Names a phase: ``training 3/60``, ``evaluation before training``."""
        total = self.progress.iterations if self.progress else 0
        if phase is None:
            return "starting"
        if phase.kind == "train":
            again = f" (attempt {phase.attempt + 1})" if phase.attempt else ""
            return (
                f"training {phase.iteration + 1}/{total}{again}" if total else f"training {phase.iteration + 1}{again}"
            )
        if not phase.iteration:
            return "evaluation before training"
        return f"evaluation after {phase.iteration}/{total}" if phase.iteration < total else "evaluation after training"

    def done(self) -> float:
        """Iterations done, with the part of the open one that is played."""
        now = self.progress
        if now is None:
            return 0.0
        if now.phase is None or now.phase.kind == "eval" or not now.total:
            return float(now.iteration)
        return now.phase.iteration + now.done / now.total

    def left(self) -> float | None:
        """Seconds of training left, from the mean of the iterations so far; None before the first has ended."""
        now, done = self.progress, self.done()
        if now is None or done < 1:
            return None
        return now.train_seconds / done * max(0.0, now.iterations - done)


class LiveView:
    """A table that is drawn over itself four times a second."""

    def __init__(self, env: str, console: Console) -> None:
        self.board = Board()
        self._env = env
        self._console = console
        self._lock = threading.Lock()
        self._live = Live(get_renderable=self.draw, console=console, refresh_per_second=4)

    def __call__(self, event: Event) -> None:
        with self._lock:
            self.board.take(event)

    def __enter__(self) -> LiveView:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def draw(self) -> RenderableType:
        """Returns the whole view for the console's present width."""
        with self._lock:
            width = self._console.width
            news = [
                Text(f"{_clock(at)}  {line}", "dim", overflow="ellipsis", no_wrap=True) for at, line in self.board.news
            ]
            return Group(self._head(), self._bar(width), self._table(width), *self._advice(width), *news)

    def _head(self) -> Text:
        now, left = self.board.progress, self.board.left()
        parts = [self.board.title(now.phase if now else None)]
        if now is None or now.phase is None:
            loading = [name for name, row in self.board.rows.items() if row.busy == "loading"]
            parts.append(f"loading {', '.join(loading)}" if loading else "waiting for the processes")
        elif now.total:
            parts.append(f"episode {now.done}/{now.total}")
        if left:
            parts.append(f"{_span(left)} left")
        return Text.assemble((self._env, "bold"), *(f"  {part}" for part in parts), overflow="ellipsis", no_wrap=True)

    def _bar(self, width: int) -> RenderableType:
        total = max(1, self.board.progress.iterations) if self.board.progress else 1
        bar = ProgressBar(total, min(total, self.board.done()), width=width, complete_style="green3")
        line = Table.grid()  # a bar alone ends no line, and is none without colour at 0
        line.add_row(bar)
        return line

    def _table(self, width: int) -> Table:
        wide = width >= 100
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim", expand=False)
        word = "success" if self.board.has_success else "return"
        table.add_column("agent", no_wrap=True, overflow="ellipsis", max_width=20 if wide else 10)
        for title in ("before", word):
            table.add_column(title, justify="right", no_wrap=True, min_width=6)
        table.add_column("", no_wrap=True)
        for title in ("reward", "tokens/s" if wide else "tok/s", "entropy", "KL", "gradient" if wide else "grad"):
            table.add_column(title, justify="right", no_wrap=True, min_width=6 if wide else 5)
        table.add_column("updates" if wide else "upd", justify="right", no_wrap=True)
        if wide:
            table.add_column("", style="dim", no_wrap=True, min_width=9)
        show = percent if self.board.has_success else number
        spark = max(6, min(30, width - (86 if wide else 66)))
        for place, (name, row) in enumerate(self.board.rows.items()):
            colour = _COLOURS[place % len(_COLOURS)]
            figures = (number(row.metrics.get(key)) for key in ("entropy", "kl", "grad_norm"))
            speed = row.metrics.get("tokens_per_s")
            table.add_row(
                Text(name, f"bold {colour}"),
                show(row.before),
                Text(show(row.success if self.board.has_success else row.reward), "bold"),
                Text(sparkline(row.history, spark, top=1.0 if self.board.has_success else None), colour),
                number(row.reward),
                "-" if speed is None else f"{speed:,.0f}",
                *figures,
                str(row.updates),
                *([row.busy] if wide else []),
            )
        return table

    def _advice(self, width: int) -> list[Table]:
        """Whom the agents asked and trust; nothing where none of them takes advice."""
        rows = {name: row.metrics for name, row in self.board.rows.items() if "asked" in row.metrics}
        if not rows:
            return []
        colours = {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(self.board.rows)}
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim", expand=False)
        table.add_column("advice", no_wrap=True, overflow="ellipsis", max_width=20 if width >= 100 else 10)
        for title in ("asked", "advised", "moved"):
            table.add_column(title, justify="right", no_wrap=True, min_width=6)
        table.add_column("trust in", no_wrap=True, overflow="ellipsis")
        for name, figures in rows.items():
            asked, turns = figures["asked"], figures.get("turns")
            trust = {key.removeprefix("trust_"): value for key, value in figures.items() if key.startswith("trust_")}
            parts = [
                part
                for peer, value in trust.items()
                for part in ((peer, colours.get(peer, "")), f" {percent(value)}   ")
            ]
            table.add_row(
                Text(name, f"bold {colours[name]}"),
                percent(asked / turns if turns else None),
                percent(figures["advised"] / asked if asked else None),
                percent(figures["moved"]),
                Text.assemble(*parts),
            )
        return [table]


class LogLines:
    """One plain line per closed phase and per event, for files and pipes."""

    def __init__(self, console: Console) -> None:
        self.board = Board()
        self._console = console

    def __call__(self, event: Event) -> None:
        line = self.board.take(event)
        if not line:
            return
        left = self.board.left()
        more = f", {_span(left)} left" if left and isinstance(event, PhaseClosed) else ""
        self._console.print(f"{_clock(time.time())}  {line}{more}", soft_wrap=True, markup=False, highlight=False)

    def __enter__(self) -> LogLines:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


def sparkline(values: Sequence[float], width: int, top: float | None = None) -> str:
    """Returns ``values`` as bars between 0 and ``top``; without a top, between their own least and largest.

    More values than ``width`` are averaged in equal stretches.

    >>> sparkline([0.0, 0.5, 1.0], 8, top=1.0)
    '▁▅█'
    """
    count = min(width, len(values))
    edges = [round(i * len(values) / count) for i in range(count + 1)] if count else [0]
    means = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    low, high = (0.0, top) if top is not None else (min(means, default=0.0), max(means, default=0.0))
    if high <= low:
        return _BARS[0] * count
    return "".join(_BARS[round(min(1.0, max(0.0, (m - low) / (high - low))) * (len(_BARS) - 1))] for m in means)


def percent(value: float | None) -> str:
    """``0.634`` -> ``63 %``."""
    return "-" if value is None else f"{100 * value:.0f} %"


def number(value: float | None) -> str:
    """Three significant digits, in at most six characters for what training shows."""
    if value is None:
        return "-"
    return f"{value:.2g}" if 0 < abs(value) < 0.01 else f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"


def ordinal(count: int) -> str:
    """``1`` -> ``1st``."""
    ending = "th" if count % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    return f"{count}{ending}"


def _span(seconds: float) -> str:
    whole = round(seconds)
    return (
        f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
        if whole >= 3600
        else f"{whole // 60}:{whole % 60:02d}"
    )


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
