"""Replies and messages as libraries return them: objects, recognised by their attributes or class, or dicts of them.

No SDK is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import InvalidInput
from .frameworks import dump_object, framework_of
from .parts import Json

_SDK_ONLY = frozenset(("parsed", "parsed_output", "parsed_arguments"))


def unpack_reply(item: Any) -> Iterator[Any]:
    """Yields the messages inside a whole reply, and those of SDK objects as dicts; yields anything else unchanged."""
    own = type(item) is dict or not isinstance(item, Mapping)
    if own and (framework := framework_of(item)) is not None:
        yield from dump_object(item, framework)
    elif not (isinstance(item, Mapping) or hasattr(item, "model_dump")) or _field(item, "role") is not None:
        yield _plain(item)
    elif (candidates := _field(item, "candidates")) is not None:
        content = _field(_first(candidates, "candidate"), "content")
        yield _plain(content or _raise_empty_reply("a candidate without content"))
    elif (choices := _field(item, "choices")) is not None:
        yield _plain(_field(_first(choices, "choice"), "message"), nulls=False)
    elif str(_field(item, "object")).startswith("response") and isinstance(output := _field(item, "output"), list):
        yield from map(_plain, output)
    else:
        yield _plain(item)


def reply_usage(reply: Any) -> Any:
    """Returns the usage inside a whole reply, as the provider reported it; None if there is none."""
    names = ("usage", "usage_metadata", "usageMetadata")
    return next((usage for name in names if (usage := _field(reply, name)) is not None), None)


def _field(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def _plain(item: Any, *, nulls: bool = True) -> Any:
    if isinstance(item, Mapping):
        return item if nulls else _without_nulls(dict(item))
    return dump(item) if hasattr(item, "model_dump") else item


def _first(options: Any, what: str) -> Any:
    return options[0] if isinstance(options, list) and options else _raise_empty_reply(f"no {what}")


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
