"""The learner: one optimiser step on one batch of plays, on the agent's own weights.

The batch was sampled by these very weights, so the importance ratio is 1 and nothing is clipped (CANOPY,
arXiv 2609.01245); both are measured and logged. Only where advice had a part in drawing an action, its tokens are
weighted by the policy's probability of the action over the one that it was drawn with. Loss: the mean over sampled
tokens of ``-advantage * weight * ratio + kl * k3``, k3 to the agent's own fixed base.
"""

from __future__ import annotations

__all__ = ["Learner", "Play"]

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from decentral.agents.config import AgentConfig
from decentral.agents.credit import Plays, credit_of
from decentral.agents.mind import Metrics
from decentral.agents.moments import load_optimiser, read_tensors, save_optimiser
from decentral.agents.policy import Policy
from decentral.agents.schedule import rate_at
from decentral.agents.scoring import needed, pack, score
from decentral.agents.stream import Stream
from decentral.errors import ModelError

_CLIP = 0.2
"""A ratio further from 1 than this counts as clipped in the log; the loss itself never clips."""
_TOKENS_SMALL, _TOKENS_LARGE = 4096, 1024
_RATE_FULL, _RATE_LORA = 5e-4, 2e-4


@dataclass(frozen=True)
class Play:
    """One finished episode of the agent."""

    stream: Stream
    group: int
    total: float
    """The agent's own return."""
    rewards: Sequence[float]
    """What it got after each of its turns."""


