"""Message objects of agent frameworks: one format each, whose payload is the framework's own dump of an object.

A payload is `{format: dump}`, plain data that any store holds. Decoding reads the dump and imports nothing; only
`load`, which builds objects again, imports the framework. The codec of a framework is the module of its name in this
package, imported when a message of it first appears.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from ...errors import InvalidInput
from ...io.installation import install_command
from ..json_text import to_json
from ..parts import Json, Message, Part, Role, ToolResult
from ..patch import Edit, Path


class Framework(NamedTuple):
    """Where the message classes of a framework are defined, and the extra that installs them."""

    package: str
    extra: str


FRAMEWORKS = {
    "langchain": Framework("langchain_core", "langchain"),
    "pydantic_ai": Framework("pydantic_ai", "pydantic-ai"),
    "haystack": Framework("haystack", "haystack"),
    "agent_framework": Framework("agent_framework", "agent-framework"),
    "llama_index": Framework("llama_index", "llama-index"),
    "ag2": Framework("ag2", "ag2"),
    "agno": Framework("agno", "agno"),
    "strands": Framework("strands", "strands"),
}
"""Formats of framework objects by name."""
_FORMAT_BY_PACKAGE = {framework.package: name for name, framework in FRAMEWORKS.items()}
_FORMAT_BY_CLASS: dict[type, str | None] = {}
CONVERSE = "strands"
"""The framework whose messages are dicts: those of Bedrock's Converse API."""
_CONVERSE_BLOCKS = frozenset(
    (
        *("text", "toolUse", "toolResult", "reasoningContent", "image", "document", "video", "audio"),
        *("cachePoint", "guardContent", "citationsContent"),
    )
)
"""Content blocks of Bedrock's Converse API, named by their only key."""


class FrameworkCodec(NamedTuple):
    """Converts between objects of a framework, their dumps, and neutral messages."""

    name: str
    dump: Callable[[Any], Sequence[Json]]
    """Returns the dump of an object; several if it holds what neutral messages keep apart. `load` accepts each."""
    load: Callable[[Json], Any]
    """Returns the object of a dump; imports the framework."""
    decode: Callable[[Json], tuple[Role, Sequence[Part]]]
    """Returns the role and the parts of a dump."""
    encode: Callable[[Message], Sequence[Json]]
    """Returns dumps for a message that has none of this format; empty if nothing of it can be shown.

    Results have the name of their call.
    """
    places: Callable[[Json], Iterable[tuple[Path, ...]]]
    """Returns where each decoded part lies in a dump; a part may lie in two places."""
    retext: Callable[[Any, str], Iterable[Edit]]
    """Returns edits of the value at a place of a text or a result: the text takes the place of its own."""
    empty: Mapping[str, Any] = MappingProxyType({})
    """What a field holds whose only part was dropped; others are dropped with it."""
    usage: Callable[[Json], Any] = lambda dump: None
    """Returns the token usage that a dump of a reply holds, in any form that `read_usage` accepts."""
    join: Callable[[Json, Json], Json] | None = None
    """Joins the results of one batch into one message, if the framework requires it."""
    opaque: frozenset[str] = frozenset()
    """Kinds of parts that are kept and never interpreted, other than the providers' own."""


def framework_of(item: Any) -> str | None:
    """Returns the format of a framework's object, by the package that defines its class or a base of it.

    Messages of Strands are dicts, known by their blocks.
    """
    kind = type(item)
    if kind is dict:
        return CONVERSE if has_converse_blocks(item.get("content")) else None
    if kind not in _FORMAT_BY_CLASS:
        roots = (base.__module__.partition(".")[0] for base in kind.__mro__)
        _FORMAT_BY_CLASS[kind] = next(filter(None, map(_FORMAT_BY_PACKAGE.get, roots)), None)
    return _FORMAT_BY_CLASS[kind]


def has_converse_blocks(content: Any) -> bool:
    """Whether this is the content of a message for Bedrock's Converse API, as Strands has it."""
    if type(content) is not list or not content or type(content[0]) is not dict or "type" in content[0]:
        return False
    return all(
        type(block) is dict and "type" not in block and not _CONVERSE_BLOCKS.isdisjoint(block) for block in content
    )


def framework_in(payload: Mapping[str, Any]) -> str | None:
    """Returns the format of the framework whose dump this payload holds; None for any other payload."""
    if len(payload) != 1:
        return None
    (name,) = payload
    return name if name in FRAMEWORKS else None


