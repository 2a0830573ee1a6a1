"""The report of a run: one HTML file that needs nothing else, readable in light and dark.

Reads a `Run` and draws with `plots`. Every text goes through `element`, which escapes whatever is not already HTML,
so nothing an environment or a model wrote can become markup.
"""

from __future__ import annotations

__all__ = ["duration", "figure", "interval_text", "render_report", "write_report"]

import base64
import html
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from decentral.errors import RunError
from decentral.intervals import Interval
from decentral.plots import DARK, LIGHT, Chart, Theme, plot_advice, plot_learning, plot_training, to_svg
from decentral.run import Run

_EVENTS = 200
"""Most event lines shown; the newest."""
_ROUNDS = 60
"""Most turns shown of a sample episode."""
_FIGURES = {
    "entropy": "entropy",
    "kl": "KL",
    "grad_norm": "gradient norm",
    "lr": "learning rate",
    "tokens_per_s": "tokens/s",
    "acceptance_1": "acceptance of drafts",
}
"""Columns of the metrics in the table of the last iteration, where they exist."""
_QUIET = {"started", "stopped", "finished", "committed"}
"""Events that happen in every run: left out of the table unless nothing else happened."""


_UNITS = {"success": " %", "points": " points"}


class Html(str):
    """Text that is already HTML."""


def write_report(run: Run) -> Path:
    """Writes ``report.html`` into the run folder. Raises RunError where it cannot be written."""
    path = run.path / "report.html"
    part = path.with_suffix(".part")
    try:
        part.write_text(render_report(run), encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise RunError(
            f"the report {str(path)!r} cannot be written: {error.strerror or error};"
            f" mend that, then `decentral report {run.path}`"
        ) from error
    return path


def render_report(run: Run) -> str:
    """Returns the report as one HTML document."""
    title = f"{run.config.env.name}: {' and '.join(run.agents) if len(run.agents) < 3 else f'{len(run.agents)} agents'}"
    body = [
        element("h1", title),
        element("p", _lead(run), cls="lead"),
        _results(run),
        _learning(run),
        _training(run),
        _advice(run),
        _samples(run),
        _events(run),
        _setup(run),
        _use(run),
    ]
    head = [
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        element("title", f"{title} - decentral"),
        element("style", Html(_CSS)),
    ]
    page = element("html", element("head", *head), element("body", element("main", *body)), lang="en")
    return f"<!doctype html>\n{page}\n"


def element(name: str, *children: str, cls: str = "", **attributes: str) -> Html:
    """Returns one HTML element; children and attributes are escaped unless they are `Html`."""
    if cls:
        attributes["class"] = cls
    head = "".join(f' {key.replace("_", "-")}="{html.escape(value)}"' for key, value in attributes.items())
    inner = "".join(child if isinstance(child, Html) else html.escape(child) for child in children)
    return Html(f"<{name}{head}>{inner}</{name}>")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], cls: str = "") -> Html:
    """Returns an HTML table that scrolls sideways where the page is narrow."""
    top = element("thead", element("tr", *(element("th", cell) for cell in head)))
    body = element("tbody", *(element("tr", *(element("td", cell) for cell in row)) for row in rows))
    return element("div", element("table", top, body, cls=cls), cls="wide")


# -- sections -------------------------------------------------------------------------------------------------------


def _lead(run: Run) -> str:
    state = run.state
    rows = run.results()
    parts = [f"{len(run.agents)} agents, each with its own weights, played {run.config.env.name}"]
    if done := state.get("iteration"):
        parts.append(f" for {done} {'' if done == run.config.iterations else f'of {run.config.iterations} '}iterations")
    if state.get("train_seconds"):
        parts.append(f" ({duration(state['train_seconds'])} of training)")
    if not rows.empty and rows["last"].notna().all() and len(run.config.teams) < 2:
        before, after = rows["first"].mean(), rows["last"].mean()
        word = rows["measure"].iloc[0]
        parts.append(f"; mean {word} went from {figure(before, word)} to {figure(after, word)}")
    return "".join(parts) + "."


