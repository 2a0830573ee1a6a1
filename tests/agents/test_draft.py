"""The draft head: its training form and its use agree, it is kept and refused, and training it helps."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from decentral.agents.cache import HIDDEN, RowCache
from decentral.agents.config import AgentConfig
from decentral.agents.draft import DraftHead, unroll
from decentral.agents.draft_trainer import DraftTrainer, Reading, batches, measure, read
from decentral.agents.drafter import Drafter
from decentral.agents.losses import LOSSES
from decentral.agents.model import load_tokenizer
from decentral.agents.pace import Pace
from decentral.agents.passage import Passage
from decentral.agents.policy import Policy
from decentral.agents.rollout import Rollouts
from decentral.agents.row import Row, Span
from decentral.agents.rules import FreeRule
from decentral.agents.stream import Stream
from decentral.envs.turn import Turn
from decentral.errors import ModelError

LAYOUT = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "initializer_range": 0.3,
}


@pytest.fixture
def policy(tiny: Path) -> Policy:
    return Policy(AgentConfig(model=str(tiny), kind="frozen"))


def disturbed(policy: Policy, shortlist: torch.Tensor | None = None) -> DraftHead:
    head = DraftHead(policy.shared(), policy.window, shortlist)
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in head.parameters():
            weight.add_(torch.randn(weight.shape, generator=draw), alpha=0.1)
    return head


def passages(policy: Policy, count: int, temperature: float = 1.0, turns: int = 1) -> list[Passage]:
    engine = Rollouts(policy, 1, 1, ends=False)
    engine.clear(temperature)
    for t in range(turns):
        engine.play(range(count), [Turn("bob", t, "you red" if e % 2 else "go", (), 12 + e % 3) for e in range(count)])
    return [Passage.of(chunk, temperature) for e in range(count) for chunk in engine.close(e).chunks]


@pytest.mark.parametrize("listed", [False, True])
def test_unrolled_in_training_it_is_what_it_is_in_a_rollout(policy: Policy, listed: bool) -> None:
    """One row, drafted from at several places in turn, over a cache in which earlier drafts lie about."""
    size = policy.model.config.vocab_size
    head = disturbed(policy, torch.arange(0, size, 2) if listed else None)
    by = Drafter(head, "rejection", Pace(4))
    draw = torch.Generator().manual_seed(3)
    ids = torch.randint(0, size, (20,), generator=draw)
    with torch.no_grad():
        hidden = policy.shared().hidden(ids[None], torch.arange(20)[None], use_cache=False)
    cache, stream = RowCache(1), Stream(policy.window)
    row = Row(stream, 0, 0)
    for start in (0, 1, 2, 6, 13):
        stream.chunks[0].ids[:] = ids[: start + 2].tolist()
        cache.aim([0], slice(row.cached, start + 1), start + 1)
        cache.write(HIDDEN, hidden[:, row.cached : start + 1])
        row.cached = start + 1
        with torch.inference_mode():
            made = by.propose(cache, [Span(row, FreeRule(0, 10))])
        assert made is not None
        assert row.headed == start + 1
        drafted = torch.cat([ids[: start + 2], made.drafted[0]])[None]
        states = unroll(
            head,
            drafted,
            torch.randn(1, drafted.shape[1], hidden.shape[-1]).index_copy_(
                1, torch.arange(start + 1), hidden[:, : start + 1]
            ),
            torch.tensor([[start]]),
            4,
        )
        q = torch.zeros(4, size)
        q[:, slice(None) if head.shortlist is None else head.shortlist] = (states[0, 0] @ head.output().T).softmax(-1)
        torch.testing.assert_close(made.q[0], q, atol=1e-4, rtol=1e-3)


def test_starts_unrolled_together_do_not_see_each_other(policy: Policy) -> None:
    head = disturbed(policy)
    draw = torch.Generator().manual_seed(1)
    ids = torch.randint(0, 20, (2, 15), generator=draw)
    hidden = torch.randn(2, 15, 32, generator=draw)
    starts = torch.tensor([[0, 4, 9], [3, 7, 3]])
    together = unroll(head, ids, hidden, starts, 4)
    for b, s in itertools.product(range(2), range(3)):
        alone = unroll(head, ids[b : b + 1], hidden[b : b + 1], starts[b : b + 1, s : s + 1], 4)
        torch.testing.assert_close(together[b, s], alone[0, 0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("listed", [None, [3, 5, 8]])
def test_a_head_survives_the_disk(policy: Policy, tmp_path: Path, listed: list[int] | None) -> None:
    head = disturbed(policy, None if listed is None else torch.tensor(listed))
    assert not DraftHead.exists(tmp_path)
    head.save(tmp_path)
    assert DraftHead.exists(tmp_path)
    again = DraftHead.load(tmp_path, policy.shared(), policy.window)
    assert (None if again.shortlist is None else again.shortlist.tolist()) == listed
    assert dict(again.named_parameters()).keys() == dict(head.named_parameters()).keys()
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), head.parameters()))


def test_a_head_that_cannot_be_used_is_named(policy: Policy, tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot be read.*decentral mtp train"):
        DraftHead.load(tmp_path, policy.shared(), policy.window)
    disturbed(policy).save(tmp_path)
    other = Policy(AgentConfig(model=str(saved(tiny, tmp_path / "other", "qwen2")), kind="frozen"))
    with pytest.raises(ModelError, match=r"'hidden': 32.*other.*'hidden': 16"):
        DraftHead.load(tmp_path, other.shared(), other.window)
    (tmp_path / "draft.safetensors").write_bytes(b"no tensors")
    with pytest.raises(ModelError, match="cannot be read"):
        DraftHead.load(tmp_path, policy.shared(), policy.window)


def saved(tiny: Path, folder: Path, kind: str) -> Path:
    """Writes a tiny model of another architecture with the words of ``tiny``."""
    tokenizer = load_tokenizer(str(tiny))
    size = len(tokenizer)
    make: dict[str, Any] = {
        "llama": lambda: LlamaForCausalLM(LlamaConfig(vocab_size=size, **LAYOUT)),
        "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(vocab_size=size, **LAYOUT)),
        "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(vocab_size=size, head_dim=8, **LAYOUT)),
        "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=size, n_embd=16, n_layer=1, n_head=2, n_positions=128)),
    }
    with torch.random.fork_rng():
        torch.manual_seed(2)
        make[kind]().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", ["qwen2", "qwen3", "llama with lora"])
def test_other_models_get_a_head_and_decode_exactly(tiny: Path, tmp_path: Path, kind: str) -> None:
    name, _, adapter = kind.partition(" with ")
    policy = Policy(AgentConfig(model=str(saved(tiny, tmp_path, name)), weights="lora" if adapter else "full"))
    by = Drafter(DraftHead(policy.shared(), policy.window), "rejection", Pace(3))
    readings = read(policy.shared(), passages(policy, 20, 0.3), 1000)
    trainer = DraftTrainer(by.head, "ce", 1e-2)
    for _ in range(20):
        trainer.step(readings)
    texts = []
    for drafter in (by, None):
        engine = Rollouts(policy, 0, 0, drafter=drafter, ends=False)
        engine.clear(0.0)
        engine.play(range(4), [Turn("bob", 0, "you red" if e % 2 else "go", (), 20 + e) for e in range(4)])
        texts.append([engine.close(e).ids for e in range(4)])
    assert texts[0] == texts[1]
    assert 0 < by.pace.counts.accepted[0] < by.pace.counts.reached[0]


def test_a_model_that_can_have_no_head_is_refused_with_the_reason(tiny: Path, tmp_path: Path) -> None:
    policy = Policy(AgentConfig(model=str(saved(tiny, tmp_path, "gpt2")), kind="frozen"))
    with pytest.raises(ModelError, match=r"no draft head: its GPT2Model has no embed_tokens; set draft = 'plain'"):
        policy.shared()


def test_readings_are_plain_forwards_and_batches_have_one_temperature(policy: Policy) -> None:
    some = [*passages(policy, 3), *passages(policy, 2, 0.5)]
    readings = read(policy.shared(), some, 40)
    for passage, reading in zip(some, readings, strict=True):
        with torch.no_grad():
            whole = policy.model(torch.tensor([passage.ids])).logits[0]
        torch.testing.assert_close(policy.shared().logits(reading.hidden), whole, atol=1e-4, rtol=1e-4)
    found = list(batches(readings, 40))
    assert sum(map(len, found)) == 5
    assert all(len({reading.passage.temperature for reading in batch}) == 1 for batch in found)


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_a_step_moves_all_of_the_head_and_nothing_of_the_policy(tiny: Path, loss: str) -> None:
    policy = Policy(AgentConfig(model=str(tiny)))
    readings = read(policy.shared(), passages(policy, 6), 1000)
    head = DraftHead(policy.shared(), policy.window)
    before = {name: weight.detach().clone() for name, weight in head.named_parameters()}
    trunk = [weight.detach().clone() for weight in policy.model.parameters()]
    DraftTrainer(head, loss, 1e-3).step(readings)
    assert [name for name, weight in head.named_parameters() if torch.equal(weight, before[name])] == []
    assert all(torch.equal(a, b) for a, b in zip(policy.model.parameters(), trunk))
    assert all(weight.grad is None for weight in policy.model.parameters())


@pytest.mark.parametrize("listed", [False, True])
def test_training_raises_acceptance(policy: Policy, listed: bool) -> None:
    readings = read(policy.shared(), passages(policy, 60), 4000)
    often = torch.bincount(torch.tensor([token for r in readings for token in r.passage.ids])).topk(100).indices
    head = DraftHead(policy.shared(), policy.window, often if listed else None)
    before = measure(head, readings, 3, 500)
    trainer = DraftTrainer(head, "e2e", 1e-2)
    losses = [trainer.step(batch) for _ in range(10) for batch in batches(readings, 1000)]
    after = measure(head, readings, 3, 500)
    assert losses[-1] < losses[0]
    assert after.rejection[0] > 1.2 * before.rejection[0]
    assert after.target_only != before.target_only
    assert after.entropy == pytest.approx(before.entropy, rel=1e-4)
    runs = [end - start for reading in readings for start, end in reading.passage.runs]
    assert after.count == [sum(max(0, run - 1 - j) for run in runs) for j in range(3)]


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_no_loss_looks_past_the_end_of_a_run(policy: Policy, loss: str) -> None:
    (reading,) = read(policy.shared(), passages(policy, 1), 1000)
    ids, ((start, end),) = reading.passage.ids, reading.passage.runs

    def value(change: int) -> float:
        """The loss when the tokens from ``change`` on, and the policy's states after them, are others."""
        rest = len(ids) - change
        other = Passage([*ids[:change], *[5] * rest, 3, 4], [(start, end)], 1.0)
        hidden = torch.cat([reading.hidden[:change], torch.ones(rest + 2, reading.hidden.shape[1])])
        return DraftTrainer(DraftHead(policy.shared(), policy.window), loss, 1e-3).step([Reading(other, hidden)])

    plain = DraftTrainer(DraftHead(policy.shared(), policy.window), loss, 1e-3).step([reading])
    assert value(end) == pytest.approx(plain, rel=1e-5)
    assert value(end - 2) != pytest.approx(plain, rel=1e-5)


def test_text_from_a_full_window_can_be_trained_on(tiny: Path) -> None:
    """A chunk that was split ends with a turn that did not fit."""
    policy = Policy(AgentConfig(model=str(tiny), kind="frozen", window=48))
    some = [passage for passage in passages(policy, 3, turns=8) if passage.runs]
    assert len(some) > 6
    DraftTrainer(DraftHead(policy.shared(), policy.window), "e2e", 1e-3).step(read(policy.shared(), some, 1000))
