"""Figures of a run, drawn from its tables. Knows nothing about folders.

Object-oriented matplotlib only: no pyplot, no global state, no display. The colours are told apart by colour-blind
readers (Okabe and Ito, light and dark), lines are labelled where they end, and lines that coincide are dashed.
"""

from __future__ import annotations

__all__ = ["DARK", "LIGHT", "Chart", "Theme", "plot_advice", "plot_learning", "plot_training", "to_svg"]

import io
from collections.abc import Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from decentral.intervals import mean_interval, wilson


class Theme(NamedTuple):
    """Colours of a figure. ``lines`` are taken in turn by the agents, always in the same order."""

    ink: str
    muted: str
    grid: str
    paper: str
    lines: tuple[str, ...]


LIGHT = Theme(
    ink="#1b1f24",
    muted="#57606a",
    grid="#d8dee4",
    paper="#ffffff",
    lines=("#0072b2", "#d55e00", "#009e73", "#b3589a", "#2b9fd6", "#a87900"),
)
DARK = Theme(
    ink="#e6edf3",
    muted="#9da7b3",
    grid="#30363d",
    paper="#0d1117",
    lines=("#56b4e9", "#ff8c42", "#2fc59a", "#e09ac6", "#8fd0f5", "#e6b93c"),
)

_WINDOW = 5
"""Iterations of the rolling mean."""
_PANELS = (
    ("entropy", "Entropy", "of a decision, in nats"),
    ("kl", "KL", "to the base model, in nats"),
    ("grad_norm", "Gradient norm", "before clipping"),
    ("tokens_per_s", "Speed", "tokens per second of play"),
)


_ADVICE = (
    ("trust", "Trust", "in the peer, from outcomes"),
    ("accepted", "Accepted", "share of answers gone along with"),
    ("usefulness", "Usefulness", "of a step toward the peer"),
)


class Chart(Figure):
    """A matplotlib figure that a notebook shows by itself, without pyplot."""

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=130)
        return out.getvalue()


def plot_learning(phases: pd.DataFrame, episodes: pd.DataFrame, theme: Theme = LIGHT) -> Chart:
    """Draws success (return, where nothing defines success) of each agent over the iterations.

    Thin: the mean of an iteration's episodes. Thick: its rolling mean over 5 iterations, within one standard
    deviation. Dots: the evaluations before and after, with 95 % intervals. ``phases`` and ``episodes`` are the
    tables of `Run`.
    """
    figure = Chart(figsize=(8.4, 4.0), layout="constrained", facecolor=theme.paper)
    axes = figure.add_subplot()
    agents = _names(phases)
    measure = "success" if phases["success"].notna().any() else "return"
    _style(axes, theme)
    axes.set_title(
        "Success of each agent" if measure == "success" else "Return of each agent",
        loc="left",
        color=theme.ink,
        fontsize=12,
        fontweight="bold",
    )
    axes.set_xlabel("iterations of training", color=theme.muted, fontsize=9.5)
    if measure == "success":
        axes.set_ylim(-0.03, 1.05)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    train, ends = phases[phases["phase"] == "train"], _evaluations(episodes, measure)
    span = max(1.0, float(phases["iteration"].max()))
    drawn: list[pd.Series[float]] = []
    labels: list[tuple[float, str, str]] = []
    for place, name in enumerate(agents):
        colour = theme.lines[place % len(theme.lines)]
        series = train[train["agent"] == name].set_index("iteration")[measure].dropna().sort_index()
        again = sum(series.equals(other) for other in drawn)
        newest = _curve(axes, series, colour, again, bounded=measure == "success") if len(series) else None
        drawn += [series] if len(series) else []
        shift = (place - (len(agents) - 1) / 2) * 0.012 * span
        for dot in ends[ends["agent"] == name].to_dict("records"):
            at, value = dot["iteration"] + shift, dot["value"]
            bars = [[value - dot["low"]], [dot["high"] - value]]
            axes.errorbar(at, value, yerr=bars, color=colour, linewidth=1.3, capsize=2.5)
            face = theme.paper if dot["first"] else colour
            axes.plot(at, value, "o", color=colour, markerfacecolor=face, markersize=6.5, markeredgewidth=1.6, zorder=5)
            newest = value if newest is None or not dot["first"] else newest
        if newest is not None:
            labels.append((newest, name, colour))
    _label_ends(axes, labels)
    if not labels:
        _nothing(axes, theme)
    else:
        axes.annotate(
            "○ evaluated before, ● after training; bars: 95 % intervals. Line: mean of 5 iterations ± 1 s.d.",
            (0, 0),
            (0, -38),
            xycoords="axes fraction",
            textcoords="offset points",
            color=theme.muted,
            fontsize=8,
        )
    return figure


