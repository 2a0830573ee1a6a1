"""The plots of ``decentral bench rollouts``, drawn from its figures."""

from __future__ import annotations

__all__ = ["plot_acceptance", "plot_speedup"]

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import AutoLocator, FixedLocator, NullLocator, PercentFormatter, ScalarFormatter

from decentral.plots import LIGHT, Chart, _label_ends, _style

_COLOURS = dict(zip(("rejection", "target_only", "plain", "generate"), LIGHT.lines))


def plot_acceptance(points: Sequence[Mapping[str, Any]]) -> Chart:
    """Draws acceptance against entropy, a line per head and mode and a dot per temperature."""
    figure = Chart(figsize=(8.4, 4.4), layout="constrained", facecolor=LIGHT.paper)
    axes = figure.add_subplot()
    _style(axes, LIGHT)
    _title(axes, "Accepted drafts against the policy's entropy", "mean entropy in nats; a dot per temperature")
    axes.xaxis.set_major_locator(AutoLocator())
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    labels = []
    for head, mode in dict.fromkeys((point["head"], point["mode"]) for point in points):
        mine = [point for point in points if (point["head"], point["mode"]) == (head, mode)]
        first = head == points[0]["head"]
        y = [point["acceptance"] for point in mine]
        x = [point["entropy"] for point in mine]
        axes.plot(x, y, "o-" if first else "o--", color=_COLOURS[mode], linewidth=1.8, markersize=5)
        labels.append((y[-1], mode if first else f"{mode}, {head}", _COLOURS[mode]))
    _label_ends(axes, labels)
    return figure


def plot_speedup(rows: Sequence[Mapping[str, Any]]) -> Chart:
    """Draws speed-ups over plain sampling and ``generate`` against the batch size, at temperature 1."""
    rows = [row for row in rows if row["temperature"] == 1.0]
    models = list(dict.fromkeys(row["model"] for row in rows))
    figure = Chart(figsize=(1.2 + 5.2 * len(models), 6.4), layout="constrained", facecolor=LIGHT.paper)
    for line, (other, word) in enumerate((("plain", "plain sampling"), ("generate", "transformers' generate"))):
        for column, model in enumerate(models):
            axes = figure.add_subplot(2, len(models), 1 + line * len(models) + column)
            mine = [row for row in rows if row["model"] == model and row["mode"] not in (other, "generate")]
            _speedup(axes, mine, f"speedup_vs_{other}")
            _title(axes, f"{model}: speed-up over {word}", "batch" if line else "")
    return figure


def _speedup(axes: Axes, rows: Sequence[Mapping[str, Any]], key: str) -> None:
    _style(axes, LIGHT)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(sorted({row["batch"] for row in rows})))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.axhline(1.0, color=LIGHT.muted, linewidth=1.0)
    labels = []
    for place, mode in enumerate(dict.fromkeys(row["mode"] for row in rows)):
        mine = [row for row in rows if row["mode"] == mode]
        x = [row["batch"] * 1.03**place for row in mine]  # bars side by side
        y = [row[key] for row in mine]
        bars = [
            [row[key] - row[f"{key}_interval"][0] for row in mine],
            [row[f"{key}_interval"][1] - row[key] for row in mine],
        ]
        axes.errorbar(x, y, yerr=bars, fmt="o-", color=_COLOURS[mode], linewidth=1.8, markersize=5, capsize=2.5)
        labels.append((y[-1], mode, _COLOURS[mode]))
    axes.set_ylim(bottom=min(0.9, axes.get_ylim()[0]))
    _label_ends(axes, labels)


def _title(axes: Axes, title: str, below: str) -> None:
    axes.set_title(title, loc="left", color=LIGHT.ink, fontsize=11, fontweight="bold")
    axes.set_xlabel(below, color=LIGHT.muted, fontsize=9.5)
