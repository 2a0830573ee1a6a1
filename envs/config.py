"""How an environment is named and made."""

from __future__ import annotations

__all__ = ["EnvConfig"]

from typing import Annotated, Any

import msgspec
from msgspec import Meta


class EnvConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One environment, its difficulty, and how it is read and judged."""

    name: Annotated[str, Meta(description="built-in name, `suite/id`, `package.module:callable` or `file.py:callable`")]
    level: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="passed to the callable as `level`, if it has levels")
    ] = None
    options: Annotated[dict[str, Any], Meta(description="further keyword arguments of the callable")] = {}
    view: Annotated[
        str, Meta(description="`package.module:callable` or `file.py:callable` that returns a TextView")
    ] = ""
    picture: Annotated[
        str, Meta(description="callable, named likewise, that turns an image into text; else a coarse grid of colours")
    ] = ""
    success: Annotated[
        str,
        Meta(description="`module:callable` or `file.py:callable`: (env, agent, total return) -> [0, 1] or None"),
    ] = ""
    success_return: Annotated[
        float | None,
        Meta(description="an episode whose return reaches this is a success, where nothing else says so"),
    ] = None
    bins: Annotated[
        Annotated[int, Meta(ge=2, le=1024)] | None,
        Meta(description="values that stand for each number of a continuous action space, evenly spaced"),
    ] = None
    max_rounds: Annotated[int, Meta(ge=1, description="rounds after which an episode is truncated by us")] = 200
