"""What is counted of a part that is kept as it came: its JSON, without what a provider does not count as text."""

from __future__ import annotations

import re
from typing import Any

from ..messages import Opaque, is_known

_ENCRYPTED = "encrypted"
"""How the fields of encrypted text begin, at every provider."""
_SIGNATURES = frozenset(("signature", "thoughtSignature", "thought_signature"))
"""Fields that prove where a part is from: not shown to the model, and not counted."""
_WORD = " the"
"""Four characters and one token, in every vocabulary."""
_MEDIA = re.compile(r"(?:data:[^,]{0,100};base64,)?[A-Za-z0-9+/_-]{1024}")


def counted_json(part: Opaque) -> tuple[Any, int]:
    """Returns the JSON value by which a part is counted, and the number of media in it.

    A provider decrypts what it encrypted and counts the text: in base64 that is three quarters of the length, and
    four characters to a token (Codex counts alike). Media are counted by the kind of part that has them; in a part of
    an unknown type they are bytes like all else.
    """
    media: list[str] = []
    return _counted(part.data, "", media if is_known(part) else None), len(media)


def _counted(value: Any, key: str, media: list[str] | None) -> Any:
    if isinstance(value, dict):
        return {name: _counted(item, name, media) for name, item in value.items() if name not in _SIGNATURES}
    if isinstance(value, list):
        return [_counted(item, key, media) for item in value]
    if not isinstance(value, str):
        return value
    if key.startswith(_ENCRYPTED):
        return _WORD * (len(value) * 3 // 4 // len(_WORD))
    if media is not None and _MEDIA.match(value):
        media.append(value)
        return ""
    return value
