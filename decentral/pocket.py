"""The recipe of the pocket model: a Llama of about a million parameters that reads the built-in games.

Text comes from uniformly random legal play of every built-in game at every level, as the agents' own streams, half of
the turns with a short scratch line derived from the observation. The model so learns the format, the words and how
observations change, and plays at chance. Besides, episodes of random words in and random words out keep the actions of
an unknown environment about equally likely: words that never came after an action marker would never be tried.
Everything is drawn from one seed.
"""

from __future__ import annotations

__all__ = ["babble", "corpus", "train", "train_head"]

import importlib
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from decentral import mtp
from decentral.agents.config import AgentConfig
from decentral.agents.draft_trainer import Acceptance
from decentral.agents.draws import name_word, uniform
from decentral.agents.folders import weights_hash
from decentral.agents.format import Format, Kind
from decentral.agents.scoring import pack
from decentral.agents.vocabulary import WINDOW, WORDS, build_tokenizer
from decentral.envs.config import EnvConfig
from decentral.envs.game import Game
from decentral.envs.names import games, levels, make
from decentral.errors import RunError

Segments = list[tuple[Kind, str]]
"""One agent's episode as kinds and texts."""

STEPS = 1000
BATCH_TOKENS = 8192
EPISODES = 3000
"""Per game and level; and of random words, as many as for five levels."""
PEAK = 3e-3
HEAD_STEPS = 6000
HEAD_TOKENS = 1_000_000
"""Sampled by the model, at temperatures 0.3 to 1.3; half of them run on past the end of a text."""


def corpus(seed: int, episodes: int) -> Iterator[Segments]:
    """Yields every agent's episode of uniformly random legal play, game by game and level by level."""
    for name, target in games().items():
        module = importlib.import_module(target.partition(":")[0])
        for level in range(module.LEVELS):
            game = make(EnvConfig(name=name, level=level))
            word = name_word(f"{name} {level}")
            for episode in range(episodes):
                game.reset(int(uniform(seed, word, episode)[0] * 2**31))
                yield from _play(game, module.scratch, (seed, word, episode)).values()


def babble(seed: int, episodes: int) -> Iterator[Segments]:
    """Yields episodes in which random words, numbers and signs are seen and random words or numbers are done."""
    words = WORDS.split()
    random = np.random.default_rng([seed, 1])

    def number() -> str:
        return str(random.choice([str(random.integers(10)), str(random.integers(-99, 100)), f"{random.normal():.1f}"]))

    def some(count: int) -> str:
        return " ".join(str(random.choice(words)) if random.random() < 0.6 else number() for _ in range(count))

    for _ in range(episodes):
        agent = str(random.choice(words))
        segments: Segments = [("system", str(random.choice([f"You are {agent}.", f"You are {agent}_0.", some(4)])))]
        for _ in range(random.integers(1, 9)):
            segments.append(("observation", some(int(random.integers(1, 12)))))
            done = random.random()
            action = str(random.choice(words)) if done < 0.6 else str(random.integers(20)) if done < 0.85 else some(2)
            segments.append(("action", action))
        yield segments


def _play(game: Game, scratch: Callable[[str], str], key: tuple[int, ...]) -> dict[str, Segments]:
    seen: dict[str, Segments] = {agent: [] for agent in game.agents}
    count = 0
    while turns := game.turns():
        actions = {}
        for turn in turns:
            count += 1
            draw, scratched = uniform(*key, [2 * count, 2 * count + 1])
            actions[turn.agent] = turn.legal[int(draw * len(turn.legal))]
            parts: Segments = [("system", turn.system), ("feedback", turn.feedback), ("observation", turn.observation)]
            if scratched < 0.5:
                parts.append(("reasoning", scratch(turn.observation)))
            seen[turn.agent] += [(kind, text) for kind, text in parts if text]
            seen[turn.agent].append(("action", actions[turn.agent]))
        game.step(actions)
    for agent, outcome in game.outcomes().items():
        if outcome.feedback:
            seen[agent].append(("feedback", outcome.feedback))
    return seen


