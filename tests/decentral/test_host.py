from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from decentral import messages as say
from decentral.agents.mind import Phase
from decentral.config import Config
from decentral.envs.game import Game
from decentral.envs.names import make
from decentral.errors import DeadlineError, DecentralError, EnvError, LinkError
from decentral.folder import RunFolder
from decentral.host import Host
from decentral.journal import read
from decentral.links import Link, pair
from decentral.threads import Direct, Worker
from decentral.waits import Stopped, beside

ARENA = f"{Path(__file__).parent / 'arena.py'}:env"


class Puppet:
    """An agent that does what it is told by the test: by default it plays by the rules and goes left."""

    def __init__(self, name: str, link: Link[say.FromHost]) -> None:
        self.name = name
        self.link = link
        self.heard: list[say.FromHost] = []
        self.answer: Callable[[Puppet, say.Turns], Any] = lambda self, turns: self.play(turns, "left")
        self.close: Callable[[Puppet, say.Close], Any] = lambda self, close: self.link.send(say.Updated(close.phase, 7))
        self.greet: Callable[[Puppet, say.Welcome], Any] = lambda self, welcome: self.hello(welcome.session)

    async def hello(self, session: str = "") -> None:
        await self.link.send(say.Hello(self.name, session))

    async def play(self, turns: say.Turns, action: str) -> None:
        answers = tuple((request.episode, action) for request in turns.requests)
        await self.link.send(say.Actions(turns.phase, turns.batch, answers))

    async def live(self) -> None:
        while True:
            message = await self.link.recv()
            self.heard.append(message)
            match message:
                case say.Welcome():
                    await self.greet(self, message)
                case say.Turns():
                    await self.answer(self, message)
                case say.Close():
                    await self.close(self, message)
                case say.Finish():
                    await self.link.send(say.Finished(7))

    def of(self, kind: type) -> list[Any]:
        return [message for message in self.heard if isinstance(message, kind)]


class Stage:
    """A host on the arena, between two puppets."""

    def __init__(self, path: Path, *, deadline: float | None = None, **fields: Any) -> None:
        options = fields.pop("options", {})
        settings = {"iterations": 2, "groups": 2, "group": 3, "eval_episodes": 4, "copies": 4, **fields}
        self.config = Config.of(env={"name": ARENA, "options": options}, **settings)
        self.folder = RunFolder.create(path / "run", self.config, ("ann", "ben"))
        self.deadline = deadline

    def make(self) -> Game:
        return make(self.config.env)

    def run(self, direct: Callable[[Stage, Puppet, Puppet], None] = lambda *_: None) -> None:
        asyncio.run(self._run(direct))

    async def _run(self, direct: Callable[[Stage, Puppet, Puppet], None]) -> None:
        ends = {name: pair("host", name) for name in self.folder.agents}
        read_agent = say.Decoder[say.FromAgent](say.FromAgent, say.MAX_WORLD)
        read_host = say.Decoder[say.FromHost](say.FromHost, say.MAX_WORLD)
        puppets = [Puppet(name, Link(theirs, read_host, print)) for name, (_, theirs) in ends.items()]
        supervisor, control = pair("supervisor", "host")
        self.supervisor = Link(supervisor, say.Decoder[say.FromProcess](say.FromProcess, say.MAX_CONTROL), print)
        direct(self, *puppets)
        host = Host(
            self.folder,
            self.make,
            {name: Link(ours, read_agent, print) for name, (ours, _) in ends.items()},
            Link(control, say.Decoder[say.FromSupervisor](say.FromSupervisor, say.MAX_CONTROL), print),
            Direct() if self.deadline is None else Worker("host"),
            self.deadline,
        )
        async with asyncio.timeout(30):
            await beside(host.run(), *(puppet.live() for puppet in puppets), *(p.hello() for p in puppets))

    def lines(self, name: str) -> list[dict[str, Any]]:
        return read(self.folder.host / f"{name}.jsonl")[0]

    def counted(self) -> list[dict[str, Any]]:
        closed = {(line["phase"], line["iteration"]): line["attempt"] for line in self.lines("phases")}
        lines = self.lines("episodes")
        return [line for line in lines if closed.get((line["phase"], line["iteration"])) == line["attempt"]]

    def told(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines("events") if line["event"] == event]


