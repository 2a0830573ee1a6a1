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
from decentral.errors import EnvError, RunError
from decentral.intervals import Interval, mean_interval, paired_difference, paired_mean_difference, wilson
from decentral.player import load_mind
from decentral.run import Run

_COPIES = 96


class Score(msgspec.Struct, frozen=True):
    """How one agent or team fares: success (return, where nothing defines success) with 95 % intervals."""

    name: str
    measure: str
    """``success`` or ``return``."""
    trained: Interval
    random: Interval
    """The same seeds and opponents, the agent and its team choosing uniformly among their legal actions."""
    difference: Interval
    """Trained less random, from the pairs of episodes with the same seed."""
    against: str
    """Who played for the other teams, such as ``bob: random``; empty where there are none."""


class Evaluation(msgspec.Struct, frozen=True):
    """The scores of a run's agents and teams, and the episodes that count for none."""

    episodes: int
    """That the score with the fewest counts."""
    scores: tuple[Score, ...]
    """Of each agent."""
    teams: tuple[Score, ...]
    """Of each team of several agents, by their mean."""
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
    run: Run,
    episodes: int = 200,
    seed: int | None = None,
    factory: Callable[..., Any] | None = None,
    against: Run | None = None,
) -> Evaluation:
    """Plays ``episodes`` with the trained agents and the same seeds at random, and compares.

    Where there are teams, each plays in turn, all others being its opponents: the agents of the run ``against``, or by
    default random play in place of those that learn, and scripted, frozen and random agents as they are. The seeds are
    those of the run's own evaluations, which training never sees; or follow from another ``seed``. ``factory`` makes
    the environment in place of the run's name for it (one defined in a notebook or a function).

    Raises RunError if ``against`` is of another game or the run has no teams, EnvError if all episodes have faults.
    """
    start = run.config.seed if seed is None else seed
    phase = Phase("eval", run.state["iteration"])
    plays = plan.episodes(msgspec.structs.replace(run.config, seed=start, eval_episodes=episodes), phase)
    chance = {name: make_mind(name, AgentConfig(kind="random"), start) for name in run.agents}
    opponents = _opponents(run, against)

    def games() -> Game:
        return make(run.config.env, factory)

    agents: list[Score] = []
    teams: list[Score] = []
    faults: list[str] = []
    least = episodes
    for team, members in (run.config.teams or {"": run.agents}).items():
        if all(run.config.agent_config(name).kind == "random" for name in members) and len(members) < len(run.agents):
            continue
        rest = [name for name in run.agents if name not in members]
        others = {name: load_mind(opponents[name], name) if name in opponents else chance[name] for name in rest}
        met = ", ".join(f"{name}: {_described(opponents.get(name), run, name)}" for name in rest)
        sides = ({name: load_mind(run, name) for name in members}, {name: chance[name] for name in members})
        trained, random = ({over.episode.id: over for over in play(games, others | side, plays)} for side in sides)
        faults += [over.fault for one in (trained, random) for over in one.values() if over.fault]
        pairs = [(trained[one.id], random[one.id]) for one in plays]
        pairs = [(a, b) for a, b in pairs if not a.fault and not b.fault]
        if not pairs:
            raise EnvError(f"all {episodes} episodes ended in a fault, the first one: {faults[0]}")
        least = min(least, len(pairs))
        agents += filter(None, (_score(name, (name,), pairs, met) for name in members))
        if team and len(members) > 1:
            teams += filter(None, [_score(team, members, pairs, met)])
    return Evaluation(least, tuple(agents), tuple(teams), tuple(faults))


def _opponents(run: Run, against: Run | None) -> dict[str, Run]:
    """Returns from which run an agent comes as an opponent; those that are left out play at random. Raises RunError."""
    if against is None:
        return {name: run for name in run.agents if run.config.agent_config(name).kind != "learning"}
    if len(run.config.teams) < 2:
        raise RunError(
            f"the run {str(run.path)!r} has no opponents, since its agents play for one team: leave out `against`, or "
            "train with teams"
        )
    if (_last(against), against.agents) != (_last(run), run.agents):
        theirs, ours = (f"{one.config.env.name} with {', '.join(one.agents)}" for one in (against, run))
        raise RunError(f"the run {str(against.path)!r} plays {theirs}, not {ours}: take opponents from the same game")
    return dict.fromkeys(run.agents, against)


def _last(run: Run) -> str:
    """Returns the name of a run's environment without folders, which may be written in several ways."""
    return run.config.env.name.rpartition("/")[2]


def _described(source: Run | None, run: Run, name: str) -> str:
    if source is None:
        return "random"
    return source.config.agent_config(name).kind if source is run else f"of {source.path}"


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


def _score(name: str, members: Sequence[str], pairs: Sequence[tuple[Finished, Finished]], against: str) -> Score | None:
    """Compares the mean of some agents; None if none of them lived in any pair of episodes."""
    for measure, interval, difference in (
        ("success", wilson, paired_difference),
        ("return", mean_interval, paired_mean_difference),
    ):
        both = [(_mean(a, members, measure), _mean(b, members, measure)) for a, b in pairs]
        judged = [(mine, other) for mine, other in both if mine is not None and other is not None]
        if judged:
            mine, other = zip(*judged)
            return Score(name, measure, interval(mine), interval(other), difference(mine, other), against)
    return None


def _mean(finished: Finished, members: Sequence[str], measure: str) -> float | None:
    """Returns a measure's mean over those agents that lived and have it."""
    lived = [finished.outcomes[name] for name in members if name in finished.outcomes]
    values = [one.success if measure == "success" else one.total for one in lived]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


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
