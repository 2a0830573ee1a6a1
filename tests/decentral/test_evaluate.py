from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from decentral import plan
from decentral.agents import make_mind
from decentral.agents.mind import Phase
from decentral.checkpoint import Checkpoints
from decentral.config import Config
from decentral.envs.names import make
from decentral.envs.turn import Turn
from decentral.errors import ConfigError, EnvError, ModelError, RunError
from decentral.evaluate import evaluate, play, watch
from decentral.folder import RunFolder
from decentral.run import Run

MakeRun = Callable[..., Run]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Makes a run folder whose agents have a committed checkpoint and have not been trained."""

    def made(**fields: Any) -> Run:
        config = Config.of(**{"env": "meet", "seed": 3, **fields})
        game = make(config.env)
        agents = game.agents
        game.reset(config.seed)
        folder = RunFolder.create(tmp_path / "run", config, agents, {name: game.system(name) for name in agents})
        for name in agents:
            mind = make_mind(name, config.agent_config(name), config.seed, script=lambda turn: turn.legal[0])
            Checkpoints(folder.agent(name) / "checkpoints").save(0, mind.save)
        folder.release()
        return Run.load(folder.path)

    return made


def test_random_agents_fare_like_random_play(make_run: MakeRun) -> None:
    found = make_run(agent={"kind": "random"}).evaluate(episodes=60)
    assert found.episodes == 60
    assert found.faults == ()
    assert [score.name for score in found.scores] == ["ada", "bob"]
    for score in found.scores:
        assert score.measure == "success"
        assert score.trained == score.random
        assert score.difference.low < 0 == score.difference.value < score.difference.high


def test_both_sides_play_the_runs_own_evaluation_seeds(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    import decentral.evaluate

    run = make_run(agent={"kind": "random"})
    seen: list[list[int]] = []

    def spy(games: Any, minds: Any, episodes: Any) -> Any:
        seen.append([one.seed for one in episodes])
        return play(games, minds, episodes)

    monkeypatch.setattr(decentral.evaluate, "play", spy)
    evaluate(run, 20)
    evaluate(run, 20, seed=99)
    own = [one.seed for one in plan.episodes(run.config, Phase("eval", 5))][:20]
    assert seen[0] == seen[1] == own
    assert seen[2] == seen[3] != own
    trained_on = {one.seed for i in range(60) for one in plan.episodes(run.config, Phase("train", i))}
    assert not trained_on & {seed for seeds in seen for seed in seeds}


def test_a_better_agent_is_told_from_chance(make_run: MakeRun, tmp_path: Path) -> None:
    """In meet, agents that walk to one corner meet there more often than those that wander."""
    (tmp_path / "walk.py").write_text(
        "def corner(turn):\n    return next((text for text in ('north', 'west') if text in turn.legal), 'stay')\n"
    )
    run = make_run(agent={"kind": "scripted", "script": f"{tmp_path / 'walk.py'}:corner"}, env={"name": "meet"})
    for score in run.evaluate(episodes=100).scores:
        assert score.trained.value > score.random.value
        assert score.difference.low > 0


FIRST = "def first(turn):\n    return turn.legal[0]\n"


def test_each_team_plays_against_chance_where_its_opponents_learn(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose turn it is to be measured plays itself, all others at random, both times on the same seeds."""
    import decentral.evaluate

    (tmp_path / "first.py").write_text(FIRST)
    teams = {"a": ["player_1"], "b": ["player_2"]}
    learns = {"player_1": {"kind": "scripted", "script": f"{tmp_path / 'first.py'}:first"}}
    run = make_run(env="classic/tictactoe_v3", teams=teams, agents=learns)
    seen: list[dict[str, str]] = []

    def spy(games: Any, minds: Any, episodes: Any) -> Any:
        seen.append({name: type(mind).__name__ for name, mind in minds.items()})
        return play(games, minds, episodes)

    monkeypatch.setattr(decentral.evaluate, "play", spy)
    found = evaluate(run, 40)
    script, model, chance = "ScriptedMind", "LanguageAgent", "RandomMind"
    assert seen == [
        {"player_1": script, "player_2": chance},
        {"player_1": chance, "player_2": chance},
        {"player_1": script, "player_2": model},
        {"player_1": script, "player_2": chance},
    ]
    assert [score.name for score in found.scores] == ["player_1", "player_2"]
    assert found.teams == ()
    assert [score.against for score in found.scores] == ["player_2: random", "player_1: scripted"]
    assert found.scores[0].trained.value > found.scores[0].random.value, "who takes cells in order beats chance"


def test_a_team_of_several_is_scored_by_its_mean(make_run: MakeRun, tmp_path: Path) -> None:
    pytest.importorskip("mpe2")
    teams = {"hunters": ["adversary_0", "adversary_1", "adversary_2"], "prey": ["agent_0"]}
    run = make_run(env="mpe2/simple_tag_v3", teams=teams, agent={"kind": "random"})
    assert evaluate(run, 4).scores == (), "random play is compared with nothing"
    (tmp_path / "first.py").write_text(FIRST)
    script = f"agents.adversary_0.script={tmp_path / 'first.py'}:first"
    found = evaluate(Run(run.path, run.config.with_set(["agents.adversary_0.kind=scripted", script])), 4)
    assert [score.name for score in found.scores] == ["adversary_0", "adversary_1", "adversary_2"]
    assert [score.name for score in found.teams] == ["hunters"]
    mean = sum(score.random.value for score in found.scores) / 3
    assert found.teams[0].random.value == pytest.approx(mean)


