"""What ``decentral envs check`` proves about an environment: PettingZoo's conformance tests, and ours.

Knows no model: whoever asks for the tokens of a turn passes a function that counts them.
"""

from __future__ import annotations

__all__ = ["Report", "Row", "check_env", "turn_tokens"]

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from gymnasium import spaces
from pettingzoo import AECEnv

from decentral.envs.agent_names import declared
from decentral.envs.config import EnvConfig
from decentral.envs.conformance import conformance
from decentral.envs.fork import Forkable, prove_fork
from decentral.envs.game import Game
from decentral.envs.images import as_image
from decentral.envs.names import make
from decentral.envs.report import Report, Row, broken
from decentral.envs.side_effects import SideEffects
from decentral.envs.text import SpaceView
from decentral.envs.trace import Beside, Difference, Trace, difference, play
from decentral.envs.turn import Turn
from decentral.envs.watch import Watch
from decentral.errors import EnvError, said

EPISODES = 3
RANDOM_EPISODES, RANDOM_STEPS = 50, 1000
"""How long random play may go on until it earns something, at most."""
_COPY = "another copy"

Make = Callable[[], Game]


def check_env(
    config: EnvConfig | Callable[..., Any],
    *,
    count: Callable[[str], int] | None = None,
    window: int | None = None,
    encode: Callable[[tuple[str, ...]], object] | None = None,
    seed: int = 0,
) -> Report:
    """Plays an environment in every way that a run will, and reports what held.

    ``count`` returns the tokens of a text and ``window`` is how many the model reads; without ``count`` the row on
    tokens is left out. ``encode`` takes the legal actions of a turn and raises EnvError where the model cannot tell two
    of them apart. The episodes have ``seed`` and the seeds after it. Raises ConfigError if the environment is not
    found; whatever it does wrong is a row.

    >>> report = check_env(EnvConfig(name="meet"))
    >>> assert report.ok, report
    """
    factory = None if isinstance(config, EnvConfig) else config
    if not isinstance(config, EnvConfig):
        config = EnvConfig(name=getattr(config, "__name__", type(config).__name__))
    made: list[Game] = []

    def maker() -> Game:
        made.append(make(config, factory))
        return made[-1]

    with SideEffects() as effects:
        try:
            game, other = maker(), maker()
        except EnvError as error:
            return Report(config.name, (broken("made", error),), untried=_untried([], count, encode))
        rows = [_made(game, other), conformance(other.env, seed)]
        effects.start()
        with contextlib.suppress(EnvError):  # playing meets it again
            game.reset(seed)
            rows += _images(game)
        turn = next(iter(game.turns()), None)
        watch = Watch(game)
        traces, faults = _episodes(maker, game, seed, watch, effects)
        rows += faults or [_plays(traces)]
        rows += [broken("spaces", error) for error in watch.faults()]
        further = all(row.name != _COPY for row in faults)
        if traces:
            source = partial(_source, game)
            rows += [_legal(traces, source)]
            rows += _repeats(maker, traces, effects.cause()) if further else []
            rows += [_ends(traces, config.max_rounds), _rewards(traces, maker if further else None), _success(traces)]
            if count is not None:
                rows.append(_tokens(traces, count, window, source))
            if encode is not None:
                rows.append(_encodings(traces, encode, source))
        fork, forks = _fork(maker, seed) if traces and further else (None, [])
        rows += [_effects(made, effects), *forks]
    return Report(config.name, tuple(rows), turn, fork, _untried(rows, count, encode))


def _untried(rows: list[Row], count: object, encode: object) -> tuple[str, ...]:
    """Returns the names of the checks that could not be made, since others failed."""
    known = {row.name for row in rows}
    played = ("plays", "legal actions", "seeded reset", "copies", "ends", "rewards", "success")
    asked = ("tokens per turn",) * (count is not None) + ("encodings",) * (encode is not None)
    return tuple(name for name in (*played, *asked, "side effects", "fork") if name not in known)


def _made(game: Game, other: Game) -> Row:
    if game.env.unwrapped is other.env.unwrapped:
        return Row("made", False, "the callable returned one environment twice; let it make a new one at each call")
    kind = "AEC, one agent at a time" if isinstance(game.env, AECEnv) else "Parallel, all agents at once"
    return Row("made", True, f"{kind}; agents {', '.join(game.agents)}")


def _episodes(maker: Make, game: Game, seed: int, watch: Watch, effects: SideEffects) -> tuple[list[Trace], list[Row]]:
    """Plays episodes on one copy, and on a new one after a fault, as a run does.

    Returns those that came to their end, and what broke the others, or kept a new copy from being made.
    """
    traces: list[Trace] = []
    faults: dict[str, Row] = {}

    def look() -> None:
        effects.look(game.steps)
        watch.look()

    for i in range(EPISODES):
        try:
            traces.append(play(game, seed + i, look))
        except EnvError as error:
            faults.setdefault(error.detail, _spoilt("plays", maker, error, seed))
            try:
                game = maker()
            except EnvError as unmade:
                faults[_COPY] = broken(_COPY, unmade)
                break
            watch.follow(game)
    return traces, list(faults.values())


