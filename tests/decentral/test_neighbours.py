"""Who may ask whom follows from topology, teams, kinds and rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from decentral.config import Config
from decentral.errors import ConfigError
from decentral.neighbours import neighbours

NAMES = ("ann", "ben", "cleo", "dan")


def edges(**fields: Any) -> set[tuple[str, str]]:
    agent = {"advice": {"rule": "ours"}} | fields.pop("agent", {})
    return set(neighbours(Config.of(env="meet", agent=agent, **fields), NAMES).edges)


def test_without_a_rule_nobody_asks() -> None:
    assert neighbours(Config.of(env="meet"), NAMES).number_of_edges() == 0
    assert {b for _, b in edges(agents={"ann": {"advice": {"rule": "none"}}})} == {"ben", "cleo", "dan"}


def test_the_topology_is_kept() -> None:
    assert len(edges()) == 12
    assert edges(topology="ring") == {(a, b) for a, b in edges() if {a, b} not in ({"ann", "cleo"}, {"ben", "dan"})}


def test_opponents_do_not_advise() -> None:
    teams = {"red": ("ann", "ben"), "blue": ("cleo", "dan")}
    assert edges(teams=teams) == {("ann", "ben"), ("ben", "ann"), ("cleo", "dan"), ("dan", "cleo")}


def test_who_does_not_learn_does_not_ask_and_who_plays_at_random_does_not_answer() -> None:
    found = edges(agents={"ann": {"kind": "random"}, "ben": {"kind": "frozen"}})
    assert {a for a, _ in found} == {"ben", "cleo", "dan"}
    assert {b for _, b in found} == {"cleo", "dan"}


def test_a_function_may_say_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import networkx as nx\n"
        "def star(names):\n    return nx.DiGraph((names[0], name) for name in names[1:])\n"
        "def wrong(names):\n    return nx.DiGraph([('ann', 'zoe')])\n"
    )
    assert edges(topology=f"{file}:star") == {("ann", "ben"), ("ann", "cleo"), ("ann", "dan")}
    with pytest.raises(ConfigError, match=r"no networkx.DiGraph over ann, ben, cleo, dan"):
        edges(topology=f"{file}:wrong")


@pytest.mark.parametrize("text", ["star", "regular:9", "small_world:4:7"])
def test_what_is_no_topology_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="topology = "):
        edges(topology=text)
