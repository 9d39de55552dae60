"""Media inside payloads: stored once, by digest, instead of in every event that shows it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from .parts import Json

_MARK = "holdfast-media:"
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
    if key in _KEYS and isinstance(value, str) and len(value) >= _SMALLEST and _is_media(key, value):
        digest = hashlib.sha256(value.encode(errors="replace")).hexdigest()
        found[digest] = value
        return _MARK + digest
    return value


def _is_media(key: str, value: str) -> bool:
    return key == "data" or key == "file_data" or value.startswith("data:")


def lower_media(payload: Json, media: Mapping[str, str]) -> Json:
    """The payload with its media back in place."""
    lowered: Json = _lower(payload, media)
    return lowered


def _lower(value: Any, media: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _lower(item, media) for name, item in value.items()}
    if isinstance(value, list):
        return [_lower(item, media) for item in value]
    if isinstance(value, str) and value.startswith(_MARK):
        return media.get(value.removeprefix(_MARK), value)
    return value
