"""What a result depends on besides its config: versions of packages, and hashes of the models' weights."""

from __future__ import annotations

__all__ = ["commit", "model_hashes", "versions"]

import platform
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from decentral.agents.config import AgentConfig
from decentral.agents.folders import head_folder, weights_hash

_RECORDED = ("decentral", "torch", "transformers", "peft", "pettingzoo", "gymnasium", "numpy", "msgspec", "pyzmq")


def versions() -> dict[str, str]:
    """Returns the versions of Python, the platform and the packages that are installed."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in _RECORDED:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def model_hashes(agents: Iterable[AgentConfig]) -> dict[str, str]:
    """Returns the first digits of the SHA-256 of every model's and draft head's weights, by name."""
    names: dict[str, str] = {}
    for agent in agents:
        if agent.kind in ("learning", "frozen"):
            names[agent.model] = agent.model
            if agent.draft != "plain":
                names[agent.draft_head or f"{agent.model}/mtp"] = str(head_folder(agent.model, agent.draft_head))
    return {name: found for name, folder in sorted(names.items()) if (found := weights_hash(folder))}


def commit() -> str | None:
    """Returns the commit of a checkout, with ``-dirty`` where it was changed; none for an installed package."""
    root = Path(__file__).parents[1]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or None
