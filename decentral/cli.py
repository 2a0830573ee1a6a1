"""The command line. Parses, calls the library, prints; decides nothing else.

Everything heavy is imported inside the commands, so that ``decentral --help`` answers at once.
"""

from __future__ import annotations

__all__ = ["app"]

import errno
import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from decentral.errors import ConfigError, DecentralError

if TYPE_CHECKING:
    from decentral.agents.draft_trainer import Acceptance
    from decentral.config import Config
    from decentral.envs.turn import Turn
    from decentral.evaluate import Step
    from decentral.run import Run

_INTERRUPTED = 130
_WINDOW = 1024
"""Tokens that an agent reads at most unless told otherwise; see AgentConfig.window."""


class Commands(TyperGroup):
    """Turns what a command raises on purpose into one sentence and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except DecentralError as error:
            _fail(str(error))
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(_INTERRUPTED) from None
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            _fail(f"the disk is full while writing {error.filename or 'a file'}: make room and start the command again")


def _fail(sentence: str) -> None:
    typer.echo(f"error: {sentence}", err=True)
    raise typer.Exit(2)


_PLAIN: dict[str, Any] = {"no_args_is_help": True, "add_completion": False, "pretty_exceptions_enable": False}
app = typer.Typer(
    cls=Commands,
    help="Language agents that learn together without a centre, in any PettingZoo environment.",
    **_PLAIN,
)
envs_app = typer.Typer(help="List and check environments.", **_PLAIN)
bench_app = typer.Typer(help="Measure this library beside its peers.", **_PLAIN)
mtp_app = typer.Typer(help="Draft heads: several tokens per forward, with the same distribution.", **_PLAIN)
pocket_app = typer.Typer(help="The model that ships with the library.", **_PLAIN)
app.add_typer(envs_app, name="envs")
app.add_typer(bench_app, name="bench")
app.add_typer(pocket_app, name="pocket")
app.add_typer(mtp_app, name="mtp")

RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, as `decentral train` printed it.")]


def _version(asked: bool) -> None:
    if asked:
        from decentral import __version__

        typer.echo(f"decentral {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    pass


# -- train ----------------------------------------------------------------------------------------------------------


@app.command("train")
def train_command(
    env: Annotated[
        str | None,
        typer.Argument(metavar="ENV", help="Built-in name, package.module:callable or file.py:callable."),
    ] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Settings in TOML; flags go over it.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Run folder; by default runs/ENV-TIME.")] = None,
    resume: Annotated[Path | None, typer.Option(metavar="RUN", help="Go on with an interrupted run.")] = None,
    seed: Annotated[int | None, typer.Option(help="Every draw of the run follows from it.")] = None,
    iterations: Annotated[int | None, typer.Option(help="Collect phases, each followed by updates.")] = None,
    engine: Annotated[str | None, typer.Option(help="local (a process per agent) or inline.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any setting, e.g. agent.lr=1e-3 or agents.bob.kind=random."),
    ] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard files.")] = False,
) -> None:
    """Train agents on an environment, and watch them learn.

    decentral train meet
    """
    from decentral.progress import LogLines, follow
    from decentral.run import Run
    from decentral.train import fresh, train

    flags = {"seed": seed, "iterations": iterations, "engine": engine, "tensorboard": tensorboard or None}
    changes = [f"{key}={json.dumps(value)}" for key, value in flags.items() if value is not None] + (settings or [])
    if resume is not None and out is not None:
        raise ConfigError(f"--out {str(out)!r} cannot go with --resume: a run goes on in its own folder; leave it out")
    before = Run.load(resume) if resume else None
    plan = _plan(env, config, changes, before.config if before else None)
    folder = resume or out or fresh(plan)
    console = Console()
    people = any(agent.get("kind") == "human" for agent in plan.agents.values()) or plan.agent.kind == "human"
    try:
        with LogLines(console) if people else follow(plan.env.name, console) as view:
            view.board.recall(before.closed() if before else ())
            run = train(plan, out=folder, resume=resume is not None, on_event=view, ask=_ask)
    except KeyboardInterrupt:
        hint = (
            f"go on with: decentral train --resume {folder}" if (folder / "state.json").exists() else "nothing was made"
        )
        typer.echo(f"\nstopped; {hint}", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    _show_results(run, console)
    typer.echo(f"report: {run.report()}")


def _plan(env: str | None, file: Path | None, changes: list[str], base: Config | None) -> Config:
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


def _ask(turn: Turn) -> str:
    """Shows a turn to the person at the terminal and returns what they type."""
    Console(highlight=False).print(f"\n{turn.agent}, round {turn.round}", markup=False)
    Console(highlight=False).print(_turn_table(turn))
    return str(typer.prompt("you do"))


def _show_results(run: Run, console: Console) -> None:
    from decentral.intervals import Interval
    from decentral.report import duration, interval_text

    results = run.results()
    if results.empty:
        return
    metrics = run.metrics()
    word = str(results["measure"].iloc[0])
    table = _table("agent", f"{word} before", "after", "updates")
    for row in results.to_dict("records"):
        before, after = (
            interval_text(Interval(row[key], row[f"{key}_low"], row[f"{key}_high"]), word) for key in ("first", "last")
        )
        mine = metrics[metrics["agent"] == row["agent"]]
        table.add_row(Text(row["agent"]), before, after, f"{mine['updates'].max():.0f}" if len(mine) else "0")
    console.print()
    console.print(table)
    seconds = run.state.get("train_seconds", 0.0)
    count = int(results["episodes"].iloc[0])
    console.print(
        f"{duration(seconds)} of training; 95 % intervals over {count} episodes", style="dim", highlight=False
    )


# -- eval, watch, report --------------------------------------------------------------------------------------------


@app.command("eval")
def eval_command(
    run: RunPath,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes of the trained agents, and as many at random.")] = 200,
    seed: Annotated[int | None, typer.Option(help="Seeds follow from it; the run's own by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False,
) -> None:
    """Measure trained agents beside random-legal play, with 95 % intervals."""
    from decentral.run import Run

    found = Run.load(run).evaluate(episodes, seed)
    if as_json:
        agents = {
            score.agent: {
                "measure": score.measure,
                **{key: _finite(getattr(score, key)._asdict()) for key in ("trained", "random", "difference")},
            }
            for score in found.scores
        }
        typer.echo(json.dumps({"agents": agents, "episodes": found.episodes, "faults": len(found.faults)}))
        return
    from decentral.report import interval_text

    word = found.scores[0].measure if found.scores else "success"
    table = _table("agent", f"{word} trained", "random-legal", "difference")
    for score in found.scores:
        apart = "points" if score.measure == "success" else score.measure
        sides = (interval_text(one, score.measure) for one in (score.trained, score.random))
        table.add_row(Text(score.agent), *sides, interval_text(score.difference, apart))
    console = Console()
    console.print(table)
    spoilt = f"; {len(found.faults)} spoilt, the first one: {found.faults[0]}" if found.faults else ""
    note = f"{found.episodes} episodes each on the same seeds; 95 % intervals{spoilt}"
    console.print(note, style="dim", highlight=False, markup=False, soft_wrap=True)


def _finite(values: dict[str, float]) -> dict[str, float | None]:
    """JSON has no NaN and no infinity: the bounds of an interval from one episode are null."""
    return {key: value if math.isfinite(value) else None for key, value in values.items()}


@app.command("watch")
def watch_command(
    run: RunPath,
    seed: Annotated[int, typer.Option(help="Of the episode.")] = 0,
    delay: Annotated[float, typer.Option(min=0.0, help="Seconds between the steps.")] = 0.0,
) -> None:
    """Watch one episode of the trained agents, turn by turn."""
    from decentral.evaluate import watch
    from decentral.run import Run

    console = Console(highlight=False)
    number = -1
    for step in watch(Run.load(run), seed, _ask):
        if step.moves and step.moves[0].turn.round != number:
            number = step.moves[0].turn.round
            console.print(f"\n[bold]round {number}[/bold]")
        _show_step(step, console)
        if step.moves:
            time.sleep(delay)


def _show_step(step: Step, console: Console) -> None:
    """Prints the picture, then what each agent was told, reads and does, or how the episode ended."""
    console.print(Padding(Text(step.picture), (0, 0, 0, 2)))
    table = _table()
    for move in step.moves:
        turn = move.turn
        likely = "" if move.probability is None else f"  ({100 * move.probability:.0f} %)"
        rows = [
            ("is told once", turn.system),
            ("got", turn.feedback),
            ("reads", turn.observation),
            ("thinks", move.reasoning),
        ]
        told = [(word, Text(text)) for word, text in rows if text]
        does = ("does", Text.assemble((move.action, "bold green"), (likely, "dim")))
        for place, (word, text) in enumerate([*told, does]):
            table.add_row(Text("" if place else turn.agent, "bold"), Text(word, "dim"), text)
    for name, outcome in step.outcomes.items():
        success = "" if outcome.success is None else f"success {100 * outcome.success:.0f} %, "
        table.add_row(
            Text(name, "bold"),
            Text("ends", "dim"),
            Text(f"{success}return {outcome.total:.3g} after {outcome.turns} turns"),
        )
    console.print(table)


@app.command("report")
def report_command(run: RunPath) -> None:
    """Write the HTML report of a run again."""
    from decentral.run import Run

    typer.echo(f"report: {Run.load(run).report()}")


# -- environments ---------------------------------------------------------------------------------------------------


@envs_app.command("list")
def envs_list() -> None:
    """List the built-in environments."""
    import importlib

    from decentral.envs.names import games

    for name, target in games().items():
        module = importlib.import_module(target.partition(":")[0])
        about = (module.__doc__ or "").strip().partition("\n")[0]
        typer.echo(f"{name:<8}  {module.LEVELS} levels  {about}")
    typer.echo("others: package.module:callable or file.py:callable, e.g. mpe2.simple_spread_v3:parallel_env")


@envs_app.command("check")
def envs_check(
    name: Annotated[str, typer.Argument(help="Built-in name, package.module:callable or file.py:callable.")],
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
    table = _table()
    for row in found.rows:
        table.add_row(Text("ok", "green") if row.ok else Text("failed", "bold red"), Text(row.name), Text(row.detail))
    console.print(table)
    if found.turn is not None:
        console.print(f"\nthe first turn, as {found.turn.agent} reads it:", markup=False)
        console.print(Padding(_turn_table(found.turn), (0, 0, 0, 2)))
    if not found.ok:
        failed = [row.name for row in found.rows if not row.ok]
        _fail(
            f"{name} fails {len(failed)} of {len(found.rows)} checks ({', '.join(failed)}): mend what the rows say, "
            "then check again"
        )


def _turn_table(turn: Turn) -> Table:
    table = _table()
    choices = ", ".join(turn.legal) if turn.legal else f"any text of at most {turn.free} tokens"
    for word, text in (
        ("is told once", turn.system),
        ("got", turn.feedback),
        ("reads", turn.observation),
        ("may do", choices),
    ):
        if text:
            table.add_row(Text(word, "dim"), Text(text))
    return table


def _table(*titles: str) -> Table:
    """A table without lines; without titles it has no head and takes what its rows have."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", show_header=bool(titles))
    for title in titles:
        table.add_column(title)
    return table


