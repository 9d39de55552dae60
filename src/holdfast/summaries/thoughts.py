"""What a model thought aloud before it answered, and is no part of the answer."""

from __future__ import annotations

import re

_TAG = r"<(think|thinking|analysis|reasoning|scratchpad)>"
OPENING = re.compile(rf"(?im)^[ \t]*{_TAG}")
_FIRST = re.compile(rf"(?is)\A\s*{_TAG}.*?(?:</\1>|\Z)")
_APART = re.compile(rf"{OPENING.pattern}(?s:.*?)</\1>[ \t]*$")
_ENDED = re.compile(r"(?im)^[ \t]*</think(?:ing)?>[ \t]*$")
_FENCE = re.compile(r"(?m)^[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)[ \t]*$")


def without_thoughts(text: str) -> str:
    """The answer alone; a tag inside a line or a fence is something that it quotes."""
    while found := _FIRST.match(text):
        text = text[found.end() :]
    start = 0
    while found := _APART.search(text, start):
        if _in_fence(text[: found.start()]):
            start = found.end(1)
        else:
            text, start = text[: found.start()] + text[found.end() :], found.start()
    ended = _ENDED.search(text)
    if not ended or "<think" in text[: ended.start()].casefold() or _in_fence(text[: ended.start()]):
        return text
    return text[ended.end() :]


def _in_fence(text: str) -> bool:
    """Is the place behind this text inside a fence?"""
    opened = ""
    for mark, info in _FENCE.findall(text):
        if not opened:
            opened = mark
        elif mark.startswith(opened) and not info:
            opened = ""
    return bool(opened)
