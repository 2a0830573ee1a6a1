"""Commands for runs: train, eval, watch, report."""

from __future__ import annotations

__all__ = ["group"]

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from decentral.commands.root import INTERRUPTED, new_group
from decentral.commands.settings import ConfigFile, plan_of
from decentral.commands.tables import table, turn_table
from decentral.errors import ConfigError

if TYPE_CHECKING:
    from decentral.envs.turn import Turn
    from decentral.evaluate import Score, Step
    from decentral.run import Run

group = new_group()
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, as `decentral train` printed it.")]


@group.command("train")
def train_command(
    env: Annotated[
        str | None,
        typer.Argument(metavar="ENV", help="Built-in name, suite/id, package.module:callable or file.py:callable."),
    ] = None,
    config: ConfigFile = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Run folder; by default runs/ENV-TIME.")] = None,
    resume: Annotated[Path | None, typer.Option(metavar="RUN", help="Go on with an interrupted run.")] = None,
    seed: Annotated[int | None, typer.Option(help="Every draw of the run follows from it.")] = None,
    iterations: Annotated[int | None, typer.Option(help="Collect phases, each followed by updates.")] = None,
    engine: Annotated[str | None, typer.Option(help="local (a process per agent) or inline.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any setting, e.g. agent.lr=1e-3 or agents.bob.kind=random."),
    ] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard files.")] = False,
) -> None:
    """Train agents on an environment, and watch them learn.

    decentral train meet
    """
    from decentral.progress import LogLines, follow
    from decentral.run import Run
    from decentral.train import fresh, train

    flags = {"seed": seed, "iterations": iterations, "engine": engine, "tensorboard": tensorboard or None}
    changes = [f"{key}={json.dumps(value)}" for key, value in flags.items() if value is not None] + (settings or [])
    if resume is not None and out is not None:
        raise ConfigError(f"--out {str(out)!r} cannot go with --resume: a run goes on in its own folder; leave it out")
    before = Run.load(resume) if resume else None
    plan = plan_of(env, config, changes, before.config if before else None)
    folder = resume or out or fresh(plan)
    console = Console()
    people = any(agent.get("kind") == "human" for agent in plan.agents.values()) or plan.agent.kind == "human"
    try:
        with LogLines(console) if people else follow(plan.env.name, console) as view:
            view.board.recall(before.closed() if before else ())
            run = train(plan, out=folder, resume=resume is not None, on_event=view, ask=_ask)
    except KeyboardInterrupt:
        hint = (
            f"go on with: decentral train --resume {folder}" if (folder / "state.json").exists() else "nothing was made"
        )
        typer.echo(f"\nstopped; {hint}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    _show_results(run, console)
    typer.echo(f"report: {run.report()}")


def _ask(turn: Turn) -> str:
    """Shows a turn to the person at the terminal and returns what they type."""
    Console(highlight=False).print(f"\n{turn.agent}, round {turn.round}", markup=False)
    Console(highlight=False).print(turn_table(turn))
    return str(typer.prompt("you do"))


def _ends(row: Mapping[Any, Any], word: str) -> list[str]:
    """Returns a figure in the first and in the last evaluation."""
    from decentral.intervals import Interval
    from decentral.report import interval_text

    return [interval_text(Interval(row[key], row[f"{key}_low"], row[f"{key}_high"]), word) for key in ("first", "last")]


def _show_results(run: Run, console: Console) -> None:
    from decentral.report import duration

    results = run.results()
    if results.empty:
        return
    metrics = run.metrics()
    word = str(results["measure"].iloc[0])
    shown = table("agent", f"{word} before", "after", "updates")
    for row in results.to_dict("records"):
        mine = metrics[metrics["agent"] == row["agent"]]
        shown.add_row(Text(row["agent"]), *_ends(row, word), f"{mine['updates'].max():.0f}" if len(mine) else "0")
    for row in run.team_results().to_dict("records"):
        if len(run.config.teams[row["team"]]) > 1:
            shown.add_row(Text(f"team {row['team']}"), *_ends(row, word), "")
    console.print()
    console.print(shown)
    seconds = run.state.get("train_seconds", 0.0)
    count = int(results["episodes"].iloc[0])
    console.print(
        f"{duration(seconds)} of training; 95 % intervals over {count} episodes", style="dim", highlight=False
    )


@group.command("eval")
def eval_command(
    run: RunPath,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes of the trained agents, and as many at random.")] = 200,
    seed: Annotated[int | None, typer.Option(help="Seeds follow from it; the run's own by default.")] = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Whose agents each team plays against; by default random play."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False,
) -> None:
    """Measure trained agents beside random-legal play, with 95 % intervals."""
    from decentral.run import Run

    found = Run.load(run).evaluate(episodes, seed, against=Run.load(against) if against else None)
    if as_json:
        agents, teams = ({score.name: _plain(score) for score in scores} for scores in (found.scores, found.teams))
        typer.echo(
            json.dumps({"agents": agents, "teams": teams, "episodes": found.episodes, "faults": len(found.faults)})
        )
        return
    from decentral.report import interval_text

    word = found.scores[0].measure if found.scores else "success"
    met = any(score.against for score in found.scores)
    shown = table("agent", f"{word} trained", "random-legal", "difference", *(["against"] if met else []))
    for score in (*found.scores, *found.teams):
        name = f"team {score.name}" if score in found.teams else score.name
        apart = "points" if score.measure == "success" else score.measure
        sides = (interval_text(one, score.measure) for one in (score.trained, score.random))
        shown.add_row(Text(name), *sides, interval_text(score.difference, apart), *map(Text, [score.against][:met]))
    console = Console()
    console.print(shown)
    spoilt = f"; {len(found.faults)} spoilt, the first one: {found.faults[0]}" if found.faults else ""
    note = f"{found.episodes} episodes each on the same seeds; 95 % intervals{spoilt}"
    console.print(note, style="dim", highlight=False, markup=False, soft_wrap=True)


def _plain(score: Score) -> dict[str, Any]:
    sides = {key: _finite(getattr(score, key)._asdict()) for key in ("trained", "random", "difference")}
    return {"measure": score.measure, "against": score.against, **sides}


def _finite(values: dict[str, float]) -> dict[str, float | None]:
    """JSON has no NaN and no infinity: the bounds of an interval from one episode are null."""
    return {key: value if math.isfinite(value) else None for key, value in values.items()}


@group.command("watch")
def watch_command(
    run: RunPath,
    seed: Annotated[int, typer.Option(help="Of the episode.")] = 0,
    delay: Annotated[float, typer.Option(min=0.0, help="Seconds between the steps.")] = 0.0,
) -> None:
    """Watch one episode of the trained agents, turn by turn."""
    from decentral.evaluate import watch
    from decentral.run import Run

    console = Console(highlight=False)
    number = -1
    for step in watch(Run.load(run), seed, _ask):
        if step.moves and step.moves[0].turn.round != number:
            number = step.moves[0].turn.round
            console.print(f"\n[bold]round {number}[/bold]")
        _show_step(step, console)
        if step.moves:
            time.sleep(delay)


def _show_step(step: Step, console: Console) -> None:
    """Prints the picture, then what each agent was told, reads and does, or how the episode ended."""
    console.print(Padding(Text(step.picture), (0, 0, 0, 2)))
    shown = table()
    for move in step.moves:
        turn = move.turn
        likely = "" if move.probability is None else f"  ({100 * move.probability:.0f} %)"
        rows = [
            ("is told once", turn.system),
            ("got", turn.feedback),
            ("reads", turn.observation),
            ("thinks", move.reasoning),
        ]
        told = [(word, Text(text)) for word, text in rows if text]
        does = ("does", Text.assemble((move.action, "bold green"), (likely, "dim")))
        for place, (word, text) in enumerate([*told, does]):
            shown.add_row(Text("" if place else turn.agent, "bold"), Text(word, "dim"), text)
    for name, outcome in step.outcomes.items():
        success = "" if outcome.success is None else f"success {100 * outcome.success:.0f} %, "
        shown.add_row(
            Text(name, "bold"),
            Text("ends", "dim"),
            Text(f"{success}return {outcome.total:.3g} after {outcome.turns} turns"),
        )
    console.print(shown)


@group.command("report")
def report_command(run: RunPath) -> None:
    """Write the HTML report of a run again."""
    from decentral.run import Run

    typer.echo(f"report: {Run.load(run).report()}")
