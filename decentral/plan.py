"""The order of a run: its phases, and the episodes of each with their numbers and seeds; a function of the config."""

from __future__ import annotations

__all__ = ["episodes", "phases"]

import hashlib

from decentral.agents.mind import Phase
from decentral.config import EPISODES, Config
from decentral.envs.fleet import Episode

_EVAL = 2**40
"""Added to the numbers of evaluation episodes."""


def phases(config: Config) -> tuple[Phase, ...]:
    """Returns the iterations, with an evaluation before, one after, and those between; all with attempt 0."""
    found = [Phase(kind="eval", iteration=0)]
    for done in range(1, config.iterations + 1):
        found.append(Phase(kind="train", iteration=done - 1))
        if done == config.iterations or (config.eval_every and done % config.eval_every == 0):
            found.append(Phase(kind="eval", iteration=done))
    return tuple(found)


def episodes(config: Config, phase: Phase) -> tuple[Episode, ...]:
    """Returns a phase's episodes, the same in every attempt; a group has one seed and the number of its first episode.

    Evaluations all use the same seeds, which are odd; those of training are even, so that no level is in both.
    """
    evaluation = phase.kind == "eval"
    size = 1 if evaluation else config.group
    count = config.eval_episodes if evaluation else config.groups * size
    base = phase.iteration * EPISODES + (_EVAL if evaluation else 0)
    made = []
    for index in range(count):
        place = index // size
        seed = _seed(config.seed, phase.kind, 0 if evaluation else phase.iteration, place) * 2 + evaluation
        made.append(Episode(id=base + index, group=base + place * size, seed=seed))
    return tuple(made)


def _seed(*words: int | str) -> int:
    """A number below 2**30 that follows from the words."""
    digest = hashlib.blake2b(repr(words).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % 2**30
