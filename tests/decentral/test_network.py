"""The file that owners share, the keys, and what host and agents must agree on: each flaw is one sentence."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
import zmq
from typer.testing import CliRunner

import decentral
from decentral.commands import app
from decentral.config import Config
from decentral.errors import ConfigError, RunError
from decentral.join import Place
from decentral.keys import new_keys, public_key, secret_key
from decentral.network import Network
from decentral.terms import disagreement, terms
from decentral.toml import to_toml

KEYS = {name: zmq.curve_keypair()[0].decode() for name in ("host", "ada", "bob")}
ARENA = f"{Path(__file__).parent / 'arena.py'}:env"


def parties(**changes: Any) -> dict[str, Any]:
    agents = {name: {"address": f"tcp://10.0.0.2:555{place}", "key": KEYS[name]} for place, name in
              enumerate(("ada", "bob"))}  # fmt: skip
    return {"host": {"address": "tcp://10.0.0.1:5555", "key": KEYS["host"]}, "agents": agents, **changes}


def write(folder: Path, plain: dict[str, Any]) -> Path:
    path = folder / "network.toml"
    path.write_text(to_toml(plain))
    return path


def test_a_network_is_read(tmp_path: Path) -> None:
    plain = parties()
    plain["agents"]["ada"]["bind"] = "tcp://*:5556"
    plain["agents"]["bob"]["address"] = "tcp://[::1]:5557"
    network = Network.load(write(tmp_path, plain))
    assert network.host.door == "tcp://10.0.0.1:5555"
    assert (network.agents["ada"].address, network.agents["ada"].door) == ("tcp://10.0.0.2:5550", "tcp://*:5556")
    network.check_agents("meet", ("bob", "ada"))
    network.check_key("ada", KEYS["ada"])


HOST = {"address": "tcp://10.0.0.1:5555", "key": KEYS["host"]}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hosts": {}}, r"unknown table 'hosts': .*; did you mean 'host'\?"),
        ({"host": {}}, r"\[host\] cannot be used: object missing required field address"),
        ({"host": {**HOST, "adress": "x"}}, r"\[host\] cannot be used: object contains unknown field adress"),
        ({"host": {**HOST, "address": "10.0.0.1:5555"}}, r"host.address cannot be '10.0.0.1:5555': write it as tcp://"),
        ({"host": {**HOST, "address": "tcp://10.0.0.1"}}, "host.address cannot be"),
        ({"host": {**HOST, "address": "tcp://10.0.0.1:0"}}, "host.address cannot be"),
        ({"host": {**HOST, "address": "tcp://10.0.0.1:70000"}}, "host.address cannot be"),
        ({"host": {**HOST, "address": "ipc:///tmp/x"}}, "host.address cannot be"),
        ({"host": {**HOST, "bind": "ipc:///tmp/x"}}, "host.bind cannot be"),
        ({"host": {**HOST, "key": KEYS["host"][:-1]}}, "host.key cannot be .*: a public key has 40 characters"),
        ({"host": {**HOST, "key": "~" * 40}}, "host.key cannot be"),
        ({"host": {**HOST, "key": "ä" * 40}}, "host.key cannot be"),
        ({"host": {**HOST, "key": "#" * 40}}, "host.key cannot be"),
        ({"agents": 3}, "agents = 3 is no table"),
        ({"agents": {"ada": 3}}, r"\[agents.ada\] cannot be used: expected object, got int"),
        ({"agents": {"ada": HOST}}, "host and ada have one key"),
    ],
)
def test_a_flaw_of_a_network_is_one_sentence(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=rf"^in '.*network\.toml': {said}") as caught:
        Network.load(write(tmp_path, parties(**changes)))
    assert "\n" not in str(caught.value)


def test_a_network_that_is_no_file_or_no_toml_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[host")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    for name, said in (("none", "No such file"), ("bad.toml", "it is no TOML"), ("bytes.toml", "it is no TOML")):
        with pytest.raises(ConfigError, match=f"cannot read the network .*{said}"):
            Network.load(tmp_path / name)


def test_agents_and_keys_that_do_not_fit_are_named(tmp_path: Path) -> None:
    network = Network.load(write(tmp_path, parties()))
    for names, said in (
        (("ada", "bob", "cleo"), "the network lacks cleo of meet"),
        (("ada", "bobby"), r"\[agents.bob\] names no agent of meet, whose agents are ada, bobby; did you mean 'bobby'"),
    ):
        with pytest.raises(ConfigError, match=said):
            network.check_agents("meet", names)
    with pytest.raises(
        ConfigError, match=r"the network knows ada by the key .*, the key of bob: give the secret of ada"
    ):
        network.check_key("ada", KEYS["bob"])
    with pytest.raises(ConfigError, match="the key of nobody"):
        network.check_key("ada", "x")
    with pytest.raises(ConfigError, match="the network has no agent 'adda', only ada, bob; did you mean 'ada'"):
        network.check_key("adda", "x")


# -- keys


def test_keys_are_made_once_and_kept_secret(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["keys", "new", "ada", "--folder", str(tmp_path)])
    assert done.exit_code == 0, done.output
    secret = secret_key(tmp_path / "ada.key_secret")
    lines = done.stdout.splitlines()
    assert lines[0] == f'key = "{public_key(secret)}"'
    assert "[agents.ada]" in lines[1]
    assert stat.S_IMODE((tmp_path / "ada.key_secret").stat().st_mode) == 0o600
    assert secret.decode() not in (tmp_path / "ada.key").read_text() + done.stdout
    with pytest.raises(RunError, match=r"ada\.key_secret' exists already, and keys are never replaced"):
        new_keys("ada", tmp_path)
    assert secret_key(tmp_path / "ada.key_secret") == secret


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc/x", "a\nb", "x" * 300])
def test_keys_of_an_odd_name_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="no keys can be called"):
        new_keys(name, tmp_path / "keys")
    assert not (tmp_path / "keys").exists()


def test_a_secret_that_is_none_or_that_others_can_read_is_refused(tmp_path: Path) -> None:
    public, secret = new_keys("host", tmp_path)
    secret.chmod(0o640)
    with pytest.raises(ConfigError, match=rf"others can read .*`chmod 600 {secret}`"):
        secret_key(secret)
    (tmp_path / "junk").write_text("secret-key = zzz\npublic-key = zzz\n")
    (tmp_path / "junk").chmod(0o600)
    for file, said in (
        (public, "no secret key in it"),
        (tmp_path / "none", "No such file"),
        (tmp_path / "junk", "40 byte"),
    ):
        with pytest.raises(ConfigError, match=f"cannot read a secret key from .*{said}"):
            secret_key(file)


# -- what must be shared


def test_terms_hold_what_is_shared_and_not_what_is_an_owners_own() -> None:
    ours = terms(Config.of(env=ARENA), ("ada", "bob"))
    assert ours["env.name"] == '"arena.py:env"'  # wherever it lies
    theirs = Config.of(env="arena.py:env", agent={"kind": "random"}, deadline=3, threads=7, copies=2, patience=9)
    assert disagreement(ours, terms(theirs, ("ada", "bob"))) == ""
    for change, said in (
        ({"seed": 1}, "seed = 1, not 0"),
        ({"env": {"name": "arena.py:env", "options": {"rounds": 4}}}, "env.options.rounds = 4, not nothing"),
        ({"teams": {"red": ["ada", "bob"]}}, 'teams.red = ["ada", "bob"], not nothing'),
        ({"topology": "ring"}, 'topology = "ring", not "complete"'),
    ):
        config = Config.of(**{"env": "arena.py:env", **change})  # type: ignore[arg-type]
        assert disagreement(ours, terms(config, ("ada", "bob"))) == said
    assert disagreement(ours, {}).startswith('agents = nothing, not ["ada", "bob"]')
    assert len(disagreement({}, {"x" * 10**5: "y" * 10**5})) < 200
    assert disagreement(ours, terms(Config.of(env=ARENA), ("bob", "ada")))  # a ring follows the order


# -- a place


def owner(folder: Path, name: str, **fields: Any) -> dict[str, Any]:
    """The arguments of an owner's place, all keys lying in one folder."""
    keys = {}
    for party in ("host", "ann", "ben"):
        if not (folder / f"{party}.key_secret").exists():
            new_keys(party, folder)
        keys[party] = public_key(secret_key(folder / f"{party}.key_secret"))
    agents = {party: {"address": f"tcp://127.0.0.1:1{place}", "key": keys[party]} for place, party in
              enumerate(("ann", "ben"))}  # fmt: skip
    network = write(folder, {"host": {"address": "tcp://127.0.0.1:10", "key": keys["host"]}, "agents": agents})
    config = Config.of(env=ARENA, agent={"kind": "random"}, **fields)
    return {"name": name, "config": config, "network": network, "secret": folder / f"{name}.key_secret"}


