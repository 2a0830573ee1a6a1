"""Draft heads: training on an agent's own text, and what they bring."""

from __future__ import annotations

__all__ = ["fit", "measure_costs", "measure_head", "train"]

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic, perf_counter

import msgspec
import numpy as np
import torch

from decentral.agents.config import AgentConfig
from decentral.agents.draft import DraftHead
from decentral.agents.draft_trainer import DEPTH, Acceptance, DraftTrainer, Reading, batches, measure, read
from decentral.agents.drafter import Drafter
from decentral.agents.drafting import make_drafter
from decentral.agents.folders import head_folder
from decentral.agents.losses import LOSSES
from decentral.agents.model import SMALL
from decentral.agents.pace import MOST, Costs, Measured, Pace
from decentral.agents.passage import Passage
from decentral.agents.policy import Policy
from decentral.agents.rollout import Rollouts
from decentral.disk import disk_error
from decentral.envs.config import EnvConfig
from decentral.envs.turn import Turn
from decentral.errors import ConfigError, RunError, suggest
from decentral.gather import sample

Report = Callable[[str], object]

HELD_OUT = 23
"""One round of text in so many, at least one, is not trained on, only measured. Rounds go through temperatures and
environments in turn, and a prime falls on all of them."""
RATE_WARM, RATE = 3e-3, 1e-3
"""Peak AdamW learning rates for a hidden size of 128, falling with its root: of KL, with which a head begins because a
total variation has hardly a slope where q is far from p, and of what follows."""
SHORTLIST_FROM, SHORTLIST = 8192, 4096
"""Vocabularies of at least so many tokens get a shortlist of so many."""
COST_TEXT = 32
"""Numbers in the prompt with which costs are measured."""


def train(
    config: AgentConfig,
    envs: Sequence[EnvConfig],
    out: Path,
    *,
    tokens: int,
    steps: int,
    temperatures: Sequence[float] = (),
    loss: str = "e2e",
    run_on: int = 0,
    seed: int = 0,
    start: Path | None = None,
    report: Report = str,
) -> dict[float, Acceptance]:
    """Makes a draft head: gathers text into ``out``/text.jsonl, trains on it, measures, and writes all into ``out``.

    Args:
        config: of the agent; ``reasoning_tokens`` counts, and ``temperature`` where ``temperatures`` are none.
        envs: where it plays.
        out: folder; text that lies there from an interrupted call is used.
        tokens: to be sampled.
        steps: of the optimiser.
        temperatures: at which text is sampled.
        loss: see ``fit``.
        run_on: see ``gather``.
        seed: of everything.
        start: see ``fit``.
        report: called with a line of progress now and then.

    Returns:
        acceptance by temperature on text that was not trained on.

    Raises:
        ConfigError: the loss is not known, ``start`` holds no head, or nothing that is said could be drafted.
        RunError: ``out`` holds a head already, or cannot be written.
        ModelError: the model can have no head.
    """
    if loss not in LOSSES:
        raise ConfigError(f"the loss {loss!r} is not known; choose one of {', '.join(LOSSES)}{suggest(loss, LOSSES)}")
    _check_start(start)
    if DraftHead.exists(out):
        raise RunError(
            f"folder {str(out)!r} holds a draft head, which would be overwritten; give another --out (what that head "
            f"costs here is found by decentral mtp measure --set agent.draft_head={out} --write)"
        )
    if out.exists() and (not out.is_dir() or any(path.name != "text.jsonl" for path in out.iterdir())):
        raise RunError(f"{str(out)!r} is not an empty folder, nor one with gathered text only; give another --out")
    policy = Policy(msgspec.structs.replace(config, kind="frozen", draft="plain"))
    policy.shared()
    rounds = sample(
        policy,
        envs,
        temperatures or [config.temperature],
        tokens,
        seed=seed,
        reasoning_tokens=config.reasoning_tokens,
        run_on=run_on,
        file=out / "text.jsonl",
        report=report,
    )
    head, found = fit(policy, rounds, loss=loss, steps=steps, seed=seed, start=start, report=report)
    card = {
        "model": config.model,
        "environments": [f"{env.name} level {env.level}" if env.level is not None else env.name for env in envs],
        "tokens": sum(passage.sampled for passages in rounds for passage in passages),
        "steps": steps,
        "loss": loss,
        "seed": seed,
        "temperatures": {str(t): msgspec.to_builtins(acceptance) for t, acceptance in found.items()},
    }
    try:
        (out / "card.json").write_text(json.dumps(card, indent=1) + "\n")
        head.save(out)
        usual = found[min(found, key=lambda t: abs(t - 1.0))].rejection
        Measured(usual, measure_costs(policy, head, report)).save(out)
    except OSError as error:
        raise disk_error(out, error, "make room and give the command again") from error
    return found


