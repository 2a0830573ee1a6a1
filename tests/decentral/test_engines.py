from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import decentral
from decentral import messages as say
from decentral.engines import Emit, drive
from decentral.engines.local import _rebuilt
from decentral.errors import ConfigError, EnvError, MissingExtra, ModelError, RunError
from decentral.journal import read

ARENA = f"{Path(__file__).parent / 'arena.py'}:env"
TINY: dict[str, Any] = {"agent": {"kind": "random"}, "iterations": 2, "groups": 2, "group": 3, "eval_episodes": 4}


def arena(**options: Any) -> decentral.EnvConfig:
    return decentral.EnvConfig(name=ARENA, options=options)


def episodes(run: decentral.Run) -> list[dict[str, Any]]:
    lines, _ = read(run.path / "host" / "episodes.jsonl")
    return sorted(lines, key=lambda line: line["episode"])


# -- the thread -------------------------------------------------------------------------------------------------------

EVENT = say.Lost("ann", "was killed")


def test_events_come_in_the_callers_thread_and_errors_too() -> None:
    seen: list[Any] = []

    async def job(emit: Emit) -> None:
        emit(EVENT)
        await asyncio.sleep(0)
        raise EnvError("broken")

    with pytest.raises(EnvError, match="broken"):
        drive(job, lambda event: seen.append((event, threading.current_thread())))
    assert seen == [(EVENT, threading.main_thread())]


def test_it_works_inside_a_running_loop() -> None:
    async def notebook() -> list[say.Event]:
        async def job(emit: Emit) -> None:
            emit(EVENT)

        seen: list[say.Event] = []
        drive(job, seen.append)
        return seen

    assert asyncio.run(notebook()) == [EVENT]


def test_an_interrupt_lets_the_job_clean_up_and_is_raised_again() -> None:
    ended = []

    async def job(emit: Emit) -> None:
        try:
            while True:
                emit(EVENT)
                await asyncio.sleep(0.01)
        finally:
            await asyncio.sleep(0.05)
            ended.append(1)

    def interrupt(event: say.Event) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drive(job, interrupt)
    assert ended == [1]


# -- both engines -----------------------------------------------------------------------------------------------------


def test_processes_and_inline_play_the_same_run(tmp_path: Path) -> None:
    events: list[say.Event] = []
    runs = [
        decentral.train(arena(), engine=engine, out=tmp_path / engine, on_event=events.append, **TINY)
        for engine in ("local", "inline")
    ]
    local, inline = (episodes(run) for run in runs)
    assert local == inline
    assert len(local) == 20
    agents = [run.summary["agents"] for run in runs]
    assert agents[0] == agents[1]
    assert sum(isinstance(event, say.PhaseClosed) for event in events) == 8
    assert any(isinstance(event, say.Status) for event in events)
    assert any(isinstance(event, say.Progress) for event in events)


def test_an_inline_run_is_the_same_twice_and_another_seed_is_another_run(tmp_path: Path) -> None:
    runs = [
        decentral.train(arena(), engine="inline", out=tmp_path / f"{place}", seed=seed, **TINY)
        for place, seed in enumerate((0, 0, 1))
    ]
    first, second, third = ((run.path / "host" / "episodes.jsonl").read_bytes() for run in runs)
    assert first == second != third


def test_an_environment_of_this_process_trains_inline(tmp_path: Path) -> None:
    from decentral.envs.names import load

    run = decentral.train(load(ARENA, "environment"), engine="inline", out=tmp_path / "run", **TINY)
    assert run.summary["agents"]["ann"]["updates"] == 0


