"""``decentral bench rollouts``: drafting beside plain sampling and transformers' ``generate``, and when it pays.

Three parts. Speed: the arms take turns in one process, and a ratio is the median over the rounds. Entropy: acceptance
against the policy's entropy. Environments: acceptance in play. A cell is kept on disk once measured, so that a stopped
command goes on.
"""

from __future__ import annotations

__all__ = ["run"]

import json
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from decentral import agents
from decentral.agents.draft import DraftHead
from decentral.agents.drafter import Drafter
from decentral.agents.draws import name_word
from decentral.agents.folders import head_folder
from decentral.agents.policy import Policy
from decentral.agents.rollout import Rollouts, Spent
from decentral.bench.core import _median_rank
from decentral.bench.grid import Grid, code_hash
from decentral.bench.rollout_plots import plot_acceptance, plot_speedup
from decentral.bench.subject import FIRST_SEED, Subject
from decentral.disk import write_whole
from decentral.envs.config import EnvConfig
from decentral.envs.names import games, levels
from decentral.envs.turn import Turn
from decentral.gather import play
from decentral.versions import commit, versions

MODES = ("rejection", "target_only")
ARMS = ("plain", *MODES, "generate")
FIXED = 3
"""Drafts at once where their number does not adapt."""
REASONING = 16
"""Scratch tokens before each action in play."""
RESAMPLES = 2000


class Speed(NamedTuple):
    """What is measured of one model; with six rounds or more a range holds the median with 95 % confidence."""

    batches: tuple[int, ...]
    temperatures: tuple[float, ...]
    rounds: int
    tokens: int


class Plan(NamedTuple):
    """What is measured."""

    speed: dict[str, Speed]
    temperatures: tuple[float, ...]
    seeds: int
    batch: int
    tokens: int
    games: tuple[str, ...]
    episodes: int


_SEVERAL = (0.3, 0.7, 1.0, 1.3)
FULL = Plan(
    {"pocket": Speed((1, 2, 4, 8, 16, 32), _SEVERAL, 9, 64), "smollm2": Speed((1, 4, 8), _SEVERAL, 6, 48)},
    (0.3, 0.5, 0.7, 0.85, 1.0, 1.15, 1.3),
    8,
    32,
    64,
    ("guide", "meet", "vault"),
    64,
)
QUICK = Plan({"pocket": Speed((8,), (1.0,), 3, 24)}, (0.5, 1.3), 2, 8, 24, ("guide",), 8)


class Stretch(NamedTuple):
    """What one arm did in one round."""

    tokens: int
    seconds: float
    spent: Spent
    entropy: list[float]
    """Of the policy at every token, in nats."""


def run(
    quick: bool,
    report: Callable[[str], object],
    out: Path,
    *,
    pocket_head: Path | None = None,
    smollm2_head: Path | None = None,
    ce_head: Path | None = None,
) -> dict[str, Any]:
    """Measures what is not in ``out`` yet, writes tables and plots there, and returns all figures.

    Args:
        quick: few and small cells.
        report: called with a line as each cell is ready.
        out: the folder.
        pocket_head: draft head of ``pocket``; none: the one beside the model.
        smollm2_head: draft head of ``smollm2``; none: the one beside the model, without which the model is left out.
        ce_head: a second head of ``pocket`` for the entropy part, trained with cross-entropy.

    Raises:
        ModelError: a head that is asked for cannot be read.
        RunError: another process is writing to ``out``.
    """
    torch.set_num_threads(1)
    plan = QUICK if quick else FULL
    pocket = Subject("pocket", pocket_head, [env for game in games() for env in levels(game)])
    subjects = [pocket]
    beside = head_folder("smollm2")
    if "smollm2" in plan.speed and (smollm2_head or DraftHead.exists(beside)):
        subjects.append(Subject("smollm2", smollm2_head, [EnvConfig(name="decentral.bench.house:env")]))
    elif "smollm2" in plan.speed:
        report(f"smollm2 is left out: there is no draft head in {str(beside)!r}")
    heads = {"default": pocket}
    if ce_head:
        heads["cross-entropy"] = Subject("pocket", ce_head, pocket.envs)
    with Grid(out) as grid:
        cells = _Cells(grid, report)
        rows = [row for subject in subjects for row in _speed_rows(cells, subject, plan.speed[subject.model])]
        points = [point for head, subject in heads.items() for point in _entropy_points(cells, head, subject, plan)]
        play = _environment_rows(cells, pocket, plan)
    found = {
        "rows": rows,
        "entropy": {
            "points": points,
            "slopes": _slopes(points),
            "draft_tokens": FIXED,
            "batch": plan.batch,
            "tokens": plan.tokens,
        },
        "environments": play,
        "commit": commit(),
        "command": shlex.join(["decentral", *sys.argv[1:]]),
        "versions": versions(),
        "device": _device(),
        "model_hash": {subject.model: subject.hashes["model"] for subject in subjects},
        "head_hash": {
            **{subject.model: subject.hashes["head"] for subject in subjects},
            **{head: subject.hashes["head"] for head, subject in heads.items() if subject is not pocket},
        },
        "seeds": list(range(max(plan.seeds, 1 + max(speed.rounds for speed in plan.speed.values())))),
    }
    write_whole(out / "rollouts.json", json.dumps(found, indent=1).encode() + b"\n")
    plot_acceptance(points).savefig(out / "acceptance.png", dpi=130)
    plot_speedup(rows).savefig(out / "speedup.png", dpi=130)
    return found


