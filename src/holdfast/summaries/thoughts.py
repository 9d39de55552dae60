"""What a model thought aloud before it answered, and is no part of the answer."""

from __future__ import annotations

import re

_TAG = r"<(think|thinking|analysis|reasoning|scratchpad)>.*?"
_FIRST = re.compile(rf"(?is)\A\s*{_TAG}(?:</\1>|\Z)")
_APART = re.compile(rf"(?ims)^[ \t]*{_TAG}</\1>[ \t]*$")
_BEFORE = re.compile(r"(?ims)\A(?:(?!<think).)*?^[ \t]*</think(?:ing)?>[ \t]*$")


def without_thoughts(text: str) -> str:
    """The answer alone; a tag inside a line is something that it quotes."""
    while found := _FIRST.match(text):
        text = text[found.end() :]
    return _BEFORE.sub("", _APART.sub("", text))
