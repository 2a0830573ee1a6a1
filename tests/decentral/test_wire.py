"""What passes on the links: no agent hears what another one saw, got or is; and nobody is asked who is not to be."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq.asyncio

import decentral
from decentral import messages as say
from decentral.agents.simple import RandomMind
from decentral.config import Config
from decentral.engines import drive, inline
from decentral.envs.names import make
from decentral.folder import RunFolder
from decentral.journal import read
from decentral.links import Dealer, MemoryChannel, MemoryPeers
from decentral.process import Endpoints

ARENA = f"{Path(__file__).parent / 'arena.py'}:env"
REWARD = {"ann": 0.123456789, "ben": 0.987654321}
OTHER = {"ann": "ben", "ben": "ann"}
WEIGHTS = {"ann": b"weights-of-ann-0123456789", "ben": b"weights-of-ben-9876543210"}
LOGP = {"ann": -0.31415926535, "ben": -0.2718281828}


class Secretive(RandomMind):
    """Has weights and log-probabilities to keep to itself; they are in its metrics and in its checkpoints."""

    def update(self) -> dict[str, float]:
        return {**super().update(), "logp": LOGP[self.name]}

    def save(self, folder: Path) -> None:
        (folder / "weights").write_bytes(WEIGHTS[self.name])

    def export(self, folder: Path) -> None:
        self.save(folder)


Frames = dict[str, list[bytes]]


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Frames:
    """Every frame of every link: "sender->receiver" -> frames."""
    frames: Frames = defaultdict(list)
    send, knock, heard = MemoryChannel.send, MemoryPeers.send, inline.Heard.send

    async def sent(self: MemoryChannel, frame: bytes) -> None:
        frames[self.label].append(frame)
        await send(self, frame)

    async def knocked(self: MemoryPeers, to: str, frame: bytes) -> None:
        frames[f"{self._name}->{to}"].append(frame)
        await knock(self, to, frame)

    async def told(self: Any, frame: bytes) -> None:
        frames["->supervisor"].append(frame)
        await heard(self, frame)

    monkeypatch.setattr(MemoryChannel, "send", sent)
    monkeypatch.setattr(MemoryPeers, "send", knocked)
    monkeypatch.setattr(inline.Heard, "send", told)
    return frames


def folder(path: Path, options: dict[str, Any] | None = None, **fields: Any) -> RunFolder:
    settings = {"iterations": 2, "groups": 2, "group": 3, "eval_episodes": 4, "engine": "inline", **fields}
    env = {"name": ARENA, "options": options or {}}
    return RunFolder.create(path / "run", Config.of(env=env, **settings), ("ann", "ben"))


def play(run: RunFolder, mind: type[RandomMind] = Secretive) -> None:
    drive(
        lambda emit: inline.play(run, lambda: make(run.config.env), lambda name: mind(name, 0), emit),
        lambda event: None,
    )


def secrets(name: str) -> list[bytes]:
    """What nobody but the host and the agent itself may hear."""
    return [
        f"secret-{name}".encode(),
        *(msgspec.msgpack.encode(REWARD[name] * count) for count in (1, 2, 3)),
        msgspec.msgpack.encode(LOGP[name]),
        WEIGHTS[name],
    ]


class Wrong(Secretive):
    """Answers now and then with what is illegal, and tells of itself in that."""

    def act(self, requests: Any) -> list[str]:
        actions = super().act(requests)
        return [
            f"secret-{self.name}" if request.episode % 5 == 0 and self.name == "ann" else action
            for request, action in zip(requests, actions, strict=True)
        ]


@pytest.mark.parametrize(
    ("options", "mind", "fault"),
    [
        ({}, Secretive, ""),
        ({"crash": 1, "odds": 0.15}, Secretive, "the arena fell down on secret-ann, secret-ben"),
        ({}, Wrong, "ann answered 'secret-ann'"),
    ],
)
def test_no_link_to_an_agent_carries_what_is_anothers(
    tmp_path: Path, wire: Frames, options: dict[str, Any], mind: type[RandomMind], fault: str
) -> None:
    run = folder(tmp_path, options, groups=12, group=1, eval_episodes=12)
    play(run, mind)
    faults = [line["fault"] for line in read(run.host / "episodes.jsonl")[0] if line["fault"]]
    assert bool(faults) == bool(fault)
    assert all(fault in one for one in faults)
    for name in ("ann", "ben"):
        towards = b"".join(frame for label, frames in wire.items() if label.endswith(f"->{name}") for frame in frames)
        assert secrets(name)[0] in towards  # the search finds what is there
        assert any(msgspec.msgpack.encode(REWARD[name] * count) in towards for count in (1, 2, 3))
        for secret in secrets(OTHER[name]):
            assert secret not in towards
        assert not re.search(rb"\b" + OTHER[name].encode() + rb"\b", towards)


def test_the_host_hears_actions_and_no_weights_or_log_probabilities(tmp_path: Path, wire: Frames) -> None:
    play(folder(tmp_path))
    for name in ("ann", "ben"):
        spoken = b"".join(wire[f"{name}->host"])
        assert b"left" in spoken
        assert msgspec.msgpack.encode(LOGP[name]) not in spoken
        assert WEIGHTS[name] not in spoken


def test_the_supervisor_hears_no_observation_and_no_weights(tmp_path: Path, wire: Frames) -> None:
    play(folder(tmp_path))
    heard = b"".join(wire["->supervisor"])
    assert heard
    for name in ("ann", "ben"):
        assert f"secret-{name}".encode() not in heard
        assert WEIGHTS[name] not in heard


def test_nothing_is_sent_on_the_peer_link(tmp_path: Path, wire: Frames) -> None:
    play(folder(tmp_path))
    assert {label for label in wire if label not in ("->supervisor",)} == {
        "host->ann", "ann->host", "host->ben", "ben->host",
    }  # fmt: skip


def test_one_agents_files_hold_nothing_of_anothers(tmp_path: Path) -> None:
    run = folder(tmp_path)
    play(run)
    for name in ("ann", "ben"):
        content = b"".join(path.read_bytes() for path in run.agent(name).rglob("*") if path.is_file())
        assert WEIGHTS[name] in content
        for secret in (WEIGHTS[OTHER[name]], f"secret-{OTHER[name]}".encode(), str(LOGP[OTHER[name]]).encode()):
            assert secret not in content


ASK = msgspec.msgpack.encode({"type": "Ask", "episode": 0, "observation": "secret", "legal": ["left"]})
NOISE = [b"", b"garbage", ASK, bytes([say.VERSION]) + ASK, say.encode(say.Finish(0), 100), b"x" * 10**7]


def test_whatever_knocks_at_a_door_is_refused_and_the_run_goes_on(tmp_path: Path, wire: Frames) -> None:
    """In memory: a hostile agent floods its peer at every turn."""

    class Hostile(Secretive):
        def act(self, requests: Any) -> list[str]:
            door = doors.get(OTHER[self.name])
            if door is not None:
                for frame in NOISE:
                    if len(frame) <= say.MAX_PEER:
                        door._inbox.put_nowait((self.name, frame))
            return super().act(requests)

    doors: dict[str, MemoryPeers] = {}
    make_door = MemoryPeers.__init__

    def remembered(self: MemoryPeers, name: str, shared: dict[str, MemoryPeers]) -> None:
        make_door(self, name, shared)
        doors[name] = self

    run = folder(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryPeers, "__init__", remembered)
        play(run, Hostile)
    assert (run.path / "summary.json").exists()
    for name in ("ann", "ben"):
        refused = [e for e in read(run.agent(name) / "events.jsonl")[0] if e["event"] == "dropped message"]
        assert refused[-1]["count"] >= 16
        assert refused[-1]["why"] == "a stranger"


def test_a_door_between_processes_refuses_and_the_run_goes_on(tmp_path: Path) -> None:
    """Between processes: a stranger of this machine knocks at the agents' sockets and speaks to the host's."""
    knocked: set[Path] = set()

    async def knock(links: Path) -> None:
        context = zmq.asyncio.Context()
        try:
            ends = Endpoints(links)
            for number in range(2):
                for count, frame in enumerate(
                    NOISE
                ):  # one connection each: the largest frame costs its sender the door
                    await Dealer(context, ends.peer(number), f"mallory{count}", 10**9).send(frame)
            for place in (ends.world, ends.control):
                stranger = Dealer(context, place, "mallory", 10**9)
                for frame in NOISE:
                    await stranger.send(frame)
            await asyncio.sleep(0.3)
        finally:
            context.destroy(linger=300)

    def on_event(event: say.Event) -> None:
        if isinstance(event, say.Progress) and event.phase is not None and not knocked:
            pids = [e for e in read(tmp_path / "run" / "events.jsonl")[0] if e["event"] == "started"]
            line = Path(f"/proc/{pids[0]['pid']}/cmdline").read_bytes().split(b"\0")
            links = Path(line[line.index(b"--links") + 1].decode())
            knocked.add(links)
            asyncio.run(knock(links))

    run = decentral.train(
        decentral.EnvConfig(name=ARENA, options={"delay": 0.02}),
        out=tmp_path / "run",
        agent={"kind": "random"},
        iterations=4,
        groups=2,
        group=4,
        eval_episodes=8,
        on_event=on_event,
    )
    assert knocked
    assert run.summary["agents"]
    for name in ("ann", "ben"):
        refused = [e for e in read(run.path / "agents" / name / "events.jsonl")[0] if e["event"] == "dropped message"]
        assert refused
        assert refused[-1]["name"].startswith("mallory")
        assert max(e["bytes"] for e in refused) < say.MAX_PEER
    assert not any(event["event"] in ("lost", "restarted") for event in read(run.path / "events.jsonl")[0])
    assert not any(path.exists() for path in knocked)
