"""A run that lost a process, or was interrupted anywhere, is the run that nothing happened to."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decentral
from decentral import messages as say
from decentral.agents.advice import Answer, Question
from decentral.agents.draws import name_word, uniform
from decentral.agents.mind import Ended, Metrics, Phase, Request
from decentral.config import Config
from decentral.engines import Emit, drive, inline
from decentral.envs.names import make
from decentral.folder import RunFolder
from decentral.journal import read

ARENA = f"{Path(__file__).parent / 'arena.py'}:env"
SIZE: dict[str, Any] = {"groups": 2, "group": 4, "eval_episodes": 8, "copies": 2}


# -- processes that are killed ----------------------------------------------------------------------------------------


class Assassin:
    """Sends processes of the run a signal in the middle of a phase, and keeps the events."""

    def __init__(self, run: Path, victims: dict[str, Phase], how: signal.Signals = signal.SIGKILL) -> None:
        self.run = run
        self.how = how
        self.victims = dict(victims)
        self.events: list[say.Event] = []

    def __call__(self, event: say.Event) -> None:
        self.events.append(event)
        if isinstance(event, say.Progress) and event.phase is not None and 0 < event.done < event.total:
            for name, phase in list(self.victims.items()):
                if (event.phase.kind, event.phase.iteration) >= (phase.kind, phase.iteration):
                    del self.victims[name]
                    lines, _ = read(self.run / "events.jsonl")
                    pid = [line["pid"] for line in lines if line["event"] == "started" and line["name"] == name][-1]
                    os.kill(pid, self.how)
                    return


@pytest.mark.parametrize("victim", ["ben", "host"])
def test_a_killed_process_is_started_again_and_nothing_is_lost_or_counted_twice(tmp_path: Path, victim: str) -> None:
    path = tmp_path / "run"
    assassin = Assassin(path, {victim: Phase("train", 1)})
    env = decentral.EnvConfig(name=ARENA, options={"delay": 0.04})
    run = decentral.train(env, out=path, agent={"kind": "random"}, iterations=3, on_event=assassin, **SIZE)
    assert not assassin.victims
    told = [event for event in assassin.events if isinstance(event, say.Lost | say.Restarted)]
    assert [type(event) for event in told] == [say.Lost, say.Restarted]
    assert isinstance(told[0], say.Lost)
    assert told[0].name == victim
    assert "killed by SIGKILL" in told[0].why
    assert "stderr.txt" in told[0].why
    _check_books(run.path, iterations=3)
    lines, _ = read(path / "host" / "episodes.jsonl")
    assert any(line["attempt"] == 1 for line in lines)
    # what was played twice was played alike
    played: dict[int, Any] = {}
    for line in lines:
        assert played.setdefault(line["episode"], line["steps"]) == line["steps"]
    assert f"{victim} was killed" in (path / "log.txt").read_text()


def test_a_process_that_freezes_is_ended_and_started_again(tmp_path: Path) -> None:
    path = tmp_path / "run"
    assassin = Assassin(path, {"ben": Phase("train", 0)}, signal.SIGSTOP)
    env = decentral.EnvConfig(name=ARENA, options={"delay": 0.04})
    settings = {"agent": {"kind": "random"}, "iterations": 1, "deadline": 12.0, **SIZE}
    decentral.train(env, out=path, on_event=assassin, **settings)
    (lost,) = (event for event in assassin.events if isinstance(event, say.Lost))
    assert (lost.name, lost.why.partition(" by ")[0]) == ("ben", "was silent for 6 s and was ended")
    _check_books(path, iterations=1)


@pytest.mark.parametrize(
    ("code", "said"), [(77, "ended with exit code 77"), (0, r"ended by itself \(exit code 0\) before the run was over")]
)
def test_a_process_that_is_lost_again_and_again_stops_the_run(tmp_path: Path, code: int, said: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import os\ndef play(turn):\n    os._exit({code})\n")
    agents = {"ben": {"kind": "scripted", "script": f"{script}:play"}}
    events: list[say.Event] = []
    with pytest.raises(decentral.RunError, match=rf"ben was lost 4 times; at last it {said}; see .*--resume"):
        decentral.train(
            decentral.EnvConfig(name=ARENA),
            out=tmp_path / "run",
            agent={"kind": "random"},
            agents=agents,
            iterations=1,
            on_event=events.append,
            **SIZE,
        )
    assert sum(isinstance(event, say.Restarted) for event in events) == 3


def test_a_host_that_ends_by_itself_is_lost_and_not_done(tmp_path: Path) -> None:
    env = decentral.EnvConfig(name=ARENA, options={"crash": 1, "by": "die"})
    with pytest.raises(decentral.RunError, match=r"host was lost 4 times; at last it ended by itself .*--resume"):
        decentral.train(env, out=tmp_path / "run", agent={"kind": "random"}, iterations=1, **SIZE)


def _check_books(path: Path, iterations: int) -> None:
    """Every line is unique, and what counts is exactly what was planned."""
    lines, _ = read(path / "host" / "episodes.jsonl")
    keys = [(line["phase"], line["iteration"], line["attempt"], line["episode"]) for line in lines]
    assert len(keys) == len(set(keys))
    closed = {(line["phase"], line["iteration"]): line["attempt"] for line in read(path / "host" / "phases.jsonl")[0]}
    counted = [key for key in keys if closed[key[0], key[1]] == key[2]]
    assert len(counted) == iterations * SIZE["groups"] * SIZE["group"] + 2 * SIZE["eval_episodes"]
    assert len({key[3] for key in counted}) == len(counted)


# -- an inline run that is interrupted --------------------------------------------------------------------------------


class Interrupted(decentral.DecentralError):
    """What the test raises in the middle of a run."""


class Learner:
    """A small policy-gradient learner with momentum: its weights depend on everything that ever happened to it."""

    def __init__(self, name: str, tick: Callable[[], None]) -> None:
        self.name = name
        self.tick = tick
        self.weights = np.zeros(2)
        self.momentum = np.zeros(2)
        self.steps = 0
        self.taken: dict[int, list[int]] = {}
        self.gradient = np.zeros(2)

    @property
    def updates(self) -> int:
        return self.steps

    def begin(self, phase: Phase) -> None:
        self.tick()
        self.taken.clear()
        self.gradient = np.zeros(2)

    def ask(self, requests: Sequence[Request]) -> Mapping[str, tuple[Question, ...]]:
        return {}

    def answer(self, questions: Sequence[Question]) -> tuple[Answer, ...]:
        return (Answer(),) * len(questions)

    def records(self) -> list[dict[str, Any]]:
        return []

    def act(self, requests: Sequence[Request], answers: Mapping[str, Sequence[Answer]] = {}) -> list[str]:
        self.tick()
        actions = []
        for request in requests:
            before = self.taken.setdefault(request.episode, [])
            chance = 1 / (1 + np.exp(self.weights[1] - self.weights[0]))
            draw = uniform(0, name_word(self.name), request.episode, len(before))[0]
            before.append(int(draw > chance))
            actions.append(request.turn.legal[before[-1]])
        return actions

    def end(self, ended: Sequence[Ended]) -> None:
        self.tick()
        for one in ended:
            for action in self.taken.pop(one.episode):
                self.gradient[action] += one.outcome.total

    def update(self) -> Metrics:
        self.tick()
        self.momentum = 0.9 * self.momentum + 0.01 * self.gradient
        self.weights = self.weights + self.momentum
        self.steps += 1
        return {"weight": float(self.weights[0])}

    def save(self, folder: Path) -> None:
        self.tick()
        np.savez(folder / "state.npz", weights=self.weights, momentum=self.momentum, steps=self.steps)
        self.tick()

    def load(self, folder: Path) -> None:
        state = np.load(folder / "state.npz")
        self.weights, self.momentum, self.steps = state["weights"], state["momentum"], int(state["steps"])

    def export(self, folder: Path) -> None:
        self.tick()
        self.save(folder)


class Clock:
    """Counts the calls of all minds and raises at one of them."""

    def __init__(self, stop: int = -1) -> None:
        self.count = 0
        self.stop = stop

    def __call__(self) -> None:
        self.count += 1
        if self.count == self.stop:
            raise Interrupted


def play(folder: RunFolder, clock: Clock, on_event: Emit = lambda event: None) -> dict[str, Learner]:
    learners: dict[str, Learner] = {}

    def mind(name: str) -> Learner:
        learners[name] = Learner(name, clock)
        return learners[name]

    try:
        drive(lambda emit: inline.play(folder, lambda: make(folder.config.env), mind, emit), on_event)
    finally:
        folder.release()
    return learners


CONFIG = Config.of(env=ARENA, engine="inline", iterations=4, **SIZE)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Learner], Path, int]:
    path = tmp_path_factory.mktemp("untouched") / "run"
    clock = Clock()
    learners = play(RunFolder.create(path, CONFIG, ("ann", "ben")), clock)
    return learners, path, clock.count


def _same(learners: dict[str, Learner], path: Path, untouched: tuple[dict[str, Learner], Path, int]) -> None:
    for name, wanted in untouched[0].items():
        assert learners[name].steps == wanted.steps == 4
        assert np.array_equal(learners[name].weights, wanted.weights)
        assert np.array_equal(learners[name].momentum, wanted.momentum)
    assert learners["ann"].weights[0] != 0
    _check_books(path, iterations=4)
    assert _counted(path) == _counted(untouched[1])
    figures = [{line["iteration"]: line["weight"] for line in _metrics(run, "ann")} for run in (path, untouched[1])]
    assert figures[0] == figures[1]


def _metrics(path: Path, name: str) -> list[dict[str, Any]]:
    return read(path / "agents" / name / "metrics.jsonl")[0]


def _counted(path: Path) -> dict[int, Any]:
    closed = {(line["phase"], line["iteration"]): line["attempt"] for line in read(path / "host" / "phases.jsonl")[0]}
    lines, _ = read(path / "host" / "episodes.jsonl")
    return {
        line["episode"]: (line["steps"], line["agents"])
        for line in lines
        if closed[line["phase"], line["iteration"]] == line["attempt"]
    }


def test_an_interrupted_inline_run_ends_with_the_weights_of_an_untouched_one(
    tmp_path: Path, untouched: tuple[dict[str, Learner], Path, int]
) -> None:
    """Whatever call it was interrupted in: playing, updating, saving, exporting."""
    for place, stop in enumerate(range(1, untouched[2] + 1, 17)):
        path = tmp_path / f"run{place}"
        with pytest.raises(Interrupted):
            play(RunFolder.create(path, CONFIG, ("ann", "ben")), Clock(stop))
        _same(play(RunFolder.resume(path), Clock()), path, untouched)


def test_a_run_may_be_interrupted_many_times(tmp_path: Path, untouched: tuple[dict[str, Learner], Path, int]) -> None:
    folder = RunFolder.create(tmp_path / "run", CONFIG, ("ann", "ben"))
    for stop in (5, 20, 30, 9, 31, 40):
        with pytest.raises(Interrupted):
            play(folder, Clock(stop))
        folder = RunFolder.resume(tmp_path / "run", CONFIG)
    _same(play(folder, Clock()), tmp_path / "run", untouched)


@pytest.mark.parametrize("closed", [1, 3, 5])
def test_an_interrupt_between_phases_changes_nothing(
    tmp_path: Path, untouched: tuple[dict[str, Learner], Path, int], closed: int
) -> None:
    seen: list[say.Event] = []

    def interrupt(event: say.Event) -> None:
        if isinstance(event, say.PhaseClosed):
            seen.append(event)
            if len(seen) == closed:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(RunFolder.create(tmp_path / "run", CONFIG, ("ann", "ben")), Clock(), interrupt)
    if (tmp_path / "run" / "summary.json").exists():
        return  # it was faster than the interrupt
    _same(play(RunFolder.resume(tmp_path / "run"), Clock()), tmp_path / "run", untouched)
