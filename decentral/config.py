"""What a run is: one struct, read from TOML, flags or Python, checked once where it enters.

Owns the file format and every message about a wrong setting. Knows nothing about how a run is made.
"""

from __future__ import annotations

__all__ = ["Config", "difference", "flat"]

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Meta

from decentral.agents.advice_config import AdviceConfig
from decentral.agents.config import AgentConfig
from decentral.agents.schedule import Schedule
from decentral.envs.config import EnvConfig
from decentral.envs.teams import check_teams
from decentral.errors import ConfigError, suggest
from decentral.toml import to_toml

_S = TypeVar("_S", bound=msgspec.Struct)

EPISODES = 2**20
"""Most episodes of one phase: what an episode's number leaves room for."""


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run: an environment, its agents, and how long they play and learn."""

    env: Annotated[EnvConfig, Meta(description="the environment; a text alone is its name")]
    agent: Annotated[AgentConfig, Meta(description="what all agents have in common")] = AgentConfig()
    agents: Annotated[
        dict[str, dict[str, Any]], Meta(description="per agent name, the fields of `agent` in which it differs")
    ] = {}
    teams: Annotated[
        dict[str, tuple[str, ...]],
        Meta(description="team name -> its agents, for figures per team; none: the environment's own, if it has any"),
    ] = {}
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1, description="every draw of the run follows from it")] = 0
    engine: Annotated[
        Literal["local", "inline", "network"],
        Meta(
            description="`local`: a process per agent; `inline`: all in this process; `network`: what `decentral host` "
            "and `decentral agent` set"
        ),
    ] = "local"
    iterations: Annotated[int, Meta(ge=0, le=EPISODES, description="collect phases, each followed by updates")] = 60
    groups: Annotated[int, Meta(ge=1, description="seeds that are played in an iteration")] = 12
    group: Annotated[int, Meta(ge=1, description="episodes from each seed, compared with each other")] = 8
    copies: Annotated[int, Meta(ge=1, description="environments that are stepped together; bounds memory")] = 96
    eval_episodes: Annotated[
        int,
        Meta(ge=1, le=EPISODES, description="episodes of each evaluation; there is one before and one after training"),
    ] = 200
    eval_every: Annotated[
        int, Meta(ge=0, description="evaluates after every n-th iteration too; 0: before and after training only")
    ] = 0
    topology: Annotated[
        str,
        Meta(
            description="who may advise whom, among team-mates: `complete`, `ring`, `regular:K` (K neighbours each), "
            "`small_world:K:P`, or a callable from the names to a networkx graph, as `file.py:callable`"
        ),
    ] = "complete"
    patience: Annotated[
        float, Meta(gt=0, description="seconds that an agent waits for advice before it acts without")
    ] = 1.0
    deadline: Annotated[float, Meta(gt=0, description="seconds a wait may last before the run stops and names who")] = (
        300.0
    )
    threads: Annotated[int, Meta(ge=0, description="threads per process; 0: cores / agents, at least 1")] = 0
    tensorboard: Annotated[bool, Meta(description="also write event files (extra `tensorboard`)")] = False

    def __post_init__(self) -> None:
        if self.groups * self.group > EPISODES:
            raise ConfigError(
                f"groups = {self.groups} times group = {self.group} is more than the {EPISODES:,} episodes that an "
                "iteration has numbers for: lower one of them"
            )
        for name in self.agents:
            self.agent_config(name)

    @classmethod
    def of(cls, **fields: Any) -> Config:
        """Makes a config from keyword arguments: plain values, dicts, or the structs themselves. Raises ConfigError."""
        try:
            plain = msgspec.to_builtins(fields)
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"the config holds a value that is no plain data: {error}; give numbers and texts"
            ) from error
        return _convert(plain, cls)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Config:
        """Reads a TOML file. Raises ConfigError."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
            raise ConfigError(f"cannot read the config {str(path)!r}: {reason}; give a TOML file") from error
        try:
            return _convert(tomllib.loads(text), cls)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"the config {str(path)!r} is no TOML: {error}; correct that place") from error
        except ConfigError as error:
            raise ConfigError(f"in {str(path)!r}: {error}") from error

    def with_set(self, settings: Sequence[str]) -> Config:
        """Returns a copy with ``["agent.lr=1e-3", "agents.bob.kind=random"]`` applied. Raises ConfigError."""
        plain = msgspec.to_builtins(self)
        for setting in settings:
            key, equals, value = setting.partition("=")
            if not equals or not key.strip():
                raise ConfigError(
                    f"the setting {setting!r} has no value: write it as field=value, such as agent.lr=1e-3"
                )
            *tables, field = key.strip().split(".")
            table = plain
            for name in tables:
                if not isinstance(table.get(name), dict):
                    table[name] = {}
                table = table[name]
            table[field] = _value(value.strip())
        return _convert(plain, type(self))

    def agent_config(self, name: str) -> AgentConfig:
        """Returns ``agent`` with the differences of one agent merged over it. Raises ConfigError."""
        merged, own = msgspec.to_builtins(self.agent), self.agents.get(name, {})
        if isinstance(own.get("advice"), Mapping):
            own = own | {"advice": merged["advice"] | own["advice"]}
        merged |= own
        return _convert(merged, AgentConfig, f"agents.{name}.")

    def check_agents(self, names: Sequence[str]) -> None:
        """Raises ConfigError if ``agents`` or ``teams`` do not fit the agents that the environment has."""
        for name in self.agents:
            if name not in names:
                raise ConfigError(
                    f"[agents.{name}] names no agent of {self.env.name}, whose agents are {', '.join(names)}"
                    + suggest(name, names)
                )
        check_teams("the teams of the config", self.teams, names)

    def to_toml(self) -> str:
        """Returns the whole config, defaults included, as text that `load` reads back."""
        return to_toml(msgspec.to_builtins(self))