class Learner:
    """Optimiser state and the number of updates made."""

    def __init__(self, policy: Policy, config: AgentConfig) -> None:
        self.updates = 0
        self._policy = policy
        self._config = config
        self._credit = credit_of(config.discount)
        self._lr = config.lr if config.lr is not None else (_RATE_LORA if policy.lora else _RATE_FULL)
        self._tokens = config.microbatch or (_TOKENS_LARGE if policy.lora else _TOKENS_SMALL)
        self._trained = policy.trained()
        self._optimiser = torch.optim.AdamW(self._trained.values(), lr=1.0, betas=(0.9, 0.95), weight_decay=0.0)

    def credit(self, plays: Sequence[Play]) -> tuple[Plays, NDArray[np.float64]]:
        """Returns the plays as arrays, and the (N,) advantage of every sampled token."""
        chunks = [chunk for play in plays for chunk in play.stream.chunks]
        owner = [e for e, play in enumerate(plays) for _ in play.stream.chunks]
        arrays = Plays(
            returns=np.array([play.total for play in plays], dtype=np.float64),
            groups=np.array([play.group for play in plays], dtype=np.int64),
            rewards=_padded([play.rewards for play in plays]),
            episode=np.array([e for e, chunk in zip(owner, chunks) for _ in chunk.choices], dtype=np.int64),
            turn=np.array([choice.turn for chunk in chunks for choice in chunk.choices], dtype=np.int64),
        )
        count = len(arrays.episode)
        return arrays, self._credit(arrays, np.zeros(count)) if count else np.zeros(0)

    def step(self, plays: Sequence[Play], credit: NDArray[np.float64]) -> Metrics:
        """Makes one optimiser step, or none if nothing was sampled; returns its figures.

        ``credit``: (N,) the advantage of every sampled token, in the order of ``plays``.
        """
        config, policy = self._config, self._policy
        chunks = [chunk for play in plays for chunk in play.stream.chunks]
        count = len(credit)
        if count == 0:
            return {}
        advantage = torch.from_numpy(credit).float()
        choices = [choice for chunk in chunks for choice in chunk.choices]
        weight = torch.tensor([choice.weight for choice in choices])
        behind = torch.tensor([choice.logp for choice in choices])
        first = np.cumsum([0, *(len(chunk.choices) for chunk in chunks)])
        total: dict[str, float] = dict.fromkeys(("loss", "kl", "entropy", "ratio_mean", "clip_fraction", "drift"), 0.0)
        self._optimiser.zero_grad(set_to_none=True)
        for batch in pack([needed(chunk) for chunk in chunks], self._tokens):
            part = [chunks[i] for i in batch]
            index = torch.from_numpy(np.concatenate([np.arange(first[i], first[i + 1]) for i in batch]))
            scores = score(policy.forward, part, config.temperature, policy.device)
            gain = (advantage * weight)[index].to(scores.logp.device)
            loss = -(gain * (scores.logp - scores.logp.detach()).exp())
            if config.kl > 0:
                base = score(policy.base_forward, part, config.temperature, policy.device).logp
                gap = base - scores.logp
                k3 = gap.exp() - gap - 1
                loss = loss + config.kl * k3
                total["kl"] += k3.sum().item()
            (loss.sum() / count).backward()  # type: ignore[no-untyped-call]
            drift = (scores.logp.detach().cpu() - behind[index]).where(weight[index] == 1, 0.0)
            total["loss"] += loss.sum().item()
            total["entropy"] += scores.entropy.sum().item()
            total["ratio_mean"] += drift.exp().sum().item()
            total["clip_fraction"] += ((drift.exp() - 1).abs() > _CLIP).sum().item()
            total["drift"] += drift.abs().sum().item()
        rate = rate_at(self._lr, self.updates)
        norm = self._move()
        self.updates += 1
        groups: dict[int, list[float]] = {}
        for play in plays:
            groups.setdefault(play.group, []).append(play.total)
        return {
            **{name: value / count for name, value in total.items()},
            "grad_norm": norm,
            "lr": rate,
            "degenerate_groups": float(np.mean([np.ptp(returns) == 0 for returns in groups.values()])),
        }

    def level(self, plays: Sequence[Play], steps: int) -> Metrics:
        """Makes an update of several steps by which the next tokens of legal actions become equally likely.

        Rewards play no part in it. Returns how far the policy was from that before the first and before the last step,
        in nats a choice; nothing if no action was among legal ones.
        """
        every = (chunk for play in plays for chunk in play.stream.chunks)
        chunks = [chunk for chunk in every if any(choice.allowed is not None for choice in chunk.choices)]
        batches = pack([needed(chunk) for chunk in chunks], self._tokens)
        found = []
        for number in range(steps if batches else 0):
            part = [chunks[i] for i in batches[number % len(batches)]]
            uneven = score(self._policy.forward, part, self._config.temperature, self._policy.device).uneven.mean()
            self._optimiser.zero_grad(set_to_none=True)
            uneven.backward()  # type: ignore[no-untyped-call]
            self._move()
            found.append(uneven.item())
        if not found:
            return {}
        self.updates += 1
        return {"uneven_first": found[0], "uneven_last": found[-1]}

    def _move(self) -> float:
        """Makes an optimiser step and returns the gradient's norm. Raises ModelError where that is not finite."""
        norm = torch.nn.utils.clip_grad_norm_(list(self._trained.values()), self._config.clip)
        if not torch.isfinite(norm):
            raise ModelError(
                f"the gradient of update {self.updates} is {norm.item()}, so the step was not made; resume from the "
                "last checkpoint with a lower lr, or in float32"
            )
        for group in self._optimiser.param_groups:
            group["lr"] = rate_at(self._lr, self.updates)
        self._optimiser.step()
        return float(norm.item())

    def save(self, folder: Path) -> None:
        """Writes the trained weights and the optimiser's moments as safetensors."""
        save_file({name: p.detach().contiguous() for name, p in self._trained.items()}, folder / "weights.safetensors")
        save_optimiser(self._optimiser, self._trained, folder / "optimiser.safetensors", self.updates)

    def load(self, folder: Path) -> None:
        """Restores what ``save`` wrote. Raises ModelError."""
        weights = read_tensors(folder / "weights.safetensors")
        if weights.keys() != self._trained.keys():
            raise ModelError(
                f"checkpoint {folder} holds other parameters than model {self._policy.name!r}; resume with its config"
            )
        with torch.no_grad():
            for name, p in self._trained.items():
                p.copy_(weights[name])
        self.updates = load_optimiser(self._optimiser, self._trained, folder / "optimiser.safetensors")


def _padded(rows: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Returns (rows, longest), NaN where a row has ended."""
    found = np.full((len(rows), max(map(len, rows), default=0)), np.nan)
    for place, row in enumerate(rows):
        found[place, : len(row)] = row
    return found