def test_a_folder_holds_one_owners_place_and_goes_on_as_no_others(tmp_path: Path) -> None:
    ann = owner(tmp_path, "ann")
    place = Place.open(**ann, out=tmp_path / "ann")
    assert [path.name for path in (tmp_path / "ann" / "agents").iterdir()] == ["ann"]
    assert not place.folder.host.exists()
    place.folder.release()
    Place.open(**ann, out=tmp_path / "ann", resume=True).folder.release()
    for other in ("ben", "host"):
        with pytest.raises(RunError, match=f"is not {other}'s: give the folder with which {other} was started"):
            Place.open(**owner(tmp_path, other), out=tmp_path / "ann", resume=True)
    with pytest.raises(ConfigError, match="start `decentral host`, and `decentral agent` for each agent"):
        decentral.train(out=tmp_path / "ann", resume=True)


def test_only_an_owners_own_agent_must_run_here(tmp_path: Path) -> None:
    """Another's script need not lie on this machine."""
    agents = {"ben": {"kind": "scripted", "script": "ben_alone.py:play"}}
    Place.open(**owner(tmp_path, "ann", agents=agents), out=tmp_path / "ann").folder.release()
    with pytest.raises(ConfigError, match=r"ben_alone\.py"):
        Place.open(**owner(tmp_path, "ben", agents=agents), out=tmp_path / "ben")
    assert not (tmp_path / "ben").exists()


def test_the_commands_refuse_in_one_sentence(tmp_path: Path) -> None:
    ann = owner(tmp_path, "ann")
    words = ["--network", str(ann["network"]), "--secret", str(ann["secret"]), "--out", str(tmp_path / "run")]
    for command, said in (
        (["agent", "ben", ARENA, *words], "the key of ann: give the secret of ben"),
        (["agent", "host", ARENA, *words], "start the host with `decentral host`"),
        (["agent", "ann", "meet", *words], "names no agent of meet"),
        (["host", *words], "no environment is named"),
        (["agent", "ann", ARENA, *words, "--resume", "x"], "leave it out"),
    ):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 2, done.output
        assert done.stderr.startswith("error: ")
        assert len(done.stderr.strip().splitlines()) == 1
        assert said in done.stderr
    assert not (tmp_path / "run").exists()
