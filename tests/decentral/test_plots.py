from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decentral.plots import DARK, LIGHT, plot_advice, plot_learning, spread, to_svg
from decentral.run import Run

RunFolder = Callable[..., Path]


def texts(figure: object) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]  # type: ignore[attr-defined]


def test_learning_curves_are_labelled_and_start_and_end_at_the_evaluations(run_folder: RunFolder) -> None:
    run = Run.load(run_folder())
    figure = run.plot_learning()
    (axes,) = figure.axes
    assert [text for text in texts(figure) if text in run.agents] == ["anna", "ben"]
    assert axes.get_title(loc="left") == "Success of each agent"
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    results = run.results().set_index("agent")
    heights = [float(line.get_ydata()[0]) for line in dots]  # type: ignore[index,arg-type]
    assert heights == pytest.approx([results.loc[n, k] for n in run.agents for k in ("first", "last")])
    assert [line.get_markerfacecolor() == LIGHT.paper for line in dots] == [True, False] * 2


def test_lines_that_coincide_both_show(run_folder: RunFolder) -> None:
    axes = Run.load(run_folder()).plot_learning().axes[0]
    thick = [line for line in axes.lines if line.get_linewidth() == 2.2]
    assert [line.is_dashed() for line in thick] == [False, True]


def test_returns_are_drawn_where_nothing_defines_success(run_folder: RunFolder) -> None:
    figure = Run.load(run_folder(success=False, agents=("a", "b", "c"))).plot_learning()
    assert figure.axes[0].get_title(loc="left") == "Return of each agent"
    assert [text for text in texts(figure) if len(text) == 1] == ["a", "b", "c"]


def test_training_has_a_panel_per_figure(run_folder: RunFolder) -> None:
    figure = Run.load(run_folder()).plot_training()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Entropy", "KL", "Gradient norm", "Speed"]
    assert all(len(axes.lines) == 4 for axes in figure.axes)


def test_a_run_without_figures_says_so(run_folder: RunFolder) -> None:
    folder = run_folder()
    for path in folder.rglob("*.jsonl"):
        path.unlink()
    run = Run.load(folder)
    assert texts(run.plot_learning()) == ["no figures yet"]
    assert texts(run.plot_training()).count("no figures yet") == 4


def test_no_global_state_is_touched(run_folder: RunFolder) -> None:
    import sys

    run = Run.load(run_folder())
    run.plot_learning()
    run.plot_training()
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_svg_is_the_same_every_time_and_a_notebook_gets_a_png(run_folder: RunFolder) -> None:
    run = Run.load(run_folder())
    first, second = (to_svg(plot_learning(run.phases(), run.episodes(), DARK)) for _ in range(2))
    assert first == second
    assert "<svg" in first
    assert DARK.lines[0] in first
    assert run.plot_learning()._repr_png_()[:4] == b"\x89PNG"  # type: ignore[operator]


@given(st.lists(st.floats(0, 1), max_size=8), st.floats(0.01, 0.5))
def test_labels_keep_their_distance_their_order_and_their_centre(values: list[float], gap: float) -> None:
    moved = spread(values, gap)
    ordered = sorted(moved)
    assert all(b - a >= gap - 1e-9 for a, b in itertools.pairwise(ordered))
    assert [i for i, _ in sorted(enumerate(moved), key=lambda p: p[1])] == sorted(
        range(len(values)), key=lambda i: (values[i], -i)
    )
    if values:
        assert sum(moved) == pytest.approx(sum(values))


def test_tables_may_be_empty() -> None:
    columns = ["phase", "iteration", "attempt", "agent", "episodes", "faults", "seconds", "success", "return"]
    episodes = pd.DataFrame(columns=["phase", "iteration", "agent", "success", "return", "counted"])
    episodes["counted"] = episodes["counted"].astype(bool)
    assert plot_learning(pd.DataFrame(columns=columns), episodes).axes


def test_labels_stay_within_their_panel() -> None:
    pairs = [(agent, peer) for agent in ("ada", "bob", "dan") for peer in ("ada", "bob", "dan") if agent != peer]
    common = {"trust": 1.0, "accepted": True, "usefulness": 1.0}
    rows = [{"agent": a, "peer": b, "iteration": i, **common} for a, b in pairs for i in range(2)]
    rows += [{"agent": "ada", "peer": "bob", "iteration": 2, **common, "usefulness": -9.0}]
    last = plot_advice(pd.DataFrame(rows)).axes[-1]
    low, high = last.get_ylim()
    places = {text.get_text(): text.get_position()[1] for text in last.texts if "→" in text.get_text()}
    assert places.keys() == {f"{peer} → {agent}" for agent, peer in pairs}
    assert all(low <= y <= high for y in places.values())
