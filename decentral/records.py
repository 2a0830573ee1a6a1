"""What the host writes down: a line per episode, a line per phase, and the summary. Knows no link and no process."""

from __future__ import annotations

__all__ = ["Table", "Transcript", "episode_line", "phase_line", "summary"]

from collections.abc import Mapping, Sequence
from typing import Any

from decentral.agents.mind import Phase
from decentral.envs.fleet import Finished
from decentral.envs.turn import Outcome, Turn
from decentral.messages import PhaseClosed


class Transcript:
    """The full text of one episode, turn by turn, as the agents read and wrote it."""

    def __init__(self, episode: int) -> None:
        self.episode = episode
        self.rounds: list[dict[str, Any]] = []
        self._last: dict[str, dict[str, Any]] = {}

    def turn(self, turn: Turn, action: str) -> None:
        """Notes a turn and its answer; the turn's feedback belongs to the agent's previous action."""
        self._feedback(turn.agent, turn.feedback)
        entry = {
            "agent": turn.agent,
            "round": turn.round,
            "observation": turn.observation,
            "action": action,
            "feedback": "",
        }
        self.rounds.append(entry)
        self._last[turn.agent] = entry

    def end(self, finished: Finished) -> None:
        """Notes the last feedback, and puts turns that were taken at once into the environment's order of agents."""
        for name, outcome in finished.outcomes.items():
            self._feedback(name, outcome.feedback)
        if any(len(step) > 1 for step in finished.steps):
            order = {name: place for place, name in enumerate(finished.outcomes)}
            self.rounds.sort(key=lambda entry: (entry["round"], order.get(entry["agent"], 0)))

    def _feedback(self, agent: str, text: str) -> None:
        if text and agent in self._last:
            self._last[agent]["feedback"] = text


def episode_line(phase: Phase, finished: Finished, fault: str, transcript: Transcript | None) -> dict[str, Any]:
    """Returns the line of ``episodes.jsonl``."""
    line: dict[str, Any] = {
        "phase": phase.kind,
        "iteration": phase.iteration,
        "attempt": phase.attempt,
        "episode": finished.episode.id,
        "group": finished.episode.group,
        "seed": finished.episode.seed,
        "agents": {
            name: {
                "return": outcome.total,
                "success": outcome.success,
                "turns": outcome.turns,
                "terminated": outcome.terminated,
                "truncated": outcome.truncated,
            }
            for name, outcome in finished.outcomes.items()
        },
        "fault": fault,
        "steps": finished.steps,
    }
    if transcript is not None:
        transcript.end(finished)
        line["rounds"] = transcript.rounds
    return line


class Table:
    """The figures of one phase while it is played."""

    def __init__(self, agents: Sequence[str], total: int) -> None:
        self.total = total
        self.done = 0
        self.faults = 0
        self._returns: dict[str, list[float]] = {name: [] for name in agents}
        self._successes: dict[str, list[float]] = {name: [] for name in agents}

    def add(self, outcomes: Mapping[str, Outcome], fault: str) -> None:
        """Counts an episode; one with a fault enters no mean."""
        self.done += 1
        if fault:
            self.faults += 1
            return
        for name, outcome in outcomes.items():
            self._returns[name].append(outcome.total)
            if outcome.success is not None:
                self._successes[name].append(outcome.success)

    def closed(self, phase: Phase, seconds: float) -> PhaseClosed:
        """Returns the phase's means, over the agents that played; success is None where nothing defines it."""
        played = {name: values for name, values in self._returns.items() if values}
        return PhaseClosed(
            phase=phase,
            episodes=self.done,
            faults=self.faults,
            seconds=seconds,
            success={name: _mean(self._successes[name]) for name in played},
            returns={name: sum(values) / len(values) for name, values in played.items()},
        )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def phase_line(closed: PhaseClosed) -> dict[str, Any]:
    """Returns the line of ``phases.jsonl``. Where a phase has two lines, the last one counts."""
    return {
        "phase": closed.phase.kind,
        "iteration": closed.phase.iteration,
        "attempt": closed.phase.attempt,
        "episodes": closed.episodes,
        "faults": closed.faults,
        "seconds": round(closed.seconds, 3),
        "success": closed.success,
        "return": closed.returns,
    }


def summary(
    phases: Sequence[Mapping[str, Any]], updates: Mapping[str, int], iterations: int, train_seconds: float
) -> dict[str, Any]:
    """Returns ``summary.json`` from the lines of ``phases.jsonl``: each agent before and after all its updates.

    A figure is None where nothing defines it.
    """
    evals = {line["iteration"]: line for line in phases if line["phase"] == "eval"}
    first, last = evals.get(0, {}), evals.get(iterations, {})
    return {
        "agents": {
            name: {
                "success_first": first.get("success", {}).get(name),
                "success_last": last.get("success", {}).get(name),
                "return_first": first.get("return", {}).get(name),
                "return_last": last.get("return", {}).get(name),
                "updates": count,
            }
            for name, count in updates.items()
        },
        "train_seconds": round(train_seconds, 3),
    }
