"""An agent's own consensus model: what moments mean to it, learnt so that peers who see one moment agree on it.

Encoder and projector on the policy's hidden state give ``z``; a slowly moving copy, the target, gives what goes to
others. Pairs to agree on are the agent's own neighbouring moments, and its own view of a moment with what a peer sent
of the same one. Source: CCKS, arXiv 2606.12281; DINO, arXiv 2104.14294; InfoNCE, arXiv 1807.03748.
"""

from __future__ import annotations

__all__ = ["Consensus"]

import copy
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor, nn

from decentral.agents.advice import EMBEDDING
from decentral.agents.mind import Metrics
from decentral.agents.moments import load_optimiser, read_tensors, save_optimiser
from decentral.errors import ModelError

_EMA = 0.996
_STEPS, _BATCH, _RATE = 8, 512, 1e-3
_WARM, _SHARP = 0.1, 0.04
"""Temperatures of the student and of the target."""
_WEIGHTS, _MOMENTS = "consensus.safetensors", "consensus_optimiser.safetensors"


class _Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        sizes = ((width, 128), (128, 64), (64, 64), (64, EMBEDDING))
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in sizes)
        self.norm = nn.LayerNorm(width)

    def forward(self, hidden: Tensor) -> Tensor:
        x = self.norm(hidden)
        for layer in self.layers[:-1]:
            x = nn.functional.gelu(layer(x))
        return nn.functional.normalize(self.layers[-1](x), dim=-1)


class Consensus:
    """Embeddings have length 1, so that distances lie from 0 to 2 and survive float16."""

    def __init__(self, width: int, seed: int, loss: str = "infonce") -> None:
        """``width``: of hidden states. ``loss``: ``infonce`` or ``dino``."""
        self._loss = loss
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._student = _Net(width)
        self._target = copy.deepcopy(self._student).requires_grad_(False)
        self._centre = torch.zeros(EMBEDDING)
        self._optimiser = torch.optim.Adam(self._student.parameters(), lr=_RATE)
        self._random = torch.Generator().manual_seed(seed)
        self._updates = 0

    @torch.no_grad()
    def project(self, hidden: Tensor) -> Tensor:
        """Returns (N, 32) embeddings of (N, d) hidden states, to compare with."""
        return torch.as_tensor(self._student(hidden))

    @torch.no_grad()
    def target(self, hidden: Tensor) -> Tensor:
        """Returns (N, 32) embeddings of (N, d) hidden states, to send."""
        return torch.as_tensor(self._target(hidden))

    def learn(
        self,
        hidden: Tensor,
        episode: NDArray[np.int64],
        round_: NDArray[np.int64],
        received: Sequence[tuple[int, NDArray[np.float32]]],
    ) -> Metrics:
        """Makes a few steps on one iteration's moments.

        Args:
            hidden: (N, d) states.
            episode: (N,) whose they are.
            round_: (N,) when in it.
            received: rows of the above, and the (32,) embeddings that peers sent of the same moments.

        Returns:
            the loss, how many pairs there were, and whether embeddings have collapsed: their standard deviation over
            the moments and their effective rank, at most 32 (Roy and Vetterli, 2007).
        """
        pairs = self._pairs(hidden, episode, round_, received)
        found = 0.0
        rows, goals = pairs if pairs else (torch.zeros(0), torch.zeros(0))
        for _ in range(_STEPS if pairs else 0):
            some = torch.randint(len(rows), (min(_BATCH, len(rows)),), generator=self._random)
            self._optimiser.zero_grad(set_to_none=True)
            loss = self._compare(self._student(hidden[rows[some]]), goals[some])
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimiser.step()
            self._follow(goals[some])
            self._updates += 1
            found = loss.item()
        spread, rank = _collapse(self.project(hidden)) if len(hidden) else (0.0, 0.0)
        return {
            "consensus_loss": found,
            "consensus_pairs": len(rows),
            "consensus_received": len(received),
            "consensus_std": spread,
            "consensus_rank": rank,
        }

    def _pairs(
        self,
        hidden: Tensor,
        episode: NDArray[np.int64],
        round_: NDArray[np.int64],
        received: Sequence[tuple[int, NDArray[np.float32]]],
    ) -> tuple[Tensor, Tensor] | None:
        """Returns (P,) rows and the (P, 32) targets that they shall agree with."""
        order = np.lexsort((round_, episode))
        first, second = order[:-1], order[1:]
        near = (episode[first] == episode[second]) & (round_[first] + 1 == round_[second])
        first, second = first[near], second[near]
        targets = self.target(hidden) if len(hidden) else torch.zeros(0, EMBEDDING)
        rows = np.concatenate([first, second, [row for row, _ in received]]).astype(np.int64)
        if len(rows) < 2:
            return None
        sent = torch.from_numpy(np.stack([z for _, z in received])) if received else torch.zeros(0, EMBEDDING)
        sent = nn.functional.normalize(sent, dim=-1)  # a peer may send any length, and would pull as hard
        return torch.from_numpy(rows), torch.cat([targets[second], targets[first], sent])

    def _compare(self, ours: Tensor, goals: Tensor) -> Tensor:
        if self._loss == "dino":
            aim = ((goals - self._centre) / _SHARP).softmax(-1)
            return -(aim * (ours / _WARM).log_softmax(-1)).sum(-1).mean()
        return nn.functional.cross_entropy(ours @ goals.T / _WARM, torch.arange(len(ours)))

    @torch.no_grad()
    def _follow(self, goals: Tensor) -> None:
        for mine, theirs in zip(self._target.parameters(), self._student.parameters()):
            mine.lerp_(theirs, 1 - _EMA)
        self._centre.lerp_(goals.mean(0), 0.1)

    def save(self, folder: Path) -> None:
        """Writes everything that ``load`` needs."""
        tensors = {f"student.{name}": p.detach() for name, p in self._student.state_dict().items()}
        tensors |= {f"target.{name}": p for name, p in self._target.state_dict().items()}
        tensors |= {"centre": self._centre, "random": self._random.get_state()}
        save_file({name: p.contiguous() for name, p in tensors.items()}, folder / _WEIGHTS)
        save_optimiser(self._optimiser, dict(self._student.named_parameters()), folder / _MOMENTS, self._updates)

    def load(self, folder: Path) -> None:
        """Restores what ``save`` wrote. Raises ModelError."""
        tensors = read_tensors(folder / _WEIGHTS)
        try:
            self._centre = tensors.pop("centre")
            self._random.set_state(tensors.pop("random"))
            for word, net in (("student.", self._student), ("target.", self._target)):
                net.load_state_dict({k.removeprefix(word): p for k, p in tensors.items() if k.startswith(word)})
        except (KeyError, RuntimeError) as error:
            raise ModelError(
                f"checkpoint {folder} holds another consensus model ({error}); resume with its config"
            ) from error
        self._updates = load_optimiser(self._optimiser, dict(self._student.named_parameters()), folder / _MOMENTS)


def _collapse(z: Tensor) -> tuple[float, float]:
    """Returns the mean standard deviation of (N, 32) embeddings, and their effective rank."""
    values = torch.linalg.svdvals(z - z.mean(0))
    shares = values / values.sum().clamp(min=1e-12)
    nats = -(shares * shares.clamp(min=1e-12).log()).sum()
    return z.std(0, correction=0).mean().item(), nats.exp().item()
