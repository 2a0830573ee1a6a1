"""Commands for benchmarks."""

from __future__ import annotations

__all__ = ["group"]

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from decentral.commands.root import new_group
from decentral.commands.tables import table

group = new_group("Measure this library beside its peers.")


@group.command("core")
def bench_core(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Last line of output: one line of JSON.")] = False,
    peer_python: Annotated[
        str | None, typer.Option(metavar="PYTHON", help="Interpreter that has the peers installed.")
    ] = None,
) -> None:
    """Adapter steps, decoded tokens and updates per second, beside PettingZoo, transformers and a peer."""
    from decentral.bench.core import main

    found = main(quick, typer.echo, peer_python)
    if as_json:
        typer.echo(json.dumps(found))


@group.command("advice")
def bench_advice(
    parts: Annotated[
        list[str] | None, typer.Argument(metavar="PART", help="cells, hostile, messages, costs; all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One iteration of a few cells.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Last line of output: one line of JSON.")] = False,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Results and runs; what was trained there is not trained again.")
    ] = Path("bench/advice"),
    workers: Annotated[int, typer.Option(min=1, help="Trainings at a time, each of one thread.")] = 1,
) -> None:
    """What advice is worth: rules beside learning alone, newcomers, bad teachers, and messages by topology."""
    from decentral.bench.advice import run

    found = run(quick, typer.echo, out, parts or (), workers)
    if as_json:
        typer.echo(json.dumps(found))
        return
    for row in found.get("cells", ()):
        gain = "" if row["over_none"] is None else f", {_points(row['over_none'])} over none"
        typer.echo(
            f"{row['environment']}, {row['setting']}, {row['rule']}: {row['success']:.1f} %{gain}; threshold after "
            f"{row['episodes_to_threshold']} episodes; {row['bytes_per_episode']:,.0f} bytes an episode"
        )
    for row in found.get("hostile", ()):
        typer.echo(f"{row['kind']}, {row['share']} of the teachers, {row['rule']}: {row['success']:.1f} %")
    for row in found.get("messages", ()):
        size = f"{row['per_episode']:,} frames and {row['bytes_per_episode']:,} bytes"
        typer.echo(f"{row['topology']}, {row['agents']} agents: {size} in an episode of 8 rounds, by itself")
    for row in found.get("costs", ()):
        typer.echo(f"{row['what']}: {row['percent']:+.1f} % of the time of training, {row['pairs']} pairs")
    typer.echo(f"figures and runs: {out}")


def _points(interval: list[float | None]) -> str:
    value, *bounds = interval
    low, high = ("?" if bound is None else f"{bound:+.1f}" for bound in bounds)
    return f"{value:+.1f} [{low}, {high}] points"


@group.command("learning")
def bench_learning(
    tasks: Annotated[list[str] | None, typer.Argument(metavar="TASK", help="Which tasks; all by default.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One iteration of one task.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Last line of output: one line of JSON.")] = False,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Results and runs; what was measured there is not measured again.")
    ] = Path("bench/learning"),
) -> None:
    """Agents of the pocket model on environments of other packages, beside random-legal play."""
    from decentral.bench.learning import run

    found = run(quick, typer.echo, out, tasks or ())
    if as_json:
        typer.echo(json.dumps(found))
        return
    shown = table("task", "measure", "trained", "random-legal", "difference, 95 % over seeds", "longest training")
    for task in found["tasks"]:
        low, high = task["interval"] or (float("nan"),) * 2
        gap = f"{task['difference']:.3g} [{low:.3g}, {high:.3g}]"
        figures = (f"{task['trained']:.3g}", f"{task['random']:.3g}", gap, f"{task['train_seconds']:.0f} s")
        shown.add_row(*map(Text, (task["task"], task["measure"], *figures)))
    Console(highlight=False).print(shown)
    typer.echo(f"figures and runs: {out}")


@group.command("rollouts")
def bench_rollouts(
    quick: Annotated[bool, typer.Option("--quick", help="One small cell of each part.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Last line of output: one line of JSON.")] = False,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Results and plots; what was measured there is not measured again.")
    ] = Path("bench/rollouts"),
    pocket_head: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Draft head of pocket; by default the one beside it.")
    ] = None,
    smollm2_head: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Draft head of smollm2; by default the one beside it, if any.")
    ] = None,
    ce_head: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A second head of pocket, trained with cross-entropy.")
    ] = None,
) -> None:
    """Sampling with drafts beside plain sampling and transformers; acceptance against entropy, and in play."""
    from decentral.bench.rollouts import run

    found = run(quick, typer.echo, out, pocket_head=pocket_head, smollm2_head=smollm2_head, ce_head=ce_head)
    if as_json:
        typer.echo(json.dumps(found))
        return
    shown = table("model", "batch", "temp.", "mode", "tokens/s", "accepted", "over plain", "over generate")
    for row in found["rows"]:
        over = [
            "" if row["mode"] == other else "{:.2f} [{:.2f}, {:.2f}]".format(row[key], *row[f"{key}_interval"])
            for other in ("plain", "generate")
            for key in (f"speedup_vs_{other}",)
        ]
        accepted = "" if row["acceptance"] is None else f"{100 * row['acceptance']:.1f} %"
        named = (row["model"], str(row["batch"]), str(row["temperature"]), row["mode"])
        shown.add_row(*map(Text, (*named, f"{row['tokens_per_s']:,.0f}", accepted, *over)))
    console = Console(highlight=False)
    console.print(shown)
    for line in found["entropy"]["slopes"]:
        console.print(
            f"{line['mode']}, {line['head']} head: acceptance changes by {100 * line['slope']:.1f} points per nat of "
            f"entropy [{100 * line['low']:.1f}, {100 * line['high']:.1f}]",
            markup=False,
            soft_wrap=True,
        )
    console.print(f"figures and plots: {out}", style="dim", markup=False, soft_wrap=True)


@group.command("environments")
def bench_environments(
    quick: Annotated[bool, typer.Option("--quick", help="A few environments, one pair of each.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Last line of output: one line of JSON.")] = False,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Results; what was measured there is not measured again.")
    ] = Path("bench/environments"),
) -> None:
    """Our turn-based view beside the environments themselves: speed, sizes of turns, forks, successes."""
    from decentral.bench.environments import run

    found = run(quick, typer.echo, out)
    typer.echo(json.dumps(found) if as_json else f"figures: {out / 'environments.json'}")
