"""Trains a draft head on passages that its policy sampled; the policy's own weights stay as they are.

Started from every token of a run, the head is unrolled over the tokens behind it, as far as the run goes: never across
its end. Source: Bebop (arXiv 2606.12370), losses and recipe.
"""

from __future__ import annotations

__all__ = ["Acceptance", "DraftTrainer", "Reading", "batches", "measure", "read"]

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from decentral.agents.distribution import entropy, tempered
from decentral.agents.draft import DraftHead, unroll
from decentral.agents.losses import LOSSES, overlap
from decentral.agents.moments import load_optimiser, save_optimiser
from decentral.agents.passage import Passage
from decentral.agents.scoring import pack
from decentral.agents.trunk import Trunk

DEPTH = 5
"""Tokens that a head is unrolled over in training (Bebop: 5, of which 3 are used)."""
_CLIP = 1.0
"""Largest gradient norm."""
_POSITIONS = 256
"""Rows of full-vocabulary logits at a time."""


@dataclass(frozen=True)
class Reading:
    """A passage and the policy's (n, H) hidden states after the final norm, in the policy's dtype, on the CPU."""

    passage: Passage
    hidden: Tensor


def read(trunk: Trunk, passages: Sequence[Passage], tokens: int) -> list[Reading]:
    """Runs the policy once over passages, at most ``tokens`` (rows x longest) at a time."""
    readings: list[Reading | None] = [None] * len(passages)
    device = trunk.embedding.device
    for batch in pack([len(passage.ids) for passage in passages], tokens):
        ids = _pad([passages[i].ids for i in batch]).to(device)
        positions = torch.arange(ids.shape[1], device=device).expand(len(batch), -1)
        with torch.no_grad():
            hidden = trunk.hidden(ids, positions, use_cache=False).cpu()
        for i, states in zip(batch, hidden):
            readings[i] = Reading(passages[i], states[: len(passages[i].ids)].clone())
    return [reading for reading in readings if reading is not None]


@dataclass(frozen=True)
class Acceptance:
    """How many drafts would be accepted, by position from the first; expectations, not draws."""

    rejection: list[float]
    """Mean of 1 - TV(p, q)."""
    target_only: list[float]
    """Mean of p(argmax q)."""
    entropy: float
    """Mean entropy of p at drafted positions, in nats."""
    count: list[int]
    """Positions measured."""


class DraftTrainer:
    """A head and its own optimiser."""

    def __init__(self, head: DraftHead, loss: str, lr: float, depth: int = DEPTH) -> None:
        """
        Args:
            head: what is trained.
            loss: a key of ``LOSSES``.
            lr: of AdamW; may be changed before every step.
            depth: tokens to unroll over.
        """
        self.lr = lr
        self.updates = 0
        self._head = head
        self._loss = LOSSES[loss]
        self._depth = depth
        self._optimiser = torch.optim.AdamW(head.parameters(), lr=lr, betas=(0.9, 0.95), weight_decay=0.0)

    def step(self, readings: Sequence[Reading]) -> float:
        """Makes one optimiser step on readings of one temperature and returns the loss before it."""
        view = _outlook(self._head, readings, self._depth)
        loss = self._loss(view.p, view.logits, view.taken, view.mask)
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._head.parameters(), _CLIP)
        for group in self._optimiser.param_groups:
            group["lr"] = self.lr
        self._optimiser.step()
        self.updates += 1
        return loss.item()

    def save(self, file: Path) -> None:
        """Writes the optimiser's moments."""
        save_optimiser(self._optimiser, dict(self._head.named_parameters()), file, self.updates)

    def load(self, file: Path) -> None:
        """Restores what ``save`` wrote. Raises ModelError."""
        self.updates = load_optimiser(self._optimiser, dict(self._head.named_parameters()), file)


def batches(readings: Sequence[Reading], tokens: int) -> Iterator[list[Reading]]:
    """Yields batches of one temperature and of rows of like length, at most ``tokens`` (rows x longest) each."""
    for temperature in sorted({reading.passage.temperature for reading in readings}):
        some = [reading for reading in readings if reading.passage.temperature == temperature]
        for batch in pack([len(reading.hidden) for reading in some], tokens):
            yield [some[i] for i in batch]


