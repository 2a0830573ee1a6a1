"""The command that starts a project."""

from __future__ import annotations

__all__ = ["group"]

import shlex
from pathlib import Path
from typing import Annotated

import typer

from decentral.commands.root import new_group

group = new_group()


@group.command("new")
def new_command(
    folder: Annotated[Path, typer.Argument(metavar="NAME", help="Folder to make; its name becomes the game's.")],
) -> None:
    """Start a project of your own: a small game that trains at once.

    decentral new my_game
    """
    from decentral.scaffold import create, module_name

    made = create(folder)
    typer.echo(f"made {folder}: {', '.join(made)}")
    typer.echo("try it:")
    typer.echo(f"  cd {shlex.quote(str(folder))} && decentral envs check {module_name(folder.name)}.py:env")
    typer.echo("  decentral train --config config.toml")
