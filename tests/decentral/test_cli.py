from __future__ import annotations

import errno
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import decentral.commands
from decentral.run import Run

RunFolder = Callable[..., Path]
GAME = """
import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

class Pick(ParallelEnv):
    metadata = {"name": "pick"}
    possible_agents = ["a", "b"]
    pick = spaces.Discrete(2)
    def observation_space(self, agent): return self.pick
    def action_space(self, agent): return self.pick
    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        return {a: 0 for a in self.agents}, {a: {} for a in self.agents}
    def step(self, actions):
        same = float(len(set(actions.values())) == 1)
        live, self.agents = self.agents, []
        return ({a: 1 for a in live}, {a: same for a in live}, {a: True for a in live}, {a: False for a in live},
                {a: {"is_success": bool(same)} for a in live})
"""


def call(*words: object) -> Result:
    return CliRunner().invoke(decentral.commands.app, [str(word) for word in words])


def refused(result: Result, *parts: str) -> None:
    """Holds for one sentence on stderr, exit code 2, no traceback."""
    assert result.exit_code == 2, (result.exit_code, result.output, result.exception)
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.strip().splitlines()) == 1
    for part in parts:
        assert part in result.stderr


@pytest.fixture
def game(tmp_path: Path) -> str:
    (tmp_path / "pick.py").write_text(GAME)
    return f"{tmp_path / 'pick.py'}:Pick"


def train(game: str, out: Path, *more: object) -> Result:
    quick = ["groups=2", "group=2", "eval_episodes=6", "agent.kind=random"]
    flags = [word for setting in quick for word in ("--set", setting)]
    return call("train", game, "--engine", "inline", "--iterations", "2", "--out", out, *flags, *more)


def test_train_ends_with_the_results_and_the_report(game: str, tmp_path: Path) -> None:
    result = train(game, tmp_path / "run", "--seed", "5")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "evaluation before training: success a " in lines[0]
    table = [line.split() for line in lines[lines.index("") + 1 :]]
    assert table[0] == ["agent", "success", "before", "after", "updates"]
    assert [row[0] for row in table[1:3]] == ["a", "b"]
    assert lines[-1] == f"report: {tmp_path / 'run' / 'report.html'}"
    assert (tmp_path / "run" / "report.html").is_file()
    run = Run.load(tmp_path / "run")
    assert (run.config.seed, run.config.engine, run.config.groups) == (5, "inline", 2)


def test_a_trained_run_is_evaluated_watched_and_reported(game: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert train(game, run).exit_code == 0
    plain = call("eval", run, "--episodes", 20)
    assert plain.exit_code == 0
    assert "random-legal" in plain.stdout
    assert "points [" in plain.stdout
    found = json.loads(call("eval", run, "--episodes", 20, "--json").stdout)
    assert found["episodes"] == 20
    assert set(found["agents"]["a"]) == {"measure", "trained", "random", "difference", "against"}
    assert set(found["agents"]["a"]["trained"]) == {"value", "low", "high"}
    seen = call("watch", run, "--seed", 3)
    assert seen.exit_code == 0
    for words in ("round 0", "reads", "does", "success"):
        assert words in seen.stdout
    (run / "report.html").unlink()
    assert call("report", run).stdout == f"report: {run / 'report.html'}\n"
    assert (run / "report.html").is_file()


def test_figures_without_an_end_are_null_in_json(game: str, tmp_path: Path) -> None:
    file = Path(game.partition(":")[0])
    file.write_text(file.read_text().replace('{"is_success": bool(same)}', "{}"))
    assert train(game, tmp_path / "run").exit_code == 0
    line = call("eval", tmp_path / "run", "--episodes", 1, "--json").stdout
    found = json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert found["agents"]["a"]["measure"] == "return"
    assert found["agents"]["a"]["trained"]["low"] is None


def test_flags_go_over_the_file_and_the_name_over_both(game: str, tmp_path: Path, monkeypatch: Any) -> None:
    plans = []

    def caught(plan: Any, **_: Any) -> None:
        plans.append(plan)
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("decentral.train"), "train", caught)
    file = tmp_path / "run.toml"
    file.write_text('seed = 1\ngroups = 3\niterations = 9\n[env]\nname = "vault"\nlevel = 1\n[agent]\nlr = 0.5\n')
    call("train", "--config", file)
    call("train", "meet", "--config", file, "--seed", 7, "--set", "agent.lr=0.25", "--set", "agents.bob.kind=random")
    assert [(p.env.name, p.env.level, p.seed, p.groups, p.iterations, p.agent.lr) for p in plans] == [
        ("vault", 1, 1, 3, 9, 0.5),
        ("meet", 1, 7, 3, 9, 0.25),
    ]
    assert plans[1].agent_config("bob").kind == "random"


