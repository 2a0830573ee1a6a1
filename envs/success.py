"""What counts as a success, in [0, 1] or none, per agent and episode.

Asked in this order: the user's function, the environment's ``success(agent)``, ``is_success`` in the agent's last info,
the configured ``success_return``, and last the rules of our adapters for environments that were made without
them, so that a user can overrule these.
"""

from __future__ import annotations

__all__ = ["Success", "judge"]

from collections.abc import Callable, Mapping
from typing import Any

from decentral.envs.adapters import classic_texts, mpe2_texts
from decentral.errors import EnvError

Success = Callable[[Any, Any, float], "float | None"]
"""(unwrapped environment, agent, return) -> success in [0, 1], or None where it does not say."""


def judge(
    env: Any,
    agent: Any,
    total: float,
    info: Mapping[str, Any],
    user: Success | None = None,
    success_return: float | None = None,
) -> float | None:
    """Returns the success of one agent when its episode is over.

    ``env`` is unwrapped and stands at the end, ``total`` is the agent's return and ``info`` its last info. Raises
    EnvError for a value outside [0, 1].
    """
    value = None if user is None else user(env, agent, total)
    if value is None and callable(own := getattr(env, "success", None)):
        value = own(agent)
    if value is None:
        value = info.get("is_success")
    if value is None and success_return is not None:
        value = total >= success_return
    if value is None and (known := THIRD_PARTY.get(type(env).__module__)) is not None:
        value = known(env, agent, total)
    if value is None:
        return None
    number = float(value)
    if not 0 <= number <= 1:
        raise EnvError(f"success {number!r} of {agent!r} is not in [0, 1]; correct the function that defines it")
    return number


def _particles(rule: Callable[[Any, str], float | None]) -> Success:
    return lambda env, agent, total: rule(env, agent)


def _board(rule: Callable[[Any, int], float]) -> Success:
    return lambda env, agent, total: rule(env, env.possible_agents.index(agent))


def _module(package: str, id: str) -> str:
    name = id.rpartition("_")[0]
    return f"{package}.{name}.{name}"


# Keyed by the module of the unwrapped environment: mpe2 keeps one metadata dict for all its games, so that the name in
# it changes under older environments when another is made.
# The adapters' own rules; cards are left out, which are judged by what their adapter keeps of a hand.
THIRD_PARTY: dict[str, Success] = {
    **{_module("mpe2", id): _particles(game.success) for id, game in mpe2_texts.GAMES.items() if game.success},
    **{
        _module("pettingzoo.classic", id): _board(game.success)
        for id, game in classic_texts.GAMES.items()
        if game.success and not game.cards
    },
}
