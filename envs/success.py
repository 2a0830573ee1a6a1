"""What counts as a success, in [0, 1] or none, per agent and episode.

Asked in this order: the user's function, the environment's ``success(agent)``, ``is_success`` in the agent's last info,
the configured ``success_return``, and last the table of third-party environments below, so that a user can overrule it.
"""

from __future__ import annotations

__all__ = ["Success", "judge"]

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

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


def _won(env: Any, agent: str, total: float) -> float:
    return (1 + float(np.sign(total))) / 2


def _spread(env: Any, agent: str, total: float) -> float:
    """Returns the share of landmarks that an agent covers."""
    agents = np.array([one.state.p_pos for one in env.world.agents])  # (A, 2)
    marks = np.array([one.state.p_pos for one in env.world.landmarks])  # (L, 2)
    distances = np.linalg.norm(agents[:, None] - marks[None], axis=-1)  # (A, L)
    return float((distances.min(axis=0) < env.scenario.CAPTURE_RADIUS).mean())


def _reference(env: Any, agent: str, total: float) -> float:
    """Returns the share of agents that touch the landmark of which the other was told."""
    pairs = [(one.goal_a, one.goal_b) for one in env.world.agents]
    return float(np.mean([np.linalg.norm(a.state.p_pos - b.state.p_pos) < a.size + b.size for a, b in pairs]))


# Keyed by the module of the unwrapped environment: mpe2 keeps one metadata dict for all its games, so that the name in
# it changes under older environments when another is made.
THIRD_PARTY: dict[str, Success] = {
    "mpe2.simple_reference.simple_reference": _reference,
    "mpe2.simple_spread.simple_spread": _spread,
    "pettingzoo.classic.connect_four.connect_four": _won,
    "pettingzoo.classic.tictactoe.tictactoe": _won,
}
