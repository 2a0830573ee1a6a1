"""Restoring a state in the middle of an episode, and the proof that this environment allows it.

Two ways: replay (a new copy, the same seed, the same actions) and snapshot (a deep copy of the game as it stands).
Neither is assumed to work. Knows nothing about why somebody forks.
"""

from __future__ import annotations

__all__ = ["Forkable", "fork", "prove_fork", "snapshot"]

import copy
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from gymnasium.utils import EzPickle

from decentral.envs.game import Game
from decentral.envs.trace import Beside, answers, difference, play, play_on
from decentral.errors import EnvError


class Forkable(msgspec.Struct, frozen=True):
    """Whether, and how, a state of an environment can be restored."""

    method: Literal["replay", "snapshot"] | None
    """Replay where it is proven, since it needs no copy of every state on the way. None: neither is."""
    why: str
    """What was proven, or what differed first."""


def fork(make: Callable[[], Game], seed: int, actions: Sequence[Mapping[str, str]], step: int) -> Game:
    """Returns a new game that stands before step ``step`` (from 0) of the episode with this seed and these actions.

    By replay: first prove that the environment allows it. Raises EnvError if the recorded actions no longer fit.
    """
    if not 0 <= step <= len(actions):
        raise EnvError(f"step {step} cannot be forked: the episode has {len(actions)} steps; take one of them")
    game = make()
    game.reset(seed)
    for past in actions[:step]:
        game.step(past)
    return game


def snapshot(game: Game) -> Game:
    """Returns a deep copy of a game as it stands. Raises EnvError if the environment cannot be copied."""
    raw: Any = game.env.unwrapped
    memo: dict[int, Any] = {}
    try:
        if isinstance(raw, EzPickle):  # which copies the constructor's arguments only, and forgets the state
            memo[id(raw)] = twin = object.__new__(type(raw))
            twin.__dict__.update(copy.deepcopy(raw.__dict__, memo))
        return copy.deepcopy(game, memo)
    except Exception as error:
        what = " ".join(str(error).split())
        raise EnvError(
            f"{game.name} cannot be copied: {type(error).__name__}: {what}; give it a __deepcopy__"
        ) from error


def prove_fork(make: Callable[[], Game], seed: int, episodes: int = 8) -> Forkable:
    """Plays whole episodes of uniformly random legal actions and restores states in them; compares everything seen.

    Replay is proven if new copies, beside one that plays something else, see the turns, raw observations and outcomes
    that a used copy saw. Snapshot is proven if copies of a state and their original, played on one after the other, go
    on alike. Raises EnvError if the environment cannot be played at all.
    """
    recorder, beside = make(), Beside(make())
    traces = [play(recorder, seed + i) for i in range(episodes)]
    replayed = next((why for trace in traces if (why := difference(make(), trace, beside))), None)
    if replayed is None:
        return Forkable("replay", f"{episodes} episodes were the same in every turn and outcome when replayed")
    copied = next((found for i in range(episodes) if (found := _snapshots(make(), seed + i, i))), "")
    if not copied:
        return Forkable("snapshot", f"copies of a state go on alike, but a replay does not: {replayed}")
    return Forkable(None, f"replay: {replayed}; snapshot: {copied}")


def _snapshots(game: Game, seed: int, step: int) -> str:
    """Returns what differs between the copies of a state and their original, or the empty string."""
    draw = random.Random(seed)
    try:
        game.reset(seed)
        for _ in range(step):
            if not game.over:
                game.step(answers(game, draw))
        before, after = snapshot(game), snapshot(game)
        first, *rest = [play_on(one, copy.copy(draw)) for one in (before, game, after)]
    except EnvError as error:
        return str(error)
    return "" if all(trace == first for trace in rest) else f"copies of a state of seed {seed} went on differently"
