"""A prompt cache as Anthropic's API documents it: a prompt is stored up to each mark, and found from a later mark."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.tokens import Usage

MARK = {"type": "ephemeral"}
_LOOKBACK = 20
"""How many blocks before a mark the API looks for a prompt that it stored."""


class MarkedCache:
    """Stores prompts up to their marks, and counts what of later ones is found."""

    def __init__(self) -> None:
        self.calls: list[Usage] = []
        self._stored: set[bytes] = set()

    def take(self, messages: Sequence[Any]) -> None:
        sizes, prefixes, marks = [0], [b""], list[int]()
        for block in itertools.chain.from_iterable(map(_blocks, messages)):
            plain = msgspec.json.encode({name: value for name, value in block.items() if name != "cache_control"})
            sizes.append(sizes[-1] + len(plain))
            prefixes.append(hashlib.sha256(prefixes[-1] + plain).digest())
            if "cache_control" in block:
                marks.append(len(prefixes) - 1)
        near = (at for mark in marks for at in range(mark, max(0, mark - _LOOKBACK), -1))
        found = max((at for at in near if prefixes[at] in self._stored), default=0)
        written = max([found, *marks])
        self._stored.update(prefixes[mark] for mark in marks)
        self.calls.append(
            Usage(
                input=(sizes[-1] - sizes[written]) // 4,
                cache_write=(sizes[written] - sizes[found]) // 4,
                cache_read=sizes[found] // 4,
            )
        )


def _blocks(message: Any) -> list[Any]:
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def without_marks_of_edited(messages: Sequence[Any]) -> list[Any]:
    """Returns the messages with edited replies as a rebuild leaves them: without their thinking, they have no mark."""
    return [message if message["role"] == "user" or _thinks(message) else _unmarked(message) for message in messages]


def _thinks(message: Any) -> bool:
    return any(block["type"] == "thinking" for block in _blocks(message))


def _unmarked(message: Any) -> Any:
    blocks = [{name: value for name, value in block.items() if name != "cache_control"} for block in _blocks(message)]
    return message | {"content": blocks}


def with_thinking(message: Any, number: int) -> Any:
    """Returns a reply that begins with thinking; any other message unchanged."""
    if message["role"] != "assistant":
        return message
    own = [block for block in _blocks(message) if block["type"] not in ("thinking", "redacted_thinking")]
    return message | {"content": [{"type": "thinking", "thinking": "Hm.", "signature": f"s{number}"}, *own]}


def with_marked_replies(messages: Sequence[Any], count: int = 2) -> list[Any]:
    """Returns the messages with a mark at the end of the newest replies, as a client sets it."""
    marked = list(messages)
    replies = [at for at, message in enumerate(messages) if message["role"] == "assistant"]
    for at in replies[-count:]:
        *others, last = marked[at]["content"]
        marked[at] = marked[at] | {"content": [*others, last | {"cache_control": MARK}]}
    return marked