def _spoilt(name: str, maker: Make, error: EnvError, seed: int) -> Row:
    """Returns the row of an episode that was broken, with the seed of a check that shows it again."""
    row = broken(name, error)
    if error.seed in (None, seed):
        return row
    try:
        play(maker(), error.seed)
    except EnvError:
        return row
    detail = f"{row.detail} (only after other episodes of the same copy: let reset() clear all that these leave)"
    return Row(name, False, detail, row.method, row.agent, row.step, seed)


def _plays(traces: list[Trace]) -> Row:
    turns = sum(len(trace.turns) for trace in traces)
    if not turns:
        detail = f"nobody ever had to act in {len(traces)} episodes; let agents live after the reset"
        return Row("plays", False, detail, "reset", None, 0, traces[0].seed)
    detail = f"{turns} turns of random legal actions; observations and rewards are all numbers"
    blank = sum(not turn.observation.strip() for trace in traces for turn in trace.turns)
    return Row("plays", True, f"{detail}; in {blank} turns the observation says nothing" if blank else detail)


Source = Callable[[str, int], str]
"""(``observe`` or ``actions``, step) -> the method that tells it."""


def _source(game: Game, what: str, step: int) -> str:
    if type(game.view) is not SpaceView:
        return f"text_view.{what}"
    if what == "actions":
        return "action_space"
    return "observe" if isinstance(game.env, AECEnv) else "step" if step else "reset"


def _legal(traces: list[Trace], source: Source) -> Row:
    name, sizes, free = "legal actions", [], 0
    for trace in traces:
        for step, turn in trace.steps():
            if any(not text.strip() for text in turn.legal):
                detail = "an action has an empty text; give every action a text"
                return Row(name, False, detail, source("actions", step), turn.agent, step, trace.seed)
            sizes += [len(turn.legal)] if turn.legal else []
            free += not turn.legal
    detail = f"{min(sizes)} to {max(sizes)} a turn, all texts different" if sizes else "none listed"
    return Row(name, True, f"{detail}; {free} free turns" if free else detail)


def _repeats(maker: Make, traces: list[Trace], cause: str) -> list[Row]:
    """Plays the episodes again, alone and, where they come out the same, beside another copy."""
    name = "seeded reset"
    try:
        seeded = _seeded(name, maker, traces, cause)
        if not seeded.ok:
            return [seeded]
        name = "copies"
        return [seeded, _copies(name, maker, traces, cause)]
    except EnvError as error:
        return [broken(name, error)]


def _copies(name: str, maker: Make, traces: list[Trace], cause: str) -> Row:
    beside = Beside(maker())
    found = next((found for trace in traces if (found := difference(maker(), trace, beside))), None)
    if found is None:
        return Row(name, True, "two copies played in turn do not disturb each other")
    return _parted(name, found, f"beside another copy, {found.what}; keep all state in the instance{cause}")


def _seeded(name: str, maker: Make, traces: list[Trace], cause: str) -> Row:
    found = next((found for trace in traces if (found := difference(maker(), trace))), None)
    if found is None:
        return Row(name, True, f"{len(traces)} episodes came out the same a second time")
    fix = f"draw only from a generator that reset(seed) makes, and keep all state in the instance{cause}"
    if not cause and all(difference(maker(), play(maker(), trace.seed)) is None for trace in traces):
        fix = "a copy that played before goes on otherwise than a new one, so let reset() clear all that is left"
    return _parted(name, found, f"{found.what}; {fix}")


def _parted(name: str, found: Difference, detail: str) -> Row:
    return Row(name, False, detail, found.method, found.agent, found.step, found.seed)


def _ends(traces: list[Trace], max_rounds: int) -> Row:
    cut = sum(trace.turns[-1].round + 1 >= max_rounds for trace in traces if trace.turns)
    if cut:
        detail = f"{cut} of {len(traces)} episodes reached max_rounds = {max_rounds}, where they are cut; "
        if cut == len(traces):
            return Row("ends", True, f"{detail}does the game end? if it does, raise max_rounds")
        return Row("ends", True, f"{detail}raise it if that is early")
    steps = [trace.length for trace in traces]
    return Row("ends", True, f"by itself after {min(steps)} to {max(steps)} steps, within {max_rounds} rounds")


def _rewards(traces: list[Trace], maker: Make | None) -> Row:
    """Says what random play earns; where that is always the same, plays on for a while with a copy of ``maker``."""
    name, totals, episodes = "rewards", _totals(traces), len(traces)
    if maker is not None and len(totals) == 1:
        try:
            game, steps = maker(), 0
            while len(totals) == 1 and episodes < RANDOM_EPISODES and steps < RANDOM_STEPS:
                trace = play(game, traces[-1].seed + 1 + episodes - len(traces))
                totals |= _totals([trace])
                episodes, steps = episodes + 1, steps + trace.length
        except EnvError as error:
            return _spoilt(name, maker, error, traces[0].seed)
    if len(totals) == 1:
        (total,) = totals
        detail = f"every return was {total:g} in {episodes} random episodes: if random play never earns anything else"
        return Row(name, True, f"{detail}, nothing can be learnt from it")
    return Row(name, True, f"returns from {min(totals, default=0.0):g} to {max(totals, default=0.0):g}")