def plot_training(metrics: pd.DataFrame, theme: Theme = LIGHT) -> Chart:
    """Draws entropy, KL, gradient norm and tokens per second of each agent over the iterations, a panel each."""
    figure = Chart(figsize=(8.4, 4.8), layout="constrained", facecolor=theme.paper)
    agents = _names(metrics)
    for place, (key, title, unit) in enumerate(_PANELS):
        axes = figure.add_subplot(2, 2, place + 1)
        _style(axes, theme)
        axes.set_title(title, loc="left", color=theme.ink, fontsize=10, fontweight="bold", pad=18)
        axes.annotate(unit, (0, 1), (0, 6), "axes fraction", "offset points", color=theme.muted, fontsize=8)
        if place >= 2:
            axes.set_xlabel("iteration", color=theme.muted, fontsize=8.5)
        labels = []
        for number, name in enumerate(agents):
            mine = metrics[metrics["agent"] == name].set_index("iteration")
            series = mine[key].dropna().sort_index() if key in mine else pd.Series(dtype=float)
            if series.empty:
                continue
            colour = theme.lines[number % len(theme.lines)]
            axes.plot(series.index, series, color=colour, linewidth=0.7, alpha=0.35)
            mean, _, _ = _rolling(series)
            axes.plot(series.index, mean, color=colour, linewidth=1.8)
            labels.append((float(mean.iloc[-1]), name, colour))
        if not labels:
            _nothing(axes, theme)
            continue
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        if place % 2:
            _label_ends(axes, labels)
    return figure


def plot_advice(advice: pd.DataFrame, theme: Theme = LIGHT) -> Chart:
    """Draws trust, acceptance and usefulness over the iterations, a line per teacher and agent.

    ``advice`` is the table of `Run.advice`.
    """
    figure = Chart(figsize=(8.4, 3.0), layout="constrained", facecolor=theme.paper)
    heard = advice[advice["peer"] != ""]
    pairs = heard[["agent", "peer"]].drop_duplicates().sort_values(["agent", "peer"]).to_records(index=False).tolist()
    for place, (key, title, unit) in enumerate(_ADVICE):
        axes = figure.add_subplot(1, 3, place + 1)
        _style(axes, theme)
        axes.set_title(title, loc="left", color=theme.ink, fontsize=10, fontweight="bold", pad=18)
        axes.annotate(unit, (0, 1), (0, 6), "axes fraction", "offset points", color=theme.muted, fontsize=8)
        axes.set_xlabel("iteration", color=theme.muted, fontsize=8.5)
        labels = []
        for number, (agent, peer) in enumerate(pairs):
            mine = heard[(heard["agent"] == agent) & (heard["peer"] == peer)]
            series = mine.groupby("iteration")[key].mean()
            colour = theme.lines[number % len(theme.lines)]
            axes.plot(series.index, series, color=colour, linewidth=0.7, alpha=0.35)
            mean, _, _ = _rolling(series)
            axes.plot(series.index, mean, color=colour, linewidth=1.8)
            labels.append((float(mean.iloc[-1]), f"{peer} → {agent}", colour))
        if not labels:
            _nothing(axes, theme)
            continue
        if key != "usefulness":
            axes.set_ylim(-0.03, 1.05)
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        if place == len(_ADVICE) - 1:
            _label_ends(axes, labels)
    return figure