def _results(run: Run) -> Html:
    metrics = run.metrics()
    updates = metrics.groupby("agent")["updates"].max() if len(metrics) else pd.Series(dtype=float)
    rows = []
    for row in run.results().to_dict("records"):
        name, word = row["agent"], row["measure"]
        rows.append(
            [
                swatch(run, name),
                _described(run, name),
                _bounded(row, "first", word),
                _bounded(row, "last", word),
                f"{updates.get(name, 0):.0f}",
            ]
        )
    if not rows:
        return _section("Results", element("p", "No evaluation has ended yet."))
    for row in run.team_results().to_dict("records"):
        members, word = run.config.teams[row["team"]], row["measure"]
        if len(members) > 1:
            ends = _bounded(row, "first", word), _bounded(row, "last", word)
            rows.append([f"team {row['team']}", f"the mean of {', '.join(members)}", *ends, ""])
    word = str(run.results()["measure"].iloc[0])
    count = int(run.results()["episodes"].iloc[0])
    note = (
        f"Each evaluation: {count} episodes on seeds that training never sees, at temperature 1. "
        f"In brackets: 95 % interval ({'Wilson' if word == 'success' else 'normal'})."
    )
    return _section(
        "Results",
        table(["agent", "model", f"{word} before", f"{word} after", "updates"], rows, cls="figures"),
        element("p", note, cls="note"),
    )


def _learning(run: Run) -> Html:
    phases, episodes = run.phases(), run.episodes()
    picture = _picture(lambda theme: plot_learning(phases, episodes, theme), "learning curves of the agents")
    return _section("Learning", picture)


def _training(run: Run) -> Html:
    metrics = run.metrics()
    if not {"entropy", "kl", "grad_norm"} & set(metrics.columns):
        return Html("")
    picture = _picture(
        lambda theme: plot_training(metrics, theme), "entropy, KL, gradient norm and tokens per second of the agents"
    )
    shown = {key: title for key, title in _FIGURES.items() if key in metrics}
    rows = []
    for name in run.agents:
        mine = metrics[metrics["agent"] == name]
        if len(mine):
            rows.append([swatch(run, name), *(_last(mine.iloc[-1], key) for key in shown)])
    head = ["agent", *shown.values()]
    return _section("Training", picture, element("p", "At the last iteration:"), table(head, rows, cls="figures"))


def _advice(run: Run) -> Html:
    advice = run.advice()
    if advice.empty:
        return Html("")
    picture = _picture(lambda theme: plot_advice(advice, theme), "trust, acceptance and usefulness of advice")
    rows = [
        [
            swatch(run, agent),
            swatch(run, peer),
            f"{edge['count']:,}",
            *(figure(edge[key], "success") for key in ("acceptance", "trust")),
            f"{edge['usefulness']:+.2f}",
        ]
        for peer, agent, edge in sorted(run.advice_graph().edges(data=True), key=lambda edge: (edge[1], edge[0]))
    ]
    head = ["agent", "was advised by", "turns", "accepted", "trust in the end", "usefulness"]
    asked = len(advice.drop_duplicates(["agent", "episode", "round"]))
    heard = int((advice["peer"] != "").sum())
    told = element("p", f"Agents asked about {asked:,} turns and had {heard:,} answers; others declined or came late.")
    note = (
        "Accepted: peer and decision both favoured what was done. Trust: the probability that a step toward the peer "
        "is for the better. Usefulness: the estimated gain in advantage per such step, mean over the turns."
    )
    return _section("Advice", picture, told, table(head, rows, cls="figures"), element("p", note, cls="note"))


def _samples(run: Run) -> Html:
    played = run.transcripts()
    if not played:
        return Html("")
    evaluated = [one for one in played if one["phase"] == "eval"]
    first = evaluated[0] if evaluated else played[0]
    last = evaluated[-1] if len(evaluated) > 1 else played[-1]
    parts = [_transcript(run, "Before training" if first["phase"] == "eval" else "First", first)]
    if last is not first:
        after = f"After {last['iteration']} iterations" if last["phase"] == "eval" else f"Iteration {last['iteration']}"
        parts.append(_transcript(run, after, last))
    return _section("Sample episodes", *parts)