def train(
    out: Path, seed: int = 0, steps: int = STEPS, episodes: int = EPISODES, report: Callable[[str], object] = str
) -> Path:
    """Trains the pocket model and writes a Hugging Face folder with a model card.

    Args:
        out: a folder that does not exist yet.
        seed: draws games, actions, weights and batches.
        steps: optimiser steps.
        episodes: random episodes per game and level.
        report: called with a line of progress now and then.

    Raises:
        RunError: ``out`` exists.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    if out.exists():
        raise RunError(f"folder {out} exists and would be overwritten; give another --out")
    started = time.monotonic()
    texts = [*corpus(seed, episodes), *babble(seed, 5 * episodes)]
    tokenizer = build_tokenizer(text for segments in texts[:: max(1, len(texts) // 5000)] for _, text in segments)
    chunks = _encode(texts, Format(tokenizer))
    report(f"{len(chunks)} episodes, {sum(map(len, chunks))} tokens, vocabulary {len(tokenizer)}")
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=352,
        num_hidden_layers=4,
        num_attention_heads=4,
        max_position_embeddings=WINDOW,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=None,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    optimiser = torch.optim.AdamW(model.parameters(), lr=PEAK, betas=(0.9, 0.95), weight_decay=0.01)
    order = np.random.default_rng(seed)
    batches = pack([len(chunk) for chunk in chunks], BATCH_TOKENS)
    loss, seen = 0.0, 0
    model.train()
    for step in range(steps):
        rate = PEAK * min(1.0, (step + 1) / 50) * (0.55 + 0.45 * math.cos(math.pi * step / steps))
        optimiser.param_groups[0]["lr"] = rate
        ids, labels = _pad([chunks[i] for i in batches[order.integers(len(batches))]])
        value = model(input_ids=ids, labels=labels).loss
        optimiser.zero_grad(set_to_none=True)
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        loss = value.item() if step == 0 else 0.98 * loss + 0.02 * value.item()
        seen += int((labels >= 0).sum())
        if step % 50 == 49:
            report(f"step {step + 1} of {steps}, loss {loss:.3f}, {time.monotonic() - started:.0f} s")
    model.eval()
    out.mkdir(parents=True)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    size = sum(p.numel() for p in model.parameters())
    card = _CARD.format(
        size=size,
        vocabulary=len(tokenizer),
        seed=seed,
        steps=steps,
        episodes=episodes,
        tokens=seen,
        loss=loss,
        minutes=(time.monotonic() - started) / 60,
        hash=weights_hash(str(out)),
    )
    (out / "README.md").write_text(card)
    return out


def train_head(
    out: Path,
    seed: int = 0,
    steps: int = HEAD_STEPS,
    tokens: int = HEAD_TOKENS,
    loss: str = "e2e",
    report: Callable[[str], object] = str,
) -> dict[float, Acceptance]:
    """Makes the pocket model's draft head from its own text in every built-in game and level; see ``mtp.train``."""
    envs = [env for game in games() for env in levels(game)]
    return mtp.train(
        AgentConfig(model="pocket", reasoning_tokens=16),
        envs,
        out,
        tokens=tokens,
        steps=steps,
        temperatures=(0.3, 0.7, 1.0, 1.3),
        loss=loss,
        run_on=64,
        seed=seed,
        report=report,
    )


def _encode(texts: list[Segments], fmt: Format) -> list[list[int]]:
    """Encodes episodes just as a stream does, cut to the window."""
    chunks = []
    for segments in texts:
        ids = list(fmt.start)
        for kind, text in segments:
            if kind in ("action", "reasoning"):
                ids += [*fmt.opening(kind), *fmt.choice(text), *fmt.after]
            else:
                ids += fmt.given(kind, text)
        chunks.append(ids[:WINDOW])
    return chunks


def _pad(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    labels = torch.tensor([row + [-100] * (width - len(row)) for row in rows])
    return ids, labels


_CARD = """# pocket

A Llama of {size:,} parameters with a byte-fallback vocabulary of {vocabulary} tokens, float32. It exists so that
`decentral` runs on two CPU cores with no download.

- **Data**: {episodes:,} episodes of uniformly random legal play for each built-in game and level, as each agent saw
  them; half of the turns carry a short scratch line derived from the observation. Besides, episodes of random words
  and numbers, so that no legal action of another environment is out of reach. No other text.
- **Training**: seed {seed}, {steps:,} steps, {tokens:,} tokens, {minutes:.0f} minutes on one core; final loss
  {loss:.3f} nats per token, which includes the actions' irreducible entropy.
- **Weights**: SHA-256 begins {hash}.
- **Made by**: `decentral pocket train --seed {seed}`.

It can read the observations of the built-in games, knows their legal actions and the order of segments, and plays at
chance. It cannot converse, follow instructions, or understand other text than it was trained on; in another environment
it starts from knowing letters, some words and a format, tries actions about evenly, and has to learn the rest.
"""
