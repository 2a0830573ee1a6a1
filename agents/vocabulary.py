"""The pocket model's tokenizer: byte fallback, words and digits whole.

A word or a digit and the space before it are one token, so a small model reads few tokens and every text survives
encoding and decoding unchanged.
"""

from __future__ import annotations

__all__ = ["WINDOW", "build_tokenizer"]

import json
from collections.abc import Iterable
from typing import Any

from decentral.agents.format import KINDS

WINDOW = 1024
VOCABULARY = 1024
WORDS = (
    "left right up down forward back top bottom north south east west here there near far goal wall door key box agent "
    "player opponent friend enemy self other others team me mine yours empty free blank none hidden visible mask item "
    "landmark target position velocity speed direction distance board row column cell square piece mark card hand deck "
    "suit rank pot chip bet call raise fold check pass draw play take give move put place open close push pull turn "
    "turns round step steps time score reward win lose lost won draw true false yes no and or not the a an of to in at "
    "is are was red blue green gold pink white black grey yellow orange purple brown observation action legal value "
    "count size length number total sum max min first second third last next x y z o ada bob cat dan met late blocked"
)
"""Words that third-party environments use; each becomes one token, to be learnt where it is met."""


def build_tokenizer(texts: Iterable[str]) -> Any:
    """Trains the tokenizer: BPE with byte fallback; a word or a digit and the space before it are one token."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    pieces = Regex(r"▁?[0-9]|▁?[A-Za-z]+|▁?[^A-Za-z0-9▁]|▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(pieces, "isolated")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    special = [f"<|{kind}|>" for kind in KINDS] + ["<|end|>"]
    letters = [chr(c) for c in range(33, 127)] + ["▁"]
    spaced = [f"▁{chr(c)}" for c in range(33, 127)]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=special + [f"<0x{byte:02X}>" for byte in range(256)],
        initial_alphabet=letters,
        show_progress=False,
    )
    shown = [*texts, *(WORDS,) * 1000, *(" ".join(piece[1:] for piece in spaced),) * 1000]
    tokenizer.train_from_iterator(shown, trainer)
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [token for token in state["added_tokens"] if token["content"] in special]
    tokenizer = Tokenizer.from_str(json.dumps(state))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|end|>",
        pad_token="<|end|>",
        model_max_length=WINDOW,
        clean_up_tokenization_spaces=False,
    )
