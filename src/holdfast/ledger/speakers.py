"""Who speaks in the user's name: programs put their texts there too, in tags or in brackets."""

from __future__ import annotations

import re

_TAG = re.compile(r"\s*<((?:[a-z]+[-_])+[a-z]+|skill)\b[^<>]*>")
"""Of several words, as programs name theirs; a person who writes in tags writes <task> or <document>."""
_BRACKETS = re.compile(r"\s*\[[^\]\n]{1,120}\]\s*$")


def by_speaker(text: str) -> tuple[str, str]:
    """What a person wrote, and what a program put before it."""
    if _BRACKETS.match(text):
        return "", text
    at = 0
    while tag := _TAG.match(text, at):
        end = text.find(f"</{tag[1]}>", tag.end())
        if end < 0:
            break
        at = end + len(f"</{tag[1]}>")
    return text[at:].strip(), text[:at]
