"""SDK objects: replies and messages as provider libraries return them, recognised by their attributes.

No SDK is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import InvalidInput
from .parts import Json

_SDK_ONLY = frozenset(("parsed", "parsed_output", "parsed_arguments"))


def unpack_sdk_object(item: Any) -> Iterator[Any]:
    """Yields the messages inside one SDK object; yields anything else unchanged."""
    if isinstance(item, Mapping) or not hasattr(item, "model_dump"):
        yield item
    elif hasattr(item, "candidates"):
        yield dump(_first(item.candidates, "candidate").content or _raise_empty_reply("a candidate without content"))
    elif hasattr(item, "choices"):
        yield dump(_first(item.choices, "choice").message)
    elif str(getattr(item, "object", "")).startswith("response") and isinstance(getattr(item, "output", None), list):
        yield from map(dump, item.output)
    else:
        yield dump(item)


def _first(options: Any, what: str) -> Any:
    return options[0] if options else _raise_empty_reply(f"no {what}")


def _raise_empty_reply(what: str) -> Any:
    raise InvalidInput(f"A model's reply has {what}: leave it out.")


def dump(item: Any) -> Json:
    """Returns a plain dict of the fields that were set, under their wire names."""
    if type(item).__module__.startswith("google."):
        content: Json = item.model_dump(mode="json", by_alias=True, exclude_none=True)
        return content
    hidden = _SDK_ONLY | set(getattr(item, "__api_exclude__", None) or ())
    payload: Json = item.model_dump(mode="json", by_alias=True, exclude_unset=True)
    payload = {key: value for key, value in _without_nulls(payload).items() if key not in hidden}
    if isinstance(blocks := payload.get("content"), list):
        payload["content"] = [_without_nulls(block) if isinstance(block, dict) else block for block in blocks]
    return payload


def _without_nulls(payload: Json) -> Json:
    """Drops null fields, which some providers reject; a null `content` is kept, it has a meaning."""
    return {key: value for key, value in payload.items() if value is not None or key == "content"}
