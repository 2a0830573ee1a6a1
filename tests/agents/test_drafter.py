"""Speculative decoding is exact: what the engine draws with drafts is distributed as what it draws without.

The law of four free tokens is enumerated with plain forwards, over a vocabulary of eight, and compared by chi-square.
The first token is read with the prompt, so the other three are where drafts are accepted, rejected, and followed by one
more. Faults are planted to prove that the checks would notice.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from decentral.agents import cache as cache_module
from decentral.agents.config import AgentConfig
from decentral.agents.draft import DraftHead
from decentral.agents.drafter import Drafter, Mode, Proposal
from decentral.agents.pace import Pace
from decentral.agents.policy import Policy
from decentral.agents.rollout import Rollouts
from decentral.envs.turn import Turn

WORDS = ["<unk>", "<eos>", "a", "b", "c", "d", "e", "f"]
TOKENS = 4
PROMPTS = ["a b c", "d", "e f a b b"]
MODES: list[Mode] = ["rejection", "target_only"]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a Llama over eight words whose distributions are far from uniform."""
    folder = tmp_path_factory.mktemp("small")
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", eos_token="<eos>").save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=128,
        initializer_range=0.5,
        bos_token_id=None,
        eos_token_id=1,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
def policy(small: Path) -> Policy:
    return Policy(AgentConfig(model=str(small), kind="frozen"))


def drafter(policy: Policy, mode: Mode, length: int = 2, shortlist: list[int] | None = None) -> Drafter:
    """A head whose weights are disturbed, so that some of its drafts are accepted and some are not."""
    head = DraftHead(policy.shared(), policy.window, None if shortlist is None else torch.tensor(shortlist))
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in head.parameters():
            weight.add_(torch.randn(weight.shape, generator=draw), alpha=0.2)
    return Drafter(head, mode, Pace(length))


def law(policy: Policy, prompt: str) -> np.ndarray:
    """Probabilities of every text of TOKENS tokens, first token major, by one plain forward over all of them."""
    fmt = policy.format
    before = [*fmt.start, *fmt.given("observation", prompt), *fmt.opening("action")]
    texts = torch.tensor(list(product(range(len(WORDS)), repeat=TOKENS)))
    ids = torch.cat([torch.tensor(before).expand(len(texts), -1), texts], 1)
    with torch.inference_mode():
        logp = policy.model(ids).logits[:, len(before) - 1 : -1].double().log_softmax(-1)
    return logp.gather(-1, texts[..., None])[..., 0].sum(-1).exp().numpy()


@pytest.fixture(autouse=True)
def _no_collection() -> Iterator[None]:
    """Looking for cycles among many rows takes as long as playing them."""
    gc.disable()
    yield
    gc.enable()


