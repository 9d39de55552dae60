"""The SDKs' own objects: replies and messages as their libraries return them, told by shape alone.

No SDK is imported: whoever holds such an object has its library already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .parts import Json

_ANTHROPIC_REPLY_ONLY = frozenset(("role", "content"))


def unpack(item: Any) -> Iterator[Any]:
    """The messages inside one SDK object; anything else comes back as it is."""
    if isinstance(item, Mapping) or not hasattr(item, "model_dump"):
        yield item
        return
    library = type(item).__module__.partition(".")[0]
    if library == "google":
        yield from _gemini(item)
    elif hasattr(item, "choices"):
        yield dump(item.choices[0].message)
    elif isinstance(getattr(item, "output", None), list) and hasattr(item, "previous_response_id"):
        for part in item.output:
            yield dump(part)
    elif library == "anthropic" and hasattr(item, "stop_reason"):
        yield {key: value for key, value in dump(item).items() if key in _ANTHROPIC_REPLY_ONLY}
    else:
        yield dump(item)


def _gemini(item: Any) -> Iterator[Json]:
    candidates = getattr(item, "candidates", None)
    content = candidates[0].content if candidates else item
    yield content.model_dump(mode="json", by_alias=True, exclude_none=True)


def dump(item: Any) -> Json:
    """A plain dict with the fields that were set, under their wire names."""
    payload: Json = item.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {key: value for key, value in payload.items() if value is not None or key == "content"}
