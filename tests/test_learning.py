"""The library does what it is for: agents learn, and the death of one costs nothing that was learnt."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

import decentral
from decentral import messages as say
from decentral.journal import read


def test_two_agents_learn_to_meet(tmp_path: Path) -> None:
    """A learning curve as an invariant: it is a function of the seed, never of the clock.

    Measured: from 28 % to 93 % with seed 0 and from 13 % to 93 % with seed 1, after 12 iterations each; the bounds
    leave room for what rounding does on other machines.
    """
    run = decentral.train(
        "meet",
        engine="inline",
        seed=0,
        iterations=12,
        eval_episodes=60,
        agent={"lr": 1e-3, "kl": 1e-3},
        out=tmp_path / "run",
    )
    for row in run.results().to_dict("records"):
        assert row["measure"] == "success"
        assert row["first"] < 0.35
        assert row["last"] > 0.7
    for name in run.agents:
        learnt = run.metrics().set_index("agent").loc[name]
        assert learnt["updates"].tolist() == list(range(1, 13))
        assert learnt["entropy"].iloc[-1] < learnt["entropy"].iloc[0]
        assert learnt["kl"].iloc[0] == pytest.approx(0, abs=1e-5)
        assert learnt["kl"].iloc[-1] > 0.1


def test_a_learning_agent_that_is_killed_loses_no_episode_and_no_update(tmp_path: Path) -> None:
    """Bob's process dies twice: while he plays, and in a later iteration while he updates (slowly, row by row)."""
    path = tmp_path / "run"
    told: list[say.Event] = []
    killed: list[str] = []

    def kill(event: say.Event) -> None:
        told.append(event)
        moment = _moment(event)
        if moment and moment not in killed:
            time.sleep(0.1)  # well inside it
            killed.append(moment)
            started = [line for line in read(path / "events.jsonl")[0] if line["event"] == "started"]
            os.kill([line["pid"] for line in started if line["name"] == "bob"][-1], signal.SIGKILL)

    size = {"iterations": 4, "groups": 3, "group": 8, "eval_episodes": 8, "copies": 1}
    run = decentral.train("guide", out=path, on_event=kill, agent={"microbatch": 1}, **size)
    assert killed == ["play", "update"]
    lost = [event for event in told if isinstance(event, say.Lost)]
    assert [event.name for event in lost] == ["bob", "bob"]
    assert {agent["updates"] for agent in run.summary["agents"].values()} == {4}
    for name in run.agents:
        assert run.metrics().set_index("agent").loc[name, "updates"].tolist() == [1, 2, 3, 4]
    counted = run.episodes()[run.episodes()["counted"]]
    assert set(counted.groupby("agent").size()) == {4 * 3 * 8 + 2 * 8}
    assert not counted.duplicated(["agent", "episode"]).any()


def _moment(event: say.Event) -> str:
    """``play`` as the second iteration begins, ``update`` when an iteration after that was played to its end."""
    if isinstance(event, say.PhaseClosed):
        return "play" if (event.phase.kind, event.phase.iteration) == ("train", 0) else ""
    if isinstance(event, say.Progress) and event.phase is not None and event.done == event.total:
        return "update" if event.phase.kind == "train" and event.phase.iteration >= 2 else ""
    return ""
