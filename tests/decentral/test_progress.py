from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from decentral.agents.mind import Phase
from decentral.messages import Event, Lost, PhaseClosed, Progress, Restarted, Status
from decentral.progress import Board, LiveView, LogLines, follow, number, ordinal, sparkline

TOTAL = 10
METRICS = {"entropy": 1.234, "kl": 0.0123, "grad_norm": 0.456, "tokens_per_s": 1234.0}


def progress(iteration: int, done: int = 0, kind: str = "train", seconds: float | None = None) -> Progress:
    return Progress(
        phase=Phase(kind, iteration),  # type: ignore[arg-type]
        done=done,
        total=96,
        iteration=iteration,
        iterations=TOTAL,
        train_seconds=2.0 * iteration if seconds is None else seconds,
    )


def closed(kind: str, iteration: int, value: float | None, faults: int = 0) -> PhaseClosed:
    return PhaseClosed(
        phase=Phase(kind, iteration),  # type: ignore[arg-type]
        episodes=96,
        faults=faults,
        seconds=2.0,
        success={"ada": value, "bob": value},
        returns={"ada": 0.5, "bob": -0.5},
    )


def run_of(iterations: int) -> list[Event]:
    events: list[Event] = [Status("ada", busy="loading"), Status("bob", busy="loading")]
    events += [progress(0, 96, "eval"), closed("eval", 0, 0.2)]
    for i in range(iterations):
        events += [progress(i, 48), closed("train", i, 0.2 + 0.05 * i)]
        events += [Status(n, Phase("train", i), i + 1, "updating", metrics=METRICS) for n in ("ada", "bob")]
        events.append(progress(i + 1))
    return events


