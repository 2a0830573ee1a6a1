"""Draft heads: text that a policy samples in its own environments, the training on it, and what it brings."""

from __future__ import annotations

__all__ = ["fit", "gather", "known", "measured", "sample", "train"]

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
from decentral.agents.draws import name_word
from decentral.agents.folders import head_folder
from decentral.agents.losses import LOSSES
from decentral.agents.model import SMALL
from decentral.agents.pace import MOST, Costs, Measured, Pace
from decentral.agents.passage import Passage
from decentral.agents.policy import Policy
from decentral.agents.rollout import Rollouts
from decentral.disk import disk_error
from decentral.envs.config import EnvConfig
from decentral.envs.fleet import Episode, Fleet
from decentral.envs.names import make
from decentral.envs.turn import Turn
from decentral.errors import ConfigError, RunError, suggest

Report = Callable[[str], object]

EPISODES = 32
"""Played side by side while text is gathered."""
HELD_OUT = 20
"""One passage in so many is not trained on, only measured."""
RATE_WARM, RATE = 3e-3, 1e-3
"""Peak AdamW learning rates for a hidden size of 128, falling with its root: of KL, with which a head begins because a
total variation has hardly a slope where q is far from p, and of what follows."""
SHORTLIST_FROM, SHORTLIST = 8192, 4096
"""Vocabularies of at least so many tokens get a shortlist of so many."""


def gather(
    policy: Policy, env: EnvConfig, *, seed: int, temperature: float, reasoning_tokens: int = 0, run_on: int = 0
) -> Iterator[Passage]:
    """Plays some episodes with one policy in every seat and yields what it sampled.

    Args:
        policy: who plays.
        env: where.
        seed: of the episodes and draws.
        temperature: divides the logits.
        reasoning_tokens: scratch tokens before each action.
        run_on: where positive, every first turn is answered, instead, by so many tokens past any end token: the policy
            goes on with the episode by itself.
    """
    fleet = Fleet(lambda: make(env), EPISODES)
    fleet.load([Episode(i, i, seed * EPISODES + i) for i in range(EPISODES)])
    engines: dict[str, Rollouts] = {}
    while waiting := fleet.pending():
        for agent in sorted({turn.agent for _, turn in waiting}):
            some = [(episode.id, turn) for episode, turn in waiting if turn.agent == agent]
            if agent not in engines:
                engines[agent] = Rollouts(policy, seed, name_word(agent), reasoning_tokens, ends=not run_on)
                engines[agent].clear(temperature)
            turns = [turn for _, turn in some]
            if run_on:
                turns = [Turn(t.agent, t.round, t.observation, (), run_on, t.system) for t in turns]
            actions = engines[agent].play([episode for episode, _ in some], turns)
            for (episode, _), action in zip(some, actions):
                if not run_on:
                    fleet.act(episode, agent, action)
        if run_on:
            break
    fleet.close()
    for engine in engines.values():
        for episode in range(EPISODES):
            for chunk in engine.close(episode).chunks:
                passage = Passage.of(chunk, temperature)
                if passage.drafts:
                    yield passage


def sample(
    policy: Policy,
    envs: Sequence[EnvConfig],
    temperatures: Sequence[float],
    tokens: int,
    *,
    seed: int,
    reasoning_tokens: int,
    run_on: int = 0,
    file: Path | None = None,
    report: Report = str,
) -> list[Passage]:
    """Gathers text from environments and temperatures in turn until ``tokens`` were sampled.

    What is already in ``file`` is taken and the rest appended to it, so an interrupted call can be made again. Half of
    the text is run-on text if ``run_on`` is positive.

    Raises:
        ConfigError: what the agents say there can never be drafted.
    """
    kinds = [(reasoning_tokens, 0), (0, run_on)] if run_on else [(reasoning_tokens, 0)]
    parts = [(env, temperature, *kind) for env in envs for temperature in temperatures for kind in kinds]
    found: list[Passage] = []
    done = -1
    if file and file.exists():
        for line in file.read_bytes().splitlines():
            try:
                entry = msgspec.json.decode(line, type=_Gathered)
            except msgspec.DecodeError:  # the last line of an interrupted call
                break
            found += entry.passages
            done = entry.round
    count = sum(passage.sampled for passage in found)
    started, before, number, silent = monotonic(), count, done + 1, 0
    while count < tokens:
        env, temperature, scratch, past = parts[number % len(parts)]
        new = list(
            gather(
                policy,
                env,
                seed=seed + 1 + number // len(parts),
                temperature=temperature,
                reasoning_tokens=scratch,
                run_on=past,
            )
        )
        silent = 0 if new else silent + 1
        if silent == len(parts):
            raise ConfigError(
                f"agents of {envs[0].name} choose at most one token in a row, so nothing can be drafted: set "
                "agent.reasoning_tokens, or choose an environment with free text"
            )
        if file:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("ab") as out:
                out.write(msgspec.json.encode(_Gathered(number, new)) + b"\n")
        found += new
        count += sum(passage.sampled for passage in new)
        number += 1
        rate = (count - before) / max(1e-9, monotonic() - started)
        report(f"text: {count:,} of {tokens:,} tokens, {rate:,.0f} a second")
    return found


