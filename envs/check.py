"""What ``decentral envs check`` proves about an environment: PettingZoo's conformance tests, and ours.

Knows no model: whoever asks for the tokens of a turn passes a function that counts them.
"""

from __future__ import annotations

__all__ = ["Report", "Row", "check_env", "turn_tokens"]

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import msgspec
import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo.utils.wrappers import BaseParallelWrapper, BaseWrapper

from decentral.envs.config import EnvConfig
from decentral.envs.fork import Forkable, prove_fork
from decentral.envs.game import Game
from decentral.envs.images import as_image
from decentral.envs.names import make
from decentral.envs.text import SpaceView
from decentral.envs.trace import Beside, Trace, difference, play
from decentral.envs.turn import Turn
from decentral.errors import EnvError

EPISODES = 3
CYCLES = 20
"""Steps per agent of PettingZoo's tests."""

Make = Callable[[], Game]


class Row(msgspec.Struct, frozen=True):
    """One thing that was checked."""

    name: str
    ok: bool
    detail: str
    """What was found; when it is not ok, what to do."""


class Report(msgspec.Struct, frozen=True):
    """Everything that was checked, and a turn as an agent will read it."""

    name: str
    rows: tuple[Row, ...]
    turn: Turn | None = None
    fork: Forkable | None = None

    @property
    def ok(self) -> bool:
        """Says whether training can run on this environment; that it cannot be forked does not stand against it."""
        return all(row.ok for row in self.rows)


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
    of them apart. Raises ConfigError if the environment is not found; whatever it does wrong is a row.
    """
    factory = None if isinstance(config, EnvConfig) else config
    if not isinstance(config, EnvConfig):
        config = EnvConfig(name=getattr(config, "__name__", type(config).__name__))
    maker: Make = partial(make, config, factory)
    rows: list[Row] = []
    turn: Turn | None = None
    fork: Forkable | None = None
    try:
        game = maker()
        rows.append(Row("made", True, _kind(game)))
        rows.append(_conformance(maker().env))
        game.reset(seed)
        turn = next(iter(game.turns()), None)
        rows += _images(game)
        traces = [play(game, seed + i) for i in range(EPISODES)]
        rows += [_play(traces), _legal(traces), _seeded(maker, traces), _copies(maker, traces)]
        rows += [_ends(traces, config.max_rounds), _success(traces)]
        if count is not None:
            rows.append(_tokens(traces, count, window))
        if encode is not None:
            rows.append(_encodings(traces, encode))
        fork = prove_fork(maker, seed)
        rows.append(_fork(fork))
    except EnvError as error:
        rows.append(Row("plays" if rows else "made", False, str(error)))
    return Report(config.name, tuple(rows), turn, fork)


def _kind(game: Game) -> str:
    kind = "AEC, one agent at a time" if isinstance(game.env, AECEnv) else "Parallel, all agents at once"
    return f"{kind}; agents {', '.join(game.agents)}"


def _conformance(env: Any) -> Row:
    """Runs PettingZoo's own test, its prints and warnings caught."""
    from pettingzoo.test import api_test, parallel_api_test  # slow to import, and needed here only

    name, test = ("api_test", api_test) if isinstance(env, AECEnv) else ("parallel_api_test", parallel_api_test)
    name = f"PettingZoo's {name}"
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        try:
            for agent in getattr(env, "possible_agents", ()):
                env.action_space(agent).seed(0)
            test(_Arrays(env) if isinstance(env, AECEnv) else _Legal(env), num_cycles=CYCLES)
        except Exception as error:  # noqa: BLE001  the test runs foreign code; it becomes a row
            what = " ".join(str(error).split()) or "an assertion without a message"
            return Row(name, False, f"{type(error).__name__}: {what}; correct the environment")
    notes = list(dict.fromkeys(" ".join(str(one.message).split()) for one in caught))
    return Row(name, True, f"passed; it remarks: {'; '.join(notes[:3])}" if notes else "passed")


class _Legal(BaseParallelWrapper):  # type: ignore[misc]
    """Draws again where parallel_api_test, which looks for masks in observations only, plays what infos forbid."""

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        result = super().reset(seed=seed, options=options)
        self.seen = result[1]
        return result

    def step(self, actions: dict[Any, Any]) -> Any:
        for agent in actions:
            mask = self.seen.get(agent, {}).get("action_mask")
            if mask is not None:
                actions[agent] = self.action_space(agent).sample(mask)
        result = super().step(actions)
        self.seen = result[4]
        return result


