"""Benchmarks: this library and its peers, run alternately in one command."""