class _Gathered(msgspec.Struct):
    """A line of the file of gathered text."""

    round: int
    passages: list[Passage]


def fit(
    policy: Policy,
    passages: Sequence[Passage],
    warm: Path,
    *,
    loss: str = "e2e",
    steps: int,
    seed: int = 0,
    report: Report = str,
) -> tuple[DraftHead, dict[float, Acceptance]]:
    """Trains a head on passages; the policy stays as it is.

    Args:
        policy: whose text it is.
        passages: what it sampled.
        warm: folder of the head to start from; where there is none, half of the steps minimise KL first, and what comes
            of that is kept there.
        loss: a key of ``losses.LOSSES``.
        steps: optimiser steps.
        seed: of the order of batches.
        report: called with a line of progress now and then.

    Returns:
        the head, and its acceptance by temperature on passages that it was not trained on.
    """
    trunk = policy.shared()
    tokens = 2048 if policy.size < SMALL else 1024
    order = np.random.default_rng(seed)
    mixed = [passages[i] for i in order.permutation(len(passages))]
    readings: list[Reading] = []
    for first in range(0, len(mixed), 1024):
        readings += read(trunk, mixed[first : first + 1024], 8 * tokens)
        report(f"read {len(readings):,} of {len(mixed):,} passages")
    held, trained = readings[::HELD_OUT], [r for i, r in enumerate(readings) if i % HELD_OUT]
    parts = list(batches(trained, tokens))
    scale = (128 / trunk.embedding.shape[1]) ** 0.5

    def stage(name: str, length: int, peak: float) -> None:
        trainer = DraftTrainer(head, name, peak)
        started, mean = monotonic(), 0.0
        for step in range(length):
            trainer.lr = peak * min(1.0, (step + 1) / (0.03 * length)) * (1 - step / length)
            value = trainer.step(parts[order.integers(len(parts))])
            mean = value if step == 0 else 0.98 * mean + 0.02 * value
            if step % 50 == 49:
                report(f"{name} step {step + 1:,} of {length:,}, loss {mean:.4f}, {monotonic() - started:.0f} s")

    if DraftHead.exists(warm):
        head = DraftHead.load(warm, trunk, policy.window)
    else:
        head = DraftHead(trunk, policy.window, _listed(policy, mixed))
        stage("kl", steps - steps // 2, RATE_WARM * scale)
        head.save(warm)
    stage(loss, steps // 2, RATE * scale)
    temperatures = sorted({reading.passage.temperature for reading in held})
    by = {t: [reading for reading in held if reading.passage.temperature == t] for t in temperatures}
    return head, {t: measure(head, some, DEPTH, 4 * tokens) for t, some in by.items()}


def _listed(policy: Policy, passages: Sequence[Passage]) -> torch.Tensor | None:
    """Returns the tokens that were sampled most often, or none where all of the vocabulary is cheap."""
    vocabulary = policy.shared().embedding.shape[0]
    if vocabulary < SHORTLIST_FROM:
        return None
    counts = Counter(token for passage in passages for a, b in passage.runs for token in passage.ids[a:b])
    listed = [token for token, _ in counts.most_common(SHORTLIST)]
    listed += [token for token in range(vocabulary) if token not in counts][: SHORTLIST - len(listed)]
    return torch.tensor(sorted(listed))


def known(policy: Policy, head: DraftHead, acceptance: Sequence[float], report: Report = str) -> Measured:
    """Measures what cycles cost on this machine and returns it with the acceptance."""
    sizes = [1, 4, 16, 64] if policy.size < SMALL else [1, 4, 16]
    lengths, cycles, rounds = (MOST + 1, 10, 4) if policy.size < SMALL else (6, 4, 2)
    table = []
    for size in sizes:
        best = [float("inf")] * lengths
        for _ in range(rounds):
            for length in range(lengths):
                best[length] = min(best[length], _cycle(policy, head, size, length, cycles))
        table.append(best)
        report(f"costs at batch {size}: " + " ".join(f"{seconds * 1e3:.1f}" for seconds in best) + " ms")
    return Measured(list(acceptance), Costs(sizes, table))


def _cycle(policy: Policy, head: DraftHead, size: int, length: int, cycles: int) -> float:
    """Returns seconds per forward of free text with drafts of one length."""
    engine = Rollouts(policy, 0, 0, drafter=Drafter(head, "rejection", Pace(length)) if length else None, ends=False)
    engine.clear(1.0)
    text = " ".join(str(i % 10) for i in range(32))
    engine.play(range(size), [Turn("a", 0, text, (), 1)] * size)
    before = engine.spent.forwards
    started = perf_counter()
    engine.play(range(size), [Turn("a", 1, text[:1], (), cycles * (length + 1))] * size)
    return (perf_counter() - started) / (engine.spent.forwards - before)


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
        start: folder of a head to start from; else see ``warm`` of ``fit``.
        report: called with a line of progress now and then.

    Raises:
        ConfigError: the loss is not known, or nothing that is said could be drafted.
        RunError: ``out`` holds a head already.
        ModelError: the model can have no head.
    """
    if DraftHead.exists(out):
        raise RunError(f"folder {str(out)!r} holds a draft head, which would be overwritten; give another --out")
    if loss not in LOSSES:
        raise ConfigError(f"the loss {loss!r} is not known; choose one of {', '.join(LOSSES)}{suggest(loss, LOSSES)}")
    policy = Policy(msgspec.structs.replace(config, kind="frozen", draft="plain"))
    policy.shared()
    passages = sample(
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
    head, found = fit(policy, passages, start or out / "warm", loss=loss, steps=steps, seed=seed, report=report)
    nearest = min(found, key=lambda t: abs(t - 1.0))
    out.mkdir(parents=True, exist_ok=True)
    known(policy, head, found[nearest].rejection, report).save(out)
    head.save(out)
    card = {
        "model": config.model,
        "environments": [f"{env.name} level {env.level}" if env.level is not None else env.name for env in envs],
        "tokens": sum(passage.sampled for passage in passages),
        "steps": steps,
        "loss": loss,
        "seed": seed,
        "temperatures": {str(t): msgspec.to_builtins(acceptance) for t, acceptance in found.items()},
    }
    (out / "card.json").write_text(json.dumps(card, indent=1) + "\n")
    return found


def measured(
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
    """
    mode = "rejection" if config.draft in ("auto", "plain") else config.draft
    config = msgspec.structs.replace(config, kind="frozen", draft=mode)
    policy = Policy(config)
    drafter = make_drafter(policy, config)
    assert drafter
    passages = sample(
        policy, [env], [config.temperature], tokens, seed=seed, reasoning_tokens=config.reasoning_tokens, report=report
    )
    found = measure(drafter.head, read(policy.shared(), passages, 8192), DEPTH, 8192)
    facts = known(policy, drafter.head, found.rejection, report)
    for size in facts.costs.batches if facts.costs else ():
        pace = Pace(0, facts)
        gain = pace.gain(size)
        report(f"batch {size}: {pace.length(size)} drafts, {gain:.2f} times as fast as plain")
    if write:
        folder = head_folder(config.model, config.draft_head)
        try:
            facts.save(folder)
        except OSError as error:
            raise disk_error(folder, error) from error
    return found
