"""Texts without halves of characters, which no request could carry."""

from __future__ import annotations


def readable(text: str) -> str:
    """The text, with a sign in place of each half."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text
