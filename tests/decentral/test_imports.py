from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
import time

import pytest

import decentral


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def heavy(code: str) -> set[str]:
    """Which of the heavy packages the code loads."""
    names = "{'torch', 'transformers', 'peft', 'pandas', 'matplotlib', 'pettingzoo', 'gymnasium', 'numpy'}"
    out = python(f"{code}\nimport sys\nprint(*sorted({names} & set(sys.modules)))")
    return set(out.split())


def test_import_is_quick_and_light() -> None:
    assert heavy("import decentral; decentral.__version__; dir(decentral)") == set()
    once = "import time; t = time.perf_counter(); import decentral; print(time.perf_counter() - t)"
    assert min(float(python(once)) for _ in range(3)) < 0.3


def test_public_names_pull_in_no_torch() -> None:
    names = "from decentral import AgentConfig, Config, DecentralError, EnvConfig, Run, Schedule, check_env, train"
    assert not heavy(names) & {"torch", "transformers", "peft", "matplotlib", "pandas"}


def test_every_public_name_exists() -> None:
    assert decentral.__all__ == sorted(decentral.__all__)
    for name in decentral.__all__:
        assert getattr(decentral, name) is not None
    assert set(decentral.__all__) <= set(dir(decentral))
    with pytest.raises(AttributeError, match="no attribute 'tarin'"):
        decentral.tarin  # noqa: B018


@pytest.mark.parametrize("name", ["intervals", "plots", "progress", "report"])
def test_examples_in_docstrings_hold(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"decentral.{name}"))
    assert found.attempted
    assert not found.failed


def test_train_stays_the_function_whoever_imports_its_module() -> None:
    code = "import decentral.train, decentral; from decentral.train import train; print(decentral.train is train)"
    assert python(code) == "True"


def test_the_rooms_are_one_copy() -> None:
    """``import agents`` from the repository's root would make a second copy of every class."""
    import decentral.agents.config as room

    assert room.__name__ == "decentral.agents.config"
    assert not {"agents", "envs", "graphs"} & set(sys.modules)


def test_help_is_quick_and_light() -> None:
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "decentral", "--help"], capture_output=True, text=True, check=True)
    assert time.perf_counter() - start < 3.0
    assert "train" in done.stdout
    assert heavy("import decentral.commands") == set()


def test_threads_are_capped_before_anything_heavy_loads() -> None:
    code = (
        "import sys, os\n"
        "class Watch:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name in ('torch', 'numpy'):\n"
        "            print(name, os.environ['OMP_NUM_THREADS'], os.environ['OMP_WAIT_POLICY'])\n"
        "sys.meta_path.insert(0, Watch())\n"
        "os.environ.pop('OMP_NUM_THREADS', None)\n"
        "sys.argv = ['decentral', 'envs', 'check', 'meet']\n"
        "from decentral.__main__ import main\n"
        "main()\n"
    )
    found = [line.split() for line in python(code).splitlines() if line.startswith(("numpy ", "torch "))]
    assert {name for name, _, _ in found} == {"numpy", "torch"}
    assert all(int(threads) >= 1 and policy == "PASSIVE" for _, threads, policy in found)


def test_given_thread_caps_are_kept() -> None:
    code = (
        "import os, sys\n"
        "os.environ['OMP_NUM_THREADS'] = '7'\n"
        "sys.argv = ['decentral', '--version']\n"
        "from decentral.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: print(os.environ['MKL_NUM_THREADS'])\n"
    )
    assert python(code).splitlines() == [f"decentral {decentral.__version__}", "7"]