@cache
def framework_codec(name: str) -> FrameworkCodec:
    """Returns the codec of a framework."""
    codec: FrameworkCodec = import_module(f"{__name__}.{name}").codec
    return codec


def dump_object(item: Any, name: str) -> Iterator[Json]:
    """Yields the payloads of a framework's object."""
    try:
        dumps = framework_codec(name).dump(item)
    except (AttributeError, TypeError, KeyError) as problem:
        raise InvalidInput(f"A {type(item).__name__} is not a message of {name} ({problem}).") from problem
    for dump in dumps:
        yield {name: plain(dump)}


def load_object(payload: Json) -> Any:
    """Returns the framework's object of a payload."""
    name = framework_in(payload)
    if name is None:
        raise InvalidInput("This payload is not the dump of a framework's message.")
    try:
        return framework_codec(name).load(payload[name])
    except ModuleNotFoundError as problem:
        raise not_installed(FRAMEWORKS[name].extra) from problem


def not_installed(extra: str) -> InvalidInput:
    """Returns the error to raise where a framework cannot be imported."""
    return InvalidInput(f"This needs a framework that is not installed: {install_command(extra)}")


def split_results(message: Message) -> tuple[tuple[ToolResult, ...], Role | None, tuple[Part, ...]]:
    """Returns the results of a message, and the role and parts of the rest; no role if there is no rest."""
    rest = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    role: Role = "user" if message.role == "tool" else message.role
    return message.results, role if rest or not message.parts else None, rest


def plain(value: Any) -> Any:
    """Returns plain JSON data; an object that has none becomes its representation."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_plain_object)


def _plain_object(value: Any) -> Any:
    """Converts what is not JSON: pydantic models, subclasses of JSON types, and anything else as its representation."""
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    kind = next((kind for kind in (str, int, float, dict, list) if isinstance(value, kind)), None)
    return repr(value) if kind is None else plain(kind(value))


class OriginalObjects:
    """The caller's objects by their payloads, so that an unchanged message is returned as the object it came as.

    Of objects with equal payloads the first one is returned.
    """

    def __init__(self) -> None:
        self._units: dict[str, list[tuple[tuple[str, ...], Any]]] = {}

    def add(self, item: Any, payloads: Sequence[Json]) -> None:
        """Remembers an object and the payloads it was dumped to."""
        keys = tuple(map(to_json, payloads))
        if keys:
            units = self._units.setdefault(keys[0], [])
            if all(known != keys for known, _ in units):
                units.append((keys, item))
                units.sort(key=_longest_first)

    def restore(self, payloads: Sequence[Json]) -> list[Any]:
        """Returns an object for each payload, or for each run of payloads that one object was dumped to."""
        restored, place = [], 0
        keys = [to_json(payload) for payload in payloads]
        while place < len(payloads):
            units = self._units.get(keys[place], ())
            fits = partial(_starts_at, keys, place)
            found = next(filter(fits, units), None)
            restored.append(load_object(payloads[place]) if found is None else found[1])
            place += 1 if found is None else len(found[0])
        return restored


def restore_objects(payloads: list[Json], format: str | None, originals: OriginalObjects | None) -> list[Any]:
    """Returns the objects of encoded messages if their format is a framework's, else the payloads themselves."""
    return (originals or OriginalObjects()).restore(payloads) if format in FRAMEWORKS else payloads


def _longest_first(unit: tuple[tuple[str, ...], Any]) -> int:
    return -len(unit[0])


def _starts_at(keys: Sequence[str], place: int, unit: tuple[tuple[str, ...], Any]) -> bool:
    return tuple(keys[place : place + len(unit[0])]) == unit[0]


def dump_objects(messages: Iterable[Any]) -> tuple[list[Any], OriginalObjects | None]:
    """Replaces framework objects by their payloads; returns the messages, and the objects if there are any."""
    items = list(messages)
    kinds = set(map(type, items))
    if kinds <= {dict} and list not in {type(item.get("content")) for item in items}:
        return items, None
    given: list[Any] = []
    originals: OriginalObjects | None = None
    for item in items:
        kind = type(item)
        if kind is Message or (kind is dict and type(item.get("content")) is not list):
            given.append(item)
            continue
        if (name := framework_of(item)) is None:
            given.append(item)
            continue
        payloads = list(dump_object(item, name))
        originals = originals or OriginalObjects()
        originals.add(item, payloads)
        given += payloads
    return given, originals