class _Arrays(BaseWrapper):  # type: ignore[misc]
    """Shows an array where an observation has no dtype, which api_test does not know, and asserts its space itself."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.shown = cache(lambda agent: _shown(env.observation_space(agent)))

    def observation_space(self, agent: Any) -> Any:
        return self.shown(agent)

    def observe(self, agent: Any) -> Any:
        seen, space = self.env.observe(agent), self.env.observation_space(agent)
        assert space.contains(seen), f"the observation {repr(seen)[:60]} of {agent!r} is not in {space}"
        return _replaced(seen, space)


_ARRAYS = (spaces.Box, spaces.MultiBinary, spaces.MultiDiscrete)


def _shown(space: spaces.Space[Any]) -> spaces.Space[Any]:
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: _shown(part) for key, part in space.spaces.items()})
    return space if isinstance(space, _ARRAYS) else spaces.Box(0, 1, (1,))


def _replaced(seen: Any, space: spaces.Space[Any]) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _replaced(seen[key], part) for key, part in space.spaces.items()}
    return seen if isinstance(space, _ARRAYS) else np.zeros(1, np.float32)


def _play(traces: list[Trace]) -> Row:
    turns = sum(len(trace.turns) for trace in traces)
    return Row("plays", True, f"{turns} turns of random legal actions; observations and rewards are all numbers")


def _legal(traces: list[Trace]) -> Row:
    turns = [turn for trace in traces for turn in trace.turns]
    sizes = [len(turn.legal) for turn in turns if turn.legal]
    if any(not text.strip() for turn in turns for text in turn.legal):
        return Row("legal actions", False, "an action has an empty text; give every action a text")
    detail = f"{min(sizes)} to {max(sizes)} a turn, all texts different" if sizes else "none listed"
    free = len(turns) - len(sizes)
    return Row("legal actions", True, f"{detail}; {free} free turns" if free else detail)


def _seeded(maker: Make, traces: list[Trace]) -> Row:
    why = next((why for trace in traces if (why := difference(maker(), trace))), "")
    if why:
        return Row("seeded reset", False, f"{why}; draw only from a generator that reset(seed) makes")
    return Row("seeded reset", True, f"{len(traces)} episodes came out the same a second time")


def _copies(maker: Make, traces: list[Trace]) -> Row:
    beside = Beside(maker())
    why = next((why for trace in traces if (why := difference(maker(), trace, beside))), "")
    if why:
        return Row("copies", False, f"beside another copy, {why}; keep all state in the instance")
    return Row("copies", True, "two copies played in turn do not disturb each other")


def _ends(traces: list[Trace], max_rounds: int) -> Row:
    cut = sum(trace.turns[-1].round + 1 >= max_rounds for trace in traces if trace.turns)
    if cut:
        detail = (
            f"{cut} of {len(traces)} episodes reached max_rounds = {max_rounds}, where they are cut; raise it if that"
        )
        return Row("ends", True, f"{detail} is early")
    steps = [len(trace.actions) for trace in traces]
    return Row("ends", True, f"by itself after {min(steps)} to {max(steps)} steps, within {max_rounds} rounds")


def _success(traces: list[Trace]) -> Row:
    values = [outcome.success for trace in traces for outcome in trace.outcomes.values()]
    told = [value for value in values if value is not None]
    if not told:
        return Row("success", True, "not defined, so figures use the return; a success_return would define it")
    return Row("success", True, f"defined; {sum(told) / len(told):.2f} on average in these {len(traces)} episodes")


def _images(game: Game) -> list[Row]:
    """Says what is lost where the default view reads images."""
    known = {str(agent): game.env.observation_space(agent) for agent in getattr(game.env, "possible_agents", ())}
    every = [leaf for name, seen in game.observations().items() for leaf in _leaves(seen, known.get(name))]
    found = [image for value, space in every if (image := as_image(value, space)) is not None]
    if not found or type(game.view) is not SpaceView:
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


def turn_tokens(turn: Turn, count: Callable[[str], int]) -> int:
    """Returns what a turn adds to an agent's stream at most: all that it reads, and its longest action."""
    read = sum(map(count, (turn.system, turn.feedback, turn.observation)))
    return read + max(map(count, turn.legal), default=turn.free)


def _tokens(traces: list[Trace], count: Callable[[str], int], window: int | None) -> Row:
    name = "tokens per turn"
    sizes = sorted(turn_tokens(turn, count) for trace in traces for turn in trace.turns)
    if not sizes:
        return Row(name, True, "there are no turns")
    detail = f"{sizes[len(sizes) // 2]} in the middle, {sizes[-1]} at most"
    if window is None:
        return Row(name, True, detail)
    if 2 * sizes[-1] > window:
        return Row(
            name, False, f"{detail}, over half of the window of {window}; give the environment a shorter text_view"
        )
    return Row(name, True, f"{detail}, in a window of {window}")


def _encodings(traces: list[Trace], encode: Callable[[tuple[str, ...]], object]) -> Row:
    try:
        for legal in sorted({turn.legal for trace in traces for turn in trace.turns if turn.legal}):
            encode(legal)
    except EnvError as error:
        return Row("encodings", False, str(error))
    return Row("encodings", True, "the model's tokens tell all actions of a turn apart")


def _fork(proof: Forkable) -> Row:
    if proof.method is None:
        return Row("fork", True, f"not possible, so there are no branches: {proof.why}")
    return Row("fork", True, f"by {proof.method}: {proof.why}")
