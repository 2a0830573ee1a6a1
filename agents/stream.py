"""The context buffer: an agent's view of one episode, an append-only stream of typed segments.

Tokens are encoded once, when a segment is appended, and never rendered again (T1, arXiv 2609.11042), so the learner
trains on exactly the ids that were sampled, in exactly the context they were sampled in. Where the model's window is
full a new chunk starts: the opening (start tokens and system segment) and the newest whole segments that fit in half
the window.
"""

from __future__ import annotations

__all__ = ["Choice", "Chunk", "Segment", "Stream"]

from dataclasses import dataclass, field

from decentral.agents.format import Kind
from decentral.errors import EnvError

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One sampled token: where it stands, among which it was drawn, and how."""

    at: int
    """Its index in the chunk's ids; the distribution is read at ``at - 1``."""
    turn: int
    allowed: Ids | None
    """The tokens it was drawn from (at least two), or none for the whole vocabulary."""
    logp: float
    """Log-probability with which it was drawn, after temperature, in nats."""
    entropy: float
    """Of that restricted distribution of the policy, in nats."""
    weight: float = 1.0
    """The policy's probability of the action over the one that it was drawn with: 1 unless advice had a part in it."""


@dataclass(slots=True)
class Segment:
    """A typed piece of the stream."""

    kind: Kind
    ids: Ids
    round: int
    text: str
    legal: tuple[str, ...] = ()
    logp: tuple[float, ...] = ()
    """Sampled segments: behaviour log-probability per token of ``ids``, 0 where forced or given."""
    entropy: tuple[float, ...] = ()


@dataclass(slots=True)
class Chunk:
    """A stretch of tokens that one forward pass can read, with the choices made in it."""

    ids: list[int] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)


@dataclass(slots=True)
class Stream:
    """One episode as one agent saw it. ``chunks[-1]`` is the context of the next turn."""

    window: int
    start: Ids = ()
    segments: list[Segment] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    turns: int = 0

    def __post_init__(self) -> None:
        self.chunks.append(Chunk(list(self.start)))

    @property
    def ids(self) -> list[int]:
        """The token ids of the open chunk."""
        return self.chunks[-1].ids

    def append(self, segment: Segment) -> None:
        """Adds a segment that was read, not sampled, to the open chunk."""
        self.segments.append(segment)
        self.ids.extend(segment.ids)

    def seal(self, segment: Segment) -> None:
        """Adds a segment whose tokens were put into ``ids`` one by one as they were sampled."""
        self.segments.append(segment)

    def make_room(self, tokens: int) -> bool:
        """Starts a new chunk if ``tokens`` more would not fit the window; returns whether it did.

        Raises:
            EnvError: the newest turn alone does not fit.
        """
        if len(self.ids) + tokens <= self.window:
            return False
        head = [s for s in self.segments if s.kind == "system"]
        kept: list[Segment] = []
        size = len(self.start) + sum(len(s.ids) for s in head)
        for segment in reversed(self.segments):
            if segment.kind == "system":
                continue
            if kept and size + len(segment.ids) > self.window // 2:
                break
            kept.append(segment)
            size += len(segment.ids)
        if size + tokens > self.window:
            raise EnvError(
                f"one turn needs {size + tokens} tokens and the window holds {self.window}; "
                "shorten the text view or choose a model with a larger window"
            )
        ids = list(self.start)
        for segment in [*head, *reversed(kept)]:
            ids.extend(segment.ids)
        self.chunks.append(Chunk(ids))
        return True
