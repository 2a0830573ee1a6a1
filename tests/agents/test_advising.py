"""Agents that advise each other in one process: exact, repeatable, recorded, and silent where they are evaluated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import decentral
from decentral.agents.advice import FRAME, Question
from decentral.agents.advice_config import AdviceConfig
from decentral.agents.arms import decide
from decentral.agents.credibility import View
from decentral.agents.credit import Plays
from decentral.agents.learner import Learner, Play
from decentral.agents.mind import Metrics
from decentral.agents.trust import Trust
from decentral.journal import read
from decentral.links import MemoryPeers
from decentral.messages import MAX_PEER, Advice, Ask, Decoder, Peer
from decentral.run import Run

SMALL: dict[str, Any] = {"engine": "inline", "groups": 2, "group": 3, "eval_episodes": 4, "seed": 3, "iterations": 2}
CLOCKS = ("collect_s", "update_s", "tokens_per_s")


def train(out: Path, rule: str = "ours", **fields: Any) -> Run:
    fields = {**SMALL, "agent": {"lr": 2e-3, "advice": {"rule": rule, "gate": "always"}}, **fields}
    return decentral.train("guide", out=out, **fields)


Frames = list[tuple[str, str, bytes]]
"""Sender, receiver and frame."""


@contextmanager
def overheard() -> Iterator[Frames]:
    """Every frame that goes from peer to peer."""
    frames: Frames = []
    send = MemoryPeers.send

    async def sent(self: MemoryPeers, to: str, frame: bytes) -> None:
        frames.append((self._name, to, frame))
        await send(self, to, frame)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryPeers, "send", sent)
        yield frames


def pairs(frames: Frames) -> list[tuple[str, Ask, Advice, int]]:
    """Who asked, the Ask, its Advice, and the bytes of both frames."""
    read = Decoder[Peer](Peer, MAX_PEER)
    asked: dict[tuple[str, str, int], tuple[Ask, int]] = {}
    found = []
    for sender, to, frame in frames:
        message = read(frame)
        if isinstance(message, Ask):
            asked[sender, to, message.number] = message, len(frame)
        else:
            ask, size = asked[to, sender, message.number]
            found.append((to, ask, message, size + len(frame)))
    return found


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Frames]:
    """A run and every frame that went from peer to peer in it."""
    with overheard() as frames:
        run = train(tmp_path_factory.mktemp("told") / "run")
    return run, frames


def test_only_ask_and_advice_pass_and_hold_only_what_they_may(told: tuple[Run, Frames]) -> None:
    _, frames = told
    messages = [Decoder[Peer](Peer, MAX_PEER)(frame) for _, _, frame in frames]
    asked = [question for message in messages if isinstance(message, Ask) for question in message.questions]
    assert asked
    for question in asked:
        assert {kind for kind, _ in question.context} <= {"observation", "action", "feedback"}
        assert question.context[-1][0] == "observation"
    assert Question.__struct_fields__ == ("episode", "round", "context", "legal", "embedding")
    assert all(size / len(ask.questions) < 1000 for _, ask, _, size in pairs(frames))


def test_what_is_asked_in_an_episode_keeps_within_its_bytes_and_comes_near_them(tmp_path: Path) -> None:
    advice, few = {"rule": "ours", "gate": "always", "bytes": 1500}, {"iterations": 1, "groups": 1, "eval_episodes": 1}
    with overheard() as frames:
        train(tmp_path / "run", agent={"advice": advice}, **few)
    spent: dict[tuple[str, int], int] = defaultdict(int)
    for asker, ask, told, _ in pairs(frames):
        for question, answer in zip(ask.questions, told.answers, strict=True):
            spent[asker, question.episode] += 2 * FRAME + sum(map(len, map(msgspec.msgpack.encode, (question, answer))))
    assert len(spent) == 2 * 3
    assert 1000 < max(spent.values()) <= 1500  # what an answer did not take is there for the next question
    assert sum(len(frame) for _, _, frame in frames) <= sum(spent.values())


def test_nobody_is_asked_in_an_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames: list[bytes] = []

    async def sent(self: MemoryPeers, to: str, frame: bytes) -> None:
        frames.append(frame)

    monkeypatch.setattr(MemoryPeers, "send", sent)
    train(tmp_path / "run", iterations=0)
    assert frames == []


def test_every_turn_is_recorded_with_the_probability_that_it_was_drawn_with(
    told: tuple[Run, Frames],
) -> None:
    run, _ = told
    table = run.advice()
    assert set(table["agent"]) == set(run.agents)
    assert set(table["iteration"]) == {0, 1}
    assert (run.metrics()["tokens_sampled"] > 0).all()
    assert table["behaviour"].between(0, 1).all()
    heard = table[table["peer"] != ""]
    assert len(heard) > 20
    assert (heard["behaviour"] != heard["own"]).any()
    assert heard["trust"].between(0, 1).all()
    again = heard["advantage"] * (heard["advised"] - heard["own"]) / heard["behaviour"]
    assert np.allclose(again.clip(-10, 10), heard["usefulness"])
    assert heard["distance"].between(0, 2.01).all()
    assert heard["entropy"].between(0, np.log(5)).all()
    graph = run.advice_graph()
    assert {data["count"] for _, _, data in graph.edges(data=True)} <= set(range(1, len(table) + 1))
    assert sum(data["count"] for _, _, data in graph.edges(data=True)) == len(heard)


def test_a_decision_can_be_made_again_from_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of embeddings only distances matter, so the student may stand at 0. Trust moves, whatever comes of advice."""
    update = Trust.update
    monkeypatch.setattr(Trust, "update", lambda self, peer, found: update(self, peer, [[1.0]] * len(found)))
    run = train(tmp_path / "run", groups=1, eval_episodes=1, iterations=3)
    moved = 0
    for line in (line for name in run.agents for line in read(run.path / "agents" / name / "advice.jsonl")[0]):
        said = list(line["peers"].values())
        if said:
            student = View(np.array(line["own"]), np.zeros(1, np.float32), line["value"])
            teachers = [
                View(np.array(one["probabilities"]), np.array([one["distance"]], np.float32), one["value"])
                for one in said
            ]
            trust = np.array([one["trust"] for one in said])
            again = decide("ours", student, teachers, trust, AdviceConfig().strength)
            assert np.allclose(again.behaviour, line["behaviour"], atol=1e-4)
            assert np.allclose(again.weights, [one["weight"] for one in said], atol=1e-4)
            moved += bool(np.abs(again.behaviour - student.probabilities).max() > 0.01)
    assert moved > 10
    assert run.advice()["trust"].nunique() > 1