def test_a_run_is_played_recorded_and_summed_up(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.run()
    phases = [(line["phase"], line["iteration"], line["episodes"], line["faults"]) for line in stage.lines("phases")]
    assert phases == [("eval", 0, 4, 0), ("train", 0, 6, 0), ("train", 1, 6, 0), ("eval", 2, 4, 0)]
    episodes = stage.lines("episodes")
    assert len({(line["phase"], line["iteration"], line["episode"]) for line in episodes}) == len(episodes) == 20
    assert all(line["agents"]["ann"]["return"] == pytest.approx(3 * 0.123456789) for line in episodes)
    assert all(line["steps"] == [{"ann": "left", "ben": "left"}] * 3 for line in episodes)
    whole = [line for line in episodes if "rounds" in line]
    assert len(whole) == 4
    assert [(turn["agent"], turn["round"]) for turn in whole[0]["rounds"]] == [
        (n, r) for r in range(3) for n in ("ann", "ben")
    ]
    summary = msgspec.json.decode((stage.folder.path / "summary.json").read_bytes())
    ann = summary["agents"]["ann"]
    assert (ann["success_first"], ann["success_last"], ann["updates"]) == (1.0, 1.0, 7)
    assert ann["return_first"] == pytest.approx(3 * 0.123456789)
    state = stage.folder.state
    assert (state.iteration, state.closed, state.attempts) == (2, 4, 0)


def test_what_is_over_is_told_before_more_is_asked(tmp_path: Path) -> None:
    stage, seen = Stage(tmp_path), []
    stage.run(lambda _, ann, ben: seen.append(ann))
    over: set[int] = set()
    for message in seen[0].heard:
        if isinstance(message, say.Begin):
            over.clear()
        elif isinstance(message, say.Over):
            assert all(ended.outcome.agent == "ann" for ended in message.ended)
            over |= {ended.episode for ended in message.ended}
        elif isinstance(message, say.Turns):
            assert not over & {request.episode for request in message.requests}
        elif isinstance(message, say.Close):
            assert len(over) == (4 if message.phase.kind == "eval" else 6)
    assert [message.iteration for message in seen[0].of(say.Commit)] == [1, 2]


def _spoil(wrong: Callable[[tuple[int, str]], tuple[int, str] | None]) -> Callable[[Stage, Puppet, Puppet], None]:
    """Ann breaks her first answer of every batch of training."""

    async def answer(puppet: Puppet, turns: say.Turns) -> None:
        answers = [(request.episode, "left") for request in turns.requests]
        if turns.phase.kind == "train" and answers[0][0] % 6 == 0:
            broken = wrong(answers[0])
            answers[:1] = [broken] if broken else []
        await puppet.link.send(say.Actions(turns.phase, turns.batch, tuple(answers)))

    def direct(stage: Stage, ann: Puppet, ben: Puppet) -> None:
        ann.answer = answer

    return direct


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda pair: (pair[0], "up"), "ann answered 'up' to a turn of 2 legal actions"),
        (lambda pair: (pair[0], "x" * 10**6), "1,000,000 characters"),
        (lambda pair: (pair[0] + 10**9, "left"), "ann answered nothing"),
        (lambda pair: None, "ann answered nothing"),
    ],
)
def test_a_wrong_answer_spoils_its_episode_and_no_other(tmp_path: Path, wrong: Any, said: str) -> None:
    stage = Stage(tmp_path, iterations=1)
    stage.run(_spoil(wrong))
    spoilt = [line for line in stage.lines("episodes") if line["fault"]]
    assert [line["episode"] for line in spoilt] == [0]
    assert said in spoilt[0]["fault"]
    assert len(spoilt[0]["fault"]) < 200
    train = next(line for line in stage.lines("phases") if line["phase"] == "train")
    assert (train["episodes"], train["faults"], train["success"]["ann"]) == (6, 1, 1.0)


