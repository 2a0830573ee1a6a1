"""An embedding of moments on which agents that exchange it come to agree, though none sees what another sees.

Each agent trains its own network on its own hidden states; of a peer it has only the embeddings that came with
messages. Source: CCKS (arXiv 2606.12281), whose agents read each other's embeddings from a shared replay buffer;
losses of DINO (arXiv 2104.14294) and InfoNCE (arXiv 1807.03748). Knows nothing about messages or advice.
"""

from __future__ import annotations

__all__ = ["Consensus", "Loss", "dino", "infonce", "neighbours", "rank", "spread"]

import copy
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from decentral.agents.mind import Metrics
from decentral.agents.probe import Probe

Loss = Literal["dino", "infonce"]
_WIDTH = 32
_BATCH = 512
"""Pairs of a step at most."""
_EMA = 0.996
_CENTRE = 0.9
_SHARP, _SOFT = 0.04, 0.1
"""Temperatures of targets and of predictions."""

Ints = NDArray[np.int64]


class Consensus(Probe):
    """An encoder d -> 128 -> 64 and a projector 64 -> 64 -> 32, and their moving average, which makes the targets.

    All embeddings have length 1: distances then lie in [0, 2] whatever the agent, the temperatures mean the same for
    all, float16 loses nothing that matters, and no peer can gain weight by sending long ones.
    """

    centre: Tensor

    def __init__(self, width: int, seed: int, loss: Loss = "dino", steps: int = 8) -> None:
        """
        Args:
            width: d, of the hidden states.
            seed: of the first weights and of all draws.
            loss: the paper's, or the one that has negatives.
            steps: optimiser steps per iteration.
        """
        super().__init__("consensus", (width, 128, 64, 64, _WIDTH), seed)
        self.slow = copy.deepcopy(self.layers).requires_grad_(False)
        self.register_buffer("centre", torch.zeros(_WIDTH))
        self._loss = loss
        self._steps = steps

    @torch.no_grad()
    def project(self, h: Tensor) -> Tensor:
        """Returns (N, 32) embeddings z, on the CPU, of (N, d) hidden states."""
        return F.normalize(self.layers(self.standard(h)))

    @torch.no_grad()
    def target(self, h: Tensor) -> Tensor:
        """Returns (N, 32) embeddings z', on the CPU, of (N, d) hidden states: what a message carries."""
        return F.normalize(self.slow(self.standard(h)))

    def learn(
        self, h: Tensor, episodes: Ints, rounds: Ints, received: Sequence[tuple[int, NDArray[np.float32]]]
    ) -> Metrics:
        """Makes a few steps on the moments of one iteration.

        A pair is a row and a target: that of an own neighbouring moment, or what a peer sent of the same moment.

        Args:
            h: (N, d) hidden states.
            episodes: (N,).
            rounds: (N,); with the episode, the moment of a row.
            received: rows and (32,) embeddings of peers.

        Returns:
            ``consensus_pairs``, the number there was; ``consensus_loss``, mean of the steps, if there were any;
            ``consensus_std`` and ``consensus_rank`` of the rows' embeddings, if there were rows: see ``spread`` and
            ``rank``. Collapse is 0 and 1.
        """
        if not len(h):
            return {"consensus_pairs": 0.0}
        self.scale.watch(h.detach().cpu())
        x = self.standard(h)
        own = torch.from_numpy(neighbours(episodes, rounds))
        rows = torch.tensor([row for row, _ in received], dtype=torch.int64)
        sent = torch.from_numpy(np.array([z for _, z in received], dtype=np.float32).reshape(-1, _WIDTH))
        sent = F.normalize(sent)
        moments = torch.from_numpy(np.unique(np.stack([episodes, rounds]), axis=1, return_inverse=True)[1]).flatten()
        most = _BATCH // 2 if len(own) and len(rows) else _BATCH
        losses = []
        for _ in range(self._steps if len(own) + len(rows) else 0):
            (here, there), theirs = own[self.draw(len(own), most)].T, self.draw(len(rows), most)
            at, of = torch.cat([here, rows[theirs]]), torch.cat([there, rows[theirs]])
            with torch.no_grad():
                targets = torch.cat([F.normalize(self.slow(x[there])), sent[theirs]])
            found = self._losses(F.normalize(self.layers(x[at])), targets, moments[at], moments[of])
            # Peers' embeddings are few and own neighbours many: each kind counts as much as the other.
            kinds = [part.mean() for part in (found[: len(here)], found[len(here) :]) if len(part)]
            loss = torch.stack(kinds).mean()
            self.step(loss)
            self._follow(targets)
            losses.append(loss.item())
        z = self.project(h)
        figures = {
            "consensus_pairs": float(len(own) + len(rows)),
            "consensus_std": spread(z),
            "consensus_rank": rank(z),
        }
        return figures | ({"consensus_loss": sum(losses) / len(losses)} if losses else {})

    def _losses(self, z: Tensor, targets: Tensor, at: Tensor, of: Tensor) -> Tensor:
        return dino(z, targets, self.centre) if self._loss == "dino" else infonce(z, targets, at, of)

    @torch.no_grad()
    def _follow(self, targets: Tensor) -> None:
        """Moves the averages by a step."""
        self.centre.lerp_(targets.mean(0), 1 - _CENTRE)
        for slow, fast in zip(self.slow.parameters(), self.layers.parameters()):
            slow.lerp_(fast, 1 - _EMA)


def neighbours(episodes: Ints, rounds: Ints) -> Ints:
    """Returns (P, 2) pairs of rows that follow one another in an episode, at most one round apart, both ways round."""
    order = np.lexsort((rounds, episodes))
    a, b = order[:-1], order[1:]
    near = (episodes[a] == episodes[b]) & (rounds[b] - rounds[a] <= 1)
    pairs = np.stack([a[near], b[near]], axis=1)
    return np.concatenate([pairs, pairs[:, ::-1]])


def dino(z: Tensor, targets: Tensor, centre: Tensor) -> Tensor:
    """Returns the (B,) cross-entropies of sharp, centred targets and predictions, both (B, 32); no negatives."""
    return -(((targets - centre) / _SHARP).softmax(-1) * (z / _SOFT).log_softmax(-1)).sum(-1)


def infonce(z: Tensor, targets: Tensor, at: Tensor, of: Tensor) -> Tensor:
    """Returns the (B,) losses of telling each row's target among those of other moments.

    Args:
        z: (B, 32), of length 1.
        targets: (B, 32), of length 1.
        at: (B,) the moments of the rows.
        of: (B,) the moments of the targets.
    """
    same = (of == at[:, None]) | (of == of[:, None])
    same.fill_diagonal_(False)
    logits = (z @ targets.T / _SOFT).masked_fill(same, -torch.inf)
    return -logits.log_softmax(-1).diagonal()


def spread(z: Tensor) -> float:
    """Returns the deviation of (N, 32) embeddings of length 1 within a column: 0 if all are equal, at most 0.177."""
    return float(z.double().var(0, correction=0).mean().sqrt())


def rank(z: Tensor) -> float:
    """Returns the effective rank of (N, 32) embeddings, N > 0, from 1 to 32: exp of the entropy of the singular values.

    Source: RankMe (arXiv 2210.02885), equation 1.
    """
    values = torch.linalg.eigvalsh(z.double().T @ z.double()).clamp(min=0).sqrt()
    shares = values / values.sum()
    return float(torch.special.entr(shares).sum().exp())
