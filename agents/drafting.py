"""From a model and what was asked of it to a drafter, or to none."""

from __future__ import annotations

__all__ = ["make_drafter"]

from decentral.agents.config import AgentConfig
from decentral.agents.draft import DraftHead
from decentral.agents.drafter import Drafter
from decentral.agents.folders import head_folder
from decentral.agents.pace import Measured, Pace
from decentral.agents.policy import Policy
from decentral.errors import ModelError


def make_drafter(policy: Policy, config: AgentConfig) -> Drafter | None:
    """Loads the draft head of an agent; returns none for plain sampling.

    Raises:
        ModelError: drafts are asked for and there is no head, or it is for another model.
    """
    if config.draft == "plain":
        return None
    folder = head_folder(config.model, config.draft_head)
    if not DraftHead.exists(folder):
        if config.draft == "auto" and not config.draft_head:
            return None
        raise ModelError(
            f"model {config.model!r} has no draft head in {str(folder)!r}; make one with decentral mtp train, or set "
            "draft = 'plain'"
        )
    head = DraftHead.load(folder, policy.shared(), policy.window)
    mode = "rejection" if config.draft == "auto" else config.draft
    return Drafter(head, mode, Pace(config.draft_tokens, Measured.load(folder)))
