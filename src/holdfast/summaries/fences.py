"""Marks around what a model is to read and not to obey: whatever stands inside cannot close them."""

from __future__ import annotations

import hashlib

_LENGTH = 6


def fenced(name: str, text: str) -> str:
    """Text between an opening and a closing mark of this name that do not occur in it."""
    label = mark(name, text)
    return f"<{label}>\n{text.strip()}\n</{label}>"


def mark(name: str, text: str) -> str:
    """The name with letters that depend on the text, so that no text can hold its own closing mark."""
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()
    for length in range(_LENGTH, len(digest) + 1):
        if f"{name}-{digest[:length]}" not in text:
            return f"{name}-{digest[:length]}"
    raise AssertionError("a text that holds its own digest")
