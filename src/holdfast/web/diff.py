"""Two contexts compared: first message by message, then line by line in those that changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher, unified_diff
from itertools import zip_longest
from typing import Any, Literal

import msgspec

from ..messages import Json
from ..sessions import Context

MAX_MESSAGES = 400
"""Differing messages in a reply."""
_MAX_LINES = 300
"""Lines of one difference."""
_MAX_COMPARED = 3_000
_CACHE_MARKS = ("cache_control", "cachePoint")


class MessageDiff(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message that only one context has, or that differs between them; or a run of equal ones."""

    kind: Literal["same", "added", "removed", "changed"]
    count: int = 1
    number: int = 0
    """Number of the event behind it."""
    role: str = ""
    lines: tuple[str, ...] = ()
    """Lines with a leading space, plus or minus."""


def compare_contexts(before: Context, after: Context) -> list[MessageDiff]:
    """Returns the differences; cache marks and the two ways to write one text do not count."""
    old, new = [normalize(one) for one in before.messages], [normalize(one) for one in after.messages]
    first = _common_start(old, new)
    rest = min(len(old), len(new)) - first
    last = _common_start(old[::-1][:rest], new[::-1][:rest])
    found: list[MessageDiff] = [MessageDiff("same", first)] if first else []
    middle_old, middle_new = range(first, len(old) - last), range(first, len(new) - last)
    found += _middle(before, after, old, new, middle_old, middle_new)
    if last:
        found.append(MessageDiff("same", last))
    return found[:MAX_MESSAGES]


def _middle(
    before: Context, after: Context, old: list[bytes], new: list[bytes], left: range, right: range
) -> Iterator[MessageDiff]:
    if max(len(left), len(right)) > _MAX_COMPARED:
        blocks: Sequence[tuple[str, int, int, int, int]] = [("replace", 0, len(left), 0, len(right))]
    else:
        blocks = SequenceMatcher(
            None, [old[at] for at in left], [new[at] for at in right], autojunk=False
        ).get_opcodes()
    for kind, a, b, c, d in blocks:
        if kind == "equal":
            yield MessageDiff("same", b - a)
            continue
        for at, other in zip_longest(left[a:b], right[c:d]):
            yield _one(before, at, after, other)


def _one(before: Context, at: int | None, after: Context, other: int | None) -> MessageDiff:
    old = [] if at is None else text_of(before.messages[at]).splitlines()
    new = [] if other is None else text_of(after.messages[other]).splitlines()
    context, place = (after, other) if other is not None else (before, at)
    assert place is not None
    lines = tuple(list(unified_diff(old, new, n=2, lineterm=""))[2 : 2 + _MAX_LINES])
    kind: Literal["added", "removed", "changed"] = "added" if at is None else "removed" if other is None else "changed"
    role = str(context.messages[place].get("role") or context.messages[place].get("type") or "")
    return MessageDiff(kind, 1, context.numbers[place], role, lines)


def _common_start(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    return next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def normalize(message: Json) -> bytes:
    """Returns a message without cache marks, and with one text block as the text itself."""
    return msgspec.json.encode(_normalize(message), order="sorted")


def _normalize(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _normalize(item) for key, item in value.items() if key not in _CACHE_MARKS}
    if isinstance(value, list):
        items = [_normalize(item) for item in value]
        one = items[0] if len(items) == 1 and isinstance(items[0], dict) else {}
        return one["text"] if set(one) <= {"type", "text"} and isinstance(one.get("text"), str) else items
    return value


def text_of(value: Any) -> str:
    """Returns the texts of a message below each other; other data as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(map(text_of, value))
    if not isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    for name in ("content", "text", "parts", "output"):
        if isinstance(inner := value.get(name), str | list):
            rest = {key: item for key, item in value.items() if key not in (name, "role", "type", *_CACHE_MARKS)}
            return text_of(inner) + (f"\n{msgspec.json.encode(rest).decode()}" if rest else "")
    return msgspec.json.encode({key: item for key, item in value.items() if key not in _CACHE_MARKS}).decode()
