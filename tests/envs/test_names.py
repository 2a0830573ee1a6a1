"""Names find what they name, and say what was meant when they do not."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pettingzoo import AECEnv, ParallelEnv

import decentral.envs
from decentral.envs.config import EnvConfig
from decentral.envs.games import meet
from decentral.envs.names import games, load, make, resolve
from decentral.errors import ConfigError, EnvError, MissingExtra

RPS = "pettingzoo.classic.rps_v2:parallel_env"


def rps(rounds=15):
    from pettingzoo.classic import rps_v2

    return rps_v2.parallel_env(max_cycles=rounds)


@pytest.mark.parametrize("name", games())
def test_built_in_games_are_found_and_keep_their_contract(name):
    maker = resolve(name)
    module = sys.modules[maker.__module__]
    assert module.__doc__.splitlines()[0]
    for level in range(module.LEVELS):
        game = make(EnvConfig(name=name, level=level))
        raw = game.env.unwrapped
        assert isinstance(raw, AECEnv if name == "vault" else ParallelEnv)
        game.reset(0)
        assert all(turn.system == raw.instructions(turn.agent) for turn in game.turns())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("meat", r"'meat' is not built in .there are guide, meet, vault.; did you mean 'meet'\?"),
        ("mpe2.simple_spread_v3", "write mpe2.simple_spread_v3:env or mpe2.simple_spread_v3:parallel_env"),
        ("game.py", "write game.py:env"),
        ("classic/game.py", "write classic/game.py:env"),
        ("openspeil/chess", "is of no suite that is known; did you mean 'openspiel'"),
        (
            "pettingzoo.classic.tictactoe_v9:env",
            "no module .*tictactoe_v9'; did you mean 'tictactoe_v3'",
        ),
        ("pettingzoo.classic.tictactoe_v3:enw", "has no 'enw'; did you mean 'env'"),
        ("pettingzo.classic.rps_v2:env", "no module 'pettingzo'; did you mean 'pettingzoo'"),
        ("qqqzzz.thing:env", "no module 'qqqzzz'; install the package, or name a file as qqqzzz.py:callable"),
        ("math.nothing:env", "no module 'math.nothing'; install"),
        ("math:pi", "is a float, not a function or class"),
        (":env", "is not of the form"),
        ("math:", "is not of the form"),
        ("nowhere/game.py:env", "there is no file '.*nowhere/game.py'"),
    ],
)
def test_wrong_names_say_what_may_have_been_meant(name, message):
    with pytest.raises(ConfigError, match=message):
        resolve(name)


def test_a_suite_takes_an_id_and_options_and_its_sentences_come_through():
    game = make(EnvConfig(name="mpe2/simple_spread_v3", options={"N": 2}))
    assert game.agents == ("agent_0", "agent_1")
    with pytest.raises(ConfigError, match="mpe2 has no 'simple_spred_v3' that is known here; did you mean 'simple_spr"):
        make(EnvConfig(name="mpe2/simple_spred_v3"))


def test_an_absent_suite_is_an_extra(monkeypatch):
    def absent(name):
        raise ModuleNotFoundError("No module named 'mpe2'", name="mpe2")

    monkeypatch.setattr("importlib.import_module", absent)
    with pytest.raises(MissingExtra, match=r"pip install 'decentral\[suites\]'"):
        resolve("mpe2.simple_spread_v3:parallel_env")


FILE = """
from dataclasses import dataclass
from neighbour import ROUNDS
from pettingzoo.classic import rps_v2

@dataclass
class Card:
    n: int

def env():
    return rps_v2.parallel_env(max_cycles=ROUNDS)
