"""Settings on the command line."""

from __future__ import annotations

__all__ = ["ConfigFile", "EnvName", "Settings", "plan_of"]

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decentral.errors import ConfigError

if TYPE_CHECKING:
    from decentral.config import Config

EnvName = Annotated[str | None, typer.Argument(metavar="ENV", help="Where the agent plays, as for train.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting, e.g. agent.model=smollm2.")
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings in TOML; flags go over it.")
]


def plan_of(env: str | None, file: Path | None, changes: list[str], base: Config | None) -> Config:
    """The settings: of ``base`` or the file, under the environment's name, under the flags."""
    from decentral.config import Config
    from decentral.envs.names import games

    if file is not None:
        plan = Config.load(file)
    elif base is not None:
        plan = base
    elif env is not None:
        return Config.of(env=env).with_set(changes)
    else:
        raise ConfigError(f"no environment is named: give one ({', '.join(games())}, or your own) or a --config file")
    return plan.with_set([*([f"env.name={env}"] if env else []), *changes])
