"""A policy: a causal language model, what of it is trained, its fixed base, and the format of its segments.

Knows how to run the model over given ids and positions; knows nothing about episodes, sampling or losses.
"""

from __future__ import annotations

__all__ = ["Policy"]

import copy
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from decentral.agents.cache import RowCache, causal
from decentral.agents.config import AgentConfig
from decentral.agents.format import Format
from decentral.agents.lean import LeanLlama, serves
from decentral.agents.model import SMALL, load_model, load_tokenizer
from decentral.agents.trunk import Trunk
from decentral.errors import ConfigError, ModelError

_WINDOW = 1024


class Policy:
    """The weights of one agent. ``model`` is a transformers causal language model, or a PEFT model around one."""

    def __init__(self, config: AgentConfig, seed: int = 0) -> None:
        """Loads ``config.model``; a learning agent's LoRA matrices are drawn from ``seed``.

        Raises:
            ModelError: the model cannot be loaded or served.
            ConfigError: the device does not exist here, or the window is larger than the model's.
        """
        self.name = config.model
        self.device = _device(config.device)
        self.model: Any = load_model(config.model, config.dtype, self.device)
        self.format = Format(load_tokenizer(config.model))
        self.size = sum(p.numel() for p in self.model.parameters())
        self.window = _window(config, self.model)
        self.learning = config.kind == "learning"
        self.lora = self.learning and (config.weights == "lora" or (config.weights == "auto" and self.size >= SMALL))
        self.model.requires_grad_(self.learning and not self.lora)
        self._base: Any = None
        if self.learning and self.lora:
            self.model = _with_lora(self.model, config.lora_rank, seed)
        elif self.learning and config.kl > 0:
            self._base = copy.deepcopy(self.model).requires_grad_(False)
        self._lean = LeanLlama(self.model, self.window) if not self.lora and serves(self.model) else None
        self._trunk: Trunk | None = None
        with suppress(ModelError):
            self._trunk = self.shared()
        self._prove()

    def forward(self, ids: Tensor, positions: Tensor, keep: Any) -> Tensor:
        """Runs the model over whole rows in plain causal order, with gradients.

        Args:
            ids: (B, n) token ids, padded on the right with anything.
            positions: (B, n) positions.
            keep: the columns whose logits are wanted: the last ``keep``, or a (K,) tensor of columns.

        Returns:
            (B, K, V) logits.
        """
        return self._run(self.model, ids, positions, None, None, keep)

    def forward_cached(
        self, ids: Tensor, positions: Tensor, mask: Tensor, cache: RowCache, keep: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Runs the model over new tokens of rows in a cache, without gradients.

        Args:
            ids: (B, n) token ids, padded on the right with anything.
            positions: (B, n) positions; a padded token's is larger than any real one of its row.
            mask: (B, 1, n, S) added to attention scores: 0 where a query may look, else -inf.
            cache: aimed at the rows and slots of these tokens.
            keep: (K,) columns whose logits are wanted.

        Returns:
            (B, K, V) logits, and the (B, n, H) hidden states after the final norm if a draft head can use them.
        """
        positions = positions.clamp(max=self.window - 1)  # only padding lies beyond
        if self._trunk is None:
            return self._run(self.model, ids, positions, mask, cache, keep), None
        if self._lean:
            hidden = self._lean(ids, positions, mask, cache)
        else:
            hidden = self._trunk.hidden(ids, positions, attention_mask=mask, cache=cache, use_cache=True)
        return self._trunk.logits(hidden[:, keep]), hidden

    def shared(self) -> Trunk:
        """Returns what a draft head shares of the model. Raises ModelError for one that can have no head."""
        return self._trunk or Trunk(self.model, self.name)

    def _prove(self) -> None:
        """Raises ModelError unless ragged rows in the cache give the logits that whole rows give."""
        size = self.model.config.vocab_size
        ids = (torch.arange(20, device=self.device) * size // 20).view(
            2, 10
        )  # ordinary tokens: special ones are chaotic
        at = torch.arange(10, device=self.device).expand(2, -1)
        cache = RowCache(2)
        try:
            with torch.inference_mode():
                whole = self.forward(ids, at, 1).float()
                for starts, width in (((0, 0), 7), ((4, 7), 6)):  # row 0 reads 4 and then 6 tokens, row 1 reads 7 and 3
                    positions = torch.tensor(starts, device=self.device)[:, None] + at[:, :width]
                    new = ids.gather(1, positions.clamp(max=9))
                    seen = max(starts) + width
                    cache.aim((0, 1), positions, seen)
                    mask = causal(positions, seen, self.model.dtype)
                    pieces, _ = self.forward_cached(
                        new, positions, mask, cache, torch.tensor([2, 5], device=self.device)
                    )
            off = (pieces.float()[[0, 1], [1, 0]] - whole[:, 0]).abs().max().item() / whole.abs().max().item()
        except (RuntimeError, ValueError, TypeError, IndexError, AttributeError) as error:
            raise ModelError(
                f"model {self.name!r} cannot be run over a rollout cache ({type(error).__name__}: {error}); choose a "
                "Llama-like model with full attention"
            ) from error
        if not off < (1e-3 if self.model.dtype == torch.float32 else 0.1):
            raise ModelError(
                f"model {self.name!r} gives other logits with a rollout cache than without (off by {off:.2g} of the "
                "largest); choose a Llama-like model with full attention"
            )

    @contextmanager
    def _without_adapter(self) -> Iterator[Any]:
        if self.lora:
            with self.model.disable_adapter():
                yield self.model
        else:
            yield self._base

    def base_forward(self, ids: Tensor, positions: Tensor, keep: Any) -> Tensor:
        """Runs the agent's own fixed base (LoRA: the adapter off) over whole rows; shapes as in ``forward``."""
        with torch.no_grad(), self._without_adapter() as base:
            return self._run(base, ids, positions, None, None, keep)

    @staticmethod
    def _run(
        model: Any, ids: Tensor, positions: Tensor, mask: Tensor | None, cache: RowCache | None, keep: Any
    ) -> Tensor:
        output = model(
            input_ids=ids,
            position_ids=positions,
            attention_mask=mask,
            cache=cache,
            use_cache=cache is not None,
            logits_to_keep=keep,
        )
        logits: Tensor = output.logits
        return logits

    def trained(self) -> dict[str, Tensor]:
        """The trained parameters by name."""
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def export(self, folder: Path) -> None:
        """Writes a plain Hugging Face folder (LoRA: a PEFT folder) with the tokenizer."""
        self.model.save_pretrained(folder)
        self.format.tokenizer.save_pretrained(folder)


def _device(name: str) -> str:
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(
            f"device = {name!r} is not available here ({str(error).splitlines()[0]}); use 'cpu' or 'auto'"
        ) from error
    return name


def _window(config: AgentConfig, model: Any) -> int:
    most = int(getattr(model.config, "max_position_embeddings", _WINDOW))
    if config.window > most:
        raise ConfigError(f"window = {config.window} exceeds the {most} positions of model {config.model!r}; lower it")
    return config.window or min(most, _WINDOW)


def _with_lora(model: Any, rank: int, seed: int) -> Any:
    from peft import LoraConfig, get_peft_model

    wanted = LoraConfig(
        r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return get_peft_model(model, wanted)
    except ValueError as error:
        raise ModelError(
            f"LoRA cannot be put on {type(model).__name__} ({error}); set weights = 'full' or choose another model"
        ) from error