def test_opponents_may_come_from_another_run(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import decentral.evaluate

    (tmp_path / "first.py").write_text(FIRST)
    script = f"{tmp_path / 'first.py'}:first"
    teams = {"a": ["player_1"], "b": ["player_2"]}
    run = make_run(env="classic/tictactoe_v3", teams=teams, agent={"kind": "scripted", "script": script})
    other = Run(run.path, run.config.with_set(["agent.kind=frozen"]))
    seen: list[str] = []
    load = decentral.evaluate.load_mind
    monkeypatch.setattr(
        decentral.evaluate, "load_mind", lambda run, name, *rest: seen.append(run.config.agent.kind) or load(run, name)
    )
    evaluate(run, 2, against=other)
    assert seen == ["frozen", "scripted"] * 2
    found = evaluate(run, 2, against=other)
    assert [score.against for score in found.scores] == [f"player_2: of {run.path}", f"player_1: of {run.path}"]
    stranger = Run(run.path, run.config.with_set(["env.name=classic/connect_four_v3"]))
    with pytest.raises(RunError, match="plays classic/connect_four_v3 with player_1, player_2, not classic/tictactoe"):
        evaluate(run, 2, against=stranger)
    together = Run(run.path, msgspec.structs.replace(run.config, teams={}))
    with pytest.raises(RunError, match="has no opponents, since its agents play for one team"):
        evaluate(together, 2, against=other)


def test_a_broken_environment_is_named(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(agent={"kind": "random"})
    code = (
        "from decentral.envs.games.meet import env as meet\n"
        "def env():\n"
        "    made = meet()\n"
        "    raw = made.unwrapped\n"
        "    def step(actions):\n"
        "        raise ValueError('it broke')\n"
        "    raw.step = step\n"
        "    return raw\n"
    )
    (tmp_path / "broken.py").write_text(code)
    broken = Run(run.path, run.config.with_set([f"env.name={tmp_path / 'broken.py'}:env"]))
    with pytest.raises(EnvError, match=r"all 5 episodes ended in a fault, the first one: .*it broke"):
        broken.evaluate(episodes=5)


def test_watching_tells_each_turn_and_the_end(make_run: MakeRun) -> None:
    steps = list(watch(make_run(agent={"kind": "random"}), seed=4))
    assert all({move.turn.agent for move in step.moves} == {"ada", "bob"} for step in steps[:-1])
    assert all(move.action in move.turn.legal for step in steps for move in step.moves)
    assert [step.outcomes == {} for step in steps] == [True] * (len(steps) - 1) + [False]
    assert set(steps[-1].outcomes) == {"ada", "bob"}
    assert "A" in steps[0].picture
    assert steps[0].moves[0].probability is None


def test_a_person_can_play(make_run: MakeRun) -> None:
    asked: list[Turn] = []

    def ask(turn: Turn) -> str:
        asked.append(turn)
        return turn.legal[0]

    run = make_run(agent={"kind": "random"})
    person = Run(run.path, run.config.with_set(["agents.bob.kind=human"]))
    steps = list(watch(person, 1, ask))
    assert len(asked) == len(steps) - 1
    assert {turn.agent for turn in asked} == {"bob"}


def test_trained_agents_play_alone_and_outside_a_run(make_run: MakeRun, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    run = make_run()
    agent = run.agent("ada")
    legal = ("north", "east", "stay")
    first = [agent.act("you 1 5 bob 1 north", legal), agent.act("you 1 4 bob 1 east", legal)]
    assert set(first) <= set(legal)
    stream = agent.mind.describe(0)  # type: ignore[attr-defined]
    assert [one.kind for one in stream.segments] == ["system", "observation", "action", "observation", "action"]
    assert stream.segments[0].text == "you are ada meet bob"

    again = run.agent("ada")
    assert [again.act("you 1 5 bob 1 north", legal), again.act("you 1 4 bob 1 east", legal)] == first

    folder = agent.save_pretrained(tmp_path / "ada")
    assert AutoModelForCausalLM.from_pretrained(folder).num_parameters() > 100_000
    with pytest.raises(RunError, match="not an empty folder"):
        agent.save_pretrained(folder)
    with pytest.raises(ConfigError, match="either legal actions or"):
        agent.act("you 1 5")


def test_watching_a_model_tells_how_likely_its_actions_were(make_run: MakeRun) -> None:
    step = next(iter(watch(make_run(), seed=4)))
    assert all(0 < (move.probability or 0) <= 1 for move in step.moves)


def test_an_agent_without_weights_saves_nothing(make_run: MakeRun, tmp_path: Path) -> None:
    agent = make_run(agent={"kind": "random"}).agent("bob")
    assert agent.act("anything", ["left"]) == "left"
    with pytest.raises(ModelError, match="no weights"):
        agent.save_pretrained(tmp_path / "bob")


def test_a_run_without_a_checkpoint_is_refused(make_run: MakeRun) -> None:
    run = make_run(agent={"kind": "random"})
    (run.path / "agents" / "bob" / "checkpoints" / "00000").rmdir()
    with pytest.raises(RunError, match="checkpoint 0 is missing"):
        run.evaluate(episodes=2)
    state = json.loads((run.path / "state.json").read_text())
    assert state["agents"] == ["ada", "bob"]
