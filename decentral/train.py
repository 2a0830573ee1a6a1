"""The one call that makes or resumes a run: checks everything that can be checked, then lets an engine play it."""

from __future__ import annotations

__all__ = ["check", "explore", "fresh", "play", "train"]

import importlib.util
import re
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from decentral.config import Config
from decentral.disk import disk_error
from decentral.engines import Emit, drive
from decentral.envs.config import EnvConfig
from decentral.envs.names import load, make
from decentral.envs.turn import Turn
from decentral.errors import ConfigError, MissingExtra, RunError
from decentral.folder import RunFolder
from decentral.messages import Event
from decentral.threads import cap, share

if TYPE_CHECKING:
    from decentral.run import Run


def train(
    env: str | EnvConfig | Config | Mapping[str, Any] | Callable[..., Any] | None = None,
    *,
    factory: Callable[..., Any] | None = None,
    out: str | PathLike[str] | None = None,
    resume: bool = False,
    on_event: Emit | None = None,
    ask: Callable[[Turn], str] | None = None,
    **fields: Any,
) -> Run:
    """Trains the agents of an environment and returns their run.

    >>> run = decentral.train("meet", iterations=60)                              # doctest: +SKIP
    >>> run = decentral.train(make_my_env, engine="inline", agent={"lr": 5e-4})   # doctest: +SKIP

    Args:
        env: a name (built-in, ``package.module:callable`` or ``file.py:callable``), an `EnvConfig` or its fields as a
            dict, a whole `Config`, or a callable that returns a PettingZoo environment (engine ``inline`` only).
        factory: such a callable beside an `EnvConfig` or `Config`, in place of what its name says.
        out: the run's folder, which must not exist; by default a new one below ``runs``.
        resume: go on with the interrupted run in ``out``; ``env`` and ``fields``, if given, must be the run's own.
        on_event: is called with what happens (`decentral.messages.Event`), in this thread.
        ask: shows a turn to a person and returns what was typed, for an agent of kind ``human`` (engine ``inline``).
        **fields: the fields of `Config`, as values or dicts.

    Raises ConfigError, EnvError, ModelError, RunError, LinkError or DeadlineError, each with one sentence, and
    KeyboardInterrupt once what is committed is safe on disk.
    """
    from decentral.run import Run

    if env is not None and not isinstance(env, str | EnvConfig | Config | Mapping):
        factory = env
    config = _config(env, factory, fields) if env is not None or fields else None
    if resume:
        if out is None:
            raise RunError("resume=True does not say which run: give its folder as out")
        folder = RunFolder.resume(Path(out), config)
        config = folder.config
        check(config, factory, folder.agents)
    else:
        if config is None:
            raise ConfigError("nothing to train on: give an environment's name, an EnvConfig, a Config or a callable")
        _check_engine(config)
        config, agents, systems = explore(config, factory)
        folder = RunFolder.create(Path(out) if out is not None else fresh(config), config, agents, systems)
    try:
        _check_engine(config)
        play(folder, _job(folder, factory, ask), on_event)
    finally:
        folder.release()
    return Run.load(folder.path)


def _config(env: object, factory: Callable[..., Any] | None, fields: dict[str, Any]) -> Config:
    if isinstance(env, Config):
        return Config.of(**{**msgspec.to_builtins(env), **fields}) if fields else env
    if env is factory and factory is not None:
        if not callable(factory):
            raise ConfigError(
                f"cannot train on {factory!r}: give a function that makes the environment, not the environment itself, "
                "so that many copies can be played"
            )
        kind = f"<{type(factory).__name__}>"  # a partial, or another object that can be called
        env = f"{getattr(factory, '__module__', 'object')}:{getattr(factory, '__qualname__', kind)}"
    return Config.of(env=env, **fields)


def explore(
    config: Config, factory: Callable[..., Any] | None = None, own: Sequence[str] | None = None
) -> tuple[Config, tuple[str, ...], dict[str, str]]:
    """Makes the environment once; returns the config with its teams, its agents, and what each is told once.

    Raises what `check` does, and EnvError.
    """
    game = make(config.env, factory)
    try:
        config = msgspec.structs.replace(config, teams=config.teams or game.teams)
        check(config, factory, game.agents, own)
        game.reset(config.seed)
        return config, game.agents, {name: game.system(name) for name in game.agents}
    finally:
        game.close()