def test_advice_adds_to_the_advantage_of_what_it_speaks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learnt: list[list[float]] = []
    step, credit = Learner.step, Learner.credit

    def no_credit(self: Learner, plays: Sequence[Play]) -> tuple[Plays, np.ndarray]:
        arrays, _ = credit(self, plays)
        return arrays, np.zeros(len(arrays.episode))

    def stepped(self: Learner, plays: Sequence[Play], added: np.ndarray) -> Metrics:
        turns = [(choice.turn, id(play)) for play in plays for chunk in play.stream.chunks for choice in chunk.choices]
        learnt.append(list(dict(zip(turns, added.tolist(), strict=True)).values()))
        return step(self, plays, added)

    monkeypatch.setattr(Learner, "credit", no_credit)
    monkeypatch.setattr(Learner, "step", stepped)
    run = train(tmp_path / "run", iterations=1, agent={"advice": {"rule": "follow", "gate": "always", "shaping": 3.0}})
    lines = [line for name in run.agents for line in read(run.path / "agents" / name / "advice.jsonl")[0]]
    spoken = [3.0 * line["score"][line["action"]] for line in lines if line["score"]]
    assert len(spoken) > 4
    assert all(value > 0 for value in spoken), "who follows takes what is spoken for"
    found = [value for agent in learnt for value in agent if value]
    assert sorted(found) == pytest.approx(sorted(spoken), abs=3e-4)


def test_a_run_with_advice_is_repeated_bit_for_bit(told: tuple[Run, Frames], tmp_path: Path) -> None:
    run, _ = told
    again = train(tmp_path / "run")
    columns = [c for c in run.metrics().columns if c not in CLOCKS and "latency_s" not in c]
    assert run.metrics()[columns].equals(again.metrics()[columns])
    assert run.advice().equals(again.advice())


def test_without_a_rule_nobody_asks(tmp_path: Path) -> None:
    run = train(tmp_path / "run", "none", iterations=1)
    assert run.advice().empty
    assert run.advice_graph().number_of_edges() == 0
    assert "messages_out" not in run.metrics()


@pytest.mark.parametrize("rule", ["follow", "majority", "ccks"])
def test_rivals_play_over_the_same_messages(rule: str, tmp_path: Path) -> None:
    table = train(tmp_path / "run", rule, iterations=1).advice().query("peer != ''")
    assert len(table)
    if rule == "follow":
        assert (table["behaviour"] == 1).all()


def test_a_scripted_peer_advises_and_a_stranger_to_the_topology_is_not_asked(tmp_path: Path) -> None:
    script = tmp_path / "first.py"
    script.write_text("def act(turn):\n    return turn.legal[0]\n")
    agents = {"bob": {"kind": "scripted", "script": f"{script}:act"}}
    run = train(tmp_path / "run", iterations=1, agents=agents)
    table = run.advice()
    assert set(table["peer"]) == {"bob"}
    assert set(table["agent"]) == {"ada"}
    assert set(table["advised"]) == {0.0, 1.0}
    with pytest.raises(decentral.ConfigError, match=r"topology = 'star': it is none of complete, ring"):
        train(tmp_path / "other", topology="star")


def test_advice_may_be_read_instead_and_is_then_part_of_the_context(tmp_path: Path) -> None:
    advice = {"rule": "ours", "gate": "always", "mode": "context"}
    table = train(tmp_path / "run", agent={"lr": 2e-3, "advice": advice}).advice().query("peer != ''")
    assert len(table)
    assert (table["behaviour"] != table["own"]).any()


def test_the_plot_and_the_report_tell_of_advice(told: tuple[Run, Frames], tmp_path: Path) -> None:
    run, _ = told
    texts = {text.get_text() for axes in run.plot_advice().axes for text in axes.texts}
    pairs = {f"{row.peer} → {row.agent}" for row in run.advice().query("peer != ''").itertuples()}
    assert pairs
    assert pairs <= texts
    assert "<h2>Advice</h2>" in run.report().read_text()
    silent = train(tmp_path / "run", "none", iterations=1)
    assert "<h2>Advice</h2>" not in silent.report().read_text()
    silent.plot_advice()


def test_an_agent_that_updates_now_and_then_still_learns_whom_to_trust_and_keeps_its_records(tmp_path: Path) -> None:
    run = train(tmp_path / "run", agent={"update_every": 2, "advice": {"rule": "ours", "gate": "always"}})
    assert set(run.advice()["iteration"]) == {0, 1}
    assert run.metrics()["trust_ada"].notna().sum() == 2
