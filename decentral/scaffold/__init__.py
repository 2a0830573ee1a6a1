"""A project of a user's own: the files of the working example ``my_game`` under another name.

Owns the name's rules and the writing. Knows nothing about environments.
"""

from __future__ import annotations

__all__ = ["create", "files", "module_name"]

import contextlib
import importlib.util
import keyword
import re
from pathlib import Path

from decentral.disk import disk_error
from decentral.errors import ConfigError

_NAME = "my_game"
_TEMPLATE = Path(__file__).parent / _NAME
_FILES = ("README.md", "config.toml", "my_game.ipynb", "my_game.py", "test_my_game.py")


def module_name(name: str) -> str:
    """Returns the Python module that a project's name makes: ``my-game`` becomes ``my_game``.

    Raises ConfigError for a name that makes none, or one that is taken: either module would hide the other.
    """
    module = name.replace("-", "_")
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", module) or keyword.iskeyword(module):
        raise ConfigError(
            f"{name!r} cannot name a Python module: begin with a letter and go on with letters, digits, - and _, such "
            f"as {_NAME}"
        )
    spec = importlib.util.find_spec(module)
    if spec is not None and spec.origin is not None:
        raise ConfigError(f"{name!r} names a Python module that is there already ({spec.origin}): take another name")
    return module


def files(module: str) -> dict[str, str]:
    """Returns the project of a game whose module is called ``module``: file name -> text."""
    texts = {name: (_TEMPLATE / name).read_text(encoding="utf-8") for name in _FILES}
    return {name.replace(_NAME, module): text.replace(_NAME, module) for name, text in texts.items()}


def create(folder: Path) -> list[str]:
    """Writes a project, named as its folder is, and returns the names of its files.

    All of it or nothing: what stops the writing, an interrupt too, takes away what was written. Raises ConfigError for
    a name that will not do or a folder that is not empty, RunError if it cannot be written.
    """
    project = files(module_name(folder.name or str(folder)))
    try:
        if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
            raise ConfigError(f"{str(folder)!r} is there already and not an empty folder: give another name")
        with contextlib.ExitStack() as undo:
            for part in (*reversed(folder.parents), folder):
                if not part.exists():
                    part.mkdir()
                    undo.callback(part.rmdir)
            for name, text in project.items():
                path = folder / name
                with path.open("x", encoding="utf-8") as file:
                    undo.callback(path.unlink)
                    file.write(text)
            undo.pop_all()
    except OSError as error:
        raise disk_error(folder, error, "make room or give access, or choose another folder") from error
    return list(project)
