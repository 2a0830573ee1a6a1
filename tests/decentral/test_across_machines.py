"""A host and agents that nobody supervises: over TCP in one loop, and once as processes started by hand."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import defaultdict
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq

from decentral import messages as say
from decentral.agents.simple import RandomMind
from decentral.config import Config
from decentral.curve import CurveDealer, CurvePeers, CurveRouter
from decentral.engines import network as engine
from decentral.errors import ConfigError, DeadlineError
from decentral.folder import RunFolder
from decentral.journal import read
from decentral.keys import new_keys, public_key, secret_key
from decentral.network import Network
from decentral.toml import to_toml

ARENA = f"{Path(__file__).parent / 'arena.py'}:env"
NAMES = ("ann", "ben")
SETTINGS = {"iterations": 1, "groups": 2, "group": 3, "eval_episodes": 4, "agent": {"kind": "random"}, "deadline": 20}
WEIGHTS = {"ann": b"weights-of-ann-0123456789", "ben": b"weights-of-ben-9876543210"}
LOGP = -0.31415926535


class Secretive(RandomMind):
    """Has weights and log-probabilities to keep to itself."""

    def update(self) -> dict[str, float]:
        return {**super().update(), "logp": LOGP}

    def save(self, folder: Path) -> None:
        (folder / "weights").write_bytes(WEIGHTS[self.name])

    def export(self, folder: Path) -> None:
        self.save(folder)


class Owners:
    """The network file and the secrets of all owners, on free ports of this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path
        tables: dict[str, dict[str, str]] = {}
        with zmq.Context() as context:
            sockets = []
            for name in ("host", *NAMES, "eve"):
                new_keys(name, path)
                sockets.append(context.socket(zmq.REP))
                port = sockets[-1].bind_to_random_port("tcp://127.0.0.1")
                tables[name] = {"address": f"tcp://127.0.0.1:{port}", "key": public_key(self.secret(name))}
            for socket in sockets:
                socket.close()
        self.file = self.write("network", tables, ann="ann")
        self.eves = self.write("eve", tables, ann="eve")  # in her copy she is ann
        self.network = Network.load(self.file)

    def write(self, name: str, tables: dict[str, dict[str, str]], ann: str) -> Path:
        file = self.path / f"{name}.toml"
        file.write_text(to_toml({"host": tables["host"], "agents": {"ann": tables[ann], "ben": tables["ben"]}}))
        return file

    def secret_file(self, name: str) -> Path:
        return self.path / f"{name}.key_secret"

    def secret(self, name: str) -> bytes:
        return secret_key(self.secret_file(name))

    def folder(self, name: str, **changes: Any) -> RunFolder:
        config = Config.of(env=ARENA, engine="network", **{**SETTINGS, **changes})
        return RunFolder.create(self.path / name, config, NAMES, places=(name,))

    def agent(self, name: str, events: list[say.Event] | None = None, **changes: Any) -> Coroutine[Any, Any, None]:
        emit = (events if events is not None else []).append
        return engine.agent(name, self.folder(name, **changes), self.network, self.secret(name), emit)

    def host(self, **changes: Any) -> Coroutine[Any, Any, None]:
        return engine.host(self.folder("host", **changes), self.network, self.secret("host"), lambda event: None)


@pytest.fixture
def owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Owners:
    monkeypatch.setattr("decentral.curve._KNOCK", 0.01)
    monkeypatch.setattr("decentral.node._BEAT", 0.02)
    monkeypatch.setattr(engine, "mind_of", lambda name, folder: Secretive(name, 0))
    return Owners(tmp_path)


async def together(*jobs: Coroutine[Any, Any, None]) -> None:
    async with asyncio.timeout(20):
        await asyncio.gather(*jobs)