def _transcript(run: Run, label: str, played: dict[str, Any]) -> Html:
    ends = ", ".join(
        f"{name} {100 * end['success']:.0f} %" if end.get("success") is not None else f"{name} {end['return']:.3g}"
        for name, end in played["agents"].items()
    )
    word = "success" if any(end.get("success") is not None for end in played["agents"].values()) else "return"
    feedback = any(turn.get("feedback") for turn in played["rounds"])
    rows = []
    before = None
    for turn in played["rounds"][:_ROUNDS]:
        number = str(turn["round"]) if turn["round"] != before else ""
        before = turn["round"]
        cells = [number, swatch(run, turn["agent"]), element("pre", turn["observation"]), element("b", turn["action"])]
        rows.append([*cells, element("pre", turn.get("feedback", ""))] if feedback else cells)
    head = ["round", "agent", "reads", "does", *(["is told"] if feedback else [])]
    left = len(played["rounds"]) - _ROUNDS
    return element(
        "details",
        element("summary", f"{label} (seed {played['seed']}): {word} {ends}"),
        table(head, rows, cls="transcript"),
        *([element("p", f"{left} more turns are in host/episodes.jsonl.", cls="note")] if left > 0 else []),
        open="open",
    )


def _events(run: Run) -> Html:
    events = run.events()
    notable = events[~events["event"].isin(_QUIET)]
    if notable.empty:
        return _section("Events", element("p", "Nothing out of the ordinary: no process was lost."))
    rows = [
        [
            row["time"].strftime("%Y-%m-%d %H:%M:%S") if pd.notna(row["time"]) else "",
            row["source"],
            row["event"],
            row["detail"],
        ]
        for row in notable.tail(_EVENTS).to_dict("records")
    ]
    return _section("Events", table(["time (UTC)", "who", "what", "detail"], rows))


def _setup(run: Run) -> Html:
    env = run.config.env
    agents = element("div", *(element("div", f"{name}: {_described(run, name)}") for name in run.agents))
    rows = [
        ["environment", env.name + (f", level {env.level}" if env.level is not None else "")],
        ["agents", agents],
        ["seed", str(run.config.seed)],
        ["versions", ", ".join(f"{key} {value}" for key, value in _flat(run.versions))],
        ["folder", str(run.path)],
    ]
    settings = "\n".join(f"{key} = {value}" for key, value in _flat(msgspec.to_builtins(run.config)))
    return _section(
        "What was run",
        table(["", ""], rows, cls="plain"),
        element("details", element("summary", "All settings"), element("pre", settings)),
    )


def _use(run: Run) -> Html:
    name = run.agents[0] if run.agents else "name"
    code = (
        "from decentral import Run\n\n"
        f"run = Run.load({str(run.path)!r})\n"
        "run.metrics()                  # pandas: one row per agent and iteration\n"
        "run.episodes()                 # pandas: one row per episode and agent\n"
        "run.plot_learning()            # matplotlib figure\n\n"
        f"agent = run.agent({name!r})\n"
        "agent.act(observation, legal)  # -> one of `legal`\n"
        "agent.save_pretrained('my-agent')\n"
    )
    shell = f"decentral watch {run.path}\ndecentral eval {run.path}\n"
    return _section("Use it", element("pre", code, cls="code"), element("pre", shell, cls="code"))


# -- pieces ---------------------------------------------------------------------------------------------------------


def _section(title: str, *children: str) -> Html:
    return element("section", element("h2", title), *children)


def swatch(run: Run, name: str) -> Html:
    """An agent's name behind a dot in the colour of its lines."""
    place = run.agents.index(name) % len(LIGHT.lines) if name in run.agents else 0
    return element("span", element("i", cls=f"dot c{place}"), name, cls="who")


def _picture(draw: Callable[[Theme], Chart], alt: str) -> Html:
    dark, light = (
        "data:image/svg+xml;base64," + base64.b64encode(to_svg(draw(theme)).encode()).decode()
        for theme in (DARK, LIGHT)
    )
    source = f'<source media="(prefers-color-scheme: dark)" srcset="{dark}">'
    return Html(f'<picture>{source}<img alt="{html.escape(alt)}" src="{light}"></picture>')


