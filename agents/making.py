"""From a config to a mind. Torch is imported only for agents that have weights."""

from __future__ import annotations

__all__ = ["make_mind"]

from collections.abc import Callable, Sequence

from decentral.agents.config import AgentConfig
from decentral.agents.mind import Mind
from decentral.agents.simple import HumanMind, RandomMind, ScriptedMind
from decentral.envs.turn import Turn
from decentral.errors import ConfigError


def make_mind(
    name: str,
    config: AgentConfig,
    seed: int,
    *,
    script: Callable[[Turn], str] | None = None,
    ask: Callable[[Turn], str] | None = None,
    teachers: Sequence[str] = (),
    askers: Sequence[str] = (),
) -> Mind:
    """Makes the agent ``name``.

    Args:
        name: its name in the environment; keys its draws.
        config: how it is made.
        seed: of the run.
        script: the callable of a ``scripted`` agent.
        ask: shows a turn to a person and returns what was typed, for a ``human`` agent.
        teachers: the peers that it may ask for advice.
        askers: the peers that may ask it.

    Raises:
        ConfigError: a scripted agent without a script, or a human one where nobody can be asked.
        ModelError: the model cannot be loaded.
    """
    if config.kind == "random":
        return RandomMind(name, seed)
    if config.kind == "scripted":
        if script is None:
            raise ConfigError(f"agent {name!r} is scripted and has no script; set script = 'file.py:callable'")
        return ScriptedMind(name, script)
    if config.kind == "human":
        if ask is None:
            raise ConfigError(
                f"agent {name!r} is human and nobody can be asked here; use engine = 'inline' in a terminal"
            )
        return HumanMind(name, ask)
    from decentral.agents.language import LanguageAgent

    return LanguageAgent(name, config, seed, teachers, askers)
