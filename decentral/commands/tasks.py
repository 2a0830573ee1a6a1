"""Commands for verifiable tasks and their composites."""

from __future__ import annotations

__all__ = ["group"]

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from decentral.commands.root import fail, new_group
from decentral.commands.tables import table
from decentral.errors import short

if TYPE_CHECKING:
    from decentral.envs.tasks.gates import Report
    from decentral.envs.tasks.space import Space

_ENUMERATED = 200_000
"""So many composites of one operator and size are listed at most to check a count."""

group = new_group("Verifiable tasks and their composites.")
TaskId = Annotated[str, typer.Argument(metavar="ID", help="A name, or e.g. seq(reverse,total), or file.py:task.")]
Level = Annotated[int, typer.Option(min=0, max=9, help="Difficulty.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the first instance.")]
Base = Annotated[int | None, typer.Option(min=1, help="Only the first so many base tasks.")]
Parts = Annotated[int, typer.Option(min=2, max=12, help="Composites have at most so many.")]


@group.command("list")
def tasks_list() -> None:
    """List the base tasks, by family."""
    from decentral.envs.tasks.ids import OPERATORS, base_tasks

    tasks = base_tasks().values()
    shown = table("task", "takes", "gives", "says")
    for family in sorted({task.family for task in tasks}):
        shown.add_row(Text(family, "bold"))
        for task in tasks:
            if task.family == family:
                shown.add_row(Text(f"  {task.name}"), Text(task.takes.name), Text(task.gives.name), Text(task.describe))
    for column in shown.columns[:3]:
        column.no_wrap = True
    Console(highlight=False).print(shown)
    typer.echo(f"{len(tasks)} tasks; composites: {', '.join(OPERATORS)}, e.g. seq(reverse,running_sums)")


