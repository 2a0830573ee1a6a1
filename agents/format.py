"""How the segments of a stream become tokens, for one tokenizer.

A segment is an opening, its text, and a closing. The text is encoded with special tokens taken as plain characters, so
that nothing an environment or a peer writes can open or close a segment. Knows nothing about models or turns.
"""

from __future__ import annotations

__all__ = ["KINDS", "Format", "Kind"]

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, get_args

from decentral.agents import trie
from decentral.errors import ModelError

Kind = Literal["system", "observation", "advice", "recovery", "reasoning", "action", "feedback"]
KINDS: tuple[Kind, ...] = get_args(Kind)

Ids = tuple[int, ...]

_CHATML: dict[Kind, str] = {
    "system": "system\n",
    "observation": "user\n",
    "advice": "user\nAdvice: ",
    "recovery": "user\nHint: ",
    "reasoning": "assistant\nThought: ",
    "action": "assistant\n",
    "feedback": "user\nResult: ",
}
_PLAIN: dict[Kind, str] = {kind: f"\n{kind.capitalize()}:" for kind in KINDS}


class Format:
    """Segment markers of one tokenizer: our own marker tokens if it has them, ChatML, or plain labels."""

    def __init__(self, tokenizer: Any) -> None:
        """
        Raises:
            ModelError: the tokenizer has no token that can end an action.
        """
        self.tokenizer = tokenizer
        vocabulary = tokenizer.get_vocab()
        opens: dict[Kind, Ids]
        markers: dict[Kind, str] = {kind: f"<|{kind}|>" for kind in KINDS}
        self.start: Ids = ()
        close: Ids = ()
        after: Ids = ()
        if all(marker in vocabulary for marker in markers.values()):
            opens = {kind: (vocabulary[marker],) for kind, marker in markers.items()}
            end = vocabulary.get("<|end|>")
        elif "<|im_start|>" in vocabulary and "<|im_end|>" in vocabulary:
            begin, end = vocabulary["<|im_start|>"], vocabulary["<|im_end|>"]
            opens = {kind: (begin, *self._encode(role)) for kind, role in _CHATML.items()}
            after = self._encode("\n")
            close = (end, *after)
        else:
            end = tokenizer.eos_token_id
            opens = {kind: self._encode(label) for kind, label in _PLAIN.items()}
            if tokenizer.bos_token_id is not None:
                self.start = (tokenizer.bos_token_id,)
        if end is None:
            raise ModelError(
                f"tokenizer {tokenizer.name_or_path!r} has no end-of-sequence token, which must end an action; "
                "set its eos_token and save it again"
            )
        self.end: int = end
        self._opens = opens
        self._close = close
        self._after = after
        self.text = lru_cache(maxsize=65536)(self._encode)
        self.trie = lru_cache(maxsize=4096)(self._trie)

    def _encode(self, text: str) -> Ids:
        ids = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        return tuple(ids)

    def _trie(self, legal: tuple[str, ...]) -> trie.Node:
        return trie.build(legal, [self.choice(action) for action in legal])

    def opening(self, kind: Kind) -> Ids:
        """Returns the tokens before a segment's text."""
        return self._opens[kind]

    def given(self, kind: Kind, text: str) -> Ids:
        """Returns a whole segment that the agent reads but does not sample."""
        return (*self._opens[kind], *self.text(text), *self._close)

    def choice(self, action: str) -> Ids:
        """Returns an action encoded alone, with the end-of-action token."""
        return (*self.text(action), self.end)

    @property
    def after(self) -> Ids:
        """The tokens that follow a sampled segment's end token."""
        return self._after

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of sampled tokens, without the end token."""
        kept = [i for i in ids if i != self.end]
        return str(self.tokenizer.decode(kept, skip_special_tokens=False, clean_up_tokenization_spaces=False))