"""


def test_files_load_with_their_neighbours_under_a_private_name(tmp_path):
    (tmp_path / "game.py").write_text(FILE)
    (tmp_path / "neighbour.py").write_text("ROUNDS = 3")
    path = list(sys.path)
    maker = resolve(f"{tmp_path}/game.py:env")
    assert sys.path == path
    assert maker.__module__.startswith("_decentral_file_")
    assert resolve(f"{tmp_path}/game.py:env") is maker
    assert make(EnvConfig(name=f"{tmp_path}/game.py:env")).agents == ("player_0", "player_1")
    (tmp_path / "game.py").write_text(FILE + "\n# edited")
    assert resolve(f"{tmp_path}/game.py:env") is not maker
    with pytest.raises(ConfigError, match=r"no file .*gane.py'; did you mean 'game.py'"):
        resolve(f"{tmp_path}/gane.py:env")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import qqqzzz", "cannot be imported: No module named 'qqqzzz'; install what is missing"),
        ("1 / 0", "cannot be loaded: ZeroDivisionError: division by zero; correct it"),
        ("def env(:", "cannot be loaded: SyntaxError"),
    ],
)
def test_files_that_cannot_run_are_one_sentence(tmp_path, code, message):
    (tmp_path / "bad.py").write_text(code)
    before = set(sys.modules)
    with pytest.raises(ConfigError, match=message) as caught:
        resolve(f"{tmp_path}/bad.py:env")
    assert "\n" not in str(caught.value)
    assert not {name for name in set(sys.modules) - before if name.startswith("_decentral")}


def test_level_and_options_reach_the_callable():
    assert make(EnvConfig(name="meet", level=2, options={"agents": 3})).agents == ("ada", "bob", "cat")
    assert make(EnvConfig(name=RPS, options={"max_cycles": 2})).agents == ("player_0", "player_1")
    assert isinstance(make(EnvConfig(name="x"), factory=lambda: meet.env(1)).env, meet.Meet)
    assert make(EnvConfig(name="x", options={"rules": meet.RULES[0], "agents": 2}), factory=meet.Meet).agents


@pytest.mark.parametrize(
    ("config", "factory", "error", "message"),
    [
        ({"name": RPS, "level": 1}, None, ConfigError, "level 1 cannot be used: .* takes no argument 'level'"),
        ({"name": "meet", "level": 99}, None, ConfigError, "level 99 of meet does not exist: it has 0 to"),
        ({"name": "meet", "level": 1, "options": {"level": 2}}, None, ConfigError, "a second time in options"),
        (
            {"name": "meet", "options": {"agent": 2}},
            None,
            ConfigError,
            "option 'agent' is unknown to meet; did you",
        ),
        ({"name": RPS, "options": {"turns": 2}}, None, EnvError, "could not be made with .*unexpected keyword"),
        ({"name": "x"}, lambda: 1 / 0, EnvError, "could not be made with {}: ZeroDivisionError"),
        ({"name": "x"}, lambda: None, EnvError, "the callable returned nothing"),
        ({"name": "x"}, dict, EnvError, "x is a dict, not a PettingZoo AECEnv or ParallelEnv"),
        ({"name": RPS, "view": "math:pi"}, None, ConfigError, "view 'math:pi' is a float"),
        ({"name": RPS, "view": "builtins:abs"}, None, ConfigError, "view 'builtins:abs' raised TypeError"),
        ({"name": RPS, "view": "builtins:id"}, None, ConfigError, "returned a int without observe and actions"),
        ({"name": RPS, "success": "math:nothing"}, None, ConfigError, "success 'math:nothing': math has no 'nothing'"),
    ],
)
def test_what_cannot_be_made_is_one_sentence(config, factory, error, message):
    with pytest.raises(error, match=message) as caught:
        make(EnvConfig(**config), factory)
    assert "\n" not in str(caught.value)


USER = """
class View:
    def observe(self, agent, observation):
        return f"the other threw {observation}"
    def actions(self, agent, mask):
        return {"rock": 0, "paper": 1, "scissors": 2}

class Bound(View):
    def __init__(self, env):
        self.env = env

def won(env, agent, total):
    return total > 0
"""


@pytest.mark.parametrize("view", ["View", "Bound"])
def test_the_users_view_and_success(tmp_path, view):
    (tmp_path / "mine.py").write_text(USER)
    mine = f"{tmp_path}/mine.py"
    game = make(EnvConfig(name=RPS, view=f"{mine}:{view}", success=f"{mine}:won", max_rounds=2))
    game.reset(0)
    assert game.turns()[0].legal == ("rock", "paper", "scissors")
    assert game.turns()[0].observation == "the other threw 3"
    while not game.over:
        game.step({"player_0": "paper", "player_1": "rock"})
    assert len(game.history) == 2
    assert [outcome.success for outcome in game.outcomes().values()] == [1.0, 0.0]


def test_load_serves_other_fields():
    assert load("decentral.envs.names:load", "script") is load
    assert load("decentral.errors:ConfigError.__init__", "script")


def test_every_public_name_loads_and_none_pulls_in_torch():
    for name in decentral.envs.__all__:
        assert getattr(decentral.envs, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = decentral.envs.nothing
    code = (
        "import sys, decentral.envs as e; assert 'pettingzoo' not in sys.modules;"
        "[getattr(e, n) for n in e.__all__]; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