def difference(old: Config, new: Config) -> tuple[str, Any, Any] | None:
    """Returns (field, old value, new value) of the first field in which two configs differ, else None."""
    before, after = flat(msgspec.to_builtins(old)), flat(msgspec.to_builtins(new))
    for field in [*before, *(f for f in after if f not in before)]:
        if before.get(field) != after.get(field):
            return field, before.get(field), after.get(field)
    return None


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Returns nested dicts as one: ``{"env": {"level": 2}}`` -> ``{"env.level": 2}``."""
    if not isinstance(value, dict):
        return {prefix: value}
    return {k: v for key, inner in value.items() for k, v in flat(inner, f"{prefix}.{key}" if prefix else key).items()}


def _value(text: str) -> Any:
    """A flag's value: TOML where it is TOML, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return text


# -- messages about wrong settings

_STRUCTS: dict[str, type[msgspec.Struct]] = {
    "": Config,
    "env": EnvConfig,
    "agent": AgentConfig,
    "agent.lr": Schedule,
    "agent.advice": AdviceConfig,
}
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>.*)`")
_MISSING = re.compile(r"Object missing required field `(?P<key>.*)`")


def _convert(plain: Any, struct: type[_S], prefix: str = "") -> _S:
    if struct is Config and isinstance(plain, Mapping) and isinstance(plain.get("env"), str):
        plain = {**plain, "env": {"name": plain["env"]}}
    try:
        return msgspec.convert(plain, struct)
    except msgspec.ValidationError as error:
        raise ConfigError(_explain(str(error), plain, prefix)) from error


def _explain(message: str, plain: Any, prefix: str) -> str:
    """Turns msgspec's message into one with field, value, reason and fix."""
    reason, _, place = message.partition(" - at `$")
    path = [part for part in re.split(r"[.\[\]`]+", place) if part]
    here = prefix + ".".join(path)
    table = "agent" if prefix else ""
    struct = _STRUCTS.get(".".join([*filter(None, [table]), *path]))
    where = f" in [{here.rstrip('.')}]" if here else ""
    if (unknown := _UNKNOWN.match(reason)) and struct:
        key = unknown["key"]
        return f"unknown config key {key!r}{where}{_near(key, struct)}"
    if (missing := _MISSING.match(reason)) and struct:
        return f"the config lacks {missing['key']!r}{where}: {_describe(struct, missing['key'])}"
    owner = _STRUCTS.get(".".join([*filter(None, [table]), *path[:-1]]))
    value = _at(plain, path)
    help_ = f" ({path[-1]}: {_describe(owner, path[-1])})" if owner and path else ""
    choices = get_args(get_type_hints(owner).get(path[-1])) if owner and path else ()
    if "enum" in reason and choices:
        hint = suggest(str(value), choices)
        return f"the config field {here} cannot be {value!r}, only {', '.join(choices)}{hint}{help_}"
    return f"the config field {here or 'itself'} cannot be {value!r}: {_plainly(reason)}{help_}"


def _near(key: str, struct: type[msgspec.Struct]) -> str:
    """A suggestion from the same table, else the same key in another table, else what the table knows."""
    if hint := suggest(key, struct.__struct_fields__):
        return hint
    elsewhere = [t for t, s in _STRUCTS.items() if t and key in s.__struct_fields__]
    if elsewhere:
        return f"; did you mean {f'{elsewhere[0]}.{key}'!r}?"
    return f"; known are {', '.join(struct.__struct_fields__)}"


def _describe(struct: type[msgspec.Struct], field: str) -> str:
    hints = get_type_hints(struct, include_extras=True)
    notes = (meta.description for meta in getattr(hints.get(field), "__metadata__", ()))
    return next(filter(None, notes), f"a field of {struct.__name__}: {struct.__doc__}")


def _at(plain: Any, path: Iterable[str]) -> Any:
    for part in path:
        if isinstance(plain, Mapping):
            plain = plain.get(part)
        elif isinstance(plain, Sequence) and not isinstance(plain, str) and part.isdigit():
            plain = plain[int(part)]
    return plain


def _plainly(reason: str) -> str:
    return reason[:1].lower() + reason[1:].replace("`", "").replace("object", "table")
