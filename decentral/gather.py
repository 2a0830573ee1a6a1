"""Text that a policy samples in environments, for the training of its draft head; kept on disk as it comes."""

from __future__ import annotations

__all__ = ["gather", "play", "sample"]

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec

from decentral.agents.draws import name_word
from decentral.agents.folders import weights_hash
from decentral.agents.passage import Passage
from decentral.agents.policy import Policy
from decentral.agents.rollout import Rollouts
from decentral.disk import disk_error
from decentral.envs.config import EnvConfig
from decentral.envs.fleet import Episode, Fleet
from decentral.envs.names import make
from decentral.envs.turn import Turn
from decentral.errors import ConfigError, RunError

Report = Callable[[str], object]

EPISODES = 32
"""Played side by side while text is gathered."""
SILENCE = 5.0
"""Seconds between lines of progress."""


def gather(
    policy: Policy, env: EnvConfig, *, seed: int, temperature: float, reasoning_tokens: int = 0, run_on: int = 0
) -> Iterator[Passage]:
    """Plays some episodes with one policy in every seat and yields what it sampled.

    Args:
        policy: who plays.
        env: where.
        seed: of the episodes and draws.
        temperature: divides the logits.
        reasoning_tokens: scratch tokens before each action.
        run_on: where positive, every first turn is answered, instead, by so many tokens past any end token: the policy
            goes on with the episode by itself.
    """

    def seat(agent: str) -> Rollouts:
        return Rollouts(policy, seed, name_word(agent), reasoning_tokens, ends=not run_on)

    engines = play(env, EPISODES, seed * EPISODES, seat, temperature, run_on)
    for engine in engines.values():
        for episode in range(EPISODES):
            for chunk in engine.close(episode).chunks:
                passage = Passage.of(chunk, temperature)
                if passage.drafts:
                    yield passage


def play(
    env: EnvConfig, episodes: int, first: int, seat: Callable[[str], Rollouts], temperature: float, run_on: int = 0
) -> dict[str, Rollouts]:
    """Plays episodes side by side, an engine in every seat, and returns the engines with the episodes still open.

    Args:
        env: where.
        episodes: how many, numbered from 0.
        first: the seed of episode 0; the others have the seeds behind it.
        seat: makes the engine of an agent.
        temperature: divides the logits.
        run_on: where positive, only the first turns are answered, with so many free tokens.
    """
    engines: dict[str, Rollouts] = {}
    with closing(Fleet(lambda: make(env), episodes)) as fleet:
        fleet.load([Episode(i, i, first + i) for i in range(episodes)])
        while waiting := fleet.pending():
            for agent in sorted({turn.agent for _, turn in waiting}):
                some = [(episode.id, turn) for episode, turn in waiting if turn.agent == agent]
                if agent not in engines:
                    engines[agent] = seat(agent)
                    engines[agent].clear(temperature)
                turns = [turn for _, turn in some]
                if run_on:
                    turns = [Turn(t.agent, t.round, t.observation, (), run_on, t.system) for t in turns]
                actions = engines[agent].play([episode for episode, _ in some], turns)
                if not run_on:
                    for (episode, _), action in zip(some, actions):
                        fleet.act(episode, agent, action)
            if run_on:
                break
    return engines


def sample(
    policy: Policy,
    envs: Sequence[EnvConfig],
    temperatures: Sequence[float],
    tokens: int,
    *,
    seed: int,
    reasoning_tokens: int,
    run_on: int = 0,
    file: Path | None = None,
    report: Report = str,
) -> list[list[Passage]]:
    """Gathers text from environments and temperatures in turn until ``tokens`` were sampled; returns it by round.

    What is already in ``file`` is taken and the rest appended to it, so an interrupted call can be made again. Every
    second round is run-on text if ``run_on`` is positive.

    Raises:
        ConfigError: what the agents say there can never be drafted.
        RunError: ``file`` holds text that was gathered otherwise, or cannot be written.
    """
    kinds = [(reasoning_tokens, 0), (0, run_on)] if run_on else [(reasoning_tokens, 0)]
    parts = [(env, temperature, *kind) for env in envs for temperature in temperatures for kind in kinds]
    made = {"model": policy.name, "hash": weights_hash(policy.name), "parts": msgspec.to_builtins(parts), "seed": seed}
    store = _Store(file, made) if file else None
    rounds = store.rounds if store else []
    count = sum(passage.sampled for found in rounds for passage in found)
    started, before, silent, said = monotonic(), count, 0, 0.0
    while count < tokens:
        env, temperature, scratch, past = parts[len(rounds) % len(parts)]
        number = seed + 1 + len(rounds)
        new = [*gather(policy, env, seed=number, temperature=temperature, reasoning_tokens=scratch, run_on=past)]
        silent = 0 if new else silent + 1
        if silent == len(parts):
            raise ConfigError(
                f"agents of {envs[0].name} choose at most one token in a row, so nothing can be drafted: set "
                "agent.reasoning_tokens, or choose an environment with free text"
            )
        if store:
            store.append(new)
        else:
            rounds.append(new)
        count += sum(passage.sampled for passage in new)
        passed = monotonic() - started
        if count >= tokens or passed - said > SILENCE:
            said = passed
            report(f"text: {count:,} of {tokens:,} tokens, {(count - before) / max(1e-9, passed):,.0f} a second")
    return rounds


class _Store:
    """A file of gathered text: a line that says how, then a line per round."""

    def __init__(self, file: Path, settings: dict[str, Any]) -> None:
        """Reads what is there, without a torn last line."""
        self._file = file
        self.rounds: list[list[Passage]] = []
        head = msgspec.json.encode(settings)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
            if lines and lines[0] != head:
                raise RunError(
                    f"{str(file)!r} holds text of another model, environment, temperature, seed or version: give "
                    "another --out, or remove it"
                )
            self.rounds = [msgspec.json.decode(line, type=list[Passage]) for line in lines[1:]]
            file.write_bytes(b"".join(line + b"\n" for line in lines or [head]))
        except (OSError, msgspec.MsgspecError) as error:
            raise disk_error(file, error, "give another --out") from error

    def append(self, passages: list[Passage]) -> None:
        """Keeps another round. Raises RunError."""
        self.rounds.append(passages)
        try:
            with self._file.open("ab") as out:
                out.write(msgspec.json.encode(passages) + b"\n")
        except OSError as error:
            raise disk_error(self._file, error, "make room and give the command again") from error
