"""The draft head: proposes tokens that the policy then verifies (multi-token prediction, DeepSeek-V3 style).

``h'_t = W [norm(emb(y_{t+1})) ; h_t]``, one decoder block, and the policy's own final norm and output head, which it
shares and never changes. Hidden states are those after the final norm, the policy's at first and then its own, so one
block proposes any number of tokens and the states need no further norm. Source: Bebop (arXiv 2606.12370). Knows nothing
about sampling or episodes.
"""

from __future__ import annotations

__all__ = ["DraftHead", "LiveHead", "unroll"]

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from decentral.agents.block import Attend, Block, Rope, Rotation, Shape, rms_norm
from decentral.agents.trunk import Trunk
from decentral.errors import ModelError

_WEIGHTS, _ABOUT = "draft.safetensors", "draft.json"


class DraftHead(nn.Module):
    """The weights of a draft head, for one trunk."""

    shortlist: Tensor | None

    def __init__(self, trunk: Trunk, window: int, shortlist: Tensor | None = None) -> None:
        """Makes a head that starts as a copy of the trunk's last block, fed with the hidden state.

        Args:
            trunk: whose embedding, norm and output head it shares.
            window: bounds the positions.
            shortlist: (S,) the only tokens it proposes, which makes it cheap where the vocabulary is large; or none.

        Raises:
            ModelError: the trunk's blocks are not like Llama's.
        """
        super().__init__()
        config, last = trunk.config, trunk.layers.layers[-1]
        try:
            attention, mlp = last.self_attn, last.mlp
            maps = [attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj]
            maps += [mlp.gate_proj, mlp.up_proj, mlp.down_proj]
            norms = [last.input_layernorm, last.post_attention_layernorm]
        except AttributeError as error:
            raise trunk.refusal(f"its blocks are not built like Llama's ({error})") from error
        q, k, v, o, gate, up, down = (module.weight.detach().float() for module in maps)
        before, between = (module.weight.detach().float() for module in norms)
        heads = config.num_attention_heads
        groups = getattr(config, "num_key_value_heads", None) or heads
        width = getattr(config, "head_dim", None) or config.hidden_size // heads
        size = config.hidden_size
        self.trunk = trunk
        self.shape = Shape(heads, groups, width, trunk.eps)
        self.window = window
        self.norm_token = nn.Parameter(torch.ones(size))
        self.join = nn.Parameter(torch.cat([torch.eye(size), torch.eye(size)], 1))
        self.before = nn.Parameter(before.clone())
        self.qkv = nn.Parameter(torch.cat([q, k, v]))
        self.out = nn.Parameter(o.clone())
        self.between = nn.Parameter(between.clone())
        self.gate_up = nn.Parameter(torch.cat([gate, up]))
        self.down = nn.Parameter(down.clone())
        self.register_buffer("shortlist", shortlist)
        self.to(trunk.embedding.device)
        self.rope = Rope.of(trunk.layers, window, self.shape)

    def forward(self, tokens: Tensor, hidden: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """Returns the (B, n, H) hidden states, after the final norm, from which the tokens after ``tokens`` follow.

        Args:
            tokens: (B, n), each the successor of the token whose hidden state stands beside it.
            hidden: (B, n, H) after the final norm, of the policy or of the previous step.
            positions: (B, n) of the hidden states' tokens.
            attend: attention to what the head read before.
        """
        width = hidden.shape[-1]
        share = F.linear(self._normed(F.embedding(tokens, self.trunk.embedding.detach())), self.join[:, :width])
        cos, sin = self.rope.at(positions)
        dtype = self.join.dtype
        x = share + F.linear(hidden.to(dtype), self.join[:, width:])
        x = self._block(dict(self.named_parameters()))(x, (cos.to(dtype), sin.to(dtype)), attend)
        return rms_norm(x, self.trunk.norm.detach().to(dtype), self.shape.eps)

    def live(self) -> LiveHead:
        """Returns the head as it is now, in the policy's dtype, for rollouts."""
        width = self.trunk.embedding.shape[1]
        dtype = self.trunk.embedding.dtype
        with torch.no_grad():
            weights = {name: _laid_out(value.detach().to(dtype)) for name, value in self.named_parameters()}
            join = weights["join"]
            return LiveHead(
                table=F.linear(self._normed(self.trunk.embedding.detach()).to(dtype), join[:, :width]),
                join=_laid_out(join[:, width:]),
                block=self._block(weights),
                norm=self.trunk.norm.detach(),
                output=_laid_out(self.output().to(dtype)),
                shortlist=self.shortlist,
            )

    def _normed(self, token: Tensor) -> Tensor:
        return rms_norm(token.to(self.join.dtype), self.norm_token, self.shape.eps)

    def _block(self, weights: Mapping[str, Tensor]) -> Block:
        names = ("before", "qkv", "out", "between", "gate_up", "down")
        return Block(**{name: weights[name] for name in names}, shape=self.shape)

    def output(self) -> Tensor:
        """Returns the (S, H) rows of the policy's output head as they are now; S = V without a shortlist."""
        weight = self.trunk.output.detach()
        return (weight if self.shortlist is None else weight[self.shortlist]).to(self.join.dtype)

    def save(self, folder: Path) -> None:
        """Writes the weights as safetensors, and for which trunk they are as JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {name: value.detach().float().contiguous() for name, value in self.named_parameters()}
        if self.shortlist is not None:
            tensors["shortlist"] = self.shortlist
        (folder / _ABOUT).write_text(json.dumps(self._about(), indent=1) + "\n")
        beside = folder / f".{_WEIGHTS}.tmp"
        save_file(tensors, beside)
        beside.replace(folder / _WEIGHTS)

    @classmethod
    def load(cls, folder: Path, trunk: Trunk, window: int) -> DraftHead:
        """Reads what ``save`` wrote. Raises ModelError if it cannot be read or is for another trunk."""
        head = cls(trunk, window)
        head.take(folder)
        return head

    def take(self, folder: Path) -> None:
        """Takes the weights that ``save`` wrote. Raises ModelError if they cannot be read or are for another trunk."""
        try:
            tensors = load_file(folder / _WEIGHTS)
            about = json.loads((folder / _ABOUT).read_text())
        except (OSError, SafetensorError, ValueError) as error:
            raise ModelError(
                f"the draft head {str(folder)!r} cannot be read ({error}); make it with decentral mtp train, or set "
                "draft = 'plain'"
            ) from error
        shortlist = tensors.pop("shortlist", None)
        shapes = {name: value.shape for name, value in self.named_parameters()}
        fits = shapes == {name: value.shape for name, value in tensors.items()}
        inside = shortlist is None or set(shortlist.tolist()) <= set(range(len(self.trunk.embedding)))
        if about != self._about() or not fits or not inside:
            raise ModelError(
                f"the draft head {str(folder)!r} is for {about} and model {self.trunk.name!r} is {self._about()}; make "
                "one for it with decentral mtp train, or set draft = 'plain'"
            )
        self.shortlist = None if shortlist is None else shortlist.to(self.join.device)
        for name, value in self.named_parameters():
            value.data.copy_(tensors[name])

    @staticmethod
    def exists(folder: Path) -> bool:
        """Says whether a head was saved there."""
        return (folder / _WEIGHTS).exists()

    def _about(self) -> dict[str, Any]:
        vocabulary, size = self.trunk.embedding.shape
        return {
            "vocabulary": vocabulary,
            "hidden": size,
            "heads": self.shape.heads,
            "groups": self.shape.groups,
            "width": self.shape.width,
            "inner": self.down.shape[1],
        }


def _laid_out(weight: Tensor) -> Tensor:
    """Returns a copy of a linear map laid out by input, with which a product of few rows takes half the time."""
    return weight.t().contiguous().t() if weight.dim() == 2 else weight


@dataclass(frozen=True)
class LiveHead:
    """A head ready for rollouts: what does not depend on the text is computed beforehand."""

    table: Tensor
    """(V, H) share of every token in the joint state."""
    join: Tensor
    """(H, H) of the hidden state."""
    block: Block
    norm: Tensor
    """(H,) the policy's final norm."""
    output: Tensor
    """(S, H) rows of the policy's output head."""
    shortlist: Tensor | None

    def __call__(self, tokens: Tensor, hidden: Tensor, rotation: Rotation, attend: Attend) -> Tensor:
        """As ``DraftHead.forward``, at positions whose ``rotation`` ``Rope.at`` gave."""
        x = F.embedding(tokens, self.table) + F.linear(hidden, self.join)
        x = self.block(x, rotation, attend)
        return rms_norm(x, self.norm, self.block.shape.eps)


def unroll(head: DraftHead, ids: Tensor, hidden: Tensor, starts: Tensor, depth: int) -> Tensor:
    """Runs a head over whole rows as a rollout would from each of some positions, with gradients.

    Started at position t, step 1 reads the policy's hidden state there and sees the steps 1 of all earlier positions;
    step j reads step j-1's and sees, besides, its own steps before.

    Args:
        head: the draft head.
        ids: (B, n) token ids, padded on the right with anything.
        hidden: (B, n, H) of the policy, after the final norm, detached.
        starts: (B, s) positions below n-1; a row with fewer is padded with any of them.
        depth: K.

    Returns:
        (B, s, K, H): from [:, i, j] follows what comes after token starts[i]+1+j, j from 0.
    """
    b, n = ids.shape
    attention = _Unrolled(head.shape, starts)
    every = torch.arange(n - 1, device=ids.device).expand(b, -1)
    state = head(ids[:, 1:], hidden[:, :-1], every, attention)
    state = state.gather(1, starts[..., None].expand(-1, -1, state.shape[-1]))
    found = [state]
    for j in range(1, depth):
        at = (starts + j).clamp(max=n - 2)  # beyond the end nothing counts
        state = head(ids.gather(1, at + 1), state, at, attention)
        found.append(state)
    return torch.stack(found, 2)


class _Unrolled:
    """Attention of one step after the other, all starts at once."""

    def __init__(self, shape: Shape, starts: Tensor) -> None:
        self._shape = shape
        self._starts = starts
        self._past: tuple[Tensor, Tensor] | None = None
        self._own: list[tuple[Tensor, Tensor]] = []

    def __call__(self, query: Tensor, pair: Tensor) -> Tensor:
        query = query.transpose(1, 2)
        key, value = pair.transpose(1, 2).chunk(2, 1)
        if self._past is None:
            self._past = key, value
            return F.scaled_dot_product_attention(
                query, key, value, is_causal=True, enable_gqa=self._shape.heads != self._shape.groups
            )
        self._own.append((key, value))
        b, _, s, width = query.shape
        keys, values = self._past
        grouped = query.reshape(b, self._shape.groups, -1, s, width) / width**0.5  # (B, G, R, s, D)
        seen = torch.arange(keys.shape[2], device=query.device) <= self._starts[:, None, None, :, None]
        scores = torch.einsum("bgrsd,bgnd->bgrsn", grouped, keys).masked_fill(~seen, -torch.inf)
        own = [(grouped * k[:, :, None]).sum(-1, keepdim=True) for k, _ in self._own]
        weight = torch.cat([scores, *own], -1).softmax(-1)
        found = torch.einsum("bgrsn,bgnd->bgrsd", weight[..., : keys.shape[2]], values)
        for i, (_, v) in enumerate(self._own):
            found = found + weight[..., keys.shape[2] + i, None] * v[:, :, None]
        return found.reshape(query.shape)
