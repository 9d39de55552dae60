"""The SDKs' own objects: replies and messages as their libraries return them, told by shape alone.

No SDK is imported: whoever holds such an object has its library already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import InvalidInput
from .parts import Json

_SDK_ONLY = frozenset(("parsed", "parsed_output", "parsed_arguments"))


def unpack(item: Any) -> Iterator[Any]:
    """The messages inside one SDK object; anything else comes back as it is."""
    if isinstance(item, Mapping) or not hasattr(item, "model_dump"):
        yield item
    elif hasattr(item, "candidates"):
        yield dump(_first(item.candidates, "candidate").content or _nothing("a candidate without content"))
    elif hasattr(item, "choices"):
        yield dump(_first(item.choices, "choice").message)
    elif str(getattr(item, "object", "")).startswith("response") and isinstance(getattr(item, "output", None), list):
        yield from map(dump, item.output)
    else:
        yield dump(item)


def _first(options: Any, what: str) -> Any:
    return options[0] if options else _nothing(f"no {what}")


def _nothing(what: str) -> Any:
    raise InvalidInput(f"A model's reply has {what}: nothing was said, so leave it out.")


def dump(item: Any) -> Json:
    """A plain dict with the fields that were set, under their wire names."""
    if type(item).__module__.startswith("google."):
        content: Json = item.model_dump(mode="json", by_alias=True, exclude_none=True)
        return content
    hidden = _SDK_ONLY | set(getattr(item, "__api_exclude__", None) or ())
    payload: Json = item.model_dump(mode="json", by_alias=True, exclude_unset=True)
    payload = {key: value for key, value in _given(payload).items() if key not in hidden}
    if isinstance(blocks := payload.get("content"), list):
        payload["content"] = [_given(block) if isinstance(block, dict) else block for block in blocks]
    return payload


def _given(payload: Json) -> Json:
    """Without fields that are null: some providers refuse them. A null content says something."""
    return {key: value for key, value in payload.items() if value is not None or key == "content"}
