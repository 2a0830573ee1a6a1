"""Many copies of one environment, played side by side.

A copy that finishes takes the next episode at once; nobody waits for the slowest. What goes wrong inside an environment
is data: a finished episode with a fault. Knows nothing about who answers.
"""

from __future__ import annotations

__all__ = ["Episode", "Finished", "Fleet"]

from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from decentral.envs.game import Game
from decentral.envs.turn import Outcome, Turn
from decentral.errors import EnvError, LinkError


class Episode(msgspec.Struct, frozen=True):
    """One play to come."""

    id: int
    group: int
    """Episodes of one group have the same seed."""
    seed: int


class Finished(msgspec.Struct, frozen=True):
    """One play that is over."""

    episode: Episode
    outcomes: dict[str, Outcome]
    """Empty after a fault."""
    fault: str
    """Why the environment could not be played on, or empty."""
    steps: list[dict[str, str]]
    """The actions of every step: agent -> text."""


class _Table:
    """An open episode: its copy and the answers of a step so far."""

    def __init__(self, episode: Episode, game: Game) -> None:
        self.episode = episode
        self.game = game
        self.answers: dict[str, str] = {}


class Fleet:
    """At most ``copies`` episodes at a time; each copy is made when it is first needed."""

    def __init__(self, make: Callable[[], Game], copies: int) -> None:
        self._make = make
        self._copies = copies
        self._spare: list[Game] = []
        self._queue: deque[Episode] = deque()
        self._open: dict[int, _Table] = {}
        self._finished: list[Finished] = []

    @property
    def idle(self) -> bool:
        """Says whether nothing is queued and nothing open."""
        return not self._queue and not self._open

    def load(self, episodes: Sequence[Episode]) -> None:
        """Queues episodes, and starts as many as there are copies free."""
        self._queue.extend(episodes)
        self._fill()

    def pending(self) -> list[tuple[Episode, Turn]]:
        """Returns the turns not yet answered: episodes in the order they started, agents in the environment's order."""
        return [
            (table.episode, turn)
            for table in self._open.values()
            for turn in table.game.turns()
            if turn.agent not in table.answers
        ]

    def act(self, episode_id: int, agent: str, action: str) -> None:
        """Takes one answer; the last one that a copy waits for steps it.

        Raises LinkError for an episode that is not open, an agent that need not act, or an action that is not legal;
        nothing has happened then.
        """
        table = self._open.get(episode_id)
        if table is None:
            raise LinkError(
                f"an action of {agent!r} came for episode {episode_id}, which is not open; answer open turns"
            )
        turns = table.game.turns()
        turn = next((turn for turn in turns if turn.agent == agent), None)
        if turn is None or agent in table.answers:
            raise LinkError(f"{agent!r} need not act in episode {episode_id}; answer each turn once")
        if turn.legal and action not in turn.legal:
            raise LinkError(
                f"{action!r} of {agent!r} is not among its legal actions {list(turn.legal)}; choose one of them"
            )
        table.answers[agent] = action
        if len(table.answers) == len(turns):
            self._step(table)

    def finished(self) -> list[Finished]:
        """Returns what has finished since the last call."""
        done, self._finished = self._finished, []
        return done

    def discard_open(self) -> None:
        """Forgets everything queued, open or finished, so that a phase can be loaded again."""
        self._spare += [table.game for table in self._open.values()]
        self._queue.clear()
        self._open.clear()
        self._finished.clear()

    def close(self) -> None:
        """Closes every copy; the fleet is of no further use."""
        self.discard_open()
        while self._spare:
            self._spare.pop().close()

    def _step(self, table: _Table) -> None:
        answers, table.answers = table.answers, {}
        try:
            table.game.step(answers)
            over = table.game.over
            outcomes = table.game.outcomes() if over else {}
        except EnvError as error:
            self._fault(table, error)
        else:
            if not over:
                return
            self._close(table, outcomes, "")
            self._spare.append(table.game)
        self._fill()

    def _fill(self) -> None:
        """Starts queued episodes on free copies."""
        while self._queue and len(self._open) < self._copies:
            episode = self._queue.popleft()
            game = self._spare.pop() if self._spare else self._make()
            table = self._open[episode.id] = _Table(episode, game)
            try:
                game.reset(episode.seed)
                outcomes = game.outcomes() if game.over else None
            except EnvError as error:
                self._fault(table, error)
                continue
            if outcomes is not None:  # an episode without a single turn
                self._close(table, outcomes, "")
                self._spare.append(game)

    def _fault(self, table: _Table, error: EnvError) -> None:
        """Closes an episode that the environment broke; its copy is not used again."""
        self._close(table, {}, str(error))
        table.game.close()

    def _close(self, table: _Table, outcomes: dict[str, Outcome], fault: str) -> None:
        del self._open[table.episode.id]
        self._finished.append(Finished(table.episode, dict(outcomes), fault, table.game.history))
