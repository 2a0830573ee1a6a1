"""Gates: what a task has to pass before anyone practises on it, each decided by running the task.

Knows nothing about how a task is made.
"""

from __future__ import annotations

__all__ = ["GATES", "Report", "Verdict", "check"]

import re
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from statistics import fmean
from zlib import crc32

import msgspec

from decentral.envs.tasks.task import Instance, Task
from decentral.envs.tasks.values import LEVELS
from decentral.errors import DecentralError, said, short

GUESSED = 0.3
"""What guesses, and what is copied from the prompt, may score on average."""
_COMMON = 0.5
"""How often one answer may be the right one, and perturbed orders; what share of its steps a level may lose."""
_GUESSES = 6


class Trial(msgspec.Struct, frozen=True):
    """An instance and where it comes from."""

    level: int
    seed: int
    instance: Instance


class Verdict(msgspec.Struct, frozen=True):
    """What one gate says of a task."""

    gate: str
    ok: bool
    detail: str
    """What was found; when it is not ok, what to change."""
    level: int | None = None
    seed: int | None = None
    """Of the first instance that shows it."""

    @property
    def place(self) -> str:
        """Where it shows, e.g. ``level 0, seed 3``; empty if nowhere."""
        return "" if self.seed is None else f"level {self.level}, seed {self.seed}"


class Report(msgspec.Struct, frozen=True):
    """The verdicts on a task, in the order of the gates; the first that nothing can be done without ends them."""

    name: str
    verdicts: tuple[Verdict, ...]

    @property
    def ok(self) -> bool:
        """Says whether the task passes all gates."""
        return not self.failures

    @property
    def failures(self) -> tuple[Verdict, ...]:
        """The verdicts that are not ok."""
        return tuple(verdict for verdict in self.verdicts if not verdict.ok)

    def __str__(self) -> str:
        """Returns the failures, a line each; all verdicts if there is none."""
        head = f"{self.name} {'passes' if self.ok else 'fails'}"
        shown = self.failures or self.verdicts
        return "\n".join(
            [head, *(f"  {one.gate}: {one.detail}" + f" ({one.place})" * bool(one.place) for one in shown)]
        )

    __repr__ = __str__  # what pytest shows of an assertion's message


def check(task: Task, seeds: Sequence[int] = range(8), *, scale: float = 1.0) -> Report:
    """Runs ``task`` with these seeds on every level and returns what each gate says.

    ``scale`` below 1 tightens every limit on a mean, so that a task which passes on few seeds passes on others too.

    >>> from decentral.envs.tasks.ids import build
    >>> report = check(build("seq(reverse,reverse,total)"))
    """
    trials: list[Trial] = []
    for level in range(LEVELS):
        for seed in seeds:
            try:
                trials.append(Trial(level, seed, task.instance(seed, level)))
            except Exception as error:  # noqa: BLE001  what a user's task raises is a verdict
                what = str(error) if isinstance(error, DecentralError) else f"{type(error).__name__}: {said(error)}"
                return Report(task.name, (Verdict("runs", False, what, level, seed),))
    runs = Verdict("runs", True, f"{len(trials)} instances on {LEVELS} levels")
    return Report(task.name, (runs, *(gate(task, trials, scale) for gate in GATES)))


def parses(task: Task, trials: Sequence[Trial], scale: float) -> Verdict:
    """Every reference answer is read back from its text."""
    for trial in trials:
        fields = trial.instance.answer.split(";")
        try:
            found = tuple(kind.parse(field) for kind, field in zip(task.answers, fields, strict=True))
        except ValueError as error:
            return _failed("parses", f"the reference answer cannot be read: {error}", trial)
        if found != trial.instance.values:
            return _failed("parses", f"{short(trial.instance.answer)} is read as {short(found)}: mend the kind", trial)
    return Verdict("parses", True, "every reference answer is read back")


def deterministic(task: Task, trials: Sequence[Trial], scale: float) -> Verdict:
    """The same seed gives the same question and answer."""
    for trial in trials:
        if task.instance(trial.seed, trial.level) != trial.instance:
            return _failed(
                "deterministic",
                "one seed gives two instances: let the map and draw depend on their arguments only",
                trial,
            )
    return Verdict("deterministic", True, "the same seed gives the same instance")


def not_constant(task: Task, trials: Sequence[Trial], scale: float) -> Verdict:
    """No answer is right most of the time."""
    ((answer, times),) = Counter(trial.instance.answer for trial in trials).most_common(1)
    found = f"{short(answer)} is the answer to {times} of {len(trials)}"
    if times > scale * _COMMON * len(trials):
        trial = next(trial for trial in trials if trial.instance.answer == answer)
        return _failed("not_constant", f"{found}: draw inputs that lead to different answers", trial)
    return Verdict("not_constant", True, f"at most {times} of {len(trials)} have the same answer")