class _Cells:
    """The grid, told as it fills."""

    def __init__(self, grid: Grid, report: Callable[[str], object]) -> None:
        self._grid = grid
        self._report = report
        here = Path(__file__)
        code = code_hash(here, here.with_name("subject.py"), Path(agents.__file__).parent)
        self._common = {"versions": versions(), "device": _device(), "code": code}

    def get(
        self,
        settings: dict[str, Any],
        subject: Subject,
        sizes: Mapping[str, Any],
        measure: Callable[[], Any],
        line: Callable[[Any], str],
    ) -> Any:
        fingerprint = {**self._common, **subject.hashes, "sizes": sizes}
        kept = " (kept)" if self._grid.has(settings, fingerprint) else ""
        result = self._grid.cell(settings, fingerprint, measure)
        named = ", ".join(f"{key} {value}" for key, value in settings.items() if key != "part")
        self._report(f"{settings['part']}: {named}: {line(result)}{kept}")
        return result


# -- speed ----------------------------------------------------------------------------------------------------------


def _speed_rows(cells: _Cells, subject: Subject, speed: Speed) -> list[dict[str, Any]]:
    rows = []
    for batch in speed.batches:
        for temperature in speed.temperatures:
            settings = {"part": "speed", "model": subject.model, "batch": batch, "temperature": temperature}
            sizes = {"rounds": speed.rounds, "tokens": speed.tokens}
            race = partial(_race, subject, batch, temperature, speed)
            arms = cells.get(settings, subject, sizes, race, _race_line)
            rows += [{"model": subject.model, "batch": batch, "temperature": temperature, **arm} for arm in arms]
    return rows


def _race(subject: Subject, batch: int, temperature: float, speed: Speed) -> list[dict[str, Any]]:
    """Lets the arms answer the same prompts in turn, the order rotated every round, after one warm-up each."""
    drafters = {mode: subject.drafter(mode) for mode in MODES}

    def go(arm: str, seed: int) -> Stretch:
        turns, ids = subject.prompts(batch, speed.tokens, seed, level=True)
        if arm == "generate":
            return _generate(subject.policy, ids, speed.tokens, temperature, seed)
        return _sample(subject.policy, drafters.get(arm), turns, temperature, seed)

    for arm in ARMS:
        go(arm, 0)
    before = {arm: _tally(drafter) for arm, drafter in drafters.items()}
    done: dict[str, list[Stretch]] = {arm: [] for arm in ARMS}
    for seed in range(1, speed.rounds + 1):
        first = seed % len(ARMS)
        for arm in (*ARMS[first:], *ARMS[:first]):
            done[arm].append(go(arm, seed))
    rates = {arm: [one.tokens / one.seconds for one in some] for arm, some in done.items()}
    rows = []
    for arm, some in done.items():
        row: dict[str, Any] = {"mode": arm, "tokens_per_s": float(np.median(rates[arm]))}
        for other in ("plain", "generate"):
            ratios = np.sort(np.divide(rates[arm], rates[other]))
            low = _median_rank(len(ratios))
            row[f"speedup_vs_{other}"] = float(np.median(ratios))
            row[f"speedup_vs_{other}_interval"] = [float(ratios[low]), float(ratios[-1 - low])]
        ours = [] if arm == "generate" else some
        tally = _tally(drafters[arm]) - before[arm] if arm in drafters else None
        row |= _work(ours) | _accepted(tally, sum(one.spent.rows for one in ours))
        rows.append(row)
    return rows