def frame(view: LiveView, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    view._console = console
    console.print(view.draw())
    file = console.file
    assert isinstance(file, io.StringIO)
    return [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in file.getvalue().splitlines()]


def live(events: list[Event]) -> LiveView:
    view = LiveView("meet", Console(file=io.StringIO()))
    for event in events:
        view(event)
    return view


@pytest.mark.parametrize("width", [80, 120])
def test_the_live_view_fits_and_shows_every_figure(width: int) -> None:
    lines = frame(live(run_of(6)), width)
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("meet  training 7/10  episode 0/96  0:08 left")
    for title in ("agent", "before", "success", "reward", "entropy", "KL", "grad", "upd"):
        assert title in lines[2]
    for words in ("ada", "20 %", "45 %", "0.50", "1,234", "1.23", "0.01", "0.46"):
        assert words in lines[3]
    assert lines[3].split()[-1] == ("updating" if width == 120 else "6")
    assert "-0.50" in lines[4]


@pytest.mark.parametrize("width", [80, 120])
def test_advice_is_shown_where_agents_take_it_and_nowhere_else(width: int) -> None:
    figures = {
        "turns": 400.0,
        "asked": 200.0,
        "advised": 150.0,
        "moved": 0.125,
        "trust_bob": 0.634,
        "trust_cleo": 0.071,
    }
    plain = frame(live(run_of(6)), width)
    lines = frame(live([*run_of(6), Status("ada", updates=6, busy="updating", metrics=METRICS | figures)]), width)
    at = next(i for i, line in enumerate(lines) if line.startswith("advice"))
    assert lines[at].split() == ["advice", "asked", "advised", "moved", "trust", "in"]
    assert lines[at + 1].split() == ["ada", "50", "%", "75", "%", "12", "%", "bob", "63", "%", "cleo", "7", "%"]
    assert lines[:at] + lines[at + 2 :] == plain
    assert max(map(len, lines)) <= width


def test_the_work_done_grows_with_the_episodes_of_the_open_iteration() -> None:
    evaluated = [progress(0, 96, "eval"), closed("eval", 0, 0.2)]
    assert live(evaluated).board.done() == 0.0
    assert live([*evaluated, progress(5, 48)]).board.done() == 5.5
    assert live([*evaluated, progress(10, 50, "eval")]).board.done() == 10.0


def test_nothing_is_known_before_the_first_event() -> None:
    assert frame(live([]), 80)[0] == "meet  starting  waiting for the processes"
    assert "loading ada" in frame(live([Status("ada", busy="loading")]), 80)[0]


def test_losses_and_restarts_are_told() -> None:
    lines = frame(live([*run_of(2), Lost("bob", "was killed by SIGKILL"), Restarted("bob", 1)]), 80)
    assert lines[-2].endswith("bob was killed by SIGKILL")
    assert lines[-1].endswith("bob was started again (1st time); its phase is played once more")


def test_return_stands_in_for_success() -> None:
    view = live([progress(0, 96, "eval"), closed("eval", 0, None), progress(0), closed("train", 0, None)])
    lines = frame(view, 80)
    assert "return" in lines[2]
    assert "success" not in lines[2]
    assert lines[3].split()[:3] == ["ada", "0.50", "0.50"]


def test_markup_in_names_is_text() -> None:
    view = live([Status("[bold]x[/]", busy="loading"), Lost("[red]y[/red]", "was lost")])
    lines = frame(view, 120)
    assert "[bold]x[/]" in "\n".join(lines)
    assert "[red]y[/red] was lost" in lines[-1]


def test_a_resumed_run_shows_what_was_before() -> None:
    view = live([])
    view.board.recall([closed("eval", 0, 0.2), closed("train", 0, 0.3)])
    view(Status("bob", busy="loading"))
    lines = frame(view, 80)
    assert lines[3].split()[:4] == ["ada", "20", "%", "30"]
    assert len(lines) == 5


def test_agents_keep_the_order_of_the_environment() -> None:
    board = Board()
    for name in ("bob", "ada"):
        board.take(Status(name))
    assert list(board.rows) == ["ada", "bob"]
    late = closed("eval", 0, 0.5)
    board.take(PhaseClosed(late.phase, 9, 0, 1.0, {"bob": 0.5, "ada": 0.5}, {"bob": 1.0, "ada": 0.0}))
    assert list(board.rows) == ["bob", "ada"]


def test_time_left_follows_the_iterations_done() -> None:
    board = Board()
    for event in run_of(4):
        board.take(event)
    assert board.left() == pytest.approx(2.0 * 6)
    board.take(progress(4, 48, seconds=9.0))
    assert board.left() == pytest.approx(9.0 / 4.5 * 5.5)


def test_log_lines_say_one_line_per_phase() -> None:
    console = Console(width=40, file=io.StringIO())
    view = follow("meet", console)
    assert isinstance(view, LogLines)
    with view:
        for event in [*run_of(2), Lost("bob", "was killed by SIGKILL")]:
            view(event)
    file = console.file
    assert isinstance(file, io.StringIO)
    lines = [line[10:] for line in file.getvalue().splitlines()]
    assert lines == [
        "evaluation before training: success ada 20 %, bob 20 % (96 episodes, 2.0 s)",
        "training 1/10: success ada 20 %, bob 20 % (96 episodes, 2.0 s), 0:18 left",
        "training 2/10: success ada 25 %, bob 25 % (96 episodes, 2.0 s), 0:16 left",
        "bob was killed by SIGKILL",
    ]


def test_spoilt_episodes_are_told() -> None:
    assert "(96 episodes, 3 spoilt, 2.0 s)" in Board().take(closed("train", 0, 0.5, faults=3))


def test_a_terminal_gets_the_live_view() -> None:
    assert isinstance(follow("meet", Console(file=io.StringIO(), force_terminal=True, _environ={})), LiveView)
    dumb = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    assert isinstance(follow("meet", dumb), LogLines)


@given(st.lists(st.floats(0, 1), max_size=200), st.integers(1, 40))
def test_a_sparkline_is_as_long_as_it_may_be_and_rises_with_its_values(values: list[float], width: int) -> None:
    line = sparkline(values, width, top=1.0)
    assert len(line) == min(width, len(values))
    assert sparkline(sorted(values), width, top=1.0) == "".join(sorted(sparkline(sorted(values), width, top=1.0)))


def test_numbers_fit_their_columns() -> None:
    assert [number(x) for x in (None, 0.0, 0.00123, -0.5, 12.345, 1234.5)] == [
        "-",
        "0.00",
        "0.0012",
        "-0.50",
        "12.35",
        "1,234",
    ]
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 21)] == ["1st", "2nd", "3rd", "4th", "11th", "21st"]