def test_an_environment_of_this_process_is_refused_by_local_with_both_ways_out(tmp_path: Path) -> None:
    from decentral.envs.names import load

    with pytest.raises(ConfigError, match=r"game\.py:callable.*engine = 'inline'"):
        decentral.train(load(ARENA, "environment"), out=tmp_path / "run", **TINY)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("fields", "error", "match"),
    [
        ({"agents": {"bob": {}}}, ConfigError, r"agents\.bob.*ann, ben"),
        ({"agents": {"ben": {"kind": "human"}}}, ConfigError, "no terminal: use engine = 'inline'"),
        ({"agents": {"ben": {"kind": "scripted", "script": "no.such:thing"}}}, ConfigError, "no module 'no'"),
        ({"env_": decentral.EnvConfig(name="meeet")}, ConfigError, "did you mean 'meet'"),
        ({"sed": 1}, ConfigError, "did you mean 'seed'"),
    ],
)
def test_what_can_be_known_before_is_refused_before_a_folder_is_made(
    tmp_path: Path, fields: dict[str, Any], error: type[Exception], match: str
) -> None:
    env = fields.pop("env_", arena())
    with pytest.raises(error, match=match):
        decentral.train(env, out=tmp_path / "run", **{**TINY, **fields})
    assert not (tmp_path / "run").exists()


def test_an_object_that_is_no_maker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="give a function that makes the environment"):
        decentral.train(object(), engine="inline", out=tmp_path / "run")  # type: ignore[arg-type]


def test_an_existing_folder_is_refused(tmp_path: Path) -> None:
    decentral.train(arena(), engine="inline", out=tmp_path / "run", **TINY)
    with pytest.raises(RunError, match="exists already"):
        decentral.train(arena(), engine="inline", out=tmp_path / "run", **TINY)
    with pytest.raises(RunError, match="is finished"):
        decentral.train(out=tmp_path / "run", resume=True)


@pytest.mark.parametrize("engine", ["local", "inline"])
def test_an_environment_that_breaks_is_one_sentence_in_every_engine(tmp_path: Path, engine: str) -> None:
    with pytest.raises(EnvError, match=r"the arena fell down.*\(so it went in 3 of 4 episodes\)"):
        decentral.train(arena(crash=1), engine=engine, out=tmp_path / "run", **TINY)
    assert not _children(tmp_path / "run")


@pytest.mark.parametrize("engine", ["local", "inline"])
def test_an_environment_that_exits_has_not_played_the_run(tmp_path: Path, engine: str) -> None:
    with pytest.raises(EnvError, match=r"step raised SystemExit.*\(so it went in 3 of 4 episodes\)"):
        decentral.train(arena(crash=1, by="exit"), engine=engine, out=tmp_path / "run", **TINY)
    assert not (tmp_path / "run" / "summary.json").exists()


