"""Environments of other libraries as PettingZoo ones with text views: a file per library, imported by name only."""
