"""``decentral bench environments``: our turn-based view of many environments beside these environments themselves.

Both sides play whole episodes of uniformly random legal actions with the same seeds and the same prepared random
numbers, so that a choice costs both the same, resets count on both, and where the environment allows it both play the
very same episodes. Ours reads every turn's texts and answers with one of them; the other side steps the environment as
its own users do, see ``raw.py``. They take turns in one process; time is the processor's, so that other processes
disturb little; a ratio is the median over the pairs. What else is told of an environment comes from
``check_env`` and from episodes played once. A cell is kept on disk once measured, so that a stopped command goes on.
"""

from __future__ import annotations

__all__ = ["run"]

import contextlib
import io
import itertools
import json
import random
import shlex
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from decentral import envs
from decentral.agents.format import Format
from decentral.agents.model import load_tokenizer
from decentral.bench.core import measure
from decentral.bench.grid import Grid, code_hash
from decentral.bench.raw import Draw, Raw, Script, raw
from decentral.disk import write_whole
from decentral.envs.check import check_env, turn_tokens
from decentral.envs.config import EnvConfig
from decentral.envs.game import Game
from decentral.envs.names import make
from decentral.envs.trace import play
from decentral.envs.turn import Turn
from decentral.errors import MissingExtra
from decentral.versions import commit, versions

NAMES = (
    "guide",
    "meet",
    "vault",
    "mpe2/simple_v3",
    "mpe2/simple_adversary_v3",
    "mpe2/simple_crypto_v3",
    "mpe2/simple_push_v3",
    "mpe2/simple_reference_v3",
    "mpe2/simple_speaker_listener_v4",
    "mpe2/simple_spread_v3",
    "mpe2/simple_tag_v3",
    "mpe2/simple_world_comm_v3",
    "classic/tictactoe_v3",
    "classic/connect_four_v3",
    "classic/leduc_holdem_v4",
    "classic/texas_holdem_v4",
    "classic/texas_holdem_no_limit_v6",
    "classic/hanabi_v5",
    "classic/chess_v6",
    "lbforaging/Foraging-5x5-2p-1f-coop-v3",
    "lbforaging/Foraging-8x8-2p-2f-coop-v3",
    "lbforaging/Foraging-10x10-3p-3f-v3",
    "rware/rware-tiny-2ag-v2",
    "openspiel/bargaining",
    "openspiel/coop_box_pushing",
    "openspiel/hanabi(players=2,colors=2,ranks=3)",
    "openspiel/kuhn_poker",
    "openspiel/leduc_poker",
    "openspiel/negotiation",
    "openspiel/trade_comm",
    "textarena/TicTacToe-v0",
    "textarena/ConnectFour-v0",
    "textarena/Nim-v0",
    "textarena/LiarsDice-v0-small",
    "textarena/GameOfPureStrategy-v0",
    "textarena/FrozenLake-v0",
    "textarena/GuessTheNumber-v0",
    "textarena/TowerOfHanoi-v0",
    "textarena/IteratedPrisonersDilemma-v0",
    "textarena/TruthAndDeception-v0",
    "gymnasium/FrozenLake-v1",
    "gymnasium/CartPole-v1",
)
FEW = ("guide", "mpe2/simple_v3", "classic/tictactoe_v3", "openspiel/kuhn_poker", "gymnasium/FrozenLake-v1")
PACKAGES = ("mpe2", "lbforaging", "rware", "open_spiel", "rlcard", "shimmy", "chess", "textarena")
FREE = "abc 123"
"""What is said where any text may be."""
WINDOW = 1024
"""Tokens that an agent reads at most, as in ``decentral envs check``."""
UNCUT = 1_000_000
"""Rounds: both sides play until the environment itself ends."""


class Plan(NamedTuple):
    """What is measured; with six pairs or more a range holds the median with 95 % confidence."""

    names: tuple[str, ...]
    pairs: int
    seconds: float
    """Of the raw environment in a stretch, about; at least one episode."""


FULL = Plan(NAMES, 15, 0.15)
QUICK = Plan(FEW, 1, 0.02)


def run(quick: bool, report: Callable[[str], object], out: Path) -> dict[str, Any]:
    """Measures what is not in ``out`` yet, writes ``environments.json`` there, and returns all figures.

    Args:
        quick: few environments, one pair of each.
        report: called with a line as each is ready or skipped.
        out: the folder.

    Raises:
        RunError: another process is writing to ``out``.
    """
    plan = QUICK if quick else FULL
    here = Path(__file__)
    code = code_hash(here, here.with_name("raw.py"), Path(envs.__file__).parent)
    common = {"versions": _versions(), "code": code, "sizes": {"pairs": plan.pairs, "seconds": plan.seconds}}
    rows, skipped = [], []
    with Grid(out) as grid, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in plan.names:
            settings = {"environment": name}
            kept = " (kept)" if grid.has(settings, common) else ""
            try:
                row = grid.cell(settings, common, partial(_row, name, plan))
            except (ImportError, MissingExtra) as error:
                skipped.append(name)
                report(f"{name}: skipped: {error}")
                continue
            rows.append({**settings, **row})
            report(f"{name}: {row['raw_us']:.1f} us a step, ours / raw {ratio(row)}{kept}")
    found = {
        "rows": rows,
        "skipped": skipped,
        "pairs": plan.pairs,
        "commit": commit(),
        "command": shlex.join(["decentral", *sys.argv[1:]]),
        "versions": _versions(),
        "seeds": "0, 1, 2, ... in every environment, each episode another",
    }
    write_whole(out / "environments.json", json.dumps(found, indent=1).encode() + b"\n")
    return found