def to_svg(figure: Figure) -> str:
    """Returns the figure as SVG text, the same on every call."""
    out = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "decentral", "svg.fonttype": "path"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def _names(table: pd.DataFrame) -> list[str]:
    return [str(name) for name in table["agent"].unique()]


def _curve(axes: Axes, series: pd.Series[float], colour: str, again: int, *, bounded: bool) -> float:
    """Draws one agent's line and returns where it ends; ``again``: how many lines before it are the same."""
    mean, low, high = _rolling(series)
    if bounded:
        low, high = low.clip(lower=0), high.clip(upper=1)
    if not again:
        axes.plot(series.index, series, color=colour, linewidth=0.8, alpha=0.35)
        axes.fill_between(series.index, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.plot(series.index, mean, color=colour, linewidth=2.2, linestyle=(0, (4 / again, 4)) if again else "-")
    return float(mean.iloc[-1])


def _rolling(series: pd.Series[float]) -> tuple[pd.Series[float], pd.Series[float], pd.Series[float]]:
    """The centred rolling mean, and it less and plus one standard deviation."""
    window = series.rolling(_WINDOW, min_periods=1, center=True)
    mean, spread = window.mean(), window.std().fillna(0.0)
    return mean, mean - spread, mean + spread


def _evaluations(episodes: pd.DataFrame, measure: str) -> pd.DataFrame:
    """(agent, iteration, first, value, low, high) of every evaluation."""
    played = episodes[episodes["counted"] & (episodes["phase"] == "eval") & episodes[measure].notna()]
    interval = wilson if measure == "success" else mean_interval
    start = played["iteration"].min()
    rows = [
        [
            name,
            at,
            at == start,
            *(float(np.nan_to_num(x, posinf=0, neginf=0)) for x in interval(group[measure].tolist())),
        ]
        for (name, at), group in played.groupby(["agent", "iteration"], sort=True)
    ]
    return pd.DataFrame(rows, columns=["agent", "iteration", "first", "value", "low", "high"])


def _style(axes: Axes, theme: Theme) -> None:
    axes.set_facecolor(theme.paper)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(theme.muted)
    axes.grid(axis="y", color=theme.grid, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=theme.muted, length=0, labelsize=8.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))


def _label_ends(axes: Axes, labels: Sequence[tuple[float, str, str]]) -> None:
    """Writes each name right of the end of its line, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    inches = axes.get_figure().get_size_inches()[1] * axes.get_position().height  # type: ignore[union-attr]
    gap = 0.2 * (high - low) / inches
    places = spread([value for value, _, _ in labels], gap)
    shift = min(0.0, high - max(places, default=high)) or max(0.0, low - min(places, default=low))
    for (_, name, colour), y in zip(labels, places):
        axes.text(
            1.01,
            y + shift,
            name,
            transform=axes.get_yaxis_transform(),
            color=colour,
            va="center",
            fontsize=9.5,
            fontweight="bold",
        )


def spread(values: Sequence[float], gap: float) -> list[float]:
    """Moves values apart until neighbours differ by ``gap``; of equal ones the first comes on top.

    >>> spread([1.0, 1.0], 0.5)
    [1.25, 0.75]
    """
    order = sorted(range(len(values)), key=lambda i: (values[i], -i))
    blocks: list[tuple[float, list[int]]] = []
    for i in order:
        centre, members = values[i], [i]
        while blocks and blocks[-1][0] + gap * (len(blocks[-1][1]) + len(members)) / 2 > centre:
            other, earlier = blocks.pop()
            centre = (other * len(earlier) + centre * len(members)) / (len(earlier) + len(members))
            members = earlier + members
        blocks.append((centre, members))
    out = list(values)
    for centre, members in blocks:
        for place, i in enumerate(members):
            out[i] = centre + gap * (place - (len(members) - 1) / 2)
    return out


def _nothing(axes: Axes, theme: Theme) -> None:
    axes.text(0.5, 0.5, "no figures yet", transform=axes.transAxes, ha="center", color=theme.muted)
    axes.set_yticks([])