def _sample(policy: Policy, drafter: Drafter | None, turns: list[Turn], temperature: float, seed: int) -> Stretch:
    """Answers turns with our engine, each to its full length."""
    engine = Rollouts(policy, seed, name_word("bench"), drafter=drafter, ends=False)
    engine.clear(temperature)
    started = time.perf_counter()
    engine.play(range(len(turns)), turns)
    seconds = time.perf_counter() - started
    streams = [engine.close(episode) for episode in range(len(turns))]
    nats = [choice.entropy for stream in streams for chunk in stream.chunks for choice in chunk.choices]
    return Stretch(engine.spent.tokens, seconds, engine.spent, nats)


def _generate(policy: Policy, ids: list[list[int]], tokens: int, temperature: float, seed: int) -> Stretch:
    """The same by transformers."""
    prompt = torch.tensor(ids, device=policy.device)
    with torch.random.fork_rng(), torch.inference_mode():
        torch.manual_seed(seed)
        started = time.perf_counter()
        policy.model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=tokens,
            do_sample=True,
            temperature=temperature,
            top_k=0,
            top_p=1.0,
            eos_token_id=None,
            pad_token_id=0,
        ).tolist()
        seconds = time.perf_counter() - started
    return Stretch(len(ids) * tokens, seconds, Spent(), [])


def _work(some: Sequence[Stretch]) -> dict[str, float | None]:
    """Where the time went, as shares of the whole, and how random the policy was."""
    seconds = sum(one.seconds for one in some)
    parts = {part: sum(getattr(one.spent, f"{part}_s") for one in some) for part in ("draft", "read", "choose")}
    parts["python"] = seconds - sum(parts.values())
    tokens = sum(one.spent.tokens for one in some)
    return {
        "forwards_per_token": _ratio(sum(one.spent.rows for one in some), tokens),
        "entropy": _ratio(sum(sum(one.entropy) for one in some), tokens),
        **{f"{part}_share": _ratio(spent, seconds) for part, spent in parts.items()},
    }


def _tally(drafter: Drafter) -> np.ndarray[Any, Any]:
    """Returns drafts proposed, reached and accepted, each by position."""
    counts = drafter.pace.counts
    return np.array([counts.proposed, counts.reached, counts.accepted])


def _accepted(tally: np.ndarray[Any, Any] | None, steps: int) -> dict[str, Any]:
    """Turns a tally, and the rows times steps in which it came about, into shares; none without a drafter."""
    if tally is None:
        return dict.fromkeys(("acceptance", "acceptance_by_position", "accepted_of_proposed", "drafts_per_step"))
    proposed, reached, accepted = tally
    return {
        "acceptance": _ratio(accepted.sum(), reached.sum()),
        "acceptance_by_position": [float(a / r) for a, r in zip(accepted, reached) if r],
        "accepted_of_proposed": _ratio(accepted.sum(), proposed.sum()),
        "drafts_per_step": _ratio(proposed.sum(), steps),
        "drafts_reached": float(reached.sum()),
    }


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None


def _race_line(arms: Sequence[Mapping[str, Any]]) -> str:
    parts = [f"plain {arms[0]['tokens_per_s']:,.0f} tokens/s"]
    for arm in arms[1:]:
        low, high = arm["speedup_vs_plain_interval"]
        parts.append(f"{arm['mode']} x {arm['speedup_vs_plain']:.2f} [{low:.2f}, {high:.2f}]")
    return "; ".join(parts)


# -- acceptance against entropy -------------------------------------------------------------------------------------