def test_an_agent_hears_of_a_fault(tmp_path: Path) -> None:
    stage, seen = Stage(tmp_path, iterations=1), []

    def direct(stage: Stage, ann: Puppet, ben: Puppet) -> None:
        _spoil(lambda pair: None)(stage, ann, ben)
        seen.extend([ann, ben])

    stage.run(direct)
    for puppet in seen:
        ended = {one.episode: one for over in puppet.of(say.Over) for one in over.ended}
        assert ended[0].fault == "agent"
        assert ended[1].fault == ""


def test_noise_is_dropped_and_the_run_goes_on(tmp_path: Path) -> None:
    async def answer(puppet: Puppet, turns: say.Turns) -> None:
        await puppet.link._channel.send(b"\x80noise")
        await puppet.link.send(say.Actions(turns.phase, turns.batch + 1, ()))
        await puppet.link.send(say.Actions(Phase("train", 99), turns.batch, ()))
        await puppet.link.send(say.Updated(turns.phase, 10**6))
        await puppet.link.send(say.Finished(10**6))
        await puppet.link.send(say.Hello("ben"))
        await puppet.play(turns, "left")
        await puppet.play(turns, "right")  # a second answer

    stage = Stage(tmp_path, iterations=1)
    stage.run(lambda _, ann, ben: setattr(ann, "answer", answer))
    assert len(stage.counted()) == 14
    assert not [line for line in stage.lines("episodes") if line["fault"] or line["attempt"]]
    dropped = stage.told("dropped message")
    assert dropped[-1]["count"] > 10
    assert len(dropped) < 10
    summary = msgspec.json.decode((stage.folder.path / "summary.json").read_bytes())
    assert summary["agents"]["ann"]["updates"] == 7


