"""What a stranger gets: a wheel that installs and trains, few packages, and one sentence for every bad input."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.testing import CliRunner

import decentral
from decentral.commands import app
from decentral.config import Config
from decentral.folder import RunFolder

ROOT = Path(__file__).parent.parent
BAD = Path(__file__).parent / "bad_envs.py"
ENV = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
TINY = ["--iterations", "1", "--set", "groups=1", "--set", "group=2", "--set", "eval_episodes=2"]


def python(*words: object, cwd: Path, path: Path | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs this interpreter elsewhere; ``path`` goes before everything that is installed."""
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env=ENV | ({"PYTHONPATH": str(path)} if path else {}),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert not check or done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done


# -- the wheel --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the sdist, not from the checkout."""
    folder = tmp_path_factory.mktemp("dist")
    python("-m", "build", "--sdist", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as file:
        file.extractall(folder, filter="data")
    source = folder / sdist.name.removesuffix(".tar.gz")
    python("-m", "build", "--wheel", "--no-isolation", "--outdir", folder, source, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_types_and_a_small_model_and_one_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        sizes = {info.filename: info.file_size for info in file.infolist()}
    assert "decentral/py.typed" in sizes
    assert "decentral/scaffold/my_game/my_game.ipynb" in sizes
    pocket = {name: size for name, size in sizes.items() if name.startswith("decentral/agents/pocket/")}
    assert {"model.safetensors", "tokenizer.json", "README.md"} <= {Path(name).name for name in pocket}
    assert 1_000_000 < sum(pocket.values()) < 8_000_000
    assert {name.partition("/")[0] for name in sizes} == {"decentral", f"decentral-{decentral.__version__}.dist-info"}
    assert not [name for name in sizes if "__pycache__" in name]


def test_the_wheel_installs_and_trains_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    site, work = tmp_path / "site", tmp_path / "work"
    work.mkdir()
    python("-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", site, wheel, cwd=work)
    assert not [name for name in ("agents", "envs", "graphs", "tests") if (site / name).exists()]
    found = python("-P", "-c", "import decentral; print(decentral.__file__)", cwd=work, path=site).stdout
    assert Path(found.strip()) == site / "decentral" / "__init__.py"
    said = python("-P", "-m", "decentral", "train", "guide", *TINY, "--out", "run", cwd=work, path=site).stdout
    assert said.splitlines()[-1].startswith("report: ")
    summary = decentral.Run.load(work / "run").summary
    assert {agent["updates"] for agent in summary["agents"].values()} == {1}


# -- what it needs ----------------------------------------------------------------------------------------------------


def closure(names: Iterable[str]) -> set[str]:
    """The packages that ``names`` need on this machine, extras of theirs included, as they are installed."""
    todo = [Requirement(name) for name in names]
    seen: set[tuple[str, str]] = set()
    while todo:
        wanted = todo.pop()
        for extra in ("", *wanted.extras):
            key = (canonicalize_name(wanted.name), extra)
            if key in seen:
                continue
            seen.add(key)
            for text in metadata.requires(wanted.name) or ():
                need = Requirement(text)
                if need.marker is None or need.marker.evaluate({"extra": extra}):
                    todo.append(need)
    return {name for name, _ in seen}


def test_a_base_install_has_fewer_than_fifty_packages_beyond_torch() -> None:
    torch = closure(["torch"])
    beyond = closure(["decentral"]) - torch - {"decentral"}
    assert {"numpy", "sympy"} & torch == {"sympy"}
    assert {"transformers", "tokenizers", "pettingzoo", "pandas"} <= beyond
    assert "pytest" not in beyond
    assert len(beyond) < 50, sorted(beyond)


# -- bad input --------------------------------------------------------------------------------------------------------


def refused(folder: Path, *words: object, path: Path | None = None) -> str:
    """Runs a command that must end with 2 and one sentence, and leave no process; returns the sentence."""
    done = python("-m", "decentral", *words, cwd=folder, path=path, check=False)
    assert done.returncode == 2, f"{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert not processes(folder)
    for file in folder.glob("run/**/stderr.txt"):
        assert "Traceback" not in file.read_text()
    return line


def processes(folder: Path) -> list[str]:
    """The commands of live processes that know the folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            command = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(folder) in command and int(place.name) != os.getpid():
            found.append(command)
    return found


def train(folder: Path, env: str, *more: object, kind: str = "random", path: Path | None = None) -> str:
    flags = ("--set", f"agent.kind={kind}", "--out", folder / "run")
    return refused(folder, "train", env, *TINY, *flags, *more, path=path)


@pytest.fixture(scope="module")
def lowercase(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder whose tokenizer knows no capitals."""
    import torch
    from tokenizers import normalizers
    from transformers import LlamaConfig, LlamaForCausalLM

    from decentral.agents.vocabulary import build_tokenizer

    tokenizer = build_tokenizer(["go time 1 2 3"])
    inner = tokenizer.backend_tokenizer
    inner.normalizer = normalizers.Sequence([normalizers.Lowercase(), inner.normalizer])
    folder = tmp_path_factory.mktemp("lowercase")
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    with torch.random.fork_rng():
        LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **sizes)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_an_unknown_environment(tmp_path: Path) -> None:
    assert "did you mean 'meet'" in train(tmp_path, "meat")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("env", "reason"),
    [
        ("raises_in_step", "step raised RuntimeError: the floor gave way"),
        ("not_a_number", "the observation of 'ann' holds NaN"),
        ("no_legal_action", "'ann' must act and has no legal action"),
    ],
)
def test_an_environment_that_cannot_be_played(env: str, reason: str, tmp_path: Path) -> None:
    """Found by the host, whose agents are processes that must end too."""
    assert reason in train(tmp_path, f"{BAD}:{env}")