def measure(head: DraftHead, readings: Sequence[Reading], depth: int, tokens: int) -> Acceptance:
    """Returns what a head would get accepted on text that its policy sampled."""
    sums = torch.zeros(3, depth, dtype=torch.float64)
    counts = torch.zeros(depth, dtype=torch.int64)
    for batch in batches(readings, tokens):
        with torch.no_grad():
            view = _outlook(head, batch, depth, nats=True)
        q = view.logits.softmax(-1)
        greedy = view.p.gather(-1, q.argmax(-1, keepdim=True))[..., 0]
        for i, value in enumerate((overlap(view.p, q), greedy, view.nats)):
            sums[i] += torch.where(view.mask, value, 0.0).sum(0).double().cpu()
        counts += view.mask.sum(0).cpu()
    means = (sums / counts.clamp(min=1)).tolist()
    total = max(1, int(counts.sum()))
    return Acceptance(means[0], means[1], float(sums[2].sum()) / total, counts.tolist())


@dataclass(frozen=True)
class _Outlook:
    """What lies ahead of N places from which a draft could start, S tokens being proposed."""

    p: Tensor
    """(N, K, S) of the policy."""
    nats: Tensor
    """(N, K) the policy's entropy, if asked for."""
    logits: Tensor
    """(N, K, S) of the head, after temperature."""
    taken: Tensor
    """(N, K) columns of the tokens that were drawn, -1 off the shortlist."""
    mask: Tensor
    """(N, K) whether the token was drawn in the same run as those before."""


def _outlook(head: DraftHead, readings: Sequence[Reading], depth: int, nats: bool = False) -> _Outlook:
    """Looks ahead from every token that was, with the next one, drawn in one run."""
    device = head.join.device
    ids = _pad([reading.passage.ids for reading in readings]).to(device)
    hidden = torch.nn.utils.rnn.pad_sequence([reading.hidden for reading in readings], batch_first=True).to(device)
    places = [
        [(at - 1, end) for start, end in reading.passage.runs for at in range(start, end - 1)] for reading in readings
    ]
    width = max(map(len, places))
    start, end = torch.tensor([row + [(0, 0)] * (width - len(row)) for row in places], device=device).unbind(-1)
    row, column = torch.nonzero(end > 0, as_tuple=True)
    lean = head.trunk.embedding.dtype == torch.bfloat16
    with torch.autocast(device.type, torch.bfloat16, enabled=lean):  # the head's weights and their updates are float32
        drafted = unroll(head, ids, hidden, start, depth)[row, column]
        logits = torch.nn.functional.linear(drafted, head.output()).float()
    end, at = end[row, column], start[row, column]
    ahead = at[:, None] + 2 + torch.arange(depth, device=device)  # the tokens to be drafted
    mask = ahead < end[:, None]
    ahead = torch.minimum(ahead, end[:, None] - 1)
    temperature = readings[0].passage.temperature
    wanted, place = torch.unique(row[:, None] * ids.shape[1] + ahead - 1, return_inverse=True)
    p, spread = _policy(head, hidden.flatten(0, 1)[wanted], temperature, nats)
    taken = ids[row[:, None], ahead]
    if head.shortlist is not None:
        listed = torch.full((head.trunk.embedding.shape[0],), -1, device=device)
        listed[head.shortlist] = torch.arange(len(head.shortlist), device=device)
        taken = listed[taken]
    return _Outlook(p[place], spread[place], tempered(logits, temperature), taken, mask)


def _policy(head: DraftHead, hidden: Tensor, temperature: float, nats: bool) -> tuple[Tensor, Tensor]:
    """Returns the policy's (P, S) probabilities of the shortlist and (P,) entropies from its (P, H) hidden states.

    The entropies, which cost as much again, are 0 unless ``nats``.
    """
    parts, spread = [], []
    with torch.no_grad():
        for part in torch.split(hidden, _POSITIONS):
            logits = tempered(head.trunk.logits(part).float(), temperature)
            p = logits.softmax(-1)
            parts.append(p if head.shortlist is None else p[:, head.shortlist])
            spread.append(entropy(logits.log_softmax(-1), p) if nats else logits.new_zeros(len(logits)))
    return torch.cat(parts), torch.cat(spread)


def _pad(rows: Sequence[Sequence[int]]) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])
