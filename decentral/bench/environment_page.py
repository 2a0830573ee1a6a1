"""``docs/environments.md``: ``python -m decentral.bench.environment_page`` writes it from the benchmark's results."""

from __future__ import annotations

__all__ = ["page"]

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path("docs/results/environments.json")
_OPENING = """# Environments

Measured by `decentral bench environments` ([`environments.json`](results/environments.json)), from which this page is
made.

- **turn**: tokens that one turn adds to an agent's stream, all that it reads and its longest action, by the tokenizer
  of `pocket`: median and largest of three episodes of random play. **actions**: the least, the median and the largest
  number of legal actions; free: any text may be said in some turns.
- **fork**: how a state can be restored in the middle of an episode, as proven by playing on from copies. **checks**:
  whether `decentral envs check` passes.
- **step**: processor time of one step of the environment without this library, resets included. An AEC step is one
  action of one agent, with `last()`, its mask, and the steps of dead agents; a Parallel or Gymnasium step is one action
  of all. OpenSpiel is stepped with `observation_string` and `legal_actions` of who acts, TextArena with
  `get_observation()`. **ours / raw**: the ratio of steps per second through our view, every text of every turn
  included, to those without it: the median of {pairs} pairs of stretches, with the range that holds it with 95 %
  confidence. Both sides play with the same seeds and prepared random numbers. The ratio of mpe2 is above 1 since
  its adapter leaves out two wrappers of PettingZoo, whose checks the view makes itself.

"""
_HEAD = (
    "| environment | API | turn | actions | success | fork | checks | step, µs | ours / raw |\n"
    "|---|---|---|---|---|---|---|---|---|\n"
)


def page(found: Mapping[str, Any]) -> str:
    """Returns the page as Markdown; ``found`` is what the benchmark returns."""
    text = _OPENING.format(pairs=found["pairs"]) + _HEAD + "".join(map(_line, found["rows"]))
    slow = [row for row in found["rows"] if row["raw_us"] > 20]
    below = [f"`{row['environment']}`" for row in slow if row["ratio"] < 0.7]
    text += (
        f"\nOf the {len(slow)} environments whose own step takes over 20 µs, {len(slow) - len(below)} reach 0.7"
        f"{'; below it are ' + ', '.join(below) if below else ''}. A view has a price of its own in every step, of "
        "texts, checks, and books for each agent that acts, so that short steps pay most. "
        "TextArena's games also have their chance kept apart from the global generators that they draw from.\n"
    )
    if found["skipped"]:
        text += f"\nNot installed when this was measured: {', '.join(found['skipped'])}.\n"
    packages = ("python", "numpy", "gymnasium", "pettingzoo", "mpe2", "lbforaging", "rware", "open_spiel", "textarena")
    known = [f"{one} {found['versions'][one]}" for one in packages if one in found["versions"]]
    return f"{text}\n{', '.join(known)}; commit {found['commit']}.\n"


def _line(row: Mapping[str, Any]) -> str:
    legal = " / ".join(map(str, row["legal"]))
    actions = f"{legal}, free" if legal and row["free_turns"] else legal or "free"
    cells = (
        f"`{row['environment']}`",
        row["api"],
        " / ".join(map(str, row["tokens"])),
        actions,
        row["success"] or "none: the return",
        row["fork"] or "no",
        f"{len(row['failed'])} fail" if row["failed"] else "pass",
        f"{row['raw_us']:.0f}",
        f"{row['ratio']:.2f} [{row['low']:.2f}, {row['high']:.2f}]",
    )
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    sys.stdout.write(page(json.loads(RESULTS.read_text())))
