"""The forward pass of a Llama written out for rollouts, where a small model spends its time in Python.

Same weights, same numbers as transformers' (a test pins them to each other), a third of the calls: query, key and value
are one product, gate and up another, and rotation is three. The joint weights *are* the module's parameters, which
become views into them, so an optimiser step is seen at once. Serves plain Llama models; ``serves`` says which.
"""

from __future__ import annotations

__all__ = ["LeanLlama", "serves"]

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from decentral.agents.cache import RowCache


def serves(model: Any) -> bool:
    """Whether ``LeanLlama`` computes what ``model`` computes."""
    config = model.config
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    return (
        type(model).__name__ == "LlamaForCausalLM"
        and config.hidden_act == "silu"
        and not config.attention_bias
        and not config.mlp_bias
        and rope in ("default", "linear", "llama3")
    )


class LeanLlama:
    """Runs a ``LlamaForCausalLM`` over a row cache, without gradients."""

    def __init__(self, model: Any, window: int) -> None:
        """Joins the projections of ``model``, whose parameters become views; ``window`` bounds the positions."""
        config, trunk = model.config, model.model
        self._heads = config.num_attention_heads
        self._groups = config.num_key_value_heads
        self._width = trunk.layers[0].self_attn.head_dim
        self._eps = config.rms_norm_eps
        self._trunk = trunk
        self._head = model.lm_head
        self._joint = [
            (
                _join(layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj),
                _join(layer.mlp.gate_proj, layer.mlp.up_proj),
            )
            for layer in trunk.layers
        ]
        device = trunk.embed_tokens.weight.device
        angle = torch.arange(window, device=device)[:, None] * trunk.rotary_emb.inv_freq.float().to(device)[None]
        scale = trunk.rotary_emb.attention_scaling
        dtype = trunk.embed_tokens.weight.dtype
        self._cos = (torch.cat([angle, angle], -1).cos() * scale).to(dtype)[:, None]
        self._sin = (torch.cat([-angle.sin(), angle.sin()], -1) * scale).to(dtype)[:, None]

    def __call__(self, ids: Tensor, positions: Tensor, mask: Tensor, cache: RowCache, keep: Any) -> Tensor:
        """Arguments and result as in ``Policy.forward``."""
        b, n = ids.shape
        rotated = self._heads + self._groups
        cos, sin = self._cos[positions], self._sin[positions]  # (B, n, 1, D)
        x = F.embedding(ids, self._trunk.embed_tokens.weight)  # (B, n, H)
        for number, (layer, (qkv_weight, gate_up_weight)) in enumerate(zip(self._trunk.layers, self._joint)):
            h = self._norm(x, layer.input_layernorm)
            qkv = F.linear(h, qkv_weight).view(b, n, rotated + self._groups, self._width)
            qk = qkv[:, :, :rotated]
            qk = torch.addcmul(qk * cos, qk.roll(self._width // 2, -1), sin)
            query, key = qk[:, :, : self._heads].transpose(1, 2), qk[:, :, self._heads :].transpose(1, 2)
            keys, values = cache.update(key, qkv[:, :, rotated:].transpose(1, 2), number)
            seen = F.scaled_dot_product_attention(
                query, keys, values, attn_mask=mask, enable_gqa=self._groups != self._heads
            )
            x = x + F.linear(seen.transpose(1, 2).reshape(b, n, -1), layer.self_attn.o_proj.weight)
            gate, up = F.linear(self._norm(x, layer.post_attention_layernorm), gate_up_weight).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, layer.mlp.down_proj.weight)
        x = x[:, -keep:] if isinstance(keep, int) else x[:, keep]
        return F.linear(self._norm(x, self._trunk.norm), self._head.weight)

    def _norm(self, x: Tensor, module: Any) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], module.weight, self._eps)


def _join(*modules: Any) -> Tensor:
    """Lays the weights of several linear maps of one input end to end and makes each a view of its part."""
    joint = torch.cat([module.weight.data for module in modules])
    for module, part in zip(modules, torch.split(joint, [len(m.weight) for m in modules])):
        module.weight.data = part
    return joint
