"""Commands for environments."""

from __future__ import annotations

__all__ = ["group"]

from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from decentral.commands.root import fail, new_group
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
    model: Annotated[str, typer.Option(help="Whose tokenizer and window count.")] = "pocket",
) -> None:
    """Check that an environment can be played and learnt."""
    from decentral.agents.format import Format
    from decentral.agents.model import load_tokenizer
    from decentral.envs.check import check_env
    from decentral.envs.config import EnvConfig

    tokenizer = load_tokenizer(model)
    reader = Format(tokenizer)
    found = check_env(
        EnvConfig(name=name, level=level),
        count=lambda text: len(reader.text(text)),
        encode=reader.trie,
        window=min(tokenizer.model_max_length, _WINDOW),
    )
    console = Console(highlight=False)
    shown = table()
    for row in found.rows:
        shown.add_row(Text("ok", "green") if row.ok else Text("failed", "bold red"), Text(row.name), Text(row.detail))
    console.print(shown)
    if found.turn is not None:
        console.print(f"\nthe first turn, as {found.turn.agent} reads it:", markup=False)
        console.print(Padding(turn_table(found.turn), (0, 0, 0, 2)))
    if not found.ok:
        failed = [row.name for row in found.rows if not row.ok]
        fail(
            f"{name} fails {len(failed)} of {len(found.rows)} checks ({', '.join(failed)}): mend what the rows say, "
            "then check again"
        )
