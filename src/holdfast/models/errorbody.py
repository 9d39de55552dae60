"""What an error's body says, whichever provider wrote it: only its own words, never what it quotes of the prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_SPEAKING = ("message", "msg", "code", "type", "status", "reason", "param", "detail", "error_code")
_INSIDE = ("error", "details", "detail", "response")
_DEPTH = 5


def words(message: str, body: Any) -> str:
    """The message and whatever codes and words the body adds."""
    if isinstance(body, str):
        return f"{message}\n{body}"
    return "\n".join(dict.fromkeys((message, *_told(body, _DEPTH))))


def codes(body: Any) -> Iterator[str]:
    """Every code, type and status in the body, outermost first."""
    for layer in _layers(body, _DEPTH):
        yield from (str(layer[key]) for key in ("code", "type", "status", "reason") if layer.get(key) is not None)


def sentence(body: Any) -> str:
    """What the body says to a person."""
    said = (layer.get(key) for layer in _layers(body, _DEPTH) for key in ("message", "msg", "detail"))
    return next((text for text in said if isinstance(text, str) and text.strip()), "")


def find(body: Any, key: str) -> Any:
    return next((layer[key] for layer in _layers(body, _DEPTH) if key in layer), None)


def _told(body: Any, depth: int) -> Iterator[str]:
    for layer in _layers(body, depth):
        yield from (str(layer[key]) for key in _SPEAKING if isinstance(layer.get(key), str | int))


def _layers(body: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    if depth == 0:
        return
    if isinstance(body, list | tuple):
        for item in body[:8]:
            yield from _layers(item, depth - 1)
    elif isinstance(body, Mapping):
        yield body
        for key in _INSIDE:
            yield from _layers(body.get(key), depth - 1)
