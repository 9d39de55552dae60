"""Sample payloads of the types of the SDKs: the required fields only, or every field in each of its forms.

Unions, literals and nested types are walked; each string occurs once, so that one sees where it went.
"""

from __future__ import annotations

import base64
from typing import Any, get_args, get_origin

from sdk_types import Json, SdkType, alternatives, fields_of, is_nullable, is_record, items_of, shape_of, values_of

_MANY, _DEEP = 12, 2
"""Unions of more types (definitions of tools), or deeper inside, are not walked type by type."""


class Words:
    """Values that are used once; each string begins with the name of the field that it fills."""

    def __init__(self, start: int = 0) -> None:
        self._number = start

    def number(self) -> int:
        self._number += 1
        return self._number

    def text(self, field: str) -> str:
        word = f"{field.replace('_', '-')}-{self.number()}"
        if field in _LONG:
            return self.prose(word, _LONG[field])
        if field in _FORMS:
            return _FORMS[field].format(word)
        return base64.b64encode(word.encode() * _BASE64.get(field, 1)).decode() if field in _BASE64 else word

    def prose(self, word: str, lines: int) -> str:
        return word + "".join(f"\n{word} line {line}: the tide was {line * 7} feet" for line in range(lines))


_LONG = dict.fromkeys(("text", "output", "content", "stdout", "logs", "result", "value"), 24) | {"thinking": 4}
"""Lines of fields that hold prose or what a tool printed."""
_FORMS = {
    "arguments": '{{"path": "{}"}}',
    "image_url": "https://example.org/{}.png",
    "url": "https://example.org/{}",
    "fileUri": "gs://harbour/{}.pdf",
    "file_data": "data:application/pdf;base64,{}",
    "mimeType": "image/{}",
}
_BASE64 = {"data": 150, "thoughtSignature": 1, "signature": 1}
"""How often fields with encoded bytes repeat their word: media is long."""


def samples(type: SdkType) -> dict[str, Json]:
    """Sample payloads of a type by name: required fields only, all in each form, nulls where allowed."""
    many = _forms(shape_of(type), 0 if type.format != "gemini" else 1)
    full = {f"full-{index}" if many > 1 else "full": sample(type, Words(), index) for index in range(many)}
    if type.format == "gemini":
        return full
    nulls = [name for name, (hint, _) in fields_of(type.shape).items() if is_nullable(hint)]
    null = {"null": next(iter(full.values())) | dict.fromkeys(nulls)} if nulls else {}
    return {"required": sample(type, Words()), **full, **null}


def sample(type: SdkType, words: Words, index: int | None = None) -> Json:
    """The sample of this number, with every field; without one, the smallest: of a Gemini part all there is."""
    if type.format == "gemini":
        return {type.tag: _value(shape_of(type), index or 0, type.tag, words)}
    found: Json = _value(type.shape, index, type.tag, words, 0)
    return found


def _forms(hint: Any, depth: int) -> int:
    """How many samples it takes to show each type and value inside a type: the sum over a union, else the maximum."""
    options = alternatives(hint)
    if depth > _DEEP or len(options) > _MANY:
        return 1
    return sum(_forms_of_one(option, depth) for option in options)


def _forms_of_one(hint: Any, depth: int) -> int:
    if is_record(hint):
        return max((_forms(inner, depth + 1) for inner, _ in fields_of(hint).values()), default=1)
    if (items := items_of(hint)) and len(items) <= _MANY:
        return max(_forms_of_one(item, depth) for item in items)
    return len(values_of(hint)) or 1 if depth == 1 else 1


def _value(hint: Any, index: int | None, field: str, words: Words, depth: int = 1) -> Any:
    """A value of a type in the form of this number; without one, the smallest."""
    options = alternatives(hint)
    if index is None or depth > _DEEP or len(options) > _MANY:
        return _one(options[(index or 0) % len(options)], index, field, words, depth)
    index %= _forms(hint, depth)
    for option in options:
        if index < (many := _forms_of_one(option, depth)):
            return _one(option, index, field, words, depth)
        index -= many
    raise AssertionError(f"{hint} has no form {index}")


def _one(hint: Any, index: int | None, field: str, words: Words, depth: int) -> Any:
    if is_record(hint):
        chosen = {name: inner for name, (inner, required) in fields_of(hint).items() if required or index is not None}
        return {name: _value(inner, index, name, words, depth + 1) for name, inner in chosen.items()}
    if values := values_of(hint):
        return values[(index or 0) % len(values)]
    if items := items_of(hint):
        return _list(items, index, field, words, depth)
    if hint is str or hint is bytes:
        return words.text(field)
    if hint in (int, float):
        return words.number() + (0.5 if hint is float else 0)
    if get_origin(hint) is dict:
        inner = get_args(hint)[1]
        return {words.text("key"): _value(inner, index, "value", words, depth + 1)}
    if hint in (object, Any):
        return {words.text("key"): words.text("value")}
    raise AssertionError(f"{hint}, the type of the field {field}: add a sample of it to sdk_types.py")


def _list(items: list[Any], index: int | None, field: str, words: Words, depth: int) -> list[Any]:
    """One item; in a full sample each type of item once, and two at least."""
    if index is None:
        return [_one(items[0], None, field, words, depth)]
    if len(items) > _MANY:
        items = [items[index % len(items)]]
    if len(items) == 1:
        items = items * 2
    return [_one(item, index + place, field, words, depth) for place, item in enumerate(items)]
