"""Trained agents at play: measured beside random-legal play on the same seeds, or shown turn by turn.

Plays in this process, many copies at once; writes nothing. Knows no link and no engine.
"""

from __future__ import annotations

__all__ = ["Evaluation", "Move", "Score", "Step", "evaluate", "play", "watch"]

import contextlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from decentral import plan
from decentral.agents import make_mind
from decentral.agents.config import AgentConfig
from decentral.agents.mind import Ended, Mind, Phase, Request
from decentral.envs.fleet import Episode, Finished, Fleet
from decentral.envs.game import Game
from decentral.envs.names import make
from decentral.envs.turn import Outcome, Turn
from decentral.errors import EnvError
from decentral.intervals import Interval, mean_interval, paired_difference, paired_mean_difference, wilson
from decentral.player import load_mind
from decentral.run import Run

_COPIES = 96


class Score(msgspec.Struct, frozen=True):
    """How one agent fares: success (return, where nothing defines success) with 95 % intervals."""

    agent: str
    measure: str
    """``success`` or ``return``."""
    trained: Interval
    random: Interval
    """The same seeds, all agents choosing uniformly among their legal actions."""
    difference: Interval
    """Trained less random, from the pairs of episodes with the same seed."""


class Evaluation(msgspec.Struct, frozen=True):
    """The scores of a run's agents, and the episodes that count for none."""

    episodes: int
    scores: tuple[Score, ...]
    faults: tuple[str, ...]
    """Why episodes count in no score, one sentence each."""


class Move(msgspec.Struct, frozen=True):
    """A turn and its answer."""

    turn: Turn
    action: str
    probability: float | None
    """Of the action, as the agent saw it; None for agents without a model."""
    reasoning: str


class Step(msgspec.Struct, frozen=True):
    """The picture of a game, and what everybody who must act does in it."""

    picture: str
    moves: tuple[Move, ...]
    outcomes: dict[str, Outcome]
    """Empty until the episode is over; then there are no moves."""


def evaluate(
    run: Run, episodes: int = 200, seed: int | None = None, factory: Callable[..., Any] | None = None
) -> Evaluation:
    """Plays ``episodes`` with the trained agents and the same seeds at random, and compares.

    The seeds are those of the run's own evaluations, which training never sees; or follow from another ``seed``.
    ``factory`` makes the environment in place of the run's name for it (one defined in a notebook or a function).
    Raises EnvError if every episode ends in a fault.
    """
    start = run.config.seed if seed is None else seed
    phase = Phase("eval", run.state["iteration"])
    plays = plan.episodes(msgspec.structs.replace(run.config, seed=start, eval_episodes=episodes), phase)
    minds = {name: load_mind(run, name) for name in run.agents}
    chance = {name: make_mind(name, AgentConfig(kind="random"), start) for name in run.agents}

    def games() -> Game:
        return make(run.config.env, factory)

    trained, random = ({over.episode.id: over for over in play(games, team, plays)} for team in (minds, chance))
    pairs = [(trained[one.id], random[one.id]) for one in plays]
    pairs = [(a, b) for a, b in pairs if not a.fault and not b.fault]
    faults = tuple(over.fault for one in (trained, random) for over in one.values() if over.fault)
    if not pairs:
        raise EnvError(f"all {episodes} episodes ended in a fault, the first one: {faults[0]}")
    scores = (_score(name, pairs) for name in run.agents)
    return Evaluation(len(pairs), tuple(score for score in scores if score is not None), faults)


def play(games: Callable[[], Game], minds: Mapping[str, Mind], episodes: Sequence[Episode]) -> list[Finished]:
    """Plays all episodes, each mind at temperature 1 and without an update, and returns them as they finished."""
    fleet = Fleet(games, min(_COPIES, len(episodes)))
    groups = {episode.id: episode.group for episode in episodes}
    for mind in minds.values():
        mind.begin(Phase("eval", 0))
    done: list[Finished] = []
    with contextlib.closing(fleet):
        fleet.load(episodes)
        while True:
            for over in fleet.finished():
                done.append(over)
                _tell(minds, over, groups[over.episode.id])
            if fleet.idle:
                return done
            waiting: dict[str, list[Request]] = defaultdict(list)
            for episode, turn in fleet.pending():
                waiting[turn.agent].append(Request(episode.id, episode.group, turn))
            for name, requests in waiting.items():
                for request, action in zip(requests, minds[name].act(requests), strict=True):
                    fleet.act(request.episode, name, action)


def watch(
    run: Run,
    seed: int = 0,
    ask: Callable[[Turn], str] | None = None,
    factory: Callable[..., Any] | None = None,
) -> Iterator[Step]:
    """Plays one episode of the trained agents, and yields it step by step as it is played.

    ``factory`` makes the environment in place of the run's name for it.
    """
    minds = {name: load_mind(run, name, ask) for name in run.agents}
    for mind in minds.values():
        mind.begin(Phase("eval", seed))
    with contextlib.closing(make(run.config.env, factory)) as game:
        game.reset(seed)
        while turns := game.turns():
            moves = tuple(_move(minds[turn.agent], turn) for turn in turns)
            yield Step(game.render(), moves, {})
            game.step({move.turn.agent: move.action for move in moves})
        yield Step(game.render(), (), game.outcomes())


def _tell(minds: Mapping[str, Mind], over: Finished, group: int) -> None:
    for name, mind in minds.items():
        outcome = over.outcomes.get(name, Outcome(agent=name, total=0.0, turns=0))
        mind.end([Ended(over.episode.id, group, outcome, "environment" if over.fault else "")])


def _score(name: str, pairs: Sequence[tuple[Finished, Finished]]) -> Score | None:
    """Compares one agent; None if it lived in no pair of episodes."""
    both = [(a.outcomes[name], b.outcomes[name]) for a, b in pairs if name in a.outcomes and name in b.outcomes]
    if not both:
        return None
    judged = [(a.success, b.success) for a, b in both if a.success is not None and b.success is not None]
    if judged:
        mine, other = [a for a, _ in judged], [b for _, b in judged]
        return Score(name, "success", wilson(mine), wilson(other), paired_difference(mine, other))
    mine, other = [a.total for a, _ in both], [b.total for _, b in both]
    return Score(name, "return", mean_interval(mine), mean_interval(other), paired_mean_difference(mine, other))


def _move(mind: Mind, turn: Turn) -> Move:
    """Asks for one action, and reads from the agent's own stream how likely it was."""
    from decentral.agents.language import LanguageAgent

    action = mind.act([Request(0, 0, turn)])[0]
    stream = mind.describe(0) if isinstance(mind, LanguageAgent) else None
    if stream is None:
        return Move(turn, action, None, "")
    *_, before, last = stream.segments
    thoughts = [before.text] if before.kind == "reasoning" else []
    return Move(turn, action, math.exp(sum(last.logp)), " ".join(thoughts))
