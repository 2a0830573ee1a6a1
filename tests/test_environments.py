"""Third-party and built-in environments: the check passes, and one update runs."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import decentral
from decentral.envs.check import check_env
from decentral.envs.config import EnvConfig

NAMES = [
    "meet",
    "vault",
    "guide",
    "mpe2.simple_reference_v3:parallel_env",
    "pettingzoo.classic.connect_four_v3:env",
    "mpe2/simple_spread_v3",
    "classic/tictactoe_v3",
    "lbforaging/Foraging-8x8-2p-2f-coop-v3",
    "openspiel/leduc_poker",
    "textarena/Nim-v0",
    "gymnasium/FrozenLake-v1",
]
PACKAGES = {"classic": "pettingzoo.classic", "openspiel": "pyspiel"}


@pytest.mark.parametrize("name", NAMES)
def test_it_checks_and_trains(name: str, tmp_path: Path) -> None:
    suite, slash, _ = name.partition("/")
    if slash:
        pytest.importorskip(PACKAGES.get(suite, suite))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = check_env(EnvConfig(name=name))
    assert report.ok, [row for row in report.rows if not row.ok]
    run = decentral.train(name, engine="inline", iterations=1, groups=1, group=4, eval_episodes=2, out=tmp_path / "run")
    assert {agent["updates"] for agent in run.summary["agents"].values()} == {1}
