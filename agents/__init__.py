"""One agent's mind: policy, rollout engine, context buffer, credit, learner."""

from __future__ import annotations

__all__ = ["AgentConfig", "Mind", "Schedule", "make_mind"]

from decentral.agents.config import AgentConfig
from decentral.agents.making import make_mind
from decentral.agents.mind import Mind
from decentral.agents.schedule import Schedule
