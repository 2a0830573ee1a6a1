"""The processes of a run on one machine, which `train` starts."""

from __future__ import annotations

__all__ = ["group"]

from pathlib import Path
from typing import Annotated

import typer

from decentral.commands.root import new_group

group = new_group()
RunFolderOption = Annotated[Path, typer.Option("--run", help="The run's folder.")]
LinksOption = Annotated[Path, typer.Option("--links", help="The folder of the run's sockets.")]


@group.command("host")
def host_command(run: RunFolderOption, links: LinksOption) -> None:
    """The environment of a run; started by `train`."""
    from decentral.host import main

    main(run, links)


@group.command("agent")
def agent_command(name: str, run: RunFolderOption, links: LinksOption) -> None:
    """One agent of a run; started by `train`."""
    from decentral.node import main

    main(name, run, links)
