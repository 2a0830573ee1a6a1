"""Commands that make models: the one that ships with the library, and draft heads."""

from __future__ import annotations

__all__ = ["mtp", "pocket"]

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from decentral.commands.root import new_group
from decentral.commands.settings import ConfigFile, EnvName, Settings, plan_of

if TYPE_CHECKING:
    from decentral.agents.draft_trainer import Acceptance

pocket = new_group("The model that ships with the library.")
mtp = new_group("Draft heads: several tokens per forward, with the same distribution.")


@pocket.command("train")
def pocket_train(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the new model.")] = Path("pocket"),
    seed: Annotated[int, typer.Option(help="Data, weights and order follow from it.")] = 0,
) -> None:
    """Train the pocket model from nothing (under an hour on two cores)."""
    from decentral.pocket import train as recipe

    typer.echo(f"model: {recipe(out, seed, report=typer.echo)}")


@pocket.command("head")
def pocket_head(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the new head.")] = Path("pocket-mtp"),
    seed: Annotated[int, typer.Option(help="Text and order follow from it.")] = 0,
    loss: Annotated[str, typer.Option(help="Of the second half: e2e, tv, kl or ce.")] = "e2e",
) -> None:
    """Train the pocket model's draft head on its own text (about an hour on two cores)."""
    from decentral.pocket import train_head

    _show_acceptance(train_head(out, seed, loss=loss, report=typer.echo))
    typer.echo(f"head: {out}")


@mtp.command("train")
def mtp_train(
    env: EnvName = None,
    config: ConfigFile = None,
    settings: Settings = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the new head.")] = Path("mtp"),
    tokens: Annotated[int, typer.Option(min=1000, help="Tokens that the agent samples as training text.")] = 200_000,
    steps: Annotated[int, typer.Option(min=1, help="Optimiser steps.")] = 2000,
    loss: Annotated[str, typer.Option(help="e2e (end-to-end total variation), tv (one step), kl or ce.")] = "e2e",
    start: Annotated[Path | None, typer.Option(metavar="DIR", help="A head to go on from.")] = None,
    seed: Annotated[int, typer.Option(help="Text and order follow from it.")] = 0,
) -> None:
    """Train a draft head on an agent's own text; the agent's weights stay as they are.

    decentral mtp train guide --set agent.reasoning_tokens=16 --out heads/guide
    """
    from decentral.mtp import train

    plan = plan_of(env, config, settings or [], None)
    found = train(
        plan.agent, [plan.env], out, tokens=tokens, steps=steps, loss=loss, start=start, seed=seed, report=typer.echo
    )
    _show_acceptance(found)
    typer.echo(f"head: {out}\nuse it with: --set agent.draft_head={out}")


@mtp.command("measure")
def mtp_measure(
    env: EnvName = None,
    config: ConfigFile = None,
    settings: Settings = None,
    tokens: Annotated[int, typer.Option(min=100, help="Tokens that the agent samples as text.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Of the text.")] = 1_000_000,
    write: Annotated[bool, typer.Option("--write", help="Keep the costs found here with the head.")] = False,
) -> None:
    """Measure what a draft head brings to an agent: acceptance on its own text, and costs on this machine."""
    from decentral.mtp import measure_head

    plan = plan_of(env, config, settings or [], None)
    found = measure_head(plan.agent, plan.env, tokens=tokens, seed=seed, write=write, report=typer.echo)
    _show_acceptance({plan.agent.temperature: found})


def _show_acceptance(found: Mapping[float, Acceptance]) -> None:
    """Prints how many drafts are accepted, by temperature and position."""
    depth = max(len(acceptance.rejection) for acceptance in found.values())
    table = Table(box=None, pad_edge=False)
    for title in ("temperature", "entropy", "mode", *(f"draft {j}" for j in range(1, depth + 1))):
        table.add_column(title, justify="right")
    for temperature, acceptance in found.items():
        for mode, values in (("rejection", acceptance.rejection), ("target_only", acceptance.target_only)):
            shares = [f"{100 * value:.1f} %" for value in values]
            table.add_row(f"{temperature:g}", f"{acceptance.entropy:.2f}", mode, *shares)
    Console().print(table)
