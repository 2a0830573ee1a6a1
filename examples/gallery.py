"""One game of every suite: what an agent reads in its first turn, and what random play gets. Then trains on one.

usage: python examples/gallery.py [ENVIRONMENT [FOLDER [ITERATIONS]]]

for example: python examples/gallery.py "openspiel/hanabi(players=2,colors=2,ranks=3)"
Training takes seconds where episodes are short, and minutes where they are long, as in lbforaging and rware.
"""

import sys
from statistics import mean

import decentral
from decentral.envs.names import make
from decentral.envs.trace import play

GAMES = [
    "mpe2/simple_spread_v3",
    "classic/leduc_holdem_v4",
    "lbforaging/Foraging-5x5-2p-1f-coop-v3",
    "rware/rware-tiny-2ag-v2",
    "openspiel/hanabi(players=2,colors=2,ranks=3)",
    "textarena/Nim-v0",
    "gymnasium/FrozenLake-v1",
]
EPISODES = 20
SHORT = {"engine": "inline", "groups": 4, "eval_episodes": 40, "agent": {"lr": 1e-3}}


def show(name):
    """Prints a game's first turn, and the means of episodes in which all choose among their legal actions at random."""
    try:
        game = make(decentral.EnvConfig(name=name))
    except decentral.ConfigError as error:  # a package is missing: the message says how to install it
        print(f"skipped: {error}")
        return
    game.reset(seed=0)
    turn = game.turns()[0]
    may = ", ".join(turn.legal[:8]) + (" ..." if len(turn.legal) > 8 else "") if turn.legal else "say anything"
    print(" ", turn.agent)
    for word, text in (("is told", turn.system), ("reads", turn.observation), ("may do", may)):
        print(f"  {word:<9} " + text.replace("\n", "\n" + " " * 12))
    outcomes = [outcome for seed in range(EPISODES) for outcome in play(game, seed).outcomes.values()]
    told = [outcome.success for outcome in outcomes if outcome.success is not None]
    success = f"success {mean(told):.0%}" if told else "no success defined"
    turns, total = (mean(getattr(outcome, field) for outcome in outcomes) for field in ("turns", "total"))
    print(f"  at random {success}, return {total:.2f}, {turns:.1f} turns in an episode")
    game.close()


chosen = sys.argv[1] if len(sys.argv) > 1 else None
folder = sys.argv[2] if len(sys.argv) > 2 else None
iterations = int(sys.argv[3]) if len(sys.argv) > 3 else 5

for name in GAMES:
    print(f"\n{name}")
    show(name)

if chosen:
    print(f"\ntraining on {chosen}")
    try:
        run = decentral.train(chosen, out=folder, iterations=iterations, **SHORT)
    except decentral.DecentralError as error:
        sys.exit(f"error: {error}")
    print(run.results().to_string())
    print("curves and sample episodes:", run.report())
