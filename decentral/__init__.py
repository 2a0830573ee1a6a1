"""Language agents that learn together without a centre. Public names load on first use."""

from __future__ import annotations

__version__ = "0.1.0"