def _entropy_points(cells: _Cells, head: str, subject: Subject, plan: Plan) -> list[dict[str, Any]]:
    """Per mode and temperature, the acceptance and mean entropy of every seed."""
    points = []
    sizes = {"seeds": plan.seeds, "batch": plan.batch, "tokens": plan.tokens, "draft_tokens": FIXED}
    for mode in MODES:
        for temperature in plan.temperatures:
            settings = {"part": "entropy", "head": head, "mode": mode, "temperature": temperature}

            def measure(mode: str = mode, temperature: float = temperature) -> dict[str, list[float]]:
                found: dict[str, list[float]] = {"reached": [], "accepted": [], "entropy": []}
                for seed in range(plan.seeds):
                    drafter = subject.drafter(mode, FIXED)
                    turns, _ = subject.prompts(plan.batch, plan.tokens, seed, level=False)
                    stretch = _sample(subject.policy, drafter, turns, temperature, seed)
                    found["reached"].append(sum(drafter.pace.counts.reached))
                    found["accepted"].append(sum(drafter.pace.counts.accepted))
                    found["entropy"].append(float(np.mean(stretch.entropy)))
                return found

            seeds = cells.get(settings, subject, sizes, measure, _point_line)
            named = {key: value for key, value in settings.items() if key != "part"}
            points.append({**named, **_means(seeds), "seeds": seeds})
    return points


def _means(seeds: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {
        "acceptance": sum(seeds["accepted"]) / sum(seeds["reached"]),
        "entropy": sum(seeds["entropy"]) / len(seeds["entropy"]),
    }


def _point_line(seeds: Mapping[str, Sequence[float]]) -> str:
    means = _means(seeds)
    return f"acceptance {means['acceptance']:.3f} at {means['entropy']:.3f} nats"


def _slopes(points: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Least squares of acceptance on entropy, per head and mode, with the bootstrap's 95 % range over the seeds."""
    slopes = []
    for head, mode in dict.fromkeys((point["head"], point["mode"]) for point in points):
        mine = [point["seeds"] for point in points if (point["head"], point["mode"]) == (head, mode)]
        reached, accepted, nats = (np.array([seeds[k] for seeds in mine]) for k in ("reached", "accepted", "entropy"))

        def slope(some: Any, reached: Any = reached, accepted: Any = accepted, nats: Any = nats) -> float:
            shares = accepted[:, some].sum(1) / reached[:, some].sum(1)
            return float(np.polyfit(nats[:, some].mean(1), shares, 1)[0])

        count = reached.shape[1]
        random = np.random.default_rng(0)
        again = [slope(random.integers(0, count, count)) for _ in range(RESAMPLES)]
        low, high = np.percentile(again, [2.5, 97.5])
        value = slope(np.arange(count))
        slopes.append({"head": head, "mode": mode, "slope": value, "low": float(low), "high": float(high)})
    return slopes


# -- acceptance in play ---------------------------------------------------------------------------------------------


def _environment_rows(cells: _Cells, subject: Subject, plan: Plan) -> list[dict[str, Any]]:
    rows = []
    sizes = {"episodes": plan.episodes, "reasoning_tokens": REASONING}
    for game in plan.games:
        every = levels(game)
        for env in (every[0], every[-1]):
            for length in (FIXED, 0):
                settings = {
                    "part": "environments",
                    "env": game,
                    "level": env.level,
                    "draft_tokens": length or "adaptive",
                }
                row = cells.get(
                    settings,
                    subject,
                    sizes,
                    partial(_play, subject, env, length, plan.episodes),
                    lambda row: "no drafts" if row["acceptance"] is None else f"acceptance {row['acceptance']:.3f}",
                )
                rows.append({key: value for key, value in settings.items() if key != "part"} | row)
    return rows


def _play(subject: Subject, env: EnvConfig, length: int, episodes: int) -> dict[str, Any]:
    """Plays whole episodes, the model in every seat, as agents do."""
    drafter = subject.drafter("rejection", length)
    engines = play(
        env, episodes, FIRST_SEED, lambda agent: Rollouts(subject.policy, 0, name_word(agent), REASONING, drafter), 1.0
    )
    spent = [engine.spent for engine in engines.values()]
    tokens, steps = sum(one.tokens for one in spent), sum(one.rows for one in spent)
    return {**_accepted(_tally(drafter), steps), "tokens": tokens, "forwards_per_token": _ratio(steps, tokens)}


# -- what figures depend on -----------------------------------------------------------------------------------------


def _device() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
