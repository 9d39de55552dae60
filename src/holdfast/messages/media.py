"""Media in payloads: replaced by a digest, so that a store keeps each once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from .parts import JSON_SCALARS, Json

MEDIA_PREFIX = "holdfast-media:"
"""Prefix of the digest that replaces media."""
_KEYS = frozenset(("data", "url", "image_url", "file_data"))
_MIN_CHARACTERS = 1_024
_NEVER_MEDIA = JSON_SCALARS - {str}


def extract_media(payload: Json) -> tuple[Json, dict[str, str]]:
    """Returns the payload with digests in place of its media, and the media by digest."""
    found: dict[str, str] = {}
    return _extract(payload, "", found), found


def _extract(value: Any, key: str, found: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            name: item if type(item) is str and name not in _KEYS else _extract(item, name, found)
            for name, item in value.items()
        }
    if isinstance(value, list):
        skipped = _NEVER_MEDIA if key in _KEYS else JSON_SCALARS
        return [item if type(item) in skipped else _extract(item, key, found) for item in value]
    if key in _KEYS and isinstance(value, str) and _is_media(key, value):
        digest = hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()
        found[digest] = value
        return MEDIA_PREFIX + digest
    return value


def _is_media(key: str, value: str) -> bool:
    """Long data under a media key; also text that starts with the prefix, so that it is never mistaken for a digest."""
    if value.startswith(MEDIA_PREFIX):
        return True
    return len(value) >= _MIN_CHARACTERS and (key in ("data", "file_data") or value.startswith("data:"))


def restore_media(payload: Json, media: Mapping[str, str]) -> Json:
    """Returns the payload with its media restored."""
    lowered: Json = _restore(payload, "", media)
    return lowered


def _restore(value: Any, key: str, media: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _restore(item, name, media) for name, item in value.items()}
    if isinstance(value, list):
        return [_restore(item, key, media) for item in value]
    if key in _KEYS and isinstance(value, str) and value.startswith(MEDIA_PREFIX):
        return media.get(value.removeprefix(MEDIA_PREFIX), value)
    return value
