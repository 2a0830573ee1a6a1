"""The built-in cooperative games: one module each, with ``env(level)``, ``LEVELS`` and ``scratch(observation)``."""
