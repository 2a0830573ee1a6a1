"""Verifiable tasks: typed maps with a description, composed by four operators, checked by gates."""
