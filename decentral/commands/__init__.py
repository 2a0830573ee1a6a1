"""The command line. Parses, calls the library, prints; decides nothing else.

Everything heavy is imported inside the commands, so that ``decentral --help`` answers at once.
"""

from __future__ import annotations

__all__ = ["app"]

from decentral.commands import benches, environments, models, network, new, processes, runs, tasks
from decentral.commands.root import app

app.add_typer(new.group)
app.add_typer(runs.group)
app.add_typer(environments.group, name="envs")
app.add_typer(tasks.group, name="tasks")
app.add_typer(benches.group, name="bench")
app.add_typer(models.pocket, name="pocket")
app.add_typer(models.mtp, name="mtp")
app.add_typer(network.group)
app.add_typer(network.keys, name="keys")
app.add_typer(processes.group, name="process", hidden=True)