def check(
    config: Config,
    factory: Callable[..., Any] | None,
    agents: tuple[str, ...],
    own: Sequence[str] | None = None,
) -> None:
    """Raises ConfigError for what only shows once the environment's agents are known.

    ``own``: the agents that will run here, if not all of them.
    """
    from decentral.neighbours import neighbours

    config.check_agents(agents)
    if factory is not None and config.engine == "local":
        raise ConfigError(
            f"the environment {config.env.name} is an object of this process, which the processes of engine = 'local' "
            "cannot import: put it into a file and name it 'game.py:callable', or use engine = 'inline'"
        )
    for name in agents if own is None else own:
        agent = config.agent_config(name)
        if agent.kind == "human" and config.engine != "inline":
            raise ConfigError(f"agent {name!r} is human, and its own process has no terminal: use engine = 'inline'")
        if agent.kind == "scripted":
            if not agent.script:
                raise ConfigError(
                    f"agent {name!r} is scripted and has no script: set agents.{name}.script = 'file.py:callable'"
                )
            load(agent.script, "script")
    neighbours(config, agents)
    if config.tensorboard and importlib.util.find_spec("tensorboard") is None:
        raise MissingExtra("tensorboard = true", "tensorboard")


def _check_engine(config: Config) -> None:
    if config.engine == "network":
        raise ConfigError(
            "engine = 'network' is not played by one command: start `decentral host`, and `decentral agent` for each "
            "agent, with --resume to go on"
        )


def fresh(config: Config) -> Path:
    """Returns a folder below ``runs`` that does not exist, named by the environment and the time. Raises RunError."""
    module, _, attribute = config.env.name.rpartition(":")
    name = Path(module).stem.rpartition(".")[2] if module.endswith(".py") else module.rpartition(".")[2] or attribute
    stem = f"{re.sub(r'[^A-Za-z0-9_-]+', '-', name).strip('-') or 'run'}-{time.strftime('%Y%m%d-%H%M%S')}"
    for count in range(1, 1000):
        path = Path("runs") / (stem if count == 1 else f"{stem}-{count}")
        if not path.exists():
            return path
    raise RunError(f"a thousand runs are called {stem!r} already: give another folder as out")


def _job(
    folder: RunFolder, factory: Callable[..., Any] | None, ask: Callable[[Turn], str] | None
) -> Callable[[Emit], Coroutine[Any, Any, None]]:
    """Returns what the engine does."""
    config = folder.config
    if config.engine == "local":
        from decentral.engines.local import Supervisor

        return lambda emit: Supervisor(folder, emit).run()
    cap(config.threads or share(len(folder.agents)))
    from decentral.engines import inline
    from decentral.node import mind_of

    return lambda emit: inline.play(
        folder, lambda: make(config.env, factory), lambda name: mind_of(name, folder, ask), emit
    )


def play(folder: RunFolder, job: Callable[[Emit], Coroutine[Any, Any, None]], on_event: Emit | None) -> None:
    """Lets an engine play, and writes ``log.txt``."""
    from decentral.progress import Board
    from decentral.tensorboard import EventFiles

    config = folder.config
    threads = config.threads or share(len(folder.agents))
    path = folder.path / "log.txt"
    board = Board()
    files = EventFiles(folder.path) if config.tensorboard else None
    try:
        log = path.open("a", encoding="utf-8")
    except OSError as error:
        raise disk_error(path, error) from error

    def note(line: str) -> None:
        try:
            log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
            log.flush()
        except OSError as error:
            raise disk_error(path, error) from error

    def seen(event: Event) -> None:
        line = board.take(event)
        if line:
            note(line)
        if files is not None:
            files(event)
        if on_event is not None:
            on_event(event)

    with log:
        note(f"{config.env.name} with engine {config.engine}, {threads} threads per process")
        drive(job, seen)
