"""Every type of the installed SDKs is known, comes back byte for byte, and is valid in its place."""

from __future__ import annotations

import json
from typing import Any, Literal, TypedDict

from sdk_cases import Case, cases, each_of
from sdk_conversations import conversation
from sdk_stands import INSIDE, SERVER_TOOLS, STANDS
from sdk_types import SdkType, alternatives, fields_of, nested_types, package_of, received_tags, sdk_types, values_of

from holdfast import check
from holdfast.messages import COMMON, decode_all, encode_all
from judge import judge

each_case = each_of(cases())

# -- the tables -------------------------------------------------------------------------------------------


def undecided(types: tuple[SdkType, ...]) -> list[str]:
    """What to decide about types that the tables do not have."""
    return [
        f"{type.tag!r} is new in {package_of(type.format)}: say in STANDS how it stands in a conversation"
        for type in types
        if type.tag not in STANDS[type.format]
    ] + [
        f"{tag!r} in the field {field!r} of {type.tag!r} is new in {package_of(type.format)}: "
        f"look at it, and add it to INSIDE"
        for type in types
        for field, tag in nested_types(type)
        if tag not in INSIDE[type.format].get(field, "").split()
    ]


def test_sdk_types_are_in_the_tables() -> None:
    assert undecided(sdk_types()) == []


class Smell(TypedDict):
    type: Literal["smell"]


class FooCall(TypedDict):
    type: Literal["foo_call"]
    content: list[Smell]


def test_sdk_types_of_a_new_release_fail_until_they_are_in_the_tables() -> None:
    found = undecided((SdkType("openai-responses", "", "foo_call", FooCall),))
    assert [text.partition(" openai ")[0] for text in found] == [
        "'foo_call' is new in",
        "'smell' in the field 'content' of 'foo_call' is new in",
    ]


def test_sdk_types_of_replies_may_be_sent_back() -> None:
    assert received_tags() <= {(type.format, type.tag) for type in sdk_types()}


def test_sdk_tools_run_by_anthropic_have_a_known_result() -> None:
    uses = [type for type in sdk_types() if type.tag == "server_tool_use"]
    names = {name for use in uses for one in alternatives(fields_of(use.shape)["name"][0]) for name in values_of(one)}
    assert names - SERVER_TOOLS.keys() == set(), "new: say in SERVER_TOOLS which block is its result"


def test_sdk_samples_show_every_field_and_every_type() -> None:
    """The samples are checked by what they must hold: whatever a type may hold at its first two levels."""
    for type in sdk_types():
        if type.format == "gemini":
            continue
        payloads = [case.payload for case in cases() if case.type.tag == type.tag and case.format == type.format]
        missing = fields_of(type.shape).keys() - {name for payload in payloads for name in payload}
        assert missing == set(), f"{type.id} has no sample with these fields"
        fields = fields_of(type.shape)
        for name, (hint, _) in fields.items():
            for option in alternatives(hint):
                for value in values_of(option):
                    assert any(payload.get(name) == value for payload in payloads), f"{type.id}: {name} = {value}"


# -- the samples ------------------------------------------------------------------------------------------


def written(payloads: Any) -> str:
    """The bytes of payloads, key order included."""
    return json.dumps(payloads, ensure_ascii=False)


@each_case
def test_sdk_type_round_trips_byte_for_byte(case: Case) -> None:
    messages = conversation(case).messages
    before = written(messages)
    assert written(encode_all(decode_all(messages, case.format)[0], case.format)) == before
    assert written(messages) == before


@each_case
def test_sdk_type_is_valid_in_its_place(case: Case) -> None:
    messages = conversation(case).messages
    assert check(messages, case.format, ready=True) == []
    assert judge(messages, case.format, pending_ok=False) == []


@each_case
def test_sdk_type_is_recognized(case: Case) -> None:
    _, format = decode_all(conversation(case).messages)
    assert format in (case.format, COMMON)