def ratio(row: dict[str, Any]) -> str:
    """Returns a ratio with its range."""
    return f"{row['ratio']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


def _row(name: str, plan: Plan) -> dict[str, Any]:
    """Measures one environment."""
    env = raw(name)
    found = _race(make(EnvConfig(name=name, max_rounds=UNCUT)), env, plan)
    tokenizer = load_tokenizer("pocket")
    reader = Format(tokenizer)
    window = min(tokenizer.model_max_length, WINDOW)

    def count(text: str) -> int:
        return len(reader.text(text))

    with contextlib.redirect_stdout(io.StringIO()):
        checked = check_env(EnvConfig(name=name), count=count, encode=reader.trie, window=window)
    return {
        "api": env.api,
        "read": env.read,
        "fork": checked.fork and checked.fork.method,
        "failed": [f"{row.name}: {row.detail}" for row in checked.rows if not row.ok],
        "raw_us": 1e6 / found["peer"],
        "ours_us": 1e6 / found["ours"],
        "ratio": found["ratio"],
        "low": found["low"],
        "high": found["high"],
        **_told(make(EnvConfig(name=name)), count),
    }


def _told(game: Game, count: Callable[[str], int]) -> dict[str, Any]:
    """Returns the sizes of the turns of three episodes, and what a success is."""
    traces = [play(game, seed) for seed in range(3)]
    turns = [turn for trace in traces for turn in trace.turns]
    tokens = [sum(turn_tokens(turn, count).values()) for turn in turns]
    legal = [len(turn.legal) for turn in turns if turn.legal]
    defined = any(outcome.success is not None for trace in traces for outcome in trace.outcomes.values())
    return {
        "tokens": [statistics.median_high(tokens), max(tokens)],
        "legal": [min(legal), statistics.median_high(legal), max(legal)] if legal else [],
        "free_turns": len(turns) - len(legal),
        "success": str(getattr(game.env.unwrapped, "success_rule", "")) if defined else "",
    }


def _race(game: Game, env: Raw, plan: Plan) -> dict[str, float]:
    """Lets both sides play the same episodes in turn, other ones in every pair."""
    scripts = _scripts(game, [0]) if env.scripted else {}
    env.play([0], _draw(0), scripts)
    started = time.process_time()
    env.play([0], _draw(0), scripts)
    episodes = max(1, round(plan.seconds / (time.process_time() - started)))

    def stretch(side: Callable[[Sequence[int], Draw, Mapping[int, Script]], int]) -> Callable[[], float]:
        pairs = itertools.count()

        def go() -> float:
            pair = next(pairs)
            seeds = range(pair * episodes, (pair + 1) * episodes)
            scripts = _scripts(game, seeds) if env.scripted else {}
            draw = _draw(pair)
            started = time.process_time()
            steps = side(seeds, draw, scripts)
            return steps / (time.process_time() - started)

        return go

    return measure(stretch(partial(_ours, game)), stretch(env.play), plan.pairs)


def _ours(game: Game, seeds: Sequence[int], draw: Draw, scripts: Mapping[int, Script]) -> int:
    """Plays episodes through our view; returns how often the environment was stepped."""
    steps = 0
    for seed in seeds:
        script = iter(scripts.get(seed, ()))
        game.reset(seed)
        while not game.over:
            steps += 1
            turns = game.turns()
            game.step({turn.agent: next(script)[0] if scripts else _answer(turn, draw) for turn in turns})
    return steps


def _scripts(game: Game, seeds: Sequence[int]) -> dict[int, Script]:
    """Plays episodes of TextArena, where a move stands in brackets, and returns what was answered in them."""
    found: dict[int, Script] = {}
    for seed in seeds:
        draw, script = _draw(seed), []
        game.reset(seed)
        while not game.over:
            (turn,) = game.turns()
            text = _answer(turn, draw)
            script.append((text, f"[{text}]" if turn.legal else text))
            game.step({turn.agent: text})
        found[seed] = script
    return found


def _answer(turn: Turn, draw: Draw) -> str:
    return turn.legal[int(draw() * len(turn.legal))] if turn.legal else FREE


def _draw(seed: int) -> Draw:
    generator = random.Random(seed)
    return itertools.cycle([generator.random() for _ in range(10_007)]).__next__


def _versions() -> dict[str, str]:
    return {**versions(), **dict(_installed())}


def _installed() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            yield package, metadata.version(package)
