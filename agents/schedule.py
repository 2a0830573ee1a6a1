"""A learning rate: a number, or a number that changes with the updates."""

from __future__ import annotations

__all__ = ["Schedule", "rate_at"]

import math
from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Linear warm-up to ``start``, then a ``shape`` down (or up) to ``end``, which stays."""

    start: Annotated[float, Meta(gt=0, description="rate after the warm-up")]
    end: Annotated[float, Meta(ge=0, description="rate that it comes to and keeps")]
    steps: Annotated[int, Meta(gt=0, description="updates from the end of the warm-up until `end`")]
    warmup: Annotated[int, Meta(ge=0, description="updates of linear rise before")] = 0
    shape: Annotated[Literal["linear", "cosine"], Meta(description="of the way from `start` to `end`")] = "linear"


def rate_at(rate: float | Schedule, update: int) -> float:
    """Returns the learning rate of update number ``update`` (from 0).

    >>> rate_at(Schedule(start=1.0, end=0.0, steps=4), 1)
    0.75
    """
    if not isinstance(rate, Schedule):
        return rate
    if update < rate.warmup:
        return rate.start * (update + 1) / rate.warmup
    done = min(1.0, (update - rate.warmup) / rate.steps)
    if rate.shape == "cosine":
        done = (1 - math.cos(math.pi * done)) / 2
    return rate.start + (rate.end - rate.start) * done
