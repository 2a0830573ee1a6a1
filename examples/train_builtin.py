"""Two language agents learn to meet on a grid, each in a process of its own.

usage: python examples/train_builtin.py [FOLDER [ITERATIONS]]
"""

import sys

import decentral

folder = sys.argv[1] if len(sys.argv) > 1 else None
iterations = int(sys.argv[2]) if len(sys.argv) > 2 else 40

run = decentral.train("meet", iterations=iterations, out=folder)

print(run.results().to_string())
print(run.metrics().groupby("agent")[["success", "entropy", "kl"]].last())

ada = run.agent("ada")
print("ada, at 1 3, sees nobody and goes", ada.act("you 1 3 bob unseen", ["north", "south", "east", "stay"]))
run.plot_learning().savefig(run.path / "learning.png")
print("plots and sample episodes:", run.report())
