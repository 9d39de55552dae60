"""Every message, item, block and part type that the installed SDKs define, read from the packages themselves."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import version
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Required, Union, get_args, get_origin

import pydantic
from anthropic.types import ContentBlock, ContentBlockParam, MessageParam
from anthropic.types.beta import BetaContentBlock, BetaContentBlockParam, BetaMessageParam
from google.genai import types as genai
from openai.types.beta import BetaResponseInputItemParam, BetaResponseOutputItem
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam, ResponseOutputItem
from typing_extensions import get_type_hints, is_typeddict

Json = dict[str, Any]


class SdkType(NamedTuple):
    """A type of an SDK as it occurs in a conversation."""

    format: str
    api: str
    """`beta` for types of the SDK's beta namespace."""
    tag: str
    """Its `type` on the wire; the role of a message, the field of a Gemini part."""
    shape: Any

    @property
    def id(self) -> str:
        name = self.tag if self.tag not in SHARED_TAGS else f"{self.tag}.{self.shape.__name__}"
        return f"{self.format}{'-beta' * bool(self.api)}:{name}"


PACKAGES = {"openai-chat": "openai", "openai-responses": "openai", "anthropic": "anthropic", "gemini": "google-genai"}
SHARED_TAGS = frozenset({"message"})
"""Tags of several types."""
SENT = (
    ("openai-chat", "", ChatCompletionMessageParam),
    ("openai-responses", "", ResponseInputItemParam),
    ("openai-responses", "beta", BetaResponseInputItemParam),
    ("anthropic", "", MessageParam),
    ("anthropic", "beta", BetaMessageParam),
    ("anthropic", "", ContentBlockParam),
    ("anthropic", "beta", BetaContentBlockParam),
)
"""What a request may hold; of Gemini, a Content with Parts."""
MESSAGES = {
    "openai-chat": (ChatCompletionMessageParam,),
    "openai-responses": (ResponseInputItemParam, BetaResponseInputItemParam),
    "anthropic": (MessageParam, BetaMessageParam),
}
"""The messages and items of each format."""
RECEIVED = (
    ("openai-responses", ResponseOutputItem),
    ("openai-responses", BetaResponseOutputItem),
    ("anthropic", ContentBlock),
    ("anthropic", BetaContentBlock),
)
"""What a reply may hold: sent back in the next request."""
DEFINITIONS = frozenset({"tools", "tool", "tool_changes", "environment", "format"})
"""Fields with definitions of tools and schemas: data, not parts of a conversation."""


def package_of(format: str) -> str:
    """The package of a format and its version, for messages of tests."""
    return f"{PACKAGES[format]} {version(PACKAGES[format])}"


@cache
def sdk_types() -> tuple[SdkType, ...]:
    """All types of messages, items, blocks and parts."""
    found = [
        SdkType(format, api, tag_of(shape), shape)
        for format, api, union in SENT
        for shape in alternatives(union)
        if is_typeddict(shape)  # of blocks, those sent; those received are among RECEIVED
    ]
    parts = [SdkType("gemini", "", alias_of(genai.Part, name), name) for name in genai.Part.model_fields]
    return (*found, *parts)


def received_tags() -> set[tuple[str, str]]:
    """Formats and tags of what a reply may hold."""
    return {(format, tag_of(shape)) for format, union in RECEIVED for shape in alternatives(union)}


def nested_types(type: SdkType) -> Iterator[tuple[str, str]]:
    """Yields the field and the tag of each type inside a type, definitions excluded."""
    seen: set[int] = set()

    def walk(shape: Any, field: str) -> Iterator[tuple[str, str]]:
        for inner in alternatives(shape):
            if is_record(inner) and id(inner) not in seen:
                seen.add(id(inner))
                if field and (tag := tag_of(inner)):
                    yield field, tag
                for name, (hint, _) in fields_of(inner).items():
                    if name not in DEFINITIONS:
                        yield from walk(hint, name)
            elif not is_record(inner):
                for argument in get_args(inner):
                    yield from walk(argument, field)

    yield from walk(shape_of(type), "")


# -- shapes -----------------------------------------------------------------------------------------------


def is_record(shape: Any) -> bool:
    return is_typeddict(shape) or (isinstance(shape, type) and issubclass(shape, pydantic.BaseModel))


def bare(hint: Any) -> Any:
    """The type without what annotates it."""
    while get_origin(hint) in (Required, NotRequired, Annotated):
        hint = get_args(hint)[0]
    return hint


def alternatives(hint: Any) -> list[Any]:
    """The types of a union in one list, without None and without files that only an SDK can read."""
    hint = bare(hint)
    if get_origin(hint) is Union or type(hint).__name__ == "UnionType":
        found = [one for argument in get_args(hint) for one in alternatives(argument)]
        plain = [one for one in found if "PathLike" not in str(one) and not str(one).startswith("typing.IO")]
        return list({str(one): one for one in plain}.values())
    return [] if hint is type(None) else [hint]


def is_nullable(hint: Any) -> bool:
    hint = bare(hint)
    return hint is type(None) or (get_origin(hint) is Union and any(map(is_nullable, get_args(hint))))


@cache
def fields_of(record: Any) -> dict[str, tuple[Any, bool]]:
    """The fields of a record under their names on the wire: type, and whether it is required."""
    if not is_typeddict(record):
        return {alias_of(record, name): (field.annotation, False) for name, field in record.model_fields.items()}
    hints = get_type_hints(record, include_extras=True)
    return {name: (hint, get_origin(hint) is Required) for name, hint in hints.items()}


def alias_of(model: type[pydantic.BaseModel], name: str) -> str:
    return model.model_fields[name].alias or name


def tag_of(record: Any) -> str:
    """The value of a record's `type`, or of its `role`."""
    fields = fields_of(record)
    for name in ("type", "role"):
        if name in fields:
            values = [value for one in alternatives(fields[name][0]) for value in values_of(one)]
            return str(values[0]) if values else ""
    return ""


def values_of(hint: Any) -> list[Any]:
    """The values of a literal, of an enumeration, and of a truth value."""
    if get_origin(hint) is Literal:
        return [value for value in get_args(hint) if value is not None]
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return [member.value for member in hint]
    return [True, False] if hint is bool else []


def items_of(hint: Any) -> list[Any]:
    """The types of a list's items; empty for anything else."""
    origin = get_origin(hint)
    is_list = isinstance(origin, type) and issubclass(origin, Iterable) and not issubclass(origin, dict)
    return alternatives(get_args(hint)[0]) if is_list else []


def shape_of(type: SdkType) -> Any:
    return genai.Part.model_fields[type.shape].annotation if type.format == "gemini" else type.shape


def conforms_to_sdk(payload: Json, format: str) -> bool:
    """Whether an SDK has a type for this message or item."""
    if format == "gemini":
        return conforms(payload, genai.Content)
    return any(conforms(payload, shape) for shape in MESSAGES[format])


def conforms(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, whatever else it holds."""
    if value is None:
        return is_nullable(hint)
    return any(_conforms(value, option) for option in alternatives(hint))


def _conforms(value: Any, hint: Any) -> bool:
    if is_record(hint):
        fields = fields_of(hint)
        return isinstance(value, dict) and all(
            conforms(value[name], inner) if name in value else not required
            for name, (inner, required) in fields.items()
        )
    if values := values_of(hint):
        return value in values
    if items := items_of(hint):
        return isinstance(value, list) and all(any(_conforms(one, item) for item in items) for one in value)
    if get_origin(hint) is dict:
        return isinstance(value, dict)
    return hint in (object, Any) or isinstance(value, str if hint is bytes else (int, float) if hint is float else hint)
