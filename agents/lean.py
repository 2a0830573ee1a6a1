"""The forward pass of a Llama for rollouts, made of written-out blocks.

Same weights, same numbers as transformers' (a test pins them to each other). The joint weights *are* the module's
parameters, which become views into them, so an optimiser step is seen at once. Serves plain Llama models; ``serves``
says which.
"""

from __future__ import annotations

__all__ = ["LeanLlama", "cached", "serves"]

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from decentral.agents.block import Attend, Block, Rope, Shape, rms_norm
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
        width = trunk.layers[0].self_attn.head_dim
        self._shape = Shape(config.num_attention_heads, config.num_key_value_heads, width, config.rms_norm_eps)
        self._trunk = trunk
        self._blocks = [
            Block(
                layer.input_layernorm.weight,
                _join(layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj),
                layer.self_attn.o_proj.weight,
                layer.post_attention_layernorm.weight,
                _join(layer.mlp.gate_proj, layer.mlp.up_proj),
                layer.mlp.down_proj.weight,
                self._shape,
            )
            for layer in trunk.layers
        ]
        self._rope = Rope.of(trunk, window, self._shape)

    def __call__(self, ids: Tensor, positions: Tensor, mask: Tensor, cache: RowCache) -> Tensor:
        """Arguments as in ``Policy.forward_cached``; returns (B, n, H), after the final norm."""
        rotation = self._rope.at(positions)
        x = F.embedding(ids, self._trunk.embed_tokens.weight)
        for number, block in enumerate(self._blocks):
            x = block(x, rotation, cached(cache, number, mask))
        return rms_norm(x, self._trunk.norm.weight, self._shape.eps)


def cached(cache: RowCache, layer: int, mask: Tensor) -> Attend:
    """Returns attention of new tokens to what a cache holds of their rows, themselves included."""

    def attend(query: Tensor, pair: Tensor) -> Tensor:
        cache.write((layer, 0), pair)
        keys, values = cache.read((layer, 0)).transpose(1, 2).chunk(2, 1)
        b, n, heads, width = query.shape
        groups = keys.shape[1]
        shared = heads // groups
        if n == 1 or shared == 1:
            return F.scaled_dot_product_attention(
                query.transpose(1, 2), keys, values, attn_mask=mask, enable_gqa=shared > 1
            )
        # Heads that share keys are read as further queries: in bfloat16 that takes 0.6 of the time of torch's grouping.
        folded = query.view(b, n, groups, shared, width).permute(0, 2, 3, 1, 4).reshape(b, groups, shared * n, width)
        seen = F.scaled_dot_product_attention(folded, keys, values, attn_mask=mask.repeat(1, 1, shared, 1))
        return seen.reshape(b, heads, n, width)

    return attend


def _join(*modules: Any) -> Tensor:
    """Lays the weights of several linear maps of one input end to end and makes each a view of its part."""
    joint = torch.cat([module.weight.data for module in modules])
    for module, part in zip(modules, torch.split(joint, [len(m.weight) for m in modules])):
        module.weight.data = part
    return joint
