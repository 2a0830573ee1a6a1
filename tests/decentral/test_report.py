from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from decentral.errors import RunError
from decentral.intervals import Interval
from decentral.report import duration, element, interval_text, render_report
from decentral.run import Run

RunFolder = Callable[..., Path]
EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>"


class Balance(HTMLParser):
    """Checks that every element is closed in order; collects the elements' names and the text."""

    VOID = frozenset({"meta", "img", "source", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(page: str) -> Balance:
    found = Balance()
    found.feed(page)
    found.close()
    assert not found.open
    return found


def test_a_report_tells_everything_and_needs_nothing(run_folder: RunFolder) -> None:
    run = Run.load(run_folder())
    path = run.report()
    page = parsed(path.read_text(encoding="utf-8"))
    text = " ".join(page.text)
    heads = ["Results", "Learning", "Training", "Sample episodes", "Events", "What was run", "Use it"]
    assert [word for word in page.text if word in heads] == heads
    for words in ("meet: anna and ben", "Before training", "After 12 iterations", "you are at 0, 2", "there is a wall"):
        assert words in text
    for words in ("restarted", "torch 2.13.0", "1 min 20 s", "Run.load", "prefers-color-scheme:dark"):
        assert words in text
    outside = [
        value
        for _, attributes in page.seen
        for key, value in attributes.items()
        if key in ("src", "href", "srcset") and not str(value).startswith("data:image/svg+xml;base64,")
    ]
    assert outside == []
    assert not re.search(r"url\(|@import|https?://", " ".join(page.text))


def test_results_stand_with_their_intervals(run_folder: RunFolder) -> None:
    run = Run.load(run_folder())
    row = run.results().iloc[0]
    after = interval_text(Interval(row["last"], row["last_low"], row["last_high"]), "success")
    assert after in render_report(run)


def test_what_others_wrote_is_never_markup(run_folder: RunFolder) -> None:
    folder = run_folder(iterations=1, games=2, trials=2, agents=("anna", "ben & co"))
    path = folder / "host" / "episodes.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        for turn in row.get("rounds", ()):
            turn.update(observation=EVIL, action=EVIL, feedback=EVIL)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with (folder / "host" / "events.jsonl").open("a") as file:
        file.write(json.dumps({"time": 1.7e9, "event": EVIL, "why": EVIL}) + "\n")
    (folder / "versions.json").write_text(json.dumps({EVIL: EVIL}))
    page = parsed(render_report(Run.load(folder)))
    assert not [tag for tag, _ in page.seen if tag in ("script", "iframe")]
    assert not [a for tag, a in page.seen if tag == "img" and not str(a.get("src")).startswith("data:")]
    assert any("ben & co" in text for text in page.text)
    assert any(EVIL in text for text in page.text)


def test_elements_escape_children_and_attributes() -> None:
    assert element("p", "<b>", cls='"x') == '<p class="&quot;x">&lt;b&gt;</p>'
    assert element("p", element("b", "1 < 2")) == "<p><b>1 &lt; 2</b></p>"


def test_a_run_without_figures_has_a_report_too(run_folder: RunFolder) -> None:
    folder = run_folder()
    for path in folder.rglob("*.jsonl"):
        path.unlink()
    (folder / "summary.json").unlink()
    text = " ".join(parsed(render_report(Run.load(folder))).text)
    assert "No evaluation has ended yet." in text
    assert "no process was lost" in text


def test_returns_stand_where_nothing_defines_success(run_folder: RunFolder) -> None:
    text = " ".join(parsed(render_report(Run.load(run_folder(success=False)))).text)
    assert "return before" in text
    assert "normal" in text


def test_a_report_that_cannot_be_written_says_so_and_leaves_the_old_one(
    run_folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run.load(run_folder(iterations=1, games=2, trials=2))
    path = run.report()
    before = path.read_bytes()

    def full(self: Path, *_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    monkeypatch.setattr(Path, "write_text", full)
    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(RunError, match="No space left on device"):
        run.report()
    monkeypatch.undo()
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.42, "0.4 s"), (59.2, "59 s"), (75, "1 min 15 s"), (3600, "1 h 0 min")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_intervals_as_text() -> None:
    assert interval_text(Interval(0.75, 0.5, 0.9), "points") == "+75.0 points [+50.0, +90.0]"
    assert interval_text(Interval(1.2345, -1.0, 3.0), "return") == "1.23 [-1, 3]"
    assert interval_text(Interval(float("nan"), 0.0, 1.0), "success") == "-"