def _described(run: Run, name: str) -> str:
    agent = run.config.agent_config(name)
    if agent.kind == "scripted":
        return f"scripted ({agent.script})"
    if agent.kind in ("random", "human"):
        return str(agent.kind)
    return f"{agent.model}, {agent.kind}"


def _bounded(row: dict[Any, Any], key: str, word: str) -> str:
    if math.isnan(row[key]):
        return "-"
    return interval_text(Interval(row[key], row[f"{key}_low"], row[f"{key}_high"]), word)


def _last(row: pd.Series[Any], key: str) -> str:
    value = row.get(key)
    return "-" if value is None or pd.isna(value) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def figure(value: float, measure: str) -> str:
    """A success as per cent, a difference of two as points, a return with three digits."""
    if math.isnan(value):
        return "-"
    return f"{_digits(value, measure)}{_UNITS.get(measure, '')}"


def interval_text(value: Interval, measure: str) -> str:
    """``21.0 % [15.9, 27.2]`` for a success, ``+75.0 points [..]`` for a difference, plain numbers for a return.

    >>> interval_text(Interval(0.21, 0.159, 0.272), "success")
    '21.0 % [15.9, 27.2]'
    """
    if math.isnan(value.value):
        return "-"
    return f"{figure(value.value, measure)} [{', '.join(_digits(bound, measure) for bound in value[1:])}]"


def _digits(value: float, measure: str) -> str:
    if measure not in _UNITS:
        return f"{value:.3g}"
    return f"{100 * value:.1f}" if measure == "success" else f"{100 * value:+.1f}"


def duration(seconds: float) -> str:
    """``75`` -> ``1 min 15 s``.

    >>> duration(3700)
    '1 h 1 min'
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _flat(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Nested dicts as dotted keys."""
    if isinstance(value, dict) and value:
        return [
            pair for key, inner in value.items() for pair in _flat(inner, f"{prefix}.{key}" if prefix else str(key))
        ]
    return [(prefix, str(value))] if prefix else []


_DOTS = "".join(f".c{i}{{background:{colour}}}" for i, colour in enumerate(LIGHT.lines))
_DARK_DOTS = "".join(f".c{i}{{background:{colour}}}" for i, colour in enumerate(DARK.lines))
_CSS = (
    f""":root{{color-scheme:light dark;--soft:#f6f8fa;
--ink:{LIGHT.ink};--muted:{LIGHT.muted};--line:{LIGHT.grid};--paper:{LIGHT.paper}}}
{_DOTS}
@media (prefers-color-scheme:dark){{
:root{{--soft:#161b22;--ink:{DARK.ink};--muted:{DARK.muted};--line:{DARK.grid};--paper:{DARK.paper}}}
{_DARK_DOTS}}}"""
    """
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:880px;margin:0 auto;padding:40px 20px 80px}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .4rem}
h2{font-size:1.2rem;margin:0 0 .8rem}
section{margin-top:2.6rem}
.lead{font-size:1.1rem;color:var(--muted);margin:0;max-width:44em}
.note{color:var(--muted);font-size:.88rem}
picture img{display:block;width:100%;height:auto}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.94rem}
th{text-align:left;font-weight:600;color:var(--muted);font-size:.82rem}
th,td{padding:.4rem .9rem .4rem 0;border-bottom:1px solid var(--line);vertical-align:top}
.figures td{font-variant-numeric:tabular-nums;white-space:nowrap}
.plain thead{display:none}
.plain td:first-child{color:var(--muted);width:9em}
.who{white-space:nowrap}
.dot{display:inline-block;width:.65em;height:.65em;border-radius:50%;margin-right:.5em}
pre{margin:0;font:.86rem/1.6 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;
white-space:pre-wrap;overflow-wrap:anywhere}
.transcript b{font-weight:600}
.code,details>pre{background:var(--soft);border:1px solid var(--line);border-radius:6px;
padding:.8rem 1rem;margin:.6rem 0}
details{margin:.6rem 0 1.4rem}
summary{cursor:pointer;font-weight:600;margin-bottom:.4rem}
"""
)