@group.command("count")
def tasks_count(
    base: Base = None,
    parts: Parts = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Count the composites of base tasks, without listing them."""
    from decentral.envs.tasks.space import distinct_maps

    space = _space(base)
    cells = space.cells(parts)
    counts = {cell: space.count(*cell) for cell in cells}
    for cell, count in counts.items():
        if count <= _ENUMERATED and count != (listed := sum(1 for _ in space.ids(*cell))):
            fail(
                f"{cell[0]} of {cell[1]} parts has {count} by the formula and {listed} listed: report this as a defect"
            )
    by_operator = {name: sum(counts[cell] for cell in cells if cell[0] == name) for name in dict(cells)}
    distinct = distinct_maps(space.base, parts)
    if as_json:
        found = {
            "base": len(space.base),
            "composites": sum(by_operator.values()),
            "by_operator": by_operator,
            "distinct_sequential_maps": distinct,
        }
        typer.echo(json.dumps(found))
        return
    shown = table("operator", *(f"{size} parts" for size in range(2, parts + 1)), "all")
    for column in shown.columns[1:]:
        column.justify = "right"
    for name, every in by_operator.items():
        row = (f"{counts[name, size]:,}" if (name, size) in counts else "" for size in range(2, parts + 1))
        shown.add_row(name, *row, f"{every:,}")
    Console(highlight=False).print(shown)
    total = sum(by_operator.values())
    typer.echo(
        f"{len(space.base)} base tasks, {total:,} composites of at most {parts} parts, "
        f"{total - by_operator['par']:,} without par"
    )
    typer.echo(f"{distinct:,} seq(...) differ in what they give for 64 inputs")


@group.command("show")
def tasks_show(
    id_: TaskId,
    level: Level = 0,
    seed: Seed = 0,
) -> None:
    """Print an instance of a task: the prompt and the reference answer."""
    from decentral.envs.tasks.ids import build

    instance = build(id_).instance(seed, level)
    typer.echo(instance.prompt)
    typer.secho(f"answer: {instance.answer}", bold=True)


@group.command("play")
def tasks_play(
    id_: TaskId,
    level: Level = 0,
    seed: Seed = 0,
    count: Annotated[int, typer.Option(min=1, help="Instances, of this seed and those after it.")] = 3,
) -> None:
    """Answer instances of a task yourself."""
    from decentral.envs.tasks.ids import build

    task = build(id_)
    scores: list[float] = []
    for number in range(count):
        instance = task.instance(seed + number, level)
        typer.echo(instance.prompt)
        try:
            text = input("answer: ")
        except EOFError:
            typer.echo()
            break
        scores.append(task.score(instance, text))
        right = scores[-1] == 1.0
        typer.secho(
            "right\n" if right else f"{scores[-1]:.2f}; it is {instance.answer}\n", fg="green" if right else "red"
        )
    if scores:
        typer.echo(f"{sum(scores):.2f} of {len(scores)}")


@group.command("check")
def tasks_check(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="By default the whole catalogue.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Instances per level.")] = 20,
    seed: Seed = 0,
) -> None:
    """Check that tasks are sound, and name the gate that is not passed."""
    from decentral.envs.tasks.gates import check
    from decentral.envs.tasks.ids import base_tasks, build

    tasks = [build(id_) for id_ in ids] if ids else list(base_tasks().values())
    reports = [check(task, range(seed, seed + seeds)) for task in tasks]
    _show_reports(reports, every=bool(ids))
    failed = [report for report in reports if not report.ok]
    if failed:
        gates = sorted({one.gate for report in failed for one in report.failures})
        names = ", ".join(report.name for report in failed[:3]) + (", ..." if len(failed) > 3 else "")
        fail(f"{len(failed)} of {len(reports)} tasks fail ({names}; gates: {', '.join(gates)}): mend what the rows say")
    typer.echo(f"{len(reports)} tasks pass all gates" if len(reports) > 1 else f"{reports[0].name} passes all gates")


@group.command("sample")
def tasks_sample(
    count: Annotated[int, typer.Option(min=1, help="How many composites are drawn.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the drawing.")] = 0,
    base: Base = None,
    parts: Parts = 3,
    seeds: Annotated[int, typer.Option(min=1, help="Instances per level for the gates.")] = 4,
    operator: Annotated[list[str] | None, typer.Option(help="Only these: seq, par, sort, select.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Draw composites uniformly, and count what the gates reject and what passes again on fresh seeds."""
    from decentral.envs.tasks.ids import OPERATORS
    from decentral.envs.tasks.survey import survey
    from decentral.errors import ConfigError, suggest

    for name in operator or ():
        if name not in OPERATORS:
            raise ConfigError(f"operator {name!r} is unknown{suggest(name, OPERATORS)}; use {', '.join(OPERATORS)}")
    space = _space(base)
    cells = space.cells(parts, operator or tuple(OPERATORS))
    if not any(space.count(*cell) for cell in cells):
        fail(f"there are no composites of at most {parts} parts: allow more with --parts, or more base tasks")
    found = survey(space, cells, count, seed=seed, seeds=seeds)
    passed = found.admitted - len(found.again)
    if as_json:
        counts = {"drawn": found.drawn, "rejected": found.rejected, "admitted": found.admitted, "pass_again": passed}
        typer.echo(json.dumps(counts))
        return
    shown = table("rejected by", *found.drawn, "all")
    for column in shown.columns[1:]:
        column.justify = "right"
    for gate, here in found.rejected.items():
        shown.add_row(gate, *(f"{here.get(name, 0):,}" for name in found.drawn), f"{sum(here.values()):,}")
    shown.add_row(Text("drawn", "dim"), *(f"{number:,}" for number in found.drawn.values()), f"{count:,}")
    Console(highlight=False).print(shown)
    typer.echo(f"{found.admitted:,} of {count:,} admitted; {passed:,} of these pass again on fresh seeds")
    _show_reports(found.again, every=False)


def _show_reports(reports: Sequence[Report], *, every: bool) -> None:
    """Prints a row per verdict: all of them, or only the failures."""
    shown = table()
    for report in reports:
        for one in report.verdicts if every else report.failures:
            verdict = Text("ok", "green") if one.ok else Text("failed", "bold red")
            where = Text(f"\n{one.place}", "dim") if one.place else Text()
            shown.add_row(verdict, Text(short(report.name)[1:-1]), Text(one.gate), Text(one.detail) + where)
    if shown.row_count:
        Console(highlight=False).print(shown)


def _space(base: int | None) -> Space:
    from itertools import islice

    from decentral.envs.tasks.ids import base_tasks
    from decentral.envs.tasks.space import Space

    tasks = base_tasks()
    if base is not None and base > len(tasks):
        fail(f"--base {base} is more than the catalogue has: choose 1 to {len(tasks)}")
    return Space(tuple(islice(tasks.values(), base)))
