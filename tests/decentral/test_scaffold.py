"""A project of a user's own: whatever it is called it works at once, and it is written whole or not at all."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from typer.testing import CliRunner

from decentral.commands import app
from decentral.config import Config
from decentral.errors import ConfigError, RunError
from decentral.scaffold import create, files, module_name

OTHER = "auction"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A new project under another name than the example's, as the folder in which its user works."""
    create(tmp_path / OTHER)
    monkeypatch.chdir(tmp_path / OTHER)
    monkeypatch.syspath_prepend(tmp_path / OTHER)
    yield tmp_path / OTHER
    for name in (OTHER, f"test_{OTHER}"):
        sys.modules.pop(name, None)


def test_its_name_is_everywhere() -> None:
    made = files(OTHER)
    assert {"README.md", "config.toml", "auction.py", "auction.ipynb", "test_auction.py"} == made.keys()
    assert all(OTHER in text and "my_game" not in text for text in made.values())


def test_a_hyphen_becomes_an_underscore() -> None:
    assert module_name("your-own-game") == "your_own_game"


@pytest.mark.parametrize("name", ["2fast", "my game", "my.game", "class", "", "..", "spiel-é", "a/b", "__main__"])
def test_a_name_that_makes_no_module_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"cannot name a Python module: .* such as my_game"):
        module_name(name)


@pytest.mark.parametrize("name", ["json", "sys", "numpy", "decentral"])
def test_a_name_that_would_hide_another_module_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="is there already"):
        module_name(name)


def test_only_an_empty_folder_is_taken(tmp_path: Path) -> None:
    create(tmp_path / "empty" / "my_game")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("empty/my_game", "full", "file"):
        with pytest.raises(ConfigError, match="not an empty folder"):
            create(tmp_path / name)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["notes"]
    (tmp_path / "void").mkdir()
    create(tmp_path / "void")
    assert (tmp_path / "void" / "void.py").exists()


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("there", [False, True])
def test_nothing_is_left_of_what_was_stopped(
    error: BaseException, there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "work" / "my_game"
    if there:
        folder.mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    opened, usual = [], Path.open

    def stopped(path: Path, mode: str = "r", **more: str) -> object:
        if mode == "x":
            opened.append(path)
            if len(opened) == 3:
                raise error
        return usual(path, mode, **more)

    monkeypatch.setattr(Path, "open", stopped)
    with pytest.raises((RunError, KeyboardInterrupt), match=r"No space left on device; make room|^$"):
        create(folder)
    assert len(opened) == 3
    assert sorted(tmp_path.rglob("*")) == before


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file" / "my_game", tmp_path / ("a" * 300)):
        result = CliRunner().invoke(app, ["new", str(folder)])
        assert result.exit_code == 2
        assert result.stderr.startswith(f"error: cannot write {str(folder)!r}: ")
    assert os.listdir(tmp_path) == ["file"]
    assert "'.' cannot name a Python module" in CliRunner().invoke(app, ["new", "."]).stderr


def test_the_command_says_what_it_made_and_what_to_type_next(tmp_path: Path) -> None:
    folder = tmp_path / "my work" / "my-game"
    said = CliRunner().invoke(app, ["new", str(folder)]).stdout
    assert all(path.name in said for path in folder.iterdir())
    assert f"cd '{folder}' && decentral envs check my_game.py:env\n" in said
    assert said.endswith("decentral train --config config.toml\n")


def test_its_environment_passes_every_check_and_its_own_tests(project: Path) -> None:
    rules = importlib.import_module(f"test_{OTHER}")
    assert Path(rules.__file__ or "").parent == project
    tests = [test for name, test in vars(rules).items() if name.startswith("test_")]
    assert len(tests) == 5
    for test in tests:
        test()


def test_its_config_and_its_readme_name_its_environment(project: Path) -> None:
    assert Config.load("config.toml").env.name == "auction.py:env"
    assert "decentral envs check auction.py:env " in (project / "README.md").read_text()
    assert "decentral train --config config.toml " in (project / "README.md").read_text()


def test_its_notebook_trains_and_shows(project: Path) -> None:
    """With one short iteration, in this process."""
    notebook = nbformat.read(project / "auction.ipynb", as_version=4)
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert code.count("iterations=6") == 1
    found: dict[str, object] = {}
    exec(code.replace("iterations=6", "iterations=1, groups=2, eval_episodes=4"), found)
    assert set(found["run"].metrics()["updates"]) == {1}  # type: ignore[attr-defined]
    assert found["step"].outcomes.keys() == {"ada", "bob"}  # type: ignore[attr-defined]