def test_an_interrupt_says_how_to_go_on(game: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import decentral.engines.inline as inline

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(inline, "play", stopped)
    result = train(game, tmp_path / "run")
    assert result.exit_code == 130
    assert result.stderr.strip() == f"stopped; go on with: decentral train --resume {tmp_path / 'run'}"
    monkeypatch.undo()
    resumed = call("train", "--resume", tmp_path / "run")
    assert resumed.exit_code == 0, resumed.output
    assert resumed.stdout.splitlines()[-1].startswith("report: ")


def test_bad_input_is_one_sentence_and_exit_code_2(game: str, tmp_path: Path, run_folder: RunFolder) -> None:
    refused(call("train", "meat"), "environment 'meat'", "did you mean 'meet'")
    refused(call("train"), "guide", "--config")
    refused(call("train", "meet", "--set", "agent.lrr=1"), "'lrr'", "did you mean 'lr'")
    refused(call("train", "meet", "--engine", "locl"), "engine", "'locl'")
    refused(call("train", "--config", tmp_path / "none.toml"), "none.toml")
    refused(call("train", "meet", "--out", run_folder()), "exists", "--resume")
    refused(call("train", "--resume", tmp_path / "nowhere"), "no run folder")
    refused(call("train", "--resume", tmp_path, "--out", tmp_path), "--out")
    refused(call("eval", tmp_path), "no run folder")
    refused(call("watch", tmp_path), "no run folder")
    refused(call("report", tmp_path), "no run folder")
    refused(call("envs", "check", "meat"), "did you mean 'meet'")
    refused(call("envs", "check", "meet", "--model", str(tmp_path)), "no causal language model")


def test_resume_with_a_changed_config_is_refused(game: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import decentral.engines.inline as inline

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(inline, "play", stopped)
    train(game, tmp_path / "run")
    refused(call("train", "--resume", tmp_path / "run", "--seed", 99), "seed = 0, not 99")


def test_an_environment_that_breaks_in_step_is_a_sentence(game: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text(GAME.replace("same = float(", "raise RuntimeError('no more')\n        same = float("))
    result = call("envs", "check", f"{broken}:Pick")
    refused(result, "fails 2 of 4 checks", "plays")
    assert "failed" in result.stdout
    assert "no more" in " ".join(result.stdout.split())


def test_check_takes_settings_and_prints_itself_as_it_fails_again(game: str) -> None:
    path = Path(game.partition(":")[0])
    path.write_text(
        GAME.replace(
            "    def step(self", "    def __init__(self, sound=True): self.sound = sound\n    def step(self"
        ).replace("same = float(", "assert self.sound\n        same = float(")
    )
    assert call("envs", "check", game, "--seed", 3).exit_code == 0
    changed = ("--set", "env.options.sound=false", "--set", "env.max_rounds=7")
    result = call("envs", "check", game, *changed, "--seed", 3)
    refused(result, f"again with: decentral envs check {game} {' '.join(changed)} --seed 3\n")
    assert "in step, step 1, seed 3" in result.stdout
    refused(call("envs", "check", game, "--set", "env.options.sond=1"), "'sond'", "did you mean 'sound'")


def test_check_shows_rows_and_a_turn(game: str) -> None:
    result = call("envs", "check", game)
    assert result.exit_code == 0, result.output
    for words in ("ok", "tokens per turn", "in a window of", "the first turn, as a reads it", "may do"):
        assert words in result.stdout


def test_actions_that_a_model_cannot_tell_apart_fail_the_check(game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from decentral.agents.format import Format

    monkeypatch.setattr(Format, "choice", lambda self, action: (1, self.end))
    result = call("envs", "check", game)
    refused(result, "fails 1 of ", "(encodings)")
    assert "actions '0' and '1' have one encoding" in " ".join(result.stdout.split())


def test_words_that_cannot_be_parsed_are_one_sentence_with_the_command_that_helps(tmp_path: Path) -> None:
    refused(call("evl", tmp_path), "no such command 'evl'; did you mean 'eval'?", " --help")
    refused(call("train", "meet", "--iteration", 3), "no such option: --iteration ", "--iterations", " train --help")
    refused(call("train", "meet", "--iterations", "many"), "'many'", "'--iterations'", "integer", " train --help")
    refused(call("envs", "check", "meet", "--seed", 0.5), "'0.5'", "'--seed'", "integer", " envs check --help")
    refused(call("watch", tmp_path, "--delay", "-1"), "-1", "'--delay'", " watch --help")
    refused(call("train", "meet", "--seed"), "'--seed' requires an argument", " --help")
    refused(call("train", "meet", "more"), "extra argument", "more", " train --help")
    refused(call("--verison"), "no such option: --verison ", "--version", " --help")


def test_a_command_without_words_shows_its_help() -> None:
    for words in ((), ("envs",)):
        shown = call(*words)
        assert shown.exit_code == 2
        assert "Usage:" in shown.output
        assert "error:" not in shown.output


def test_a_full_disk_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "x"))

    monkeypatch.setattr("decentral.run.Run.load", full)
    refused(call("report", tmp_path), "disk is full", "make room")
    monkeypatch.setattr("decentral.run.Run.load", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "broken")))
    assert isinstance(call("report", tmp_path).exception, OSError)


