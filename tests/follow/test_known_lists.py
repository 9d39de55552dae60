"""Lists recognised without reading them: by objects, and by the bytes that they begin with."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.follow import KnownBytes, KnownObjects


def test_list_of_the_same_objects_is_recognised_after_its_system_prompt() -> None:
    messages: list[Any] = [object() for _ in range(5)]
    known = KnownObjects(messages[1:3])
    assert known.is_start_of(messages, 1)
    assert not known.is_start_of(messages)
    assert not known.is_start_of(messages[:2], 1)
    known.extend(messages[3:])
    assert len(known) == 4 and known.is_start_of(messages, 1)


def test_no_objects_are_the_start_of_no_list() -> None:
    assert not KnownObjects().is_start_of([object()])


def test_object_replaced_anywhere_in_a_long_list_is_noticed_in_turn() -> None:
    messages: list[Any] = [object() for _ in range(2_000)]
    known = KnownObjects(messages)
    for at in (1_999, 1_700, 900, 0):
        replaced = [*messages[:at], object(), *messages[at + 1 :]]
        assert not all(known.is_start_of(replaced) for _ in range(9))


def test_equal_objects_are_recognised_by_the_comparison_of_their_framework() -> None:
    known = KnownObjects([{"a": 1}], lambda some, other: some == other)
    assert known.is_start_of([{"a": 1}, {"b": 2}])
    assert not known.is_start_of([{"a": 2}, {"b": 2}])


@given(st.lists(st.text(max_size=3), max_size=6), st.integers(0, 6), st.booleans())
def test_rest_of_a_list_is_what_follows_its_known_beginning(texts: list[str], at: int, compact: bool) -> None:
    separators = (",", ":") if compact else (", ", ": ")
    raw = json.dumps(texts, separators=separators).encode()
    items = [json.dumps(text).encode() for text in texts]
    known = KnownBytes().extended(raw, items[:at], at)
    if not items[:at]:
        assert known.rest_of(raw) is None
    else:
        rest = known.rest_of(raw)
        assert rest is not None and json.loads(rest) == texts[at:]
        assert known.count == at
        whole = known.extended(raw, items[at:], len(texts))
        assert whole.rest_of(raw) == b"[]"
        assert whole.rest_of(raw[:-1] + b"]") == b"[]"


def test_list_that_only_begins_with_the_same_bytes_of_a_message_is_another() -> None:
    known = KnownBytes().extended(b"[1,2]", [b"1", b"2"], 2)
    assert known.rest_of(b"[1,23]") is None
    assert known.rest_of(b"[1,2,3]") == b"[3]"
    assert known.rest_of(b"[1]") is None


def test_bytes_in_another_layout_are_not_remembered() -> None:
    raw = b"[1,\n2]"
    assert len(KnownBytes().extended(raw, [b"1", b"2"], 2)) == 0
