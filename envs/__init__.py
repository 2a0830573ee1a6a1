"""Environments: one turn-based view over PettingZoo, text views of spaces, built-in games."""