# -- benchmarks and the pocket model --------------------------------------------------------------------------------


@bench_app.command("core")
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


@bench_app.command("rollouts")
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
    table = _table("model", "batch", "temp.", "mode", "tokens/s", "accepted", "over plain", "over generate")
    for row in found["rows"]:
        over = [
            "" if row["mode"] == other else "{:.2f} [{:.2f}, {:.2f}]".format(row[key], *row[f"{key}_interval"])
            for other in ("plain", "generate")
            for key in (f"speedup_vs_{other}",)
        ]
        accepted = "" if row["acceptance"] is None else f"{100 * row['acceptance']:.1f} %"
        named = (row["model"], str(row["batch"]), str(row["temperature"]), row["mode"])
        table.add_row(*map(Text, (*named, f"{row['tokens_per_s']:,.0f}", accepted, *over)))
    console = Console(highlight=False)
    console.print(table)
    for line in found["entropy"]["slopes"]:
        console.print(
            f"{line['mode']}, {line['head']} head: acceptance changes by {100 * line['slope']:.1f} points per nat of "
            f"entropy [{100 * line['low']:.1f}, {100 * line['high']:.1f}]",
            markup=False,
            soft_wrap=True,
        )
    console.print(f"figures and plots: {out}", style="dim", markup=False, soft_wrap=True)


