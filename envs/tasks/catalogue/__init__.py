"""The catalogue of base tasks, one file per family; ``draws.py`` is what they draw inputs with.

Knows nothing about operators or gates. In every sentence "mod n" is the remainder from 0 to n - 1. The order in a file
counts: the first n tasks of the catalogue are taken from the families in turn, so those that connect best come first.
"""
