"""PostgreSQL's text holds every character but NUL, and a session may be called anything."""

from __future__ import annotations

from typing import overload


@overload
def kept(text: str) -> str: ...
@overload
def kept(text: str | None) -> str | None: ...
def kept(text: str | None) -> str | None:
    """A name as it is stored: in the same order as all others, and no two alike."""
    if text is None or ("\0" not in text and "\1" not in text):
        return text
    return text.replace("\1", "\1" + "1").replace("\0", "\1" + "0")


@overload
def given(text: str) -> str: ...
@overload
def given(text: str | None) -> str | None: ...
def given(text: str | None) -> str | None:
    """A stored name as it was given."""
    if text is None or "\1" not in text:
        return text
    return text.replace("\1" + "0", "\0").replace("\1" + "1", "\1")