def test_an_interrupt_elsewhere_is_130(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("decentral.run.Run.load", stopped)
    assert call("report", tmp_path).exit_code == 130


def test_built_in_environments_are_listed() -> None:
    result = call("envs", "list")
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["guide", "meet", "vault", "others:", "or"]


def test_benchmarks_and_the_recipe_are_called_with_the_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[Any] = []

    def main(quick: bool, report: Callable[[str], object], peer_python: str | None) -> dict[str, float]:
        seen.append((quick, peer_python))
        report("a line")
        return {"aec_ratio": 0.9}

    def recipe(out: Path, seed: int, report: Callable[[str], object]) -> Path:
        seen.append((out, seed))
        return out

    monkeypatch.setattr("decentral.bench.core.main", main)
    monkeypatch.setattr("decentral.pocket.train", recipe)
    lines = call("bench", "core", "--quick", "--json", "--peer-python", "python3").stdout.splitlines()
    assert (lines[0], json.loads(lines[-1])) == ("a line", {"aec_ratio": 0.9})
    assert call("pocket", "train", "--out", tmp_path / "new", "--seed", 4).stdout == f"model: {tmp_path / 'new'}\n"
    assert seen == [(True, "python3"), (tmp_path / "new", 4)]


def test_version() -> None:
    assert call("--version").stdout == f"decentral {decentral.__version__}\n"


def test_tensorboard_files_are_written(game: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert train(game, tmp_path / "run", "--tensorboard").exit_code == 0
    found = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    found.Reload()
    assert {"success/a", "return/b", "eval success/a"} <= set(found.Tags()["scalars"])
    assert [point.step for point in found.Scalars("return/a")] == [0, 1]
    assert [point.step for point in found.Scalars("eval success/a")] == [0, 2]


def test_tensorboard_without_its_package_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, game: str, tmp_path: Path
) -> None:
    from decentral.errors import MissingExtra
    from decentral.tensorboard import EventFiles

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtra, match=r"pip install 'decentral\[tensorboard\]'"):
        EventFiles(tmp_path)
