from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decentral.agents.schedule import Schedule
from decentral.config import Config, difference
from decentral.envs.config import EnvConfig
from decentral.errors import ConfigError
from decentral.toml import to_toml


def test_a_name_alone_is_a_whole_config() -> None:
    assert Config.of(env="meet") == Config(env=EnvConfig(name="meet"))


def test_overrides_are_merged_over_the_common_agent() -> None:
    config = Config.of(
        env="meet", agent={"kl": 0.5, "lr": 1e-4}, agents={"bob": {"lr": {"start": 1, "end": 0, "steps": 9}}}
    )
    assert config.agent_config("ada") == config.agent
    assert config.agent_config("bob").kl == 0.5
    assert config.agent_config("bob").lr == Schedule(start=1.0, end=0.0, steps=9)


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({}, ["lacks 'env'"]),
        ({"env": "meet", "sed": 1}, ["unknown config key 'sed'", "did you mean 'seed'?"]),
        ({"env": "meet", "lr": 1}, ["unknown config key 'lr'", "did you mean 'agent.lr'?"]),
        ({"env": "meet", "agent": {"modle": "x"}}, ["'modle' in [agent]", "did you mean 'model'?"]),
        ({"env": "meet", "agents": {"bob": {"klp": 1}}}, ["'klp' in [agents.bob]", "did you mean 'kl'?"]),
        ({"env": "meet", "agent": {"lr": {"start": 1, "end": 0, "stps": 1}}}, ["'stps' in [agent.lr]", "'steps'"]),
        ({"env": {"nam": "meet"}}, ["'nam' in [env]", "did you mean 'name'?"]),
        ({"env": "meet", "groups": 0}, ["groups cannot be 0", ">= 1", "seeds that are played"]),
        ({"env": "meet", "engine": "loca"}, ["engine cannot be 'loca'", "local, inline", "did you mean 'local'?"]),
        ({"env": "meet", "agent": {"lr": "fast"}}, ["agent.lr cannot be 'fast'", "got str", "learning rate"]),
        ({"env": "meet", "agents": {"bob": {"kind": "robot"}}}, ["agents.bob.kind cannot be 'robot'", "frozen"]),
        ({"env": "meet", "seed": object()}, ["no plain data"]),
        ({"env": "meet", "groups": 2**11, "group": 2**11}, ["groups = 2048", "lower one"]),
    ],
)
def test_a_wrong_setting_names_field_value_reason_and_fix(fields: dict[str, object], parts: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.of(**fields)
    assert all(part in str(caught.value) for part in parts), str(caught.value)
    assert "\n" not in str(caught.value)


def test_flags_set_nested_fields_with_toml_values() -> None:
    config = Config.of(env="meet").with_set(
        [
            "agent.lr=1e-3",
            "agents.bob.kind=random",
            "env.options.size=5",
            "seed=7",
            "tensorboard=true",
            "agent.model=a b",
        ]
    )
    assert config.agent.lr == 1e-3
    assert config.agent_config("bob").kind == "random"
    assert (config.env.options, config.seed, config.tensorboard, config.agent.model) == ({"size": 5}, 7, True, "a b")


@pytest.mark.parametrize("setting", ["seed", "=1", "seeed=1", "seed.x=1", "agents.bob.kind"])
def test_a_wrong_flag_is_a_config_error(setting: str) -> None:
    with pytest.raises(ConfigError):
        Config.of(env="meet").with_set([setting])


def test_load_reads_what_to_toml_wrote(tmp_path: Path) -> None:
    config = Config.of(
        env={"name": "meet", "level": 2, "options": {"deep": {"a": [1, 2.5, "x"]}, "on": True}},
        agents={"player 1": {"lr": {"start": 1e-5, "end": 0.0, "steps": 3}}, "b.c": {"kind": "random"}},
    )
    (tmp_path / "c.toml").write_text(config.to_toml())
    assert Config.load(tmp_path / "c.toml") == config


@pytest.mark.parametrize("text", ["seed = ", "sed = 1\nenv = 'meet'", None])
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "c.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"c\.toml"):
        Config.load(tmp_path / "c.toml")


def test_an_unknown_agent_is_refused_with_the_environments_agents() -> None:
    config = Config.of(env="meet", agents={"boob": {}})
    with pytest.raises(ConfigError, match=r"boob.*ada, bob.*did you mean 'bob'"):
        config.check_agents(("ada", "bob"))


def test_difference_names_the_first_field() -> None:
    config = Config.of(env="meet")
    assert difference(config, config) is None
    assert difference(config, config.with_set(["agent.lr=0.5"])) == ("agent.lr", None, 0.5)
    assert difference(config, config.with_set(["agents.bob.kind=random"])) == ("agents.bob.kind", None, "random")


_PLAIN = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text()
_TABLES = st.recursive(
    st.dictionaries(st.text(), _PLAIN | st.lists(_PLAIN)),
    lambda inner: st.dictionaries(st.text(), _PLAIN | inner | st.lists(inner)),
    max_leaves=12,
)


@given(_TABLES)
def test_toml_reads_back_as_it_was_written(table: dict[str, object]) -> None:
    try:
        text = to_toml(table)
        text.encode()
    except UnicodeEncodeError:
        return  # lone surrogates are no text
    assert tomllib.loads(text) == table