def _totals(traces: list[Trace]) -> set[float]:
    return {outcome.total for trace in traces for outcome in trace.outcomes.values()}


def _success(traces: list[Trace]) -> Row:
    values = [outcome.success for trace in traces for outcome in trace.outcomes.values()]
    told = [value for value in values if value is not None]
    if not told:
        return Row("success", True, "not defined, so figures use the return; a success_return would define it")
    return Row("success", True, f"defined; {sum(told) / len(told):.2f} on average in these {len(traces)} episodes")


def _images(game: Game) -> list[Row]:
    """Says what is lost where the default view reads images."""
    if type(game.view) is not SpaceView:
        return []
    known = {str(agent): game.env.observation_space(agent) for agent in declared(game.env)}
    every = [leaf for name, seen in game.observations().items() for leaf in _leaves(seen, known.get(name))]
    found = [image for value, space in every if (image := as_image(value, space)) is not None]
    if not found:
        return []
    height, width = found[0].shape[:2]
    what = f"{height} x {width} pixels read as a coarse grid of colours, which loses most of an image; "
    return [Row("images", True, what + "env.view or env.picture names a better reader")]


def _leaves(value: Any, space: Any) -> Iterator[tuple[Any, Any]]:
    """Yields every part that has no parts, with its space, as far as that is known."""
    if isinstance(value, Mapping):
        parts = [
            (part, space.spaces.get(key) if isinstance(space, spaces.Dict) else None) for key, part in value.items()
        ]
    elif isinstance(value, tuple | list):
        inner = space.spaces if isinstance(space, spaces.Tuple) else (None,) * len(value)
        parts = list(zip(value, inner))
    else:
        yield value, space
        return
    for part in parts:
        yield from _leaves(*part)


def turn_tokens(turn: Turn, count: Callable[[str], int]) -> dict[str, int]:
    """Returns what a turn adds to an agent's stream at most, by part: what it reads, and its longest action."""
    return {
        "observation": count(turn.observation),
        "actions": max(map(count, turn.legal), default=turn.free),
        "system": count(turn.system),
        "feedback": count(turn.feedback),
    }


def _tokens(traces: list[Trace], count: Callable[[str], int], window: int | None, source: Source) -> Row:
    """Counts what one turn adds to an agent's stream: all that it reads, and its longest action."""
    name = "tokens per turn"
    sizes: list[int] = []
    longest: tuple[str | None, str | None, int | None, int | None] = (None, None, None, None)
    for trace in traces:
        for step, turn in trace.steps():
            parts = turn_tokens(turn, count)
            sizes.append(sum(parts.values()))
            if sizes[-1] > max(sizes[:-1], default=-1):
                told = (source("observe", step), source("actions", step), "instructions", "infos")
                longest = (max(zip(parts.values(), told))[1], turn.agent, step, trace.seed)
    if not sizes:
        return Row(name, True, "there are no turns")
    sizes.sort()
    detail = f"{sizes[len(sizes) // 2]} in the middle, {sizes[-1]} at most"
    if window is None:
        return Row(name, True, detail)
    if 2 * sizes[-1] > window:
        detail += f", over half of the window of {window}; give the environment a shorter text_view"
        return Row(name, False, detail, *longest)
    return Row(name, True, f"{detail}, in a window of {window}")


def _encodings(traces: list[Trace], encode: Callable[[tuple[str, ...]], object], source: Source) -> Row:
    known = set()
    for trace in traces:
        for step, turn in trace.steps():
            if not turn.legal or turn.legal in known:
                continue
            known.add(turn.legal)
            try:
                encode(turn.legal)
            except EnvError as error:
                place = (source("actions", step), turn.agent, step, trace.seed)
                return Row("encodings", False, error.detail, *place)
    return Row("encodings", True, "the model's tokens tell all actions of a turn apart")


def _effects(games: list[Game], effects: SideEffects) -> Row:
    """Says what a run would not suffer from, or what other rows blame."""
    remarks = []
    for game in games:
        try:
            game.env.close()
        except (Exception, SystemExit) as error:  # noqa: BLE001  a run goes on over it
            remarks = [f"close raises {type(error).__name__}: {said(error)}"]
    remarks += effects.remarks()
    return Row("side effects", True, f"it {'; it '.join(remarks)}" if remarks else "none seen")


def _fork(maker: Make, seed: int) -> tuple[Forkable | None, list[Row]]:
    try:
        proof = prove_fork(maker, seed)
    except EnvError as error:
        return None, [_spoilt("fork", maker, error, seed)]
    how = f"by {proof.method}" if proof.method else "not possible, so there are no branches"
    return proof, [Row("fork", True, f"{how}: {proof.why}")]
