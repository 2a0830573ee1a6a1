"""Commands for a run across machines: keys, host, agent."""

from __future__ import annotations

__all__ = ["group", "keys"]

import os
import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from decentral.commands.root import INTERRUPTED, new_group
from decentral.commands.settings import ConfigFile, EnvName, Settings, plan_of
from decentral.errors import ConfigError, DecentralError

group = new_group()
keys = new_group("CURVE keys, by which the owners of a run across machines know each other.")
NetworkFile = Annotated[Path, typer.Option("--network", metavar="FILE", help="Who takes part, where, by which key.")]
SecretFile = Annotated[Path, typer.Option("--secret", metavar="FILE", help="This place's NAME.key_secret.")]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="This owner's run folder; by default runs/ENV-TIME.")]
Resume = Annotated[Path | None, typer.Option(metavar="RUN", help="Go on with an interrupted run.")]


@keys.callback()
def keys_group() -> None:
    """CURVE keys, by which the owners of a run across machines know each other."""


@keys.command("new")
def new_command(
    name: Annotated[str, typer.Argument(help="`host`, or an agent's name.")],
    folder: Annotated[Path, typer.Option(metavar="DIR", help="Where to put them.")] = Path("keys"),
) -> None:
    """Make a pair of keys: NAME.key for everybody, NAME.key_secret for nobody else."""
    from decentral.keys import new_keys, public_key, secret_key

    _, secret = new_keys(name, folder)
    table = "host" if name == "host" else f"agents.{name}"
    typer.echo(f'key = "{public_key(secret_key(secret))}"')
    typer.echo(f"write this line below [{table}] of the network file that all owners share; keep {secret} to yourself")


@group.command("host")
def host_command(
    network: NetworkFile,
    secret: SecretFile,
    env: EnvName = None,
    config: ConfigFile = None,
    out: Out = None,
    resume: Resume = None,
    settings: Settings = None,
) -> None:
    """Host a run whose agents are on other machines: play its environment.

    decentral host meet --network network.toml --secret keys/host.key_secret
    """
    _join("host", network, secret, env, config, out, resume, settings)


@group.command("agent")
def agent_command(
    name: Annotated[str, typer.Argument(help="One of the environment's agents.")],
    network: NetworkFile,
    secret: SecretFile,
    env: EnvName = None,
    config: ConfigFile = None,
    out: Out = None,
    resume: Resume = None,
    settings: Settings = None,
) -> None:
    """Take part in a run on other machines as one agent, whose weights stay on this one.

    decentral agent ada meet --network network.toml --secret keys/ada.key_secret
    """
    if name == "host":
        raise ConfigError("no agent can be called 'host': start the host with `decentral host`")
    _join(name, network, secret, env, config, out, resume, settings)


def _join(
    name: str,
    network: Path,
    secret: Path,
    env: str | None,
    config: Path | None,
    out: Path | None,
    resume: Path | None,
    settings: list[str] | None,
) -> None:
    from decentral.join import Place
    from decentral.owners import AgentLines, HostLines
    from decentral.progress import follow
    from decentral.run import Run
    from decentral.train import fresh

    if resume is not None and out is not None:
        raise ConfigError(f"--out {str(out)!r} cannot go with --resume: a run goes on in its own folder; leave it out")
    before = Run.load(resume) if resume else None
    plan = plan_of(env, config, settings or [], before.config if before else None)
    folder = resume or out or fresh(plan)
    place = Place.open(name, plan, network=network, secret=secret, out=folder, resume=resume is not None)
    console = Console()

    def say(line: str) -> None:
        console.print(f"{time.strftime('%H:%M:%S')}  {line}", soft_wrap=True, markup=False, highlight=False)

    try:
        if name == "host":
            with follow(plan.env.name, console) as view:
                view.board.recall(before.closed() if before else ())
                place.play(HostLines(view, say))
        else:
            say(f"waiting for the host at {place.host}")
            place.play(AgentLines(say))
    except KeyboardInterrupt:
        again = ["decentral", *(["host"] if name == "host" else ["agent", name]), "--resume", str(folder)]
        again += ["--network", str(network), "--secret", str(secret)]
        _leave(f"stopped; go on with: {shlex.join(again)}", INTERRUPTED)
    except DecentralError as error:
        _leave(f"error: {error}", 2)
    typer.echo(f"run: {folder}")


def _leave(sentence: str, code: int) -> NoReturn:
    """Ends the command at once: its worker may be deep in a call that nobody needs any more."""
    typer.echo(sentence, err=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
