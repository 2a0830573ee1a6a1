from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from decentral.config import Config
from decentral.errors import ConfigError, EnvError, RunError
from decentral.folder import RunFolder
from decentral.journal import read

CONFIG = Config.of(env="meet", iterations=3)
AGENTS = ("ada", "bob")


def test_a_new_run_has_its_places_and_is_locked(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs" / "a", CONFIG, AGENTS)
    assert folder.state.iteration == folder.state.closed == 0
    again = RunFolder.open(folder.path)
    assert (again.config, again.agents) == (CONFIG, AGENTS)
    assert (again.agent("bob") / "checkpoints").is_dir()
    assert "python" in msgspec.json.decode((folder.path / "versions.json").read_bytes())
    with pytest.raises(RunError, match="in use by another process"):
        RunFolder.resume(folder.path)
    folder.release()
    RunFolder.resume(folder.path, CONFIG).release()


def test_a_folder_that_exists_is_refused_with_both_ways_out(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(RunError, match=r"exists already.*--out.*--resume"):
        RunFolder.create(tmp_path, CONFIG, AGENTS)
    assert sorted(os.listdir(tmp_path)) == ["note.txt"]


def test_an_empty_folder_may_be_used(tmp_path: Path) -> None:
    RunFolder.create(tmp_path, CONFIG, AGENTS).release()


def test_a_changed_config_is_refused_by_field_and_values(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "a", CONFIG, AGENTS).release()
    with pytest.raises(RunError, match=r"agent\.lr = None, not 0\.5"):
        RunFolder.resume(tmp_path / "a", CONFIG.with_set(["agent.lr=0.5", "seed=9"]).with_set(["seed=0"]))
    edited = (tmp_path / "a" / "config.toml").read_text().replace("iterations = 3", "iterations = 4")
    (tmp_path / "a" / "config.toml").write_text(edited)
    with pytest.raises(RunError, match="iterations = 3, not 4"):
        RunFolder.resume(tmp_path / "a")


def test_a_finished_run_cannot_be_resumed(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "a", CONFIG, AGENTS)
    folder.write_summary({"agents": {}})
    folder.release()
    with pytest.raises(RunError, match="is finished"):
        RunFolder.resume(tmp_path / "a")


@pytest.mark.parametrize("new", [True, False])
def test_a_run_that_cannot_be_written_down_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: bool
) -> None:
    path = tmp_path / "a"
    if not new:
        path.mkdir()
    with pytest.raises(ConfigError):
        RunFolder.create(path, Config.of(env={"name": "meet", "options": {"a": [None]}}), AGENTS)
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "write_state", lambda *_: (_ for _ in ()).throw(RunError("no room")))
        with pytest.raises(RunError, match="no room"):
            RunFolder.create(path, CONFIG, AGENTS)
    assert path.exists() != new
    assert new or not list(path.iterdir())
    RunFolder.create(path, CONFIG, AGENTS).release()


def test_other_weights_are_refused_by_name_and_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    RunFolder.create(tmp_path / "a", CONFIG, AGENTS).release()
    old = msgspec.json.decode((tmp_path / "a" / "versions.json").read_bytes())["models"]["pocket"]
    with monkeypatch.context() as patch:
        patch.setattr("decentral.versions.weights_hash", lambda name: "feedc0ffee00")
        with pytest.raises(RunError, match=rf"the model 'pocket' with the hash {old}, which is now feedc0ffee00"):
            RunFolder.resume(tmp_path / "a")
    RunFolder.resume(tmp_path / "a").release()
    assert not (tmp_path / "a" / "events.jsonl").exists()


def test_other_versions_are_noted(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "a", CONFIG, AGENTS).release()
    file = tmp_path / "a" / "versions.json"
    found = msgspec.json.decode(file.read_bytes())
    file.write_bytes(msgspec.json.encode({**found, "numpy": "0.9"}))
    RunFolder.resume(tmp_path / "a").release()
    (event,), _ = read(tmp_path / "a" / "events.jsonl")
    assert (event["event"], event["numpy"]) == ("other versions", f"0.9 -> {found['numpy']}")
    assert set(event) == {"time", "event", "numpy"}


@pytest.mark.parametrize("broken", ["state.json", "config.toml", "versions.json"])
@pytest.mark.parametrize("content", [None, "{"])
def test_a_broken_folder_is_one_sentence(tmp_path: Path, broken: str, content: str | None) -> None:
    RunFolder.create(tmp_path / "a", CONFIG, AGENTS).release()
    (tmp_path / "a" / broken).unlink()
    if content:
        (tmp_path / "a" / broken).write_text(content)
    with pytest.raises(RunError):
        RunFolder.resume(tmp_path / "a")


def test_no_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is no run folder"):
        RunFolder.resume(tmp_path / "none")


@pytest.mark.parametrize("name", ["", "..", "a/b", "host", "x" * 300, "a\ud800"])
def test_an_agent_whose_name_is_no_folder_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(EnvError, match="cannot be a folder's"):
        RunFolder.create(tmp_path / "a", CONFIG, (name,))
    assert not (tmp_path / "a").exists()


def test_a_place_that_cannot_be_written_is_one_sentence() -> None:
    with pytest.raises(RunError, match="cannot write"):
        RunFolder.create(Path("/proc/decentral"), CONFIG, AGENTS)