def test_an_agent_that_is_mostly_wrong_stops_the_run(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    with pytest.raises(LinkError, match=r"ben answered 'up' .*in 3 of 4 episodes"):
        stage.run(lambda _, ann, ben: setattr(ben, "answer", lambda self, turns: self.play(turns, "up")))


def test_an_environment_that_always_breaks_stops_the_run_with_its_first_sentence(tmp_path: Path) -> None:
    stage = Stage(tmp_path, options={"crash": 1})
    with pytest.raises(EnvError, match=r"the arena fell down.*\(so it went in 3 of 4 episodes\)"):
        stage.run()


def _lose(message: type, count: int, how: str) -> Callable[[Stage, Puppet, Puppet], None]:
    """Ben is lost when he hears the count-th message of a kind; he comes back as a new process."""

    def direct(stage: Stage, ann: Puppet, ben: Puppet) -> None:
        async def lose(puppet: Puppet, heard: Any) -> None:
            if len(puppet.of(message)) != count:
                await (
                    puppet.play(heard, "left")
                    if message is say.Turns
                    else puppet.link.send(say.Updated(heard.phase, 7))
                )
            elif how == "told":
                await stage.supervisor.send(say.Lost("ben", "was killed"))
            else:
                await puppet.hello()

        setattr(ben, "answer" if message is say.Turns else "close", lose)

    return direct


@pytest.mark.parametrize("how", ["told", "greets"])
@pytest.mark.parametrize(
    ("message", "count"), [(say.Turns, 1), (say.Turns, 7), (say.Close, 1), (say.Close, 2), (say.Close, 4)]
)
def test_a_lost_agent_costs_an_attempt_and_nothing_is_counted_twice(
    tmp_path: Path, message: type, count: int, how: str
) -> None:
    stage = Stage(tmp_path)
    stage.run(_lose(message, count, how))
    (lost,) = stage.told("lost")
    assert lost["name"] == "ben"
    counted = stage.counted()
    assert len(counted) == 20
    assert len({(line["phase"], line["iteration"], line["episode"]) for line in counted}) == 20
    everything = stage.lines("episodes")
    assert len({(e["phase"], e["iteration"], e["attempt"], e["episode"]) for e in everything}) == len(everything)
    assert sum(line["attempt"] for line in stage.lines("phases")) == 1


def test_the_training_clock_stops_while_a_lost_agent_is_started_again(tmp_path: Path) -> None:
    stage, told = Stage(tmp_path, iterations=1, options={"delay": 0.02}), []

    async def greet(puppet: Puppet, welcome: say.Welcome) -> None:
        if puppet.of(say.Close):
            with suppress(TimeoutError):
                async with asyncio.timeout(1.2):
                    while True:
                        told.append(await stage.supervisor.recv())
            assert told[-1].train_seconds == stage.folder.state.train_seconds > 0
        await puppet.hello(welcome.session)

    def direct(stage: Stage, ann: Puppet, ben: Puppet) -> None:
        _lose(say.Close, 2, "told")(stage, ann, ben)
        ben.greet = greet

    stage.run(direct)
    assert told


def test_a_host_that_comes_back_goes_on_with_the_open_phase_as_another_attempt(tmp_path: Path) -> None:
    stage = Stage(tmp_path)

    async def stop(puppet: Puppet, close: say.Close) -> None:
        if close.phase.kind == "train" and close.phase.iteration == 1:
            await stage.supervisor.send(say.Stop())
        else:
            await puppet.link.send(say.Updated(close.phase, 7))

    with pytest.raises(Stopped):
        stage.run(lambda _, ann, ben: setattr(ben, "close", stop))
    state = stage.folder.state
    assert (state.iteration, state.closed, state.attempts) == (1, 2, 1)
    seen: list[Puppet] = []
    stage.run(lambda _, ann, ben: seen.append(ann))
    begins = [(message.phase, message.iteration) for message in seen[0].of(say.Begin)]
    assert begins == [(Phase("train", 1, 1), 1), (Phase("eval", 2), 2)]
    assert len(stage.counted()) == 20
    assert len(stage.lines("episodes")) == 26


@pytest.mark.parametrize(
    ("part", "said"),
    [("greet", "ben to be ready"), ("answer", "ben to act in 4 episodes"), ("close", "ben to end its evaluation")],
)
def test_a_silent_agent_stops_the_run_by_name(tmp_path: Path, part: str, said: str) -> None:
    async def silent(puppet: Puppet, message: Any) -> None:
        pass

    stage = Stage(tmp_path, deadline=0.6)
    with pytest.raises(DeadlineError, match=rf"waited 0\.6 s for {said}: see .*agents/ben/stderr\.txt"):
        stage.run(lambda _, ann, ben: setattr(ben, part, silent))


def test_the_copies_are_closed_whatever_happened(tmp_path: Path) -> None:
    made: list[Any] = []

    class Kept(Stage):
        def make(self) -> Any:
            made.append(make(self.config.env))
            return made[-1]

    Kept(tmp_path / "well").run()
    broken = Kept(tmp_path / "broken", options={"crash": 1})
    with pytest.raises(EnvError):
        broken.run()
    assert len(made) >= 8
    assert all(game.env.closed for game in made)


def test_an_environment_that_hangs_stops_the_run_by_name(tmp_path: Path) -> None:
    stage = Stage(tmp_path, deadline=0.4, options={"delay": 1.0})
    with pytest.raises(DeadlineError, match=r"waited 0\.4 s for .*arena\.py:env to step 4 copies"):
        stage.run()


def test_a_full_disk_stops_the_run_and_it_can_be_resumed(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    (stage.folder.host / "phases.jsonl").symlink_to("/dev/full")
    with pytest.raises(DecentralError, match="No space left on device"):
        stage.run()
    (stage.folder.host / "phases.jsonl").unlink()
    stage.run()
    assert len(stage.counted()) == 20