def sampled(policy: Policy, by: Drafter, count: int) -> dict[str, np.ndarray]:
    """Plays texts after each prompt, several prompts and lengths to a batch, and counts how often every text came."""
    found = {prompt: np.zeros(len(WORDS) ** TOKENS) for prompt in PROMPTS}
    size, opening = 600, len(policy.format.opening("action"))
    turns = [Turn("x", 0, PROMPTS[e % 3], (), TOKENS + (e // 3) % 2) for e in range(size)]
    for batch in range(count // size):
        engine = Rollouts(policy, batch, 0, drafter=by, ends=False)
        engine.clear(1.0)
        engine.play(range(size), turns)
        texts = np.array([engine.close(e).segments[-1].ids[opening : opening + TOKENS] for e in range(size)])
        cells = np.ravel_multi_index(tuple(texts.T), [len(WORDS)] * TOKENS)
        for i, prompt in enumerate(PROMPTS):
            found[prompt] += np.bincount(cells[i::3], minlength=len(WORDS) ** TOKENS)
    return found


def p_value(policy: Policy, by: Drafter, count: int) -> float:
    """Of a chi-square over all prompts; texts expected fewer than five times are one cell of their prompt."""
    statistic, cells = 0.0, 0
    for prompt, seen in sampled(policy, by, count).items():
        hoped = law(policy, prompt) * seen.sum()
        small = hoped < 5
        seen, hoped = np.append(seen[~small], seen[small].sum()), np.append(hoped[~small], hoped[small].sum())
        statistic += ((seen - hoped) ** 2 / hoped).sum()
        cells += len(hoped) - 1
    return torch.special.gammaincc(torch.tensor(cells / 2).double(), torch.tensor(statistic / 2).double()).item()


def middling(by: Drafter) -> bool:
    counts = by.pace.counts
    return all(0.05 < counts.accepted[j] / counts.reached[j] < 0.95 for j in range(2))


@pytest.mark.parametrize("mode", MODES)
def test_texts_have_the_law_of_plain_sampling(policy: Policy, mode: Mode) -> None:
    by = drafter(policy, mode)
    assert p_value(policy, by, 100_200) > 1e-3
    assert middling(by)


def test_a_shortlist_keeps_the_law(policy: Policy) -> None:
    by = drafter(policy, "rejection", shortlist=[3, 5, 2, 6])
    assert p_value(policy, by, 18_000) > 1e-3
    assert middling(by)


def test_chi_square_notices_a_residual_that_is_p(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decentral.agents.verify.residual", lambda p, q: p)
    assert p_value(policy, drafter(policy, "rejection"), 9_000) < 1e-6


def test_chi_square_notices_a_q_from_which_nothing_was_drawn(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    propose = Drafter.propose

    def stale(*args: Any) -> Proposal | None:
        made = propose(*args)
        if made:
            made.q.copy_(made.q.roll(1, 0))
        return made

    monkeypatch.setattr(Drafter, "propose", stale)
    assert p_value(policy, drafter(policy, "rejection"), 9_000) < 1e-6


def test_a_stale_head_costs_acceptance_and_not_exactness(policy: Policy) -> None:
    by = drafter(policy, "rejection")
    with torch.no_grad():
        policy.model.lm_head.weight.copy_(policy.model.lm_head.weight.roll(2, 0))
    by.refresh = lambda temperature: None  # type: ignore[method-assign]
    assert p_value(policy, by, 18_000) > 1e-3


def long_texts(policy: Policy, by: Drafter | None, temperature: float) -> list[list[int]]:
    engine = Rollouts(policy, 0, 0, drafter=by, ends=False)
    engine.clear(temperature)
    for t in range(2):
        turns = [Turn("x", t, " ".join(PROMPTS[e % 3].split()[e % 2 :] + ["f"] * e), (), 20 + 3 * e) for e in range(6)]
        engine.play(range(6), turns)
    return [engine.close(e).ids for e in range(6)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("length", [1, 3])
def test_without_temperature_the_texts_are_those_of_plain_sampling(policy: Policy, mode: Mode, length: int) -> None:
    by = drafter(policy, mode, length)
    assert long_texts(policy, by, 0.0) == long_texts(policy, None, 0.0)
    assert 0 < by.pace.counts.accepted[0] < by.pace.counts.reached[0]


def error(policy: Policy, engine: Rollouts, rows: int) -> float:
    """How far recorded log-probabilities are from plain forwards; NaN if any is."""
    worst = []
    for e in range(rows):
        (chunk,) = engine.stream(e).chunks
        with torch.inference_mode():
            logp = policy.model(torch.tensor([chunk.ids])).logits[0].log_softmax(-1)
        worst += [abs(choice.logp - logp[choice.at - 1, chunk.ids[choice.at]].item()) for choice in chunk.choices]
    return float(np.max(worst))


def played(policy: Policy, by: Drafter, turns: int) -> Rollouts:
    engine = Rollouts(policy, 0, 0, drafter=by, ends=False)
    engine.clear(1.0)
    for t in range(turns):
        engine.play(range(6), [Turn("x", t, PROMPTS[e % 3], (), 8 + e) for e in range(6)])
    return engine


@pytest.mark.parametrize("shift", [0, 1, -1])
def test_a_mask_that_is_off_by_one_shows(policy: Policy, monkeypatch: pytest.MonkeyPatch, shift: int) -> None:
    def shifted(positions: Tensor, seen: int, dtype: torch.dtype) -> Tensor:
        return cache_module.causal((positions + shift).clamp(min=0), seen, dtype)

    monkeypatch.setattr("decentral.agents.rollout.causal", shifted)
    assert (error(policy, played(policy, drafter(policy, "rejection"), 2), 6) < 1e-4) == (shift == 0)


@pytest.mark.parametrize("cleared", [False, True])
def test_a_cache_from_before_an_update_shows(policy: Policy, cleared: bool) -> None:
    by = drafter(policy, "rejection")
    engine = played(policy, by, 1)
    with torch.no_grad():
        for weight in policy.model.parameters():
            weight.mul_(1.2)
    if cleared:
        engine.clear(1.0)
    first = {e: len(engine.stream(e).ids) if engine.stream(e) else 0 for e in range(6)}
    engine.play(range(6), [Turn("x", 1, PROMPTS[e % 3], (), 8) for e in range(6)])
    for e in range(6):
        chunk = engine.stream(e).chunks[0]
        chunk.choices[:] = [choice for choice in chunk.choices if choice.at >= first[e]]
    assert (error(policy, engine, 6) < 1e-4) == cleared


def test_clearing_takes_the_output_head_as_it_is_now(policy: Policy) -> None:
    used, stale = (drafter(policy, "rejection", shortlist=[2, 3, 6]) for _ in range(2))
    played(policy, stale, 3)
    stale.refresh = lambda temperature: None  # type: ignore[method-assign]
    with torch.no_grad():
        policy.model.lm_head.weight.copy_(policy.model.lm_head.weight.roll(2, 0))
    fresh = Drafter(used.head, "rejection", Pace(2))
    engines = [played(policy, by, 3) for by in (used, fresh, stale)]
    texts = [[engine.close(e).ids for e in range(6)] for engine in engines]
    assert texts[0] == texts[1] != texts[2]
    assert used.pace.counts == fresh.pace.counts


def test_rows_that_were_packed_before_the_first_draft_come_home(policy: Policy) -> None:
    engine = Rollouts(policy, 0, 0, drafter=drafter(policy, "rejection"), ends=False)
    engine.clear(1.0)
    engine.play(range(3), [Turn("x", 0, "a " * (e + 1), ("a", "b")) for e in range(3)])
    for t in (1, 2):
        engine.play([0, 2], [Turn("x", t, "a", (), 6), Turn("x", t, "c d", (), 9)])
    with torch.inference_mode():
        for e in (0, 2):
            (chunk,) = engine.stream(e).chunks
            logp = policy.model(torch.tensor([chunk.ids])).logits[0].log_softmax(-1)
            free = [choice for choice in chunk.choices if choice.allowed is None]
            assert len(free) == 2 * (6 if e == 0 else 9)
            assert all(abs(c.logp - logp[c.at - 1, chunk.ids[c.at]].item()) < 1e-4 for c in free)


@pytest.mark.parametrize("mode", MODES)
def test_the_end_token_ends_a_text_amid_its_drafts(policy: Policy, mode: Mode) -> None:
    with torch.no_grad():
        policy.model.lm_head.weight[1] = policy.model.lm_head.weight[[2, 6]].mean(0)
    by = drafter(policy, mode, 3)
    engine = Rollouts(policy, 0, 0, drafter=by)
    engine.clear(1.0)
    engine.play(range(300), [Turn("x", 0, PROMPTS[e % 3], (), 12) for e in range(300)])
    texts = [engine.stream(e).segments[-1].ids[1:] for e in range(300)]
    assert all(text.count(1) == 1 and text[-1] == 1 and len(text) <= 13 for text in texts)
    assert len({len(text) for text in texts}) > 5
    assert all(row.cached < len(row.stream.ids) for row in engine._rows.values())
    engine.play(range(6), [Turn("x", 1, "a", (), 4)] * 6)
    assert error(policy, engine, 6) < 1e-4


def test_what_is_forced_costs_no_draft(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Rollouts(policy, 0, 0, drafter=drafter(policy, "rejection"))
    engine.clear(1.0)
    monkeypatch.setattr(policy, "forward_cached", lambda *_: pytest.fail("a forced turn ran the model"))
    monkeypatch.setattr(DraftHead, "forward", lambda *_: pytest.fail("a forced turn was drafted"))
    assert engine.play([0], [Turn("x", 0, "a", ("b c d",))]) == ["b c d"]
    assert engine.spent.tokens == 0
    monkeypatch.undo()
    monkeypatch.setattr(DraftHead, "forward", lambda *_: pytest.fail("a single choice was drafted"))
    engine.play([1], [Turn("x", 0, "a", ("b c d", "e c d"))])
    assert engine.spent.tokens == 1