def reference(task: Task, trials: Sequence[Trial], scale: float) -> Verdict:
    """The reference answer scores 1 and a perturbed one less; where others may be right too, less on average."""
    random = _random(task)
    perturbed = []
    for trial in trials:
        own = task.score(trial.instance, trial.instance.answer)
        if own != 1.0:
            return _failed("reference", f"the reference answer scores {own:g} and not 1: mend the verifier", trial)
        text = _perturbed(task, random, trial.instance)
        perturbed.append(task.score(trial.instance, text))
        if task.exact and perturbed[-1] >= 1.0:
            return _failed(
                "reference",
                f"{short(text)} scores 1 as {short(trial.instance.answer)} does: let the verifier tell them apart",
                trial,
            )
    mean = fmean(perturbed)
    if not task.exact and mean > scale * _COMMON:
        trial = trials[perturbed.index(max(perturbed))]
        return _failed("reference", f"perturbed answers score {mean:.2f}: choose steps that do not commute", trial)
    return Verdict("reference", True, f"reference answers score 1, perturbed ones {mean:.2f}")


def no_leak(task: Task, trials: Sequence[Trial], scale: float) -> Verdict:
    """The answer is seldom what the prompt gives as data or says in the description, and on no level always."""
    shares = [_leaked(trial.instance) for trial in trials]
    mean = fmean(shares)
    worst = max(range(LEVELS), key=lambda level: _mean_at(level, trials, shares))
    if mean > scale * GUESSED or _mean_at(worst, trials, shares) == 1.0:
        where, share = ("", mean) if mean > scale * GUESSED else (f" of level {worst}", 1.0)
        return _failed(
            "no_leak",
            f"{100 * share:.0f} % of the answers{where} stand in the prompt: draw inputs that need work",
            next(trial for share, trial in zip(shares, trials) if share and trial.level == worst),
        )
    return Verdict("no_leak", True, f"{100 * mean:.0f} % of the answers stand in the prompt")


def level(task: Task, trials: Sequence[Trial], scale: float) -> Verdict:
    """Declared steps rise from the lower over the middle to the upper levels, and fall to half on none."""
    steps = [task.steps(trial.instance.input) for trial in trials]
    means = [_mean_at(level, trials, steps) for level in range(LEVELS)]
    lower, middle, upper = (fmean(means[start:end]) for start, end in ((0, 3), (3, 7), (7, LEVELS)))
    worst = min(range(LEVELS), key=lambda level: means[level] / max(means[: level + 1]))
    shown = " ".join(f"{mean:.3g}" for mean in means)
    if lower >= scale * middle or middle >= scale * upper or means[worst] < _COMMON * max(means[:worst], default=0.0):
        trial = next(trial for trial in trials if trial.level == worst)
        return _failed("level", f"steps by level are {shown}: let draw make more work at a higher level", trial)
    return Verdict("level", True, f"steps by level are {shown}")


def guessing(task: Task, trials: Sequence[Trial], scale: float) -> Verdict:
    """Random answers of the right kinds and about the right size seldom score."""
    random = _random(task)
    scores = [
        fmean(task.score(trial.instance, _guessed(task, random, trial.instance)) for _ in range(_GUESSES))
        for trial in trials
    ]
    mean = fmean(scores)
    if mean > scale * GUESSED:
        trial = max(zip(scores, trials), key=lambda pair: pair[0])[1]
        return _failed(
            "guessing",
            f"guesses score {mean:.2f}, above {scale * GUESSED:.2f}: ask for an answer that is harder to guess",
            trial,
        )
    return Verdict("guessing", True, f"guesses score {mean:.2f}")


GATES: tuple[Callable[[Task, Sequence[Trial], float], Verdict], ...] = (
    parses,
    deterministic,
    not_constant,
    reference,
    no_leak,
    level,
    guessing,
)
"""What follows ``runs``, in order."""


def _failed(gate: str, detail: str, trial: Trial) -> Verdict:
    return Verdict(gate, False, detail, trial.level, trial.seed)


def _mean_at(level: int, trials: Sequence[Trial], values: Sequence[float]) -> float:
    return fmean(value for trial, value in zip(trials, values) if trial.level == level)


def _random(task: Task) -> Random:
    return Random(crc32(task.name.encode()))


def _perturbed(task: Task, random: Random, instance: Instance) -> str:
    values = list(instance.values)
    place = random.randrange(len(values))
    values[place] = task.answers[place].near(random, values[place])
    return task.show(values)


def _guessed(task: Task, random: Random, instance: Instance) -> str:
    return task.show([kind.guess(random, value) for kind, value in zip(task.answers, instance.values)])


def _leaked(instance: Instance) -> float:
    """Returns the share of an answer's values that are a whole line of data, or stand in the description as words."""
    lines = instance.prompt.split("\n")
    data = {line[2:] for line in lines if line.startswith("> ")}
    told = "\n".join(line for line in lines if not line.startswith("> "))
    fields = instance.answer.split("; ")
    return fmean(
        field in data or re.search(rf"(?<!\S){re.escape(field)}(?![^\s.,:])", told) is not None for field in fields
    )
