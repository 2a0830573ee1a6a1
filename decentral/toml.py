"""Writes the TOML that our configs need: tables, texts, numbers, booleans and lists. Reading is tomllib's."""

from __future__ import annotations

__all__ = ["to_toml"]

import json
import re
from collections.abc import Mapping
from typing import Any

from decentral.errors import ConfigError


def to_toml(table: Mapping[str, Any]) -> str:
    """Returns nested dicts as TOML; entries that are None are left out. Raises ConfigError for what TOML lacks.

    >>> to_toml({"seed": 1, "env": {"name": "meet"}})
    'seed = 1\\n\\n[env]\\nname = "meet"\\n'
    """
    return "\n".join(_lines(table, ())).lstrip("\n") + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    plain = {key: value for key, value in table.items() if key not in inner and value is not None}
    lines = [f"{_key(key)} = {_value(value, (*path, key))}" for key, value in plain.items()]
    if path and (lines or not inner):
        lines = ["", f"[{'.'.join(map(_key, path))}]", *lines]
    return lines + [line for key, value in inner.items() for line in _lines(value, (*path, key))]


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any, path: tuple[str, ...]) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item, path) for item in value) + "]"
    if isinstance(value, Mapping):
        pairs = (f"{_key(key)} = {_value(item, path)}" for key, item in value.items() if item is not None)
        return "{" + ", ".join(pairs) + "}"
    raise ConfigError(
        f"the config field {'.'.join(path)} cannot be {value!r}: a config file holds only texts, numbers, booleans, "
        "lists and tables; give one of these"
    )
