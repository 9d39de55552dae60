"""The cases of the SDK suite: samples of the types as they occur in conversations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import pytest
from sdk_samples import Words, sample, samples
from sdk_stands import STANDS, Role, Stands
from sdk_types import Json, SdkType, sdk_types

from real_sessions import WHOLE


class Case(NamedTuple):
    """A sample of a type."""

    type: SdkType
    name: str
    payload: Json

    @property
    def id(self) -> str:
        return f"{self.type.id}:{self.name}"

    @property
    def format(self) -> str:
        return self.type.format

    @property
    def stands(self) -> Stands:
        return STANDS[self.format][self.type.tag]

    @property
    def role(self) -> Role:
        """Who says it: of messages, the payload tells."""
        role = self.payload.get("role")
        if self.format != "openai-responses" or role is None:
            return self.stands.role
        return "assistant" if role == "assistant" else "user"


@cache
def cases() -> tuple[Case, ...]:
    """All samples of all types in the table, without those of the beta that are equal."""
    found: dict[tuple[str, str, str], Case] = {}
    for type in sdk_types():
        if type.tag in STANDS[type.format]:
            for name, payload in _payloads(type):
                case = Case(type, name, payload)
                found.setdefault((type.format, type.tag, json.dumps(payload)), case)
    return tuple(found.values())


@cache
def forms() -> tuple[Case, ...]:
    """The samples that differ in more than values; with HOLDFAST_WHOLE set, all."""
    found = {(case.format, case.type.tag, _form(case.payload)): case for case in reversed(cases())}
    return cases() if WHOLE else tuple(reversed(found.values()))


def _form(value: Any, field: str = "") -> str:
    if isinstance(value, dict):
        return str([(name, _form(item, name)) for name, item in value.items()])
    if isinstance(value, list):
        return str(sorted({_form(item, field) for item in value}))
    return str(value) if field in ("type", "role") else type(value).__name__


@cache
def one_of_each() -> tuple[Case, ...]:
    """One sample of each type, the fullest of some and the smallest of others; with HOLDFAST_WHOLE set, all."""
    found: dict[str, list[Case]] = {}
    for case in cases():
        found.setdefault(case.type.id, []).append(case)
    return cases() if WHOLE else tuple(some[fixed_number(id) % len(some)] for id, some in found.items())


def each_of(chosen: Sequence[Case]) -> Callable[[Callable[[Case], None]], Callable[[str], None]]:
    """Runs a test of one sample for all chosen ones, a type at a time: thousands of tests take longer to collect than
    to run."""
    by_type: dict[str, list[Case]] = {}
    for case in chosen:
        by_type.setdefault(case.type.id, []).append(case)

    def for_types(test: Callable[[Case], None]) -> Callable[[str], None]:
        @pytest.mark.parametrize("type_id", by_type)
        def run(type_id: str) -> None:
            for case in by_type[type_id]:
                try:
                    test(case)
                except BaseException as error:
                    error.add_note(f"The sample is {case.id}.")
                    raise

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return for_types


def fixed_number(name: str) -> int:
    """A number for a name, the same in every run."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4])


def _payloads(type: SdkType) -> Iterator[tuple[str, Json]]:
    """The samples as they occur: a few fields exclude each other, or have no meaning alone."""
    for name, payload in samples(type).items():
        if type.format == "openai-chat" and type.tag == "assistant":
            yield from _chat_replies(name, payload)
        elif type.format == "anthropic" and "role" in payload:
            yield from _anthropic_messages(name, payload)
        elif type.format == "gemini":
            yield from _gemini_parts(type, name, payload)
        elif type.format == "openai-responses":
            yield name, _responses_item(payload)
        elif type.tag == "tool_result" and payload.get("is_error") and isinstance(payload["content"], list):
            yield name, payload | {"content": payload["content"][:1]}  # the error of a tool is text
        else:
            yield name, payload


def _responses_item(item: Json) -> Json:
    """Ids begin with their kind; an assistant's parts are those of a reply, which has an id."""
    if item.get("role") == "assistant" and isinstance(item["content"], list) and "id" not in item:
        item = item | {"content": Words(500).text("content")}
    return item | {"id": _PREFIX.get(item.get("type"), "") + item["id"]} if item.get("id") else item


_PREFIX = {"message": "msg_", "reasoning": "rs_", "function_call": "fc_", "custom_tool_call": "ctc_"}


def _chat_replies(name: str, payload: Json) -> Iterator[tuple[str, Json]]:
    """Calls and the deprecated call exclude each other; a reply without either has content."""
    if "tool_calls" not in payload:
        yield name, payload | {"content": Words(500).text("content")}
    else:
        yield name, {key: value for key, value in payload.items() if key != "function_call" or value is None}
        if payload["function_call"]:
            yield f"{name}-legacy", {key: value for key, value in payload.items() if key != "tool_calls"}


def _anthropic_messages(name: str, payload: Json) -> Iterator[tuple[str, Json]]:
    """Messages with a string and with a block: each block is a case of its own."""
    text = Words(500).text("content")
    for form, content in (("text", text), ("block", [{"type": "text", "text": text}])):
        order = payload if "content" in payload else {"content": None, **payload}
        yield f"{name}-{form}", {key: content if key == "content" else value for key, value in order.items()}
    if payload.get("output_config"):
        yield f"{name}-settings", {key: value for key, value in payload.items() if key != "content"}


def _gemini_parts(type: SdkType, name: str, payload: Json) -> Iterator[tuple[str, Json]]:
    """Data alone and with what may describe any; what describes data, with its data."""
    if on := STANDS["gemini"][type.tag].on:
        yield name, {**partner("gemini", on, Words(500)), **payload}
        return
    yield name, payload
    yield f"{name}-signed", payload | {"thoughtSignature": Words(500).text("signature"), "partMetadata": {"a": 1}}
    if type.tag == "functionResponse":
        for key in ("output", "result", "error"):
            response = payload[type.tag] | {"response": {key: Words(500).text("output")}}
            yield f"{name}-{key}", {type.tag: response}


def partner(format: str, tag: str, words: Words) -> Json:
    """The smallest payload of another type."""
    found = sample(next(each for each in sdk_types() if (each.format, each.tag) == (format, tag)), words)
    return _responses_item(found) if format == "openai-responses" else found
