"""Influence graphs and who-may-advise-whom topologies: networkx and numpy only."""