def test_two_actions_with_one_encoding(lowercase: Path, tmp_path: Path) -> None:
    """Found by an agent, for its own tokenizer."""
    more = ("--engine", "inline", "--set", f"agent.model={lowercase}")
    said = train(tmp_path, f"{BAD}:go_or_go", *more, kind="learning")
    assert "actions 'Go' and 'go' have one encoding" in said


def test_the_check_refuses_what_training_would(lowercase: Path, tmp_path: Path) -> None:
    """Mostly in this process: the check loads a tokenizer."""
    assert "(encodings)" in refused(tmp_path, "envs", "check", f"{BAD}:go_or_go", "--model", lowercase)
    assert CliRunner().invoke(app, ["envs", "check", f"{BAD}:go_or_go"]).exit_code == 0
    for env in ("raises_in_step", "not_a_number", "no_legal_action"):
        result = CliRunner().invoke(app, ["envs", "check", f"{BAD}:{env}"])
        assert result.exit_code == 2
        assert re.fullmatch(r"error: .* fails \d of \d checks \(.*plays.*\): .*\n", result.stderr)


def test_an_unknown_key(tmp_path: Path) -> None:
    assert "did you mean 'lr'" in train(tmp_path, "meet", "--set", "agent.lrr=1")
    (tmp_path / "run.toml").write_text('itertions = 3\n[env]\nname = "meet"\n')
    assert "did you mean 'iterations'" in refused(tmp_path, "train", "--config", "run.toml")


def test_a_model_path_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    more = ("--set", f"agent.model={tmp_path / 'notes'}")
    assert "no causal language model" in train(tmp_path, "meet", *more, kind="learning")


def test_a_missing_extra(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hidden:\n"
        "    def __init__(self, finder): self._finder = finder\n"
        "    def __getattr__(self, name): return getattr(self._finder, name)\n"
        "    def find_spec(self, name, *rest):\n"
        "        return None if name.startswith('tensorboard') else self._finder.find_spec(name, *rest)\n"
        "sys.meta_path = [Hidden(finder) for finder in sys.meta_path]\n"
    )
    said = train(tmp_path, "meet", "--tensorboard", path=tmp_path)
    assert "pip install 'decentral[tensorboard]'" in said
    assert not (tmp_path / "run").exists()


def test_a_run_folder_that_exists_and_a_resume_with_a_changed_config(tmp_path: Path) -> None:
    plan = Config.of(env="meet", agent={"kind": "random"})
    RunFolder.create(tmp_path / "run", plan, ("ada", "bob")).release()
    assert "exists already: choose another folder with --out" in train(tmp_path, "meet")
    assert "seed = 0, not 99" in refused(tmp_path, "train", "--resume", tmp_path / "run", "--seed", "99")
    assert RunFolder.open(tmp_path / "run").config == plan


def test_an_environment_of_a_notebook_under_local(tmp_path: Path) -> None:
    code = (
        "import decentral\n"
        "from decentral.envs.games.meet import env as game\n"
        "try:\n"
        "    decentral.train(lambda: game(), engine='local', out='run')\n"
        "except decentral.ConfigError as error:\n"
        "    print(error)\n"
    )
    said = python("-c", code, cwd=tmp_path).stdout
    assert "put it into a file and name it 'game.py:callable'" in said
    assert "engine = 'inline'" in said
    assert not (tmp_path / "run").exists()
