"""How one agent is made. Fields are few; each says its unit and why its default."""

from __future__ import annotations

__all__ = ["AgentConfig"]

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from decentral.agents.advice_config import AdviceConfig
from decentral.agents.schedule import Schedule

Positive = Annotated[float, Meta(gt=0, lt=1e6)]


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One agent: who plays, on which weights, and how it learns."""

    kind: Annotated[
        Literal["learning", "frozen", "scripted", "random", "human"],
        Meta(description="who chooses the actions; only `learning` changes its weights"),
    ] = "learning"
    model: Annotated[str, Meta(description="`pocket`, `smollm2`, a model folder, or a name in the local hub cache")] = (
        "pocket"
    )
    script: Annotated[
        str,
        Meta(description="`scripted`: `module:callable` or `file.py:callable`, from a `Turn` to one of `turn.legal`"),
    ] = ""
    weights: Annotated[
        Literal["auto", "full", "lora"],
        Meta(description="what is trained; `auto`: everything below 20 M parameters, else LoRA"),
    ] = "auto"
    lora_rank: Annotated[int, Meta(ge=1, description="rank of the LoRA matrices; alpha is twice the rank")] = 16
    lr: Annotated[
        Positive | Schedule | None,
        Meta(description="AdamW learning rate, a number or a schedule; default 5e-4 for full, 2e-4 for LoRA"),
    ] = None
    kl: Annotated[
        float, Meta(ge=0, lt=1e6, description="weight of the k3 KL to the agent's own base (CANOPY: 1e-4 to 1e-2)")
    ] = 3e-3
    clip: Annotated[float, Meta(gt=0, lt=1e12, description="largest gradient norm of an update")] = 1.0
    discount: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(
            description="none: every turn is credited with the episode's return; else with the rewards from there on, "
            "each by this factor less per turn, which learns faster where rewards come all along a long episode"
        ),
    ] = None
    uniform_steps: Annotated[
        int,
        Meta(
            ge=0,
            description="optimiser steps of the first update, which then makes the next tokens of legal actions "
            "equally likely and learns nothing from rewards, for a model that would not try some actions (30 to 50 "
            "do; the metrics uneven_first and uneven_last tell, in nats, how far it was from that)",
        ),
    ] = 0
    temperature: Annotated[
        float, Meta(gt=0, lt=1e6, description="divides the logits, in play and in training alike")
    ] = 1.0
    reasoning_tokens: Annotated[int, Meta(ge=0, description="scratch tokens that may be sampled before an action")] = 0
    past: Annotated[
        float,
        Meta(
            ge=0,
            lt=1,
            description="share of training groups, from 0 to below 1, that the agent plays with earlier weights of its "
            "own; it learns nothing from them, and opponents meet more than its newest habits",
        ),
    ] = 0.0
    update_every: Annotated[
        int, Meta(ge=1, description="updates only after every n-th iteration, on that iteration")
    ] = 1
    window: Annotated[
        int,
        Meta(
            ge=0,
            description="context tokens an episode may fill before a new chunk; 0: the model's, at most 1024",
        ),
    ] = 0
    device: Annotated[str, Meta(description="`auto` (a CUDA device if there is one), `cpu`, `cuda`, `cuda:1`")] = "auto"
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16"],
        Meta(description="`auto`: float32 below 20 M parameters, else bfloat16"),
    ] = "auto"
    microbatch: Annotated[
        int,
        Meta(
            ge=0, description="most tokens (rows x longest) per forward of an update; 0: 4096 for full, 1024 for LoRA"
        ),
    ] = 0
    draft: Annotated[
        Literal["auto", "plain", "rejection", "target_only"],
        Meta(
            description="how text is sampled; `plain`: a token per forward; `rejection`, `target_only`: a draft head "
            "proposes, the model verifies, with the same distribution; `auto`: `rejection` where the model has a head"
        ),
    ] = "auto"
    draft_head: Annotated[
        str, Meta(description="folder of a draft head that `decentral mtp train` made; empty: the one beside the model")
    ] = ""
    draft_tokens: Annotated[
        int, Meta(ge=0, le=8, description="tokens drafted at once; 0: as many as pay, by acceptance and measured costs")
    ] = 0
    draft_retrain: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="the head is trained on the agent's own text after an update that leaves its acceptance below "
            "this; 0: never, and a head goes stale where training moves all weights fast",
        ),
    ] = 0.0
    advice: Annotated[AdviceConfig, Meta(description="whom of its peers it asks and believes")] = AdviceConfig()