@bench_app.callback()
def _bench() -> None:
    pass


@pocket_app.command("train")
def pocket_train(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the new model.")] = Path("pocket"),
    seed: Annotated[int, typer.Option(help="Data, weights and order follow from it.")] = 0,
) -> None:
    """Train the pocket model from nothing (under an hour on two cores)."""
    from decentral.pocket import train as recipe

    typer.echo(f"model: {recipe(out, seed, report=typer.echo)}")


@pocket_app.command("head")
def pocket_head(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the new head.")] = Path("pocket-mtp"),
    seed: Annotated[int, typer.Option(help="Text and order follow from it.")] = 0,
    loss: Annotated[str, typer.Option(help="Of the second half: e2e, tv, kl or ce.")] = "e2e",
) -> None:
    """Train the pocket model's draft head on its own text (under an hour on two cores)."""
    from decentral.pocket import train_head

    _show_acceptance(train_head(out, seed, loss=loss, report=typer.echo))
    typer.echo(f"head: {out}")


# -- draft heads ----------------------------------------------------------------------------------------------------


EnvName = Annotated[str | None, typer.Argument(metavar="ENV", help="Where the agent plays, as for train.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting, e.g. agent.model=smollm2.")
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings in TOML; flags go over it.")
]


@mtp_app.command("train")
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

    plan = _plan(env, config, settings or [], None)
    found = train(
        plan.agent, [plan.env], out, tokens=tokens, steps=steps, loss=loss, start=start, seed=seed, report=typer.echo
    )
    _show_acceptance(found)
    typer.echo(f"head: {out}\nuse it with: --set agent.draft_head={out}")


@mtp_app.command("measure")
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

    plan = _plan(env, config, settings or [], None)
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


# -- the processes of a run -----------------------------------------------------------------------------------------

RunFolderOption = Annotated[Path, typer.Option("--run", help="The run's folder.")]
LinksOption = Annotated[Path, typer.Option("--links", help="The folder of the run's sockets.")]


@app.command("host", hidden=True)
def host_command(run: RunFolderOption, links: LinksOption) -> None:
    """The environment of a run; started by `train`."""
    from decentral.host import main

    main(run, links)


@app.command("agent", hidden=True)
def agent_command(name: str, run: RunFolderOption, links: LinksOption) -> None:
    """One agent of a run; started by `train`."""
    from decentral.node import main

    main(name, run, links)
