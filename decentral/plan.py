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
    """Returns an evaluation, the iterations, and an evaluation; all with attempt 0."""
    first = Phase(kind="eval", iteration=0)
    if not config.iterations:
        return (first,)
    train = (Phase(kind="train", iteration=iteration) for iteration in range(config.iterations))
    return (first, *train, Phase(kind="eval", iteration=config.iterations))


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
