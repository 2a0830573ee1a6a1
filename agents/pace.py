"""How many tokens to draft: as many as pay, by measured acceptance and a table of costs.

No clock is read here: the table was measured once and is kept with the head and in every checkpoint, so that a run
remains a function of its config and seed.
"""

from __future__ import annotations

__all__ = ["MOST", "Costs", "Counts", "Measured", "Pace"]

from bisect import bisect_left
from itertools import accumulate
from operator import mul
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from decentral.errors import ModelError

MOST = 8
"""Most tokens drafted at once."""
UNKNOWN = 3
"""Tokens drafted at once where no costs are known."""
_GAIN, _MARGIN = 1.02, 1.1
"""What drafting one more token must promise to be chosen, and what drafting at all must: the promise may be wrong."""
_FILE = "measured.json"
_TRUST = 64.0
"""How many drafts the acceptance that came with the head counts for."""


class Costs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds of one cycle, drafting included, by batch size and number of drafted tokens; per row, times the size."""

    batches: Annotated[list[int], Meta(min_length=1)]
    """Ascending batch sizes."""
    seconds: Annotated[list[list[float]], Meta(min_length=1)]
    """Per batch size: of a plain step, of a cycle with one draft, with two, ..."""

    def __post_init__(self) -> None:
        lengths = {len(row) for row in self.seconds}
        whole = len(self.seconds) == len(self.batches) and len(lengths) == 1 and lengths != {1}
        if not whole or self.batches != sorted({*self.batches}) or not all(s > 0 for row in self.seconds for s in row):
            raise ValueError(
                "the table of costs has rows of unequal length, sizes out of order, or a cost that is not > 0"
            )

    def cycle(self, batch: int, length: int) -> float:
        """Returns seconds, linear between the sizes measured and in proportion beyond the largest."""
        sizes = self.batches
        i = bisect_left(sizes, batch)
        if i == len(sizes):
            return self.seconds[-1][length] * batch / sizes[-1]
        if i == 0 or sizes[i] == batch:
            return self.seconds[i][length]
        share = (batch - sizes[i - 1]) / (sizes[i] - sizes[i - 1])
        return (1 - share) * self.seconds[i - 1][length] + share * self.seconds[i][length]


class Measured(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a head before it is used."""

    acceptance: list[float] = []
    """Share of drafts accepted among those reached, by position, in `rejection` mode, at a temperature near 1."""
    costs: Costs | None = None

    @classmethod
    def load(cls, folder: Path) -> Measured:
        """Reads what ``save`` wrote beside a head; nothing is known where there is no file. Raises ModelError."""
        file = folder / _FILE
        try:
            return msgspec.json.decode(file.read_bytes(), type=cls)
        except FileNotFoundError:
            return cls()
        except (OSError, msgspec.MsgspecError) as error:
            raise ModelError(
                f"{str(file)!r} cannot be read ({error}); remove it, or write it again with decentral mtp measure"
            ) from error

    def save(self, folder: Path) -> None:
        """Writes it beside a head."""
        (folder / _FILE).write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")


class Counts(msgspec.Struct):
    """Drafts by position: how many were proposed, how many were reached, how many were accepted."""

    proposed: list[float] = msgspec.field(default_factory=lambda: [0.0] * MOST)
    reached: list[float] = msgspec.field(default_factory=lambda: [0.0] * MOST)
    """Those before them were accepted."""
    accepted: list[float] = msgspec.field(default_factory=lambda: [0.0] * MOST)

    def add(self, length: int, accepted: int) -> None:
        """Counts one row's drafts of one cycle."""
        for j in range(length):
            self.proposed[j] += 1
            self.reached[j] += j <= accepted
            self.accepted[j] += j < accepted

    def fade(self) -> None:
        """Halves all, so that what was measured under older weights is forgotten."""
        for numbers in (self.proposed, self.reached, self.accepted):
            numbers[:] = [number / 2 for number in numbers]


class Pace:
    """Chooses the length of drafts for a head."""

    def __init__(self, fixed: int = 0, known: Measured | None = None) -> None:
        """
        Args:
            fixed: a length that is always taken, or 0.
            known: of the head, beforehand.
        """
        self.counts = Counts()
        self._fixed = fixed
        self._know(known or Measured())

    def acceptance(self) -> list[float]:
        """Returns the estimated share of accepted drafts among those reached, by position."""
        counts = zip(self.counts.accepted, self.counts.reached, self._prior)
        return [(accepted + _TRUST * prior) / (reached + _TRUST) for accepted, reached, prior in counts]

    def length(self, batch: int) -> int:
        """Returns how many tokens to draft for each of ``batch`` rows; 0: draft nothing."""
        if self._fixed or self.known.costs is None:
            return self.most
        plain, *rates = self._rates(self.known.costs, batch)
        best, rate = 0, plain * _MARGIN
        for length, found in enumerate(rates, 1):
            if found > rate * _GAIN:
                best, rate = length, found
        return best

    def gain(self, batch: int) -> float:
        """Returns how many times as fast as plain sampling the chosen length should be; 1 if costs are unknown."""
        if self.known.costs is None:
            return 1.0
        rates = self._rates(self.known.costs, batch)
        return rates[self.length(batch)] / rates[0]

    def _rates(self, costs: Costs, batch: int) -> list[float]:
        """Returns expected tokens per second of a row, by length."""
        expected = accumulate(accumulate(self.acceptance()[: self.most], mul), initial=1.0)
        return [tokens / costs.cycle(batch, length) for length, tokens in enumerate(expected)]

    def save(self, file: Path) -> None:
        """Writes all that a choice depends on."""
        file.write_bytes(msgspec.json.encode(_State(self.counts, self.known)))

    def load(self, file: Path) -> None:
        """Restores what ``save`` wrote, the costs too: a run keeps those it began with. Raises ModelError.

        A checkpoint from before the model had a head has no such file, and nothing is restored.
        """
        try:
            state = msgspec.json.decode(file.read_bytes(), type=_State)
        except FileNotFoundError:
            return
        except (OSError, msgspec.MsgspecError) as error:
            raise ModelError(
                f"checkpoint {file.parent} cannot be read ({error}); remove it, and the one before it is taken"
            ) from error
        self.counts = state.counts
        self._know(state.known)

    def _know(self, known: Measured) -> None:
        self.known = known
        costs, prior = known.costs, known.acceptance
        self.most = self._fixed or (UNKNOWN if costs is None else min(MOST, len(costs.seconds[0]) - 1))
        self._prior = [*prior, *[prior[-1] if prior else 0.5] * MOST][:MOST]


class _State(msgspec.Struct):
    counts: Counts
    known: Measured
