"""A trained agent outside its run: asked for actions one at a time, saved as a plain model folder."""

from __future__ import annotations

__all__ = ["Player", "load_mind"]

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

import msgspec

from decentral.agents import make_mind
from decentral.agents.mind import Mind, Phase, Request
from decentral.envs.names import load
from decentral.envs.turn import Turn
from decentral.errors import ConfigError, RunError
from decentral.run import Run
from decentral.versions import model_hashes


def load_mind(run: Run, name: str, ask: Callable[[Turn], str] | None = None) -> Mind:
    """Returns the mind of an agent as of its newest committed checkpoint. Raises RunError, ModelError, ConfigError."""
    folder = run.checkpoint(name)
    config = run.config.agent_config(name)
    then, now = run.versions.get("models", {}), model_hashes([config])
    for model, found in now.items():
        if then.get(model, found) != found:
            raise RunError(
                f"the run {str(run.path)!r} was started on weights {model!r} with the hash {then[model]}, which is now "
                f"{found}: put the old weights back, or use the exported folder agents/{name}/model of the run"
            )
    script = load(config.script, "script") if config.script else None
    config = msgspec.structs.replace(config, past=0.0)  # earlier weights play in training only
    mind = make_mind(name, config, run.config.seed, script=script, ask=ask)
    mind.load(folder)
    return mind


class Player:
    """One trained agent in one episode at a time. Got from `Run.agent`.

    It remembers what it read and did, as in training, until ``reset`` starts the next episode.
    """

    def __init__(self, name: str, mind: Mind, system: str = "") -> None:
        self.name = name
        self.mind = mind
        self._system = system
        self._episode = -1
        self._round = 0
        self.reset()

    @classmethod
    def load(cls, run: Run, name: str) -> Player:
        """Loads the newest committed weights, and the instructions that the agent was trained with."""
        mind = load_mind(run, name)
        file = run.path / "agents" / name / "system.txt"
        try:
            return cls(name, mind, file.read_bytes().decode())
        except (OSError, UnicodeDecodeError) as error:
            raise RunError(f"{str(file)!r} cannot be read: {error}; take it from a backup, or train anew") from error

    def reset(self, system: str | None = None) -> None:
        """Starts another episode; ``system`` replaces the instructions that the agent was trained with."""
        self._system = self._system if system is None else system
        self._episode += 1
        self._round = 0
        self.mind.begin(Phase("eval", self._episode))

    def act(self, observation: str, legal: Sequence[str] = (), *, free: int = 0, feedback: str = "") -> str:
        """Returns the agent's action: one of ``legal``, or a text of at most ``free`` tokens.

        ``feedback`` is what the environment answered to its previous action. Raises ConfigError unless exactly one
        of ``legal`` and ``free`` is given.
        """
        if bool(legal) == bool(free):
            raise ConfigError(
                f"agent {self.name!r} needs either legal actions or a positive `free`: act(text, [...]) or "
                "act(text, free=8)"
            )
        system = self._system if self._round == 0 else ""
        turn = Turn(self.name, self._round, observation, tuple(legal), free, system, feedback)
        self._round += 1
        return self.mind.act([Request(self._episode, 0, turn)])[0]

    def save_pretrained(self, folder: str | PathLike[str]) -> Path:
        """Writes a Hugging Face or PEFT folder and returns it. Raises RunError if it is not empty, ModelError."""
        path = Path(folder)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RunError(f"{str(path)!r} is not an empty folder; save agent {self.name!r} into a new one")
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"cannot make the folder {str(path)!r}: {error.strerror}; choose another") from error
        self.mind.export(path)
        return path
