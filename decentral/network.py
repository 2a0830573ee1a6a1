"""Who takes part in a run across machines, where, and by which key: one TOML file that all owners share.

[host]
address = "tcp://10.0.0.1:5555"
key = "..."              # what `decentral keys new host` printed

[agents.ada]
address = "tcp://10.0.0.2:5556"
key = "..."
bind = "tcp://*:5556"    # where she listens, if that is not where the others reach her
"""

from __future__ import annotations

__all__ = ["Network", "Party"]

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from zmq.utils import z85

from decentral.errors import ConfigError, short, suggest


class Party(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The host, or an agent."""

    address: str
    """Where the others reach it: ``tcp://HOST:PORT``."""
    key: str
    """Its public key, 40 characters of Z85."""
    bind: str = ""
    """Where it listens, if that is not its address: ``tcp://*:PORT`` for all interfaces."""

    @property
    def door(self) -> str:
        """Where it listens."""
        return self.bind or self.address


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """All parties of a run. Made by `load`."""

    host: Party
    agents: dict[str, Party]

    @classmethod
    def load(cls, path: Path) -> Network:
        """Reads the file. Raises ConfigError."""
        try:
            plain = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else f"it is no TOML: {error}"
            raise ConfigError(
                f"cannot read the network {str(path)!r}: {reason}; give one with [host] and [agents.NAME] tables"
            ) from error
        try:
            return cls._of(plain)
        except ConfigError as error:
            raise ConfigError(f"in {str(path)!r}: {error}") from error

    @classmethod
    def _of(cls, plain: Mapping[str, Any]) -> Network:
        for table in plain:
            if table not in ("host", "agents"):
                raise ConfigError(
                    f"unknown table {table!r}: a network has [host] and an [agents.NAME] for each agent"
                    + suggest(table, ("host", "agents"))
                )
        agents = plain.get("agents", {})
        if not isinstance(agents, Mapping):
            raise ConfigError(f"agents = {short(agents)} is no table: write an [agents.NAME] for each agent")
        parties = {"host": _party("host", plain.get("host", {}))}
        parties |= {name: _party(f"agents.{name}", party) for name, party in agents.items()}
        owners: dict[str, str] = {}
        for name, party in parties.items():
            if party.key in owners:
                raise ConfigError(
                    f"{owners[party.key]} and {name} have one key, {party.key}: make each its own with "
                    "`decentral keys new NAME`"
                )
            owners[party.key] = name
        return cls(host=parties.pop("host"), agents=parties)

    def check_agents(self, env: str, names: Sequence[str]) -> None:
        """Raises ConfigError if these are not the agents of the environment ``env``."""
        for name in self.agents:
            if name not in names:
                raise ConfigError(
                    f"the network's [agents.{name}] names no agent of {env}, whose agents are {', '.join(names)}"
                    + suggest(name, names)
                )
        if missing := [name for name in names if name not in self.agents]:
            raise ConfigError(
                f"the network lacks {', '.join(missing)} of {env}: add [agents.{missing[0]}] with its address and key"
            )

    def party(self, name: str) -> Party:
        """Returns the host, or an agent. Raises ConfigError."""
        if name != "host" and name not in self.agents:
            raise ConfigError(
                f"the network has no agent {name!r}, only {', '.join(self.agents)}{suggest(name, self.agents)}"
            )
        return self.host if name == "host" else self.agents[name]

    def check_key(self, name: str, key: str) -> None:
        """Raises ConfigError if ``key`` is not what the network knows ``name`` by."""
        if self.party(name).key == key:
            return
        owner = next((other for other in ("host", *self.agents) if self.party(other).key == key), "nobody")
        raise ConfigError(
            f"the network knows {name} by the key {self.party(name).key}, and the given secret belongs to {key}, the "
            f"key of {owner}: give the secret of {name}, or correct the key in the file of every owner"
        )


def _party(where: str, plain: Any) -> Party:
    try:
        party = msgspec.convert(plain, Party)
    except msgspec.ValidationError as error:
        reason = str(error).replace("`", "").replace("$.", "")
        raise ConfigError(
            f"[{where}] cannot be used: {reason[:1].lower()}{reason[1:]}; it has address, key and perhaps bind"
        ) from error
    for field in ("address", "bind"):
        value = getattr(party, field)
        if (value or field == "address") and not _tcp(value):
            raise ConfigError(f"{where}.{field} cannot be {short(value)}: write it as tcp://10.0.0.1:5555")
    try:
        z85.decode(party.key.encode("ascii"))
        fits = len(party.key) == 40
    except Exception:  # noqa: BLE001  what it raises differs from flaw to flaw
        fits = False
    if not fits:
        raise ConfigError(
            f"{where}.key cannot be {short(party.key)}: a public key has 40 characters, as `decentral keys new` prints"
        )
    return party


def _tcp(address: str) -> bool:
    found = re.fullmatch(r"tcp://(\[[0-9A-Fa-f:.%\w]+\]|[\w.*-]+):([0-9]{1,5})", address)
    return found is not None and 0 < int(found[2]) < 2**16
