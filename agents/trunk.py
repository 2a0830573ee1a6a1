"""What of a transformers model a draft head shares: its embedding, its layers, its final norm and its output head."""

from __future__ import annotations

__all__ = ["Trunk"]

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from decentral.errors import ModelError


class Trunk:
    """Live views of a model's parts: a training step is seen at once."""

    def __init__(self, model: Any, name: str) -> None:
        """
        Args:
            model: a causal language model, or a PEFT model around one.
            name: for messages.

        Raises:
            ModelError: an architecture that a draft head cannot share.
        """
        inner = model.get_base_model() if hasattr(model, "get_base_model") else model
        self.layers: Any = inner.base_model
        self.config = inner.config
        self.name = name
        head = inner.get_output_embeddings()
        for part in ("embed_tokens", "layers", "norm", "rotary_emb"):
            if not hasattr(self.layers, part):
                raise self.refusal(f"its {type(self.layers).__name__} has no {part}")
        if head is None:
            raise self.refusal("it has no output head")
        if getattr(head, "bias", None) is not None:
            raise self.refusal("its output head has a bias")
        norm = self.layers.norm
        self._norm = norm
        self._head = head
        self.eps = float(getattr(norm, "variance_epsilon", getattr(norm, "eps", None)) or 1e-6)
        self._prove(inner)

    @property
    def embedding(self) -> Tensor:
        """The (V, H) input embedding."""
        weight: Tensor = self.layers.embed_tokens.weight
        return weight

    @property
    def output(self) -> Tensor:
        """The (V, H) output head."""
        weight: Tensor = self._head.weight
        return weight

    @property
    def norm(self) -> Tensor:
        """The (H,) weight of the final RMS norm."""
        weight: Tensor = self._norm.weight
        return weight

    def hidden(self, ids: Tensor, positions: Tensor, **attention: Any) -> Tensor:
        """Returns the (B, n, H) hidden states after the final norm of (B, n) tokens, through transformers."""
        states: Tensor = self.layers(input_ids=ids, position_ids=positions, **attention).last_hidden_state
        return states

    def logits(self, hidden: Tensor) -> Tensor:
        """Returns the (..., V) logits of (..., H) hidden states after the final norm."""
        return F.linear(hidden, self.output)

    def _prove(self, model: Any) -> None:
        """Refuses a model whose final norm or logits are not what the head would compute."""
        try:
            self._compare(model)
        except (RuntimeError, ValueError, TypeError, IndexError, AttributeError) as error:
            raise self.refusal(f"running its parts failed ({type(error).__name__}: {error})") from error

    def _compare(self, model: Any) -> None:
        with torch.inference_mode():
            size, width = self.embedding.shape
            ids = (torch.arange(4, device=self.embedding.device) * size // 4)[None]
            at = torch.arange(4, device=ids.device)[None]
            hidden = self.hidden(ids, at, use_cache=False)
            logits = model(input_ids=ids, position_ids=at, use_cache=False).logits
            if not torch.allclose(self.logits(hidden), logits, rtol=1e-2, atol=1e-2):
                raise self.refusal("its logits are more than a product with its output head")
            states = torch.linspace(-3, 5, width, dtype=self.norm.dtype, device=ids.device)
            if not torch.allclose(F.rms_norm(states, (width,), self.norm, self.eps), self._norm(states), 1e-2, 1e-2):
                raise self.refusal("its final norm is no plain RMS norm")

    def refusal(self, reason: str) -> ModelError:
        """Returns the error that says why there can be no draft head."""
        return ModelError(
            f"model {self.name!r} can have no draft head: {reason}; set draft = 'plain', or choose a Llama- or "
            "Qwen-like model"
        )
