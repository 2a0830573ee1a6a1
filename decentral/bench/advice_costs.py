"""What advice costs in time, and peers that keep it back: trainings with and without, in turn, one process per agent.

A pair is measured once. Knows nothing about what advice is good for.
"""

from __future__ import annotations

__all__ = ["CASES", "costs"]

import math
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from decentral.bench.grid import Grid
from decentral.intervals import student
from decentral.train import train

PAIRS = 5
_OURS = {"agent": {"advice": {"rule": "ours"}}}
_THREE = {"env": {"name": "meet", "options": {"agents": 3}}, **_OURS}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "advice between two agents": ({"env": "meet"}, {"env": "meet", **_OURS}),
    **{
        f"one of three is {kind}": (_THREE, _THREE | {"agents": {"bob": {"advice": {"teacher": kind}}}})
        for kind in ("silent", "slow", "flooding")
    },
}
"""By what is measured, fields of `Config` without it and with it."""
LONG: dict[str, Any] = {"iterations": 20, "eval_episodes": 2}
QUICK: dict[str, Any] = {"iterations": 1, "groups": 1, "group": 2, "eval_episodes": 2, "engine": "inline"}


def costs(
    quick: bool, report: Callable[[str], object], out: Path, fingerprint: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Returns ``{"what", "percent", "ci95", "pairs"}`` of every case: time of training that it adds, in percent.

    Args:
        quick: one short pair of the first case.
        report: called with a line as each pair is measured.
        out: folder of the pairs.
        fingerprint: what they depend on besides.

    The middle is the geometric mean over pairs, each of one seed; the interval is Student's.
    """
    size = QUICK if quick else LONG
    rows = []
    with Grid(out) as grid:
        for what, arms in list(CASES.items())[: 1 if quick else None]:
            logs = []
            for pair in range(1 if quick else PAIRS):

                def measure(arms: tuple[dict[str, Any], ...] = arms, seed: int = pair) -> list[float]:
                    order = arms if seed % 2 == 0 else arms[::-1]
                    seconds = [_seconds(out / "run", arm | size | {"seed": seed}) for arm in order]
                    return seconds if seed % 2 == 0 else seconds[::-1]

                without, with_ = grid.cell({"what": what, "pair": pair}, {**fingerprint, "size": size}, measure)
                logs.append(math.log(with_ / without))
                report(f"{what}, pair {pair}: {100 * (with_ / without - 1):+.1f} %")
            found = [100 * math.expm1(value) if math.isfinite(value) else None for value in student(logs)]
            rows.append({"what": what, "percent": found[0], "ci95": found[1:], "pairs": len(logs)})
    return rows


def _seconds(folder: Path, fields: Mapping[str, Any]) -> float:
    """Trains in a folder that is then removed, and returns how long the iterations took."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        fields = dict(fields)
        phases = train(fields.pop("env"), out=folder, **fields).phases()
        return float(phases[phases["phase"] == "train"].drop_duplicates("iteration")["seconds"].sum())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
