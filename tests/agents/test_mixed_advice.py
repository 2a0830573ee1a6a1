"""Two agents of different models, tokenizers and windows advise each other, also about what they might say freely."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from gymnasium.spaces import Discrete
from pettingzoo import ParallelEnv
from transformers import Qwen2Config, Qwen2ForCausalLM

import decentral
from decentral import journal
from decentral.agents.advice import Answer, Question, clean, unpack_embedding, unpack_probabilities
from decentral.agents.model import load_tokenizer
from decentral.envs.actions import Free
from decentral.links import MemoryPeers
from decentral.messages import MAX_PEER, Advice, Ask, Decoder, Peer
from decentral.run import Run

DOORS = ("red", "blue", "blue door")
EPISODES = 4


class Words:
    def observe(self, agent: str, observation: int) -> str:
        return f"you see {observation}"

    def actions(self, agent: str, mask: Any) -> Free | dict[str, int]:
        return Free(2) if Game.steps == 0 else {door: place for place, door in enumerate(DOORS)}


class Game(ParallelEnv):  # type: ignore[misc]
    """Each says a word, then opens a door; a short word pays, and so does the red door."""

    metadata: dict[str, Any] = {"name": "words"}  # noqa: RUF012
    possible_agents = ["ada", "bob"]  # noqa: RUF012
    text_view = Words()
    steps = 0

    def observation_space(self, agent: str) -> Discrete:
        return SPACE

    def action_space(self, agent: str) -> Discrete:
        return SPACE

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents = list(self.possible_agents)
        Game.steps = 0
        return dict.fromkeys(self.agents, 1), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, Any]) -> Any:
        Game.steps += 1
        every, self.agents = self.agents, [] if Game.steps == 2 else self.agents
        rewards = {agent: float(actions[agent] == 0 or len(str(actions[agent])) < 5) for agent in every}
        over = dict.fromkeys(every, Game.steps == 2)
        return dict.fromkeys(every, 1), rewards, over, dict.fromkeys(every, False), {agent: {} for agent in every}


SPACE = Discrete(3)


@pytest.fixture(scope="module")
def told(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, list[Peer]]:
    """A run of the pocket model and a small Qwen2 with LoRA, and what they said to each other."""
    messages: list[Peer] = []
    send = MemoryPeers.send

    async def sent(self: MemoryPeers, to: str, frame: bytes) -> None:
        messages.append(Decoder[Peer](Peer, MAX_PEER)(frame))
        await send(self, to, frame)

    other, out = tmp_path_factory.mktemp("qwen2"), tmp_path_factory.mktemp("run") / "run"
    tokenizer = load_tokenizer(str(tiny))
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=96,
        initializer_range=0.3,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        Qwen2ForCausalLM(config).save_pretrained(other)
    tokenizer.save_pretrained(other)
    bob = {"model": str(other), "weights": "lora", "lora_rank": 2}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryPeers, "send", sent)
        run = decentral.train(
            Game,
            engine="inline",
            out=out,
            iterations=1,
            groups=1,
            group=EPISODES,
            eval_episodes=1,
            copies=1,
            agent={"advice": {"rule": "ours", "gate": "always"}},
            agents={"bob": bob},
        )
    return run, messages


def test_both_are_asked_about_free_and_legal_turns_and_both_answer(told: tuple[Run, list[Peer]]) -> None:
    run, _ = told
    heard = run.advice().query("peer != ''")
    assert set(zip(heard["agent"], heard["round"])) >= {("ada", 0), ("ada", 1), ("bob", 1)}
    assert heard["behaviour"].between(0, 1).all()
    assert (heard["behaviour"] != heard["own"]).any()
    metrics = run.metrics()
    assert (metrics["faults"] == 0).all()
    assert (metrics["drift"] < 1e-4).all()
    assert (run.path / "agents" / "bob" / "model" / "adapter_model.safetensors").exists()


def test_nothing_crosses_but_texts_probabilities_values_and_embeddings(told: tuple[Run, list[Peer]]) -> None:
    _, messages = told
    assert Question.__struct_fields__ == ("episode", "round", "context", "legal", "embedding")
    assert Answer.__struct_fields__ == ("probabilities", "value", "embedding", "round", "rationale")
    questions = [question for message in messages if isinstance(message, Ask) for question in message.questions]
    answers = [answer for message in messages if isinstance(message, Advice) for answer in message.answers]
    assert {question.round for question in questions} == {0, 1}
    for question in questions:
        assert set(question.legal) == set(DOORS) if question.round else 2 <= len(question.legal) <= 8
        assert all(clean(text, 60) == text for text in question.legal)
        assert len(unpack_embedding(question.embedding)) == 32
        assert {kind for kind, _ in question.context} <= {"observation", "action", "feedback"}
    assert any(answer.probabilities for answer in answers)
    for answer in answers:
        assert not answer.rationale
        assert len(unpack_probabilities(answer.probabilities)) in range(2, 9) if answer.probabilities else True


def test_the_environment_gets_the_text_that_was_chosen(told: tuple[Run, list[Peer]]) -> None:
    run, _ = told
    table = run.advice().query("agent == 'ada' and round == 0")
    lines = journal.read(run.path / "host" / "episodes.jsonl")[0]
    played = {line["episode"]: line["steps"][0]["ada"] for line in lines}
    assert len(table)
    assert all(played[row.episode] == row.action for row in table.itertuples())
