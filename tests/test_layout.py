"""The layout: one import name for every class, rooms that import only what they may, a light front door."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAY_IMPORT = {
    "graphs": {"graphs", "errors"},
    "envs": {"envs", "graphs", "errors"},
    "agents": {"agents", "graphs", "envs.turn", "errors"},
}


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            found.add(node.module or "")
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_a_room_imports_only_what_it_may(room: str) -> None:
    for path in (ROOT / room).rglob("*.py"):
        for name in imports(path):
            assert name.split(".")[0] not in MAY_IMPORT, f"{path} imports {name}, a second copy of every class"
            if name.startswith("decentral."):
                inner = name.removeprefix("decentral.")
                allowed = MAY_IMPORT[room]
                assert any(inner == a or inner.startswith(f"{a}.") for a in allowed), f"{path} imports {name}"


def test_the_rooms_are_relative_links_in_the_package() -> None:
    for room in MAY_IMPORT:
        link = ROOT / "decentral" / room
        assert link.is_symlink()
        assert str(link.readlink()) == f"../{room}"


def test_every_class_has_one_copy() -> None:
    code = (
        "import sys, decentral.agents, decentral.agents.language, decentral.envs, decentral.graphs, decentral.host\n"
        "assert not {'agents', 'envs', 'graphs'} & set(sys.modules), 'a room was imported under a second name'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_no_pickle_anywhere() -> None:
    for path in ROOT.glob("*/**/*.py"):
        if path.parts[len(ROOT.parts)] in {*MAY_IMPORT, "decentral"}:
            assert not {"pickle", "dill", "cloudpickle", "multiprocessing"} & {n.split(".")[0] for n in imports(path)}