@pytest.mark.parametrize("engine", ["local", "inline"])
@pytest.mark.parametrize(
    ("body", "said"), [("sys.exit()", "raised SystemExit"), (r"return '\ud800'", r"answered '\\ud800'")]
)
def test_a_script_that_exits_or_writes_no_text_is_one_sentence(
    tmp_path: Path, engine: str, body: str, said: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import sys\ndef play(turn):\n    {body}\n")
    agents = {"ben": {"kind": "scripted", "script": f"{script}:play"}}
    with pytest.raises(ConfigError, match=rf"the script of agent 'ben' {said}"):
        decentral.train(arena(), engine=engine, out=tmp_path / "run", agents=agents, **TINY)


@pytest.mark.parametrize("kind", ["nested", "lambda", "partial"])
def test_a_run_on_an_object_can_be_used_once_it_is_over(tmp_path: Path, kind: str) -> None:
    from decentral.envs.names import load
    from decentral.evaluate import watch

    made = load(ARENA, "environment")

    def nested() -> Any:
        env = made(rounds=2)
        env.instructions = lambda agent: f"be {agent}"
        return env

    factory = {"nested": nested, "lambda": lambda: nested(), "partial": partial(nested)}[kind]
    run = decentral.train(factory, engine="inline", out=tmp_path / "run", **TINY)
    player = run.agent("ann")
    player.act("anything", ["left"])
    assert player._system == "be ann"
    assert run.evaluate(episodes=6, factory=factory).episodes == 6
    assert len(list(watch(run, factory=factory))) == 3
    with pytest.raises(ConfigError, match="pass the callable itself as `factory`"):
        run.evaluate(episodes=6)


@pytest.mark.parametrize("engine", ["local", "inline"])
def test_an_agent_that_cannot_be_made_is_one_sentence_in_every_engine(tmp_path: Path, engine: str) -> None:
    script = tmp_path / "script.py"
    script.write_text("def play(turn):\n    return 'up'\n")
    agents = {"ben": {"kind": "scripted", "script": f"{script}:play"}}
    with pytest.raises(ConfigError, match="the script of agent 'ben' answered 'up'"):
        decentral.train(arena(), engine=engine, out=tmp_path / "run", agents=agents, **TINY)
    assert not _children(tmp_path / "run")


@pytest.mark.parametrize("engine", ["local", "inline"])
def test_a_full_disk_is_one_sentence_in_every_engine_and_the_run_can_be_resumed(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "run"
    full = path / "host" / "phases.jsonl"
    with suppress(KeyboardInterrupt):
        decentral.train(arena(), engine=engine, out=path, on_event=_interrupt_after(1), **TINY)
    kept = full.read_bytes()
    full.unlink()
    full.symlink_to("/dev/full")
    with pytest.raises(RunError, match=r"phases\.jsonl.*No space left on device.*--resume"):
        decentral.train(out=path, resume=True)
    full.unlink()
    full.write_bytes(kept)
    run = decentral.train(out=path, resume=True)
    assert run.episodes()["counted"].sum() == 2 * 20


def _interrupt_after(phases: int) -> Emit:
    closed: list[say.PhaseClosed] = []

    def on_event(event: say.Event) -> None:
        if isinstance(event, say.PhaseClosed):
            closed.append(event)
            if len(closed) == phases:
                raise KeyboardInterrupt

    return on_event


def _children(run: Path) -> list[int]:
    """Processes of a run that still live."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if str(run).encode() in (place / "cmdline").read_bytes() and int(place.name) != os.getpid():
                found.append(int(place.name))
        except OSError:
            continue
    return found


def test_an_interrupt_leaves_no_process_and_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        decentral.train(arena(delay=0.01), out=path, on_event=_interrupt_after(2), **TINY)
    assert not _children(path)
    assert not (path / "summary.json").exists()
    run = decentral.train(out=path, resume=True)
    assert run.episodes()["counted"].sum() == 2 * 20
    (path / "summary.json").unlink()
    with pytest.raises(RunError, match=r"agent\.kl"):
        decentral.train(arena(delay=0.01), out=path, resume=True, **{**TINY, "agent": {"kind": "random", "kl": 0.5}})


def test_processes_end_with_their_supervisor(tmp_path: Path) -> None:
    import subprocess
    import sys

    path = tmp_path / "run"
    settings = f"engine='local', out={str(path)!r}, agent={{'kind': 'random'}}, eval_episodes=1000"
    code = (
        f"import decentral; decentral.train(decentral.EnvConfig(name={ARENA!r}, options={{'delay': 0.05}}), {settings})"
    )
    supervisor = subprocess.Popen([sys.executable, "-c", code])
    while len(_children(path)) < 4 or not (path / "host" / "episodes.jsonl").exists():
        time.sleep(0.1)
        assert supervisor.poll() is None
    supervisor.kill()
    supervisor.wait()
    end = time.monotonic() + 10
    while _children(path):
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize("kind", ["ModelError", "MissingExtra", "Exception", "no such"])
def test_an_error_of_another_process_comes_back_as_itself(kind: str) -> None:
    error = _rebuilt(say.Failed(kind, "one sentence"))
    assert str(error) == "one sentence"
    expected = {"ModelError": ModelError, "MissingExtra": MissingExtra}.get(kind, decentral.DecentralError)
    assert type(error) is expected
