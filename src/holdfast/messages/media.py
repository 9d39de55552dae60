"""Media inside payloads: stored once, by digest, instead of in every event that shows it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from .parts import Json

MARK = "holdfast-media:"
"""Begins the digest that stands where media were."""
_KEYS = frozenset(("data", "url", "image_url", "file_data"))
_SMALLEST = 1_024


def lift_media(payload: Json) -> tuple[Json, dict[str, str]]:
    """The payload with digests in place of its media, and the media by digest."""
    found: dict[str, str] = {}
    return _lift(payload, "", found), found


def _lift(value: Any, key: str, found: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _lift(item, name, found) for name, item in value.items()}
    if isinstance(value, list):
        return [_lift(item, key, found) for item in value]
    if key in _KEYS and isinstance(value, str) and _is_media(key, value):
        digest = hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()
        found[digest] = value
        return MARK + digest
    return value


def _is_media(key: str, value: str) -> bool:
    """Long data under a key that holds media; and what looks like our own mark, so that none is ever mistaken."""
    if value.startswith(MARK):
        return True
    return len(value) >= _SMALLEST and (key in ("data", "file_data") or value.startswith("data:"))


def lower_media(payload: Json, media: Mapping[str, str]) -> Json:
    """The payload with its media back in place."""
    lowered: Json = _lower(payload, "", media)
    return lowered


def _lower(value: Any, key: str, media: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _lower(item, name, media) for name, item in value.items()}
    if isinstance(value, list):
        return [_lower(item, key, media) for item in value]
    if key in _KEYS and isinstance(value, str) and value.startswith(MARK):
        return media.get(value.removeprefix(MARK), value)
    return value
