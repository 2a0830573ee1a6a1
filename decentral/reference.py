"""Every config field as Markdown: ``python -m decentral.reference > docs/config.md`` writes what the structs say."""

from __future__ import annotations

__all__ = ["reference"]

import sys
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from decentral.agents.advice_config import AdviceConfig
from decentral.agents.config import AgentConfig
from decentral.agents.schedule import Schedule
from decentral.config import Config
from decentral.envs.config import EnvConfig

_TABLES: tuple[tuple[str, str, type[msgspec.Struct]], ...] = (
    ("The run", "at the top of the file", Config),
    ("The environment", "`[env]`", EnvConfig),
    ("The agents", "`[agent]` for all of them, `[agents.NAME]` for what differs", AgentConfig),
    ("Advice", "`[agent.advice]`, and `[agents.NAME.advice]` for what differs", AdviceConfig),
    ("A learning rate that changes", "`[agent.lr]`, in place of a number", Schedule),
)


def reference() -> str:
    """Returns the reference of all config fields as Markdown."""
    parts = ["# Config\n\nOne TOML file, flags (`--set agent.lr=1e-3`) or Python keywords; all name the same fields."]
    for title, place, struct in _TABLES:
        rows = [f"| `{f.name}` | {_default(f)} | {_describe(struct, f.name)} |" for f in msgspec.structs.fields(struct)]
        parts.append(f"## {title}\n\n{place}\n\n| field | default | what it is |\n|---|---|---|\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return "`{}`"
    if field.default is msgspec.NODEFAULT:
        return "required"
    return "see below" if isinstance(field.default, msgspec.Struct) else f"`{field.default!r}`"


def _describe(struct: type[msgspec.Struct], name: str) -> str:
    kind: Any = get_type_hints(struct, include_extras=True)[name]
    inner, *notes = get_args(kind) if get_origin(kind) is Annotated else (kind,)
    told = next((n.description for n in notes if isinstance(n, msgspec.Meta) and n.description), "")
    values = ", ".join(f"`{value}`" for value in get_args(inner)) if get_origin(inner) is Literal else ""
    return f"{told}; one of {values}" if values else told


if __name__ == "__main__":
    sys.stdout.write(reference())