def test_a_run_is_played_each_keeps_its_own_and_nothing_secret_is_sent(
    owners: Owners, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames: dict[str, list[bytes]] = defaultdict(list)
    send, knock = CurveDealer.send, CurvePeers.send

    async def sent(self: CurveDealer, frame: bytes) -> None:
        frames["dealer"].append(frame)
        await send(self, frame)

    async def knocked(self: CurvePeers, to: str, frame: bytes) -> None:
        frames["peers"].append(frame)
        await knock(self, to, frame)

    monkeypatch.setattr(CurveDealer, "send", sent)
    monkeypatch.setattr(CurvePeers, "send", knocked)
    events: list[say.Event] = []
    asyncio.run(together(owners.host(), owners.agent("ann", events), owners.agent("ben")))
    host, ann = owners.path / "host", owners.path / "ann"
    assert (host / "summary.json").exists()
    assert [line["phase"] for line in read(host / "host" / "phases.jsonl")[0]] == ["eval", "train", "eval"]
    assert not (host / "agents").exists()
    assert [path.name for path in (ann / "agents").iterdir()] == ["ann"]
    assert (ann / "agents" / "ann" / "model" / "weights").read_bytes() == WEIGHTS["ann"]
    assert isinstance(events[-1], say.Status)
    assert events[-1].busy == "done"
    said = b"".join(frames["dealer"])
    assert b"left" in said or b"right" in said  # the search finds what is there
    for secret in (*WEIGHTS.values(), msgspec.msgpack.encode(LOGP), b"secret-"):
        assert secret not in said
    assert not frames["peers"]  # who acts at random asks nobody


def test_an_agent_with_other_settings_is_not_let_in_and_both_say_why(owners: Owners) -> None:
    async def ann() -> None:
        with pytest.raises(
            ConfigError, match="the host plays with seed = 0, not 1 as ann does: start ann with the host's"
        ):
            await owners.agent("ann", seed=1)

    asyncio.run(_beside_host(owners, ann()))


def test_the_host_refuses_whoever_does_not_compare(owners: Owners, monkeypatch: pytest.MonkeyPatch) -> None:
    async def careless(*_: Any) -> None:
        pass

    monkeypatch.setattr(engine, "_agree", careless)

    async def host() -> None:
        with pytest.raises(
            DeadlineError, match=r"waited 0\.4 s for ann to be ready \(ann: seed = 1, not 0\): have the"
        ):
            await owners.host(deadline=0.4)

    asyncio.run(_ends_others(host(), owners.agent("ann", seed=1), owners.agent("ben")))


def test_a_host_names_who_is_missing_and_how_to_go_on(owners: Owners) -> None:
    async def host() -> None:
        said = (
            r"waited 0\.3 s for ann, ben to be ready: have the owner of ann, ben start `decentral agent` with this "
            r"host's address tcp://127\.0\.0\.1:\d+ and the keys of its network file, then go on with `decentral host"
        )
        with pytest.raises(DeadlineError, match=said):
            await owners.host(deadline=0.3)

    asyncio.run(together(host()))


def test_who_has_an_unknown_key_hears_nothing_and_is_told_what_may_be_wrong(owners: Owners) -> None:
    async def eve() -> None:
        theirs = Network.load(owners.eves)
        folder, secret = owners.folder("ann", deadline=0.4), owners.secret("eve")
        with pytest.raises(DeadlineError, match=r"ann heard nothing from the host for 0\.4 s: it is not up at tcp://"):
            await engine.agent("ann", folder, theirs, secret, lambda event: None)

    asyncio.run(_beside_host(owners, eve()))
    (told, *_) = read(owners.path / "host" / "events.jsonl")[0]
    assert (told["name"], told["why"][-19:]) == ("a stranger", "with an unknown key")


def test_another_version_of_the_protocol_is_said(owners: Owners, monkeypatch: pytest.MonkeyPatch) -> None:
    send = CurveRouter.send

    async def newer(self: CurveRouter, name: str, frame: bytes) -> None:
        await send(self, name, b"\x09" + frame[1:])

    monkeypatch.setattr(CurveRouter, "send", newer)

    async def ann() -> None:
        flaw = rf"\(a frame starts with b'\\t', not with protocol version {say.VERSION}\)"
        said = f"ann heard nothing it can read {flaw} from the host"
        with pytest.raises(DeadlineError, match=said):
            await owners.agent("ann", deadline=0.3)

    asyncio.run(_beside_host(owners, ann()))


async def _beside_host(owners: Owners, job: Coroutine[Any, Any, None]) -> None:
    await _ends_others(job, owners.host())


async def _ends_others(job: Coroutine[Any, Any, None], *others: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.create_task(other) for other in others]
    await together(job)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_processes_that_were_started_by_hand_join_one_run(tmp_path: Path) -> None:
    owners = Owners(tmp_path)

    def start(place: str, network: Path, secret: str, *more: str) -> subprocess.Popen[str]:
        words = [*(["host"] if place == "host" else ["agent", place]), ARENA, "--network", str(network)]
        words += ["--secret", str(owners.secret_file(secret)), "--out", str(tmp_path / f"run-{secret}")]
        quick = ("iterations=1", "groups=2", "group=2", "eval_episodes=4", "agent.kind=random", "deadline=60", *more)
        command = [sys.executable, "-m", "decentral", *words, *(word for one in quick for word in ("--set", one))]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    eve = start("ann", owners.eves, "eve", "deadline=0.3")
    places = [start(place, owners.file, place) for place in ("host", *NAMES)]
    for place in places:
        out, err = place.communicate(timeout=60)
        assert place.returncode == 0, err
        assert "run: " in out
    assert "evaluation after training: success ann" in (tmp_path / "run-host" / "log.txt").read_text()
    _, err = eve.communicate(timeout=60)
    assert eve.returncode == 2
    assert err.startswith("error: ann heard nothing from the host for 0.3 s: it is not up at ")
    assert f"by the key {public_key(owners.secret('eve'))}" in err
