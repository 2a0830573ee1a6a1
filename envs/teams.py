"""Who plays with whom: names of teams, and the agents of each. Knows nothing about environments."""

from __future__ import annotations

__all__ = ["check_teams"]

from collections.abc import Mapping, Sequence

from decentral.errors import ConfigError, suggest


def check_teams(what: str, teams: Mapping[str, Sequence[str]], agents: Sequence[str]) -> None:
    """Raises ConfigError unless there are no teams or every agent is in exactly one of them."""
    if not teams:
        return
    placed = [agent for members in teams.values() for agent in members]
    for agent in placed:
        if agent not in agents:
            raise ConfigError(f"{what} name {agent!r}, who is none of {', '.join(agents)}{suggest(agent, agents)}")
        if placed.count(agent) > 1:
            raise ConfigError(f"{what} name {agent!r} {placed.count(agent)} times; let every agent play for one team")
    for agent in agents:
        if agent not in placed:
            raise ConfigError(f"{what} leave out {agent!r}; let every agent play for one team, be it alone")
    for team, members in teams.items():
        if not members:
            raise ConfigError(f"{what} hold {team!r} without agents; leave it out")
