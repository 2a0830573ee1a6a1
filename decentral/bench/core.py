"""``decentral bench core``: the environment view, decoding and updates, each beside the peer it replaces.

Ours and the peer's stretches alternate in one process (updates: one peer process per stretch); a ratio is the median
over the pairs, with the range that holds the median with 95 % confidence.
"""

from __future__ import annotations

__all__ = ["main", "measure"]

import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import torch

from decentral.agents.config import AgentConfig
from decentral.agents.folders import POCKET, weights_hash
from decentral.agents.learner import Learner, Play
from decentral.agents.policy import Policy
from decentral.agents.rollout import Rollouts
from decentral.envs.config import EnvConfig
from decentral.envs.game import Game
from decentral.envs.names import make
from decentral.envs.turn import Turn
from decentral.versions import versions

PROMPT, NEW = 64, 64
BATCHES = (1, 8, 32)
ROLLOUTS, TOKENS = 8, 32
WORDS = ("north", "south", "east", "west", "stay", "you", "red", "blue", "green", "gold")


def main(quick: bool, report: Callable[[str], object], peer_python: str | None = None) -> dict[str, Any]:
    """Runs everything and returns the figures; ``report`` is called with a line as each is ready."""
    torch.set_num_threads(1)
    pairs = 3 if quick else 15
    aec = _aec(pairs, 2_000 if quick else 20_000)
    report(_line("AEC steps/s, tictactoe, Game / env()", aec))
    parallel = _parallel(pairs, 1_000 if quick else 5_000)
    report(_line("Parallel steps/s, rock-paper-scissors, Game / parallel_env()", parallel))
    decode = []
    policy = Policy(AgentConfig(model="pocket", kind="frozen"))
    policy.format.end = -1  # equal lengths: no token ends a text
    for batch in BATCHES:
        found = _decode(policy, batch, pairs, NEW // 4 if quick else NEW)
        report(_line(f"decode tokens/s, batch {batch}, ours / generate", found))
        decode.append({"batch": batch, **(found or {})})
    updates = _updates(peer_python, 1 if quick else 5, 3 if quick else 20)
    report(f"updates/s, {ROLLOUTS} rollouts of {TOKENS} tokens: {updates}")
    seconds = _import_seconds()
    report(f"import decentral: {seconds:.3f} s")
    return {
        "aec_ratio": aec and aec["ratio"],
        "parallel_ratio": parallel and parallel["ratio"],
        "decode": decode,
        "updates": updates,
        "import_seconds": seconds,
        "aec": aec,
        "parallel": parallel,
        "seeds": [0],
        "versions": {**versions(), "models": {"pocket": weights_hash("pocket")}},
    }


def measure(ours: Callable[[], float], peer: Callable[[], float], pairs: int) -> dict[str, float]:
    """Runs two rates in turn, the order swapped every pair, after one warm-up each.

    Returns:
        median rates, the median ratio, and the order statistics that hold it with 95 % confidence.
    """
    ours()
    peer()
    rates = []
    for pair in range(pairs):
        first, second = (ours, peer) if pair % 2 == 0 else (peer, ours)
        a, b = first(), second()
        rates.append((a, b) if pair % 2 == 0 else (b, a))
    table = np.array(rates)
    ratios = np.sort(table[:, 0] / table[:, 1])
    low = _median_rank(pairs)
    return {
        "ours": float(np.median(table[:, 0])),
        "peer": float(np.median(table[:, 1])),
        "ratio": float(np.median(ratios)),
        "low": float(ratios[low]),
        "high": float(ratios[pairs - 1 - low]),
        "pairs": pairs,
    }


def _median_rank(n: int) -> int:
    """The largest rank r with P(the median lies outside order statistics r..n-1-r) <= 5 %, else 0."""
    tail, rank = 0.0, 0
    for r in range(n // 2):
        tail += 2 * comb(n, r) / 2**n
        if tail > 0.05:
            break
        rank = r
    return rank


def _line(what: str, found: dict[str, float] | None) -> str:
    if found is None:
        return f"{what}: the environment is not installed (extra suites)"
    return (
        f"{what}: {found['ours']:,.0f} / {found['peer']:,.0f} = {found['ratio']:.2f} "
        f"[{found['low']:.2f}, {found['high']:.2f}]"
    )


def _ours(game: Game, steps: int, draws: Sequence[float]) -> float:
    """Steps per second of uniformly random legal play through our view."""
    started = time.perf_counter()
    game.reset(0)
    draw = iter(draws)
    for _ in range(steps):
        if game.over:
            game.reset(0)
        game.step({turn.agent: turn.legal[int(next(draw) * len(turn.legal))] for turn in game.turns()})
    return steps / (time.perf_counter() - started)


def _aec(pairs: int, steps: int) -> dict[str, float] | None:
    if importlib.util.find_spec("pygame") is None:
        return None
    from pettingzoo.classic import tictactoe_v3

    game = make(EnvConfig(name="pettingzoo.classic.tictactoe_v3:env"))
    env = tictactoe_v3.env()
    draws = np.random.default_rng(0).random(steps).tolist()

    def peer() -> float:
        started = time.perf_counter()
        env.reset(seed=0)
        for draw in draws:
            observation, _, terminated, truncated, _ = env.last()
            while terminated or truncated:
                env.step(None)
                if not env.agents:
                    env.reset(seed=0)
                observation, _, terminated, truncated, _ = env.last()
            legal = np.flatnonzero(observation["action_mask"])
            env.step(int(legal[int(draw * len(legal))]))
        return steps / (time.perf_counter() - started)

    return measure(lambda: _ours(game, steps, draws), peer, pairs)


def _parallel(pairs: int, steps: int) -> dict[str, float] | None:
    if importlib.util.find_spec("pygame") is None:
        return None
    from pettingzoo.classic import rps_v2

    game = make(EnvConfig(name="pettingzoo.classic.rps_v2:parallel_env"))
    env = rps_v2.parallel_env()
    draws = np.random.default_rng(0).random(2 * steps).tolist()

    def peer() -> float:
        started = time.perf_counter()
        env.reset(seed=0)
        draw = iter(draws)
        for _ in range(steps):
            if not env.agents:
                env.reset(seed=0)
            env.step({agent: int(next(draw) * 3) for agent in env.agents})
        return steps / (time.perf_counter() - started)

    return measure(lambda: _ours(game, steps, draws), peer, pairs)


def _texts(count: int, tokens: int) -> list[str]:
    random = np.random.default_rng(0)
    return [" ".join(random.choice(WORDS, tokens)) for _ in range(count)]


def _decode(policy: Policy, batch: int, pairs: int, new: int) -> dict[str, float]:
    """Sampling from the full vocabulary, every row to the same length."""
    fmt = policy.format
    texts = _texts(batch, PROMPT - 2)
    prompt = torch.tensor([[*fmt.given("observation", text), *fmt.opening("action")] for text in texts])

    def ours() -> float:
        engine = Rollouts(policy, seed=0, agent=0)
        engine.clear(1.0)
        turns = [Turn("a", 0, text, (), new) for text in texts]
        started = time.perf_counter()
        engine.play(range(batch), turns)
        return batch * new / (time.perf_counter() - started)

    def peer() -> float:
        started = time.perf_counter()
        with torch.inference_mode():
            policy.model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=new,
                min_new_tokens=new,
                do_sample=True,
                temperature=1.0,
                top_k=0,
                top_p=1.0,
                eos_token_id=None,
                pad_token_id=0,
            )
        return batch * new / (time.perf_counter() - started)

    return measure(ours, peer, pairs)


def _updates(peer_python: str | None, stretches: int, steps: int) -> dict[str, Any]:
    """One agent's rollouts and update, as in a GRPO step, beside TRL's."""
    policy = Policy(AgentConfig(model="pocket", lr=1e-6))
    policy.format.end = -1
    learner = Learner(policy, AgentConfig(lr=1e-6))
    engine = Rollouts(policy, seed=0, agent=0)
    (text,) = _texts(1, PROMPT - 2)

    def ours() -> float:
        started = time.perf_counter()
        for _ in range(steps):
            engine.clear(1.0)
            texts = engine.play(range(ROLLOUTS), [Turn("a", 0, text, (), TOKENS)] * ROLLOUTS)
            plays = [Play(engine.close(e), 0, float(len(t) % 7), [float(len(t) % 7)]) for e, t in enumerate(texts)]
            learner.step(plays, learner.credit(plays)[1])
        return steps / (time.perf_counter() - started)

    def peer() -> float | None:
        script = Path(__file__).with_name("peer_trl.py")
        command = [
            peer_python or sys.executable,
            str(script),
            str(POCKET),
            str(steps),
            str(ROLLOUTS),
            str(TOKENS),
            text,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            return None
        return float(json.loads(done.stdout.strip().splitlines()[-1])["updates_per_s"])

    ours()
    rates = [(ours(), peer()) for _ in range(stretches)]
    mine = float(np.median([a for a, _ in rates]))
    theirs = [b for _, b in rates if b is not None]
    if not theirs:
        return {"ours": mine, "peer": None, "ratio": None}
    ratios = [a / b for a, b in rates if b is not None]
    return {"ours": mine, "peer": float(np.median(theirs)), "ratio": float(np.median(ratios))}


def _import_seconds() -> float:
    """The median of five fresh interpreters, what the interpreter itself needs taken off by timing inside it."""
    code = "import time; t = time.perf_counter(); import decentral; print(time.perf_counter() - t)"
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    return float(np.median(runs))
