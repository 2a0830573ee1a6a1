"""What a host and an agent must have in common, where each was started with settings of its own.

What is an owner's own is not in it: how its agent learns, how long it waits, how many threads it takes.
"""

from __future__ import annotations

__all__ = ["disagreement", "terms"]

import json
import re
from collections.abc import Mapping, Sequence

import msgspec

from decentral.config import Config, flat
from decentral.errors import short

_SHARED = ("env", "teams", "seed", "iterations", "groups", "group", "eval_episodes", "eval_every", "topology")


def terms(config: Config, names: Sequence[str]) -> dict[str, str]:
    """Returns the settings that all must share, each as JSON, by the name of its field.

    Of a file that holds an environment or a view only the name counts: it may lie elsewhere on another machine.
    """
    plain = msgspec.to_builtins(config)
    shared = flat({"agents": list(names), **{field: plain[field] for field in _SHARED}})
    return {field: re.sub(r'^"[^"]*/([^"/]*\.py:)', r'"\1', json.dumps(value)) for field, value in shared.items()}


def disagreement(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """Returns a clause about the first setting that differs, ``seed = 1, not 0`` (theirs first), else nothing."""
    for field in [*ours, *(field for field in theirs if field not in ours)]:
        mine, yours = ours.get(field), theirs.get(field)
        if mine != yours:
            return f"{short(field)[1:-1]} = {_shown(yours)}, not {_shown(mine)}"
    return ""


def _shown(value: str | None) -> str:
    return "nothing" if value is None else short(value)[1:-1]
