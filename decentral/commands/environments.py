"""Commands for environments."""

from __future__ import annotations

__all__ = ["group"]

import shlex
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from decentral.commands.root import fail, new_group
from decentral.commands.settings import Settings
from decentral.commands.tables import table, turn_table

_WINDOW = 1024
"""Tokens that an agent reads at most unless told otherwise; see AgentConfig.window."""

group = new_group("List and check environments.")


@group.command("list")
def envs_list() -> None:
    """List the built-in environments."""
    import importlib

    from decentral.envs.names import games, suites

    for name, target in games().items():
        module = importlib.import_module(target.partition(":")[0])
        about = (module.__doc__ or "").strip().partition("\n")[0]
        typer.echo(f"{name:<8}  {module.LEVELS} levels  {about}")
    typer.echo(f"others: suite/id, of {', '.join(suites())}, e.g. mpe2/simple_spread_v3")
    typer.echo("or package.module:callable or file.py:callable")


@group.command("check")
def envs_check(
    name: Annotated[str, typer.Argument(help="Built-in name, suite/id, package.module:callable or file.py:callable.")],
    level: Annotated[int | None, typer.Option(min=0, help="Difficulty, if it has levels.")] = None,
    model: Annotated[str | None, typer.Option(help="Whose tokenizer and window count.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the first episode.")] = 0,
    settings: Settings = None,
) -> None:
    """Check that an environment can be played and learnt."""
    from decentral.agents.format import Format
    from decentral.agents.model import load_tokenizer
    from decentral.config import Config
    from decentral.envs.check import check_env

    changes = list(settings or [])
    plan = Config.of(env={"name": name, "level": level}).with_set(changes)
    tokenizer = load_tokenizer(model or plan.agent.model)
    reader = Format(tokenizer)
    found = check_env(
        plan.env,
        count=lambda text: len(reader.text(text)),
        encode=reader.trie,
        window=min(tokenizer.model_max_length, plan.agent.window or _WINDOW),
        seed=seed,
    )
    console = Console(highlight=False)
    shown = table()
    for row in found.rows:
        verdict = Text("ok", "green") if row.ok else Text("failed", "bold red")
        where = Text(f"\n{row.place}", "dim") if row.place else Text()
        shown.add_row(verdict, Text(row.name), Text(row.detail) + where)
    console.print(shown)
    if found.turn is not None:
        console.print(f"\nthe first turn, as {found.turn.agent} reads it:", markup=False)
        console.print(Padding(turn_table(found.turn), (0, 0, 0, 2)))
    if not found.ok:
        words = ["decentral", "envs", "check", name]
        words += ["--level", str(level)] if level is not None else []
        words += ["--model", model] if model is not None else []
        words += [word for change in changes for word in ("--set", change)]
        words += ["--seed", str(seed if found.seed is None else found.seed)]
        failed = ", ".join(row.name for row in found.failures)
        more = f"; {len(found.untried)} more not tried" if found.untried else ""
        fail(
            f"{name} fails {len(found.failures)} of {len(found.rows)} checks ({failed}{more}): mend what the rows say, "
            f"then check again with: {shlex.join(words)}"
        )
