"""How one agent takes and gives advice. Fields are few; each says its unit and why its default."""

from __future__ import annotations

__all__ = ["AdviceConfig"]

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class AdviceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom to believe, when to ask, and how much."""

    rule: Annotated[
        Literal["none", "follow", "majority", "ccks", "ours"],
        Meta(
            description="how an action is chosen where peers advise: `none` never asks; `follow` does what the most "
            "certain peer would do, `majority` what most would; `ccks` scores them by its own consensus and avoids the "
            "worst actions (arXiv 2606.12281); `ours` also weighs trust, learnt from outcomes, and leans toward the "
            "best actions"
        ),
    ] = "none"
    mode: Annotated[
        Literal["choose", "context"],
        Meta(
            description="`choose`: the rule makes the distribution that the action is drawn from; `context`: what "
            "peers would do is told in the agent's context instead, as text, and its policy makes of it what it will"
        ),
    ] = "choose"
    gate: Annotated[
        Literal["entropy", "visits", "always", "never"],
        Meta(
            description="which turns are asked about: those of high policy entropy, those whose like was rarely seen, "
            "all, or none"
        ),
    ] = "entropy"
    quantile: Annotated[
        float, Meta(ge=0, lt=1, description="gate `entropy`: asks from this quantile of its recent entropies on")
    ] = 0.5
    strength: Annotated[
        float,
        Meta(
            ge=0,
            le=100,
            description="rule `ours`: nats by which fully trusted advice tilts the choice, per unit of probability",
        ),
    ] = 4.0
    shaping: Annotated[
        float,
        Meta(
            ge=0,
            le=100,
            description="what it adds to an action's advantage if all advice is for it alone and is believed; less and "
            "below 0 for other actions (CCKS: 0 to 0.4)",
        ),
    ] = 0.4
    bytes: Annotated[
        int,
        Meta(
            ge=0,
            description="most bytes of a training episode that the agent's questions and their answers take, all peers "
            "together; a question is not asked if it, with the longest answers, might exceed it (a question and "
            "answer of a built-in game take 300 to 1,000 bytes for each peer)",
        ),
    ] = 1_000_000
    answers: Annotated[int, Meta(ge=0, description="most turns of one peer, per iteration, that are answered")] = 8192
    consensus: Annotated[Literal["infonce", "dino"], Meta(description="loss of the agent's own consensus model")] = (
        "infonce"
    )
    teacher: Annotated[
        Literal["honest", "random", "adversarial", "stale", "silent", "slow", "flooding", "injecting"],
        Meta(description="for study: an agent that does not advise as well as it can"),
    ] = "honest"
