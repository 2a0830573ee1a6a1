"""The folder of a run: what lies where, how it is made, locked, opened and resumed.

config.toml  versions.json  lock
state.json             how far the run is committed; replaced whole
summary.json           written when the run is over
log.txt  events.jsonl  what the supervisor saw
host/                  episodes.jsonl  phases.jsonl  events.jsonl
agents/NAME/           system.txt  metrics.jsonl  events.jsonl  checkpoints/  model/
"""

from __future__ import annotations

__all__ = ["RunFolder", "State"]

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from decentral.config import Config, difference
from decentral.disk import Lock, disk_error, write_whole
from decentral.envs.agent_names import check_names
from decentral.errors import ConfigError, RunError
from decentral.journal import Journal
from decentral.versions import model_hashes, versions

_T = TypeVar("_T")


class State(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run is. Only the host replaces it."""

    config: dict[str, Any]
    """As the run was started, to notice a config.toml that was edited since."""
    agents: tuple[str, ...]
    iteration: int = 0
    """Iterations committed: every agent has a checkpoint of that number."""
    closed: int = 0
    """Phases closed, evaluations among them."""
    attempts: int = 0
    """How often the open phase was begun."""
    train_seconds: float = 0.0


class RunFolder:
    """One run's folder. Made by `create`, `resume` (both lock it) or `open`."""

    def __init__(self, path: Path, config: Config, agents: tuple[str, ...], lock: Lock | None = None) -> None:
        self.path = path
        self.config = config
        self.agents = agents
        self._lock = lock

    @classmethod
    def create(
        cls,
        path: Path,
        config: Config,
        agents: Sequence[str],
        systems: Mapping[str, str] | None = None,
        places: Sequence[str] | None = None,
    ) -> RunFolder:
        """Makes the folder of a new run and locks it. ``systems``: what an agent is told once, by its name.

        ``places``: the processes that have their place in it (``host``, or an agent's name), if not all of them.

        Raises RunError if it exists or cannot be written, EnvError for names that no folder can have, and ConfigError
        if ``config`` cannot be written down; nothing of it is left behind then.
        """
        check_names(agents)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RunError(
                f"{str(path)!r} exists already: choose another folder with --out, or go on with that run by "
                f"`decentral train --resume {path}`"
            )
        settings = config.to_toml().encode()
        places = ("host", *agents) if places is None else places
        here = [name for name in agents if name in places]
        found = {**versions(), "models": model_hashes(map(config.agent_config, here))}
        new = not path.exists()
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise disk_error(path, error) from error
        folder = cls(path, config, tuple(agents), Lock(path / "lock", f"the run {str(path)!r}"))
        try:
            if "host" in places:
                folder.host.mkdir()
            for name in here:
                (folder.agent(name) / "checkpoints").mkdir(parents=True)
                write_whole(folder.agent(name) / "system.txt", (systems or {}).get(name, "").encode())
            write_whole(path / "config.toml", settings)
            write_whole(path / "versions.json", msgspec.json.format(msgspec.json.encode(found)))
            folder.write_state(State(config=msgspec.to_builtins(config), agents=tuple(agents)))
        except OSError as error:
            folder._unmake(new)
            raise disk_error(path, error) from error
        except BaseException:
            folder._unmake(new)
            raise
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Opens a run's folder as one of its processes. Raises RunError."""
        if not (path / "state.json").is_file():
            raise RunError(
                f"{str(path)!r} is no run folder: it has no state.json; give a folder that `decentral train` made"
            )
        state = _state(path)
        try:
            recorded = Config.of(**state.config)
            config = Config.load(path / "config.toml")
        except ConfigError as error:
            raise RunError(f"the settings of the run {str(path)!r} cannot be used: {error}") from error
        _same(path, recorded, config)
        return cls(path, config, state.agents)

    @classmethod
    def resume(cls, path: Path, config: Config | None = None) -> RunFolder:
        """Opens and locks an unfinished run, and notes in ``events.jsonl`` which versions are others than before.

        Raises RunError; also if ``config`` is given and is not the run's, or if a model's weights are not.
        """
        folder = cls.open(path)
        if config is not None:
            given = msgspec.structs.replace(config, teams=config.teams or folder.config.teams)
            _same(path, folder.config, given)
        if folder.over:
            raise RunError(f"the run {str(path)!r} is finished, nothing is left to resume: start another with --out")
        folder._lock = Lock(path / "lock", f"the run {str(path)!r}")
        try:
            folder._compare()
        except RunError:
            folder.release()
            raise
        return folder

    @property
    def host(self) -> Path:
        return self.path / "host"

    def agent(self, name: str) -> Path:
        return self.path / "agents" / name

    def place(self, process: str) -> Path:
        """Returns the folder of a process: ``host``, or an agent's name."""
        return self.host if process == "host" else self.agent(process)

    def stderr(self, process: str) -> Path:
        """Returns the file that takes what a process of its own prints."""
        return self.place(process) / "stderr.txt"

    @property
    def over(self) -> bool:
        """Says whether the run is over: nothing is left to play."""
        return (self.path / "summary.json").exists()

    @property
    def state(self) -> State:
        """Reads how far the run is. Raises RunError."""
        return _state(self.path)

    def write_state(self, state: State) -> None:
        """Commits. Raises RunError; then the old state stands."""
        write_whole(self.path / "state.json", msgspec.json.format(msgspec.json.encode(state)))

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Says that the run is over. Raises RunError."""
        write_whole(self.path / "summary.json", msgspec.json.format(msgspec.json.encode(summary)))

    def _compare(self) -> None:
        """Compares what a result depends on with what was recorded."""
        recorded = _read(self.path / "versions.json", dict[str, Any])
        here = [name for name in self.agents if self.agent(name).is_dir()]
        hashes = model_hashes(map(self.config.agent_config, here))
        for name, old in recorded.pop("models", {}).items():
            if (new := hashes.get(name)) != old:
                raise RunError(
                    f"the run {str(self.path)!r} was started on the model {name!r} with the hash {old}, which is now "
                    f"{new or 'absent'}: put the old weights back, or start another with --out"
                )
        found = versions()
        others = {key: (recorded.get(key), found.get(key)) for key in {**recorded, **found}}
        changed = {key: f"{old} -> {new}" for key, (old, new) in others.items() if old != new}
        if changed:
            events = Journal(self.path / "events.jsonl")
            events.event("other versions", **changed)
            events.close()

    def _unmake(self, new: bool) -> None:
        """Removes what was made of a run; the folder itself too, if it is new."""
        for place in list(self.path.iterdir()):
            if place.is_dir():
                shutil.rmtree(place, ignore_errors=True)
            else:
                place.unlink(missing_ok=True)
        self.release()
        if new:
            shutil.rmtree(self.path, ignore_errors=True)

    def release(self) -> None:
        """Gives the lock back."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _state(path: Path) -> State:
    return _read(path / "state.json", State)


def _read(file: Path, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError) as error:
        raise RunError(f"{str(file)!r} of the run cannot be read: {error}; start another with --out") from error


def _same(path: Path, recorded: Config, config: Config) -> None:
    changed = difference(recorded, config)
    if changed is not None:
        field, old, new = changed
        raise RunError(
            f"the run {str(path)!r} was started with {field} = {old!r}, not {new!r}: resume it with its own config, or "
            "start another with --out"
        )