def fit(
    policy: Policy,
    rounds: Sequence[Sequence[Passage]],
    *,
    loss: str = "e2e",
    steps: int,
    seed: int = 0,
    start: Path | None = None,
    report: Report = str,
) -> tuple[DraftHead, dict[float, Acceptance]]:
    """Trains a head on what a policy sampled; the policy stays as it is.

    Args:
        policy: whose text it is.
        rounds: of text; some are only measured.
        loss: a key of ``losses.LOSSES``.
        steps: optimiser steps, of which the first half minimises KL unless there is a ``start``.
        seed: of the order of batches.
        start: folder of a head to go on from.
        report: called with a line of progress now and then.

    Returns:
        the head, and its acceptance by temperature on rounds that it was not trained on.

    Raises:
        ConfigError: there is too little text, or no head in ``start``.
    """
    _check_start(start)
    if len(rounds) < 2:
        raise ConfigError(f"{len(rounds)} round of text is too little to train and to measure on; raise --tokens")
    trunk = policy.shared()
    tokens = 2048 if policy.size < SMALL else 1024
    held: list[Reading] = []
    trained: list[Reading] = []
    for number, passages in enumerate(rounds):
        (trained if (number + 1) % min(HELD_OUT, len(rounds)) else held).extend(read(trunk, passages, 8 * tokens))
        if number % 50 == 49:
            report(f"read {number + 1:,} of {len(rounds):,} rounds of text")
    parts = [*batches(trained, tokens)]
    order = np.random.default_rng(seed)
    scale = (128 / trunk.embedding.shape[1]) ** 0.5
    if start:
        head, warm = DraftHead.load(start, trunk, policy.window), 0
    else:
        head, warm = DraftHead(trunk, policy.window, _listed(policy, trained)), steps - steps // 2
    for name, length, peak in (("kl", warm, RATE_WARM * scale), (loss, steps - warm, RATE * scale)):
        trainer = DraftTrainer(head, name, peak)
        started, mean = monotonic(), 0.0
        for step in range(length):
            trainer.lr = peak * min(1.0, (step + 1) / (0.03 * length)) * (1 - step / length)
            value = trainer.step(parts[order.integers(len(parts))])
            mean = value if step == 0 else 0.98 * mean + 0.02 * value
            if step % 50 == 49:
                report(f"{name} step {step + 1:,} of {length:,}, loss {mean:.4f}, {monotonic() - started:.0f} s")
    temperatures = sorted({reading.passage.temperature for reading in held})
    by = {t: [reading for reading in held if reading.passage.temperature == t] for t in temperatures}
    return head, {t: measure(head, some, DEPTH, 4 * tokens) for t, some in by.items()}


def _check_start(start: Path | None) -> None:
    if start and not DraftHead.exists(start):
        raise ConfigError(f"folder {str(start)!r} holds no draft head to start from; correct --start, or leave it out")


def _listed(policy: Policy, readings: Sequence[Reading]) -> torch.Tensor | None:
    """Returns the tokens that were sampled most often, or none where all of the vocabulary is cheap."""
    vocabulary = policy.shared().embedding.shape[0]
    if vocabulary < SHORTLIST_FROM:
        return None
    texts = [reading.passage for reading in readings]
    counts = Counter(token for passage in texts for a, b in passage.runs for token in passage.ids[a:b])
    listed = [token for token, _ in counts.most_common(SHORTLIST)]
    listed += [token for token in range(vocabulary) if token not in counts][: SHORTLIST - len(listed)]
    return torch.tensor(sorted(listed))


def measure_costs(policy: Policy, head: DraftHead, report: Report = str) -> Costs:
    """Measures what drafting and verifying costs on this machine."""
    small = policy.size < SMALL
    sizes = [1, 8, 32] if small else [1, 4, 16]
    probed, tokens = ([0, 1, 2, 4, MOST], 32) if small else ([0, 1, 2, 3, 5], 24)
    table = []
    for size in sizes:
        rounds = [[_cycle(policy, head, size, length, tokens) for length in probed] for _ in range(2)]
        table.append(np.interp(range(probed[-1] + 1), probed, np.min(rounds, 0)).tolist())
        costs = " ".join(f"{seconds * 1e3:.1f}" for seconds in table[-1])
        report(f"costs at batch {size}, 0 to {probed[-1]} drafts: {costs} ms")
    return Costs(sizes, table)


def _cycle(policy: Policy, head: DraftHead, size: int, length: int, tokens: int) -> float:
    """Returns seconds of a cycle of all rows, of which the last ones of a text have fewer: rows end apart."""
    engine = Rollouts(policy, 0, 0, drafter=Drafter(head, "rejection", Pace(length)) if length else None, ends=False)
    engine.clear(1.0)
    text = " ".join(str(i % 10) for i in range(COST_TEXT))
    engine.play(range(size), [Turn("a", 0, text, (), 1)] * size)
    before = engine.spent.rows
    started = perf_counter()
    engine.play(range(size), [Turn("a", 1, text[:1], (), max(1, min(tokens, policy.window // 2 - COST_TEXT)))] * size)
    return (perf_counter() - started) / (engine.spent.rows - before) * size


def measure_head(
    config: AgentConfig, env: EnvConfig, *, tokens: int, seed: int, write: bool = False, report: Report = str
) -> Acceptance:
    """Returns the acceptance of an agent's draft head on text that it samples now, and reports costs on this machine.

    Args:
        config: of the agent.
        env: where it plays.
        tokens: to be sampled.
        seed: of the text.
        write: whether costs and acceptance are written beside the head.
        report: called with lines of results.

    Raises:
        ModelError: there is no head.
        ConfigError: nothing that is said could be drafted.
        RunError: the head's folder cannot be written.
    """
    config = msgspec.structs.replace(config, kind="frozen", draft="rejection")
    policy = Policy(config)
    drafter = make_drafter(policy, config)
    assert drafter
    scratch = config.reasoning_tokens
    rounds = sample(policy, [env], [config.temperature], tokens, seed=seed, reasoning_tokens=scratch, report=report)
    passages = [passage for found in rounds for passage in found]
    found = measure(drafter.head, read(policy.shared(), passages, 8192), DEPTH, 8192)
    costs = measure_costs(policy, drafter.head, report)
    pace = Pace(0, Measured(found.rejection, costs))
    for size in costs.batches:
        report(f"batch {size}: {pace.length(size)} drafts, {pace.gain(size):.2f} times as fast as plain")
    if write:
        folder = head_folder(config.model, config.draft_head)
        try:
            pace.known.save(folder)
        except OSError as error:
            raise disk_error(folder, error, "copy the head to a folder of yours and set agent.draft_head") from error
    return found
