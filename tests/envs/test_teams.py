"""Teams: what an environment or a config may say, and what the suites say."""

from __future__ import annotations

import pytest

from decentral.envs.config import EnvConfig
from decentral.envs.names import make
from decentral.envs.teams import check_teams
from decentral.errors import ConfigError, EnvError

AGENTS = ("ada", "bob", "cleo")


@pytest.mark.parametrize("teams", [{}, {"all": AGENTS}, {"a": ("ada",), "rest": ("cleo", "bob")}])
def test_every_agent_in_one_team_or_no_teams_at_all(teams: dict[str, tuple[str, ...]]) -> None:
    check_teams("the teams", teams, AGENTS)


@pytest.mark.parametrize(
    ("teams", "why"),
    [
        ({"a": ("ada", "bob")}, "leave out 'cleo'"),
        ({"a": ("ada", "bob"), "b": ("bob", "cleo")}, "name 'bob' 2 times"),
        ({"a": ("ada", "bop"), "b": ("cleo",)}, "name 'bop'.*did you mean 'bob'"),
        ({"a": AGENTS, "b": ()}, "hold 'b' without agents"),
    ],
)
def test_other_teams_are_refused_with_the_agent(teams: dict[str, tuple[str, ...]], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check_teams("the teams", teams, AGENTS)


@pytest.mark.parametrize(
    ("package", "name", "teams"),
    [
        ("", "meet", {}),
        ("", "classic/tictactoe_v3", {"player_1": ("player_1",), "player_2": ("player_2",)}),
        ("pyspiel", "openspiel/leduc_poker", {"player_0": ("player_0",), "player_1": ("player_1",)}),
        ("pyspiel", "openspiel/hanabi(players=2)", {}),
        ("pyspiel", "openspiel/spades", {"even": ("player_0", "player_2"), "odd": ("player_1", "player_3")}),
        ("mpe2", "mpe2/simple_spread_v3", {}),
        (
            "mpe2",
            "mpe2/simple_tag_v3",
            {"adversaries": ("adversary_0", "adversary_1", "adversary_2"), "agents": ("agent_0",)},
        ),
        ("mpe2", "mpe2/simple_crypto_v3", {"adversaries": ("eve_0",), "agents": ("bob_0", "alice_0")}),
    ],
)
def test_the_suites_know_who_plays_against_whom(package: str, name: str, teams: dict[str, tuple[str, ...]]) -> None:
    if package:
        pytest.importorskip(package)
    assert make(EnvConfig(name=name)).teams == teams


@pytest.mark.parametrize("given", [["ada"], {"a": None}, {"a": ["nobody"]}])
def test_an_environment_with_wrong_teams_is_refused(given: object) -> None:
    from decentral.envs.games.meet import env

    made = env()
    made.teams = given
    with pytest.raises(EnvError, match="teams") as caught:
        make(EnvConfig(name="meet"), lambda **_: made)
    assert caught.value.method == "teams"
