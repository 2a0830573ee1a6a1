"""Language agents that learn together without a centre.

    import decentral
    run = decentral.train("meet", iterations=60)
    run.metrics()

The public names load on first use, so that ``import decentral`` is quick and pulls in neither torch nor transformers.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from decentral.agents.config import AgentConfig
    from decentral.agents.schedule import Schedule
    from decentral.config import Config
    from decentral.envs.check import check_env
    from decentral.envs.config import EnvConfig
    from decentral.errors import (
        ConfigError,
        DeadlineError,
        DecentralError,
        EnvError,
        LinkError,
        MissingExtra,
        ModelError,
        RunError,
    )
    from decentral.player import Player
    from decentral.run import Run
    from decentral.train import train

__all__ = [
    "AgentConfig",
    "Config",
    "ConfigError",
    "DeadlineError",
    "DecentralError",
    "EnvConfig",
    "EnvError",
    "LinkError",
    "MissingExtra",
    "ModelError",
    "Player",
    "Run",
    "RunError",
    "Schedule",
    "__version__",
    "check_env",
    "train",
]

__version__ = "0.1.0"

_HOMES = {
    "AgentConfig": "agents.config",
    "Config": "config",
    "EnvConfig": "envs.config",
    "Player": "player",
    "Run": "run",
    "Schedule": "agents.schedule",
    "check_env": "envs.check",
    "train": "train",
} | {name: "errors" for name in __all__ if name.endswith("Error") or name == "MissingExtra"}


class _Package(ModuleType):
    """Keeps ``decentral.train`` the function: importing the module of that name would put the module in its place."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value.train if name == "train" and isinstance(value, ModuleType) else value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'decentral' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"decentral.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
