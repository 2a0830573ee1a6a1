"""Intervals around a mean in [0, 1], and around the difference of two that were measured on the same seeds.

Pure functions over floats. Knows nothing about runs, agents or tables.
"""

from __future__ import annotations

__all__ = ["Interval", "mean_interval", "paired_difference", "paired_mean_difference", "student", "wilson"]

import math
from collections.abc import Sequence
from typing import NamedTuple

Z95 = 1.959963984540054
"""Two-sided 95 % quantile of the normal distribution."""

_STUDENT = dict(enumerate((12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228), start=2))
"""The same of Student's distribution, by the number of values."""


class Interval(NamedTuple):
    """An estimate between its 95 % bounds."""

    value: float
    low: float
    high: float


def wilson(values: Sequence[float]) -> Interval:
    """Returns the mean of ``values`` in [0, 1] with Wilson's score interval.

    Exact in form for 0/1 outcomes; for values in between it is conservative, since their variance is at most
    p(1 - p). No values: (nan, 0, 1). Source: Wilson, JASA 22 (1927).

    >>> [round(x, 3) for x in wilson([1.0] * 9 + [0.0])]
    [0.9, 0.596, 0.982]
    """
    n = len(values)
    if not n:
        return Interval(math.nan, 0.0, 1.0)
    p = sum(values) / n
    centre = (p + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 / (1 + Z95**2 / n) * math.sqrt(max(0.0, p * (1 - p)) / n + Z95**2 / (4 * n**2))
    return Interval(p, min(p, max(0.0, centre - half)), max(p, min(1.0, centre + half)))


def mean_interval(values: Sequence[float]) -> Interval:
    """Returns the mean of ``values`` with the normal 95 % interval; infinitely wide below two values."""
    n = len(values)
    if not n:
        return Interval(math.nan, -math.inf, math.inf)
    mean = sum(values) / n
    if n == 1:
        return Interval(mean, -math.inf, math.inf)
    half = Z95 * math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)
    return Interval(mean, mean - half, mean + half)


def student(values: Sequence[float]) -> Interval:
    """Returns the mean of at most eleven ``values``, such as one per seed, with Student's 95 % interval.

    Infinitely wide below two values.

    >>> [round(x, 2) for x in student([1.0, 2.0, 3.0])]
    [2.0, -0.48, 4.48]
    """
    n = len(values)
    mean = sum(values) / n if n else math.nan
    if n < 2:
        return Interval(mean, -math.inf, math.inf)
    half = _STUDENT[n] * math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)
    return Interval(mean, mean - half, mean + half)


def paired_difference(first: Sequence[float], second: Sequence[float]) -> Interval:
    """Returns mean(first) - mean(second) of values in [0, 1] that were measured in pairs, with Newcombe's interval.

    It joins the two Wilson intervals and their correlation, so it stays honest at 0 % and 100 %, where the spread
    of the differences vanishes. Source: Newcombe, Statistics in Medicine 17 (1998) 2635, method 10 without the
    continuity correction. Raises ValueError if the lengths differ.
    """
    a, b = wilson(first), wilson(second)
    phi = _correlation(first, second)
    down_a, down_b, up_a, up_b = a.value - a.low, b.value - b.low, a.high - a.value, b.high - b.value
    delta = a.value - b.value
    low = math.sqrt(max(0.0, down_a**2 - 2 * phi * down_a * up_b + up_b**2))
    high = math.sqrt(max(0.0, up_a**2 - 2 * phi * up_a * down_b + down_b**2))
    return Interval(delta, max(-1.0, delta - low), min(1.0, delta + high))


def paired_mean_difference(first: Sequence[float], second: Sequence[float]) -> Interval:
    """Returns mean(first - second) with the normal 95 % interval of the pairwise differences."""
    return mean_interval([x - y for x, y in zip(first, second, strict=True)])


def _correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Pearson's correlation, 0 where either side does not vary."""
    pairs = list(zip(first, second, strict=True))
    if not pairs:
        return 0.0
    mean_a, mean_b = sum(first) / len(pairs), sum(second) / len(pairs)
    var_a = sum((x - mean_a) ** 2 for x, _ in pairs)
    var_b = sum((y - mean_b) ** 2 for _, y in pairs)
    if not var_a or not var_b:
        return 0.0
    return sum((x - mean_a) * (y - mean_b) for x, y in pairs) / math.sqrt(var_a * var_b)
