"""One digest: of the canonical form of a payload, chained over the list."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import histories
from holdfast.follow import ChainedIds, chained_id, content_digest
from holdfast.messages import Message, Text, decode_all, from_json, to_json


@given(history=histories.wire("openai-chat"))
def test_id_is_the_digest_of_the_content_and_of_the_id_before(history: list[dict[str, Any]]) -> None:
    ids, before = ChainedIds(history), ""
    for message, id in zip(history, ids, strict=True):
        before = chained_id(before, content_digest(message))
        assert id == before


@given(history=histories.wire("anthropic"), data=st.data())
def test_list_that_follows_known_ids_continues_the_chain(history: list[dict[str, Any]], data: st.DataObject) -> None:
    ids = list(ChainedIds(history))
    at = data.draw(st.integers(1, len(history)))
    assert list(ChainedIds(history[at:], before=ids[at - 1])) == ids[at:]
    assert list(ChainedIds(history, ids[:at])[at:]) == ids[at:]


@pytest.mark.parametrize("profile", histories.PROFILES)
@given(data=st.data())
def test_digest_of_a_decoded_message_is_that_of_its_payload(profile: str, data: st.DataObject) -> None:
    history = data.draw(histories.wire(profile))
    assert list(ChainedIds(decode_all(history, profile)[0])) == list(ChainedIds(history))


def test_order_of_keys_and_a_copy_through_json_do_not_count() -> None:
    message = {"role": "tool", "tool_call_id": "c1", "content": "7 m"}
    assert content_digest(dict(reversed(message.items()))) == content_digest(message)
    assert content_digest(from_json(to_json(message))) == content_digest(message)


def test_field_that_no_codec_reads_counts() -> None:
    names = ("alice", "bob")
    assert len({content_digest({"role": "user", "name": name, "content": "hi"}) for name in names}) == 2


def test_plain_text_is_one_message_in_neutral_form_and_as_a_payload() -> None:
    assert content_digest(Message("user", (Text("hi"),))) == content_digest({"role": "user", "content": "hi"})


@pytest.mark.parametrize("content", ["half \ud800 a tide", 10**5_000], ids=["lone surrogate", "long integer"])
def test_content_that_is_no_json_has_a_digest(content: Any) -> None:
    one, other = ({"role": "user", "content": content, "n": number} for number in (1, 2))
    assert content_digest(one) == content_digest(dict(reversed(one.items()))) != content_digest(other)


def test_framework_message_counts_by_its_content() -> None:
    langchain = pytest.importorskip("langchain_core.messages")
    one = langchain.AIMessage("7 m.", id="run-1", response_metadata={"model": "harbor"})
    digests = {content_digest(decode_all([message])[0][0]) for message in (one, langchain.AIMessage("7 m."))}
    assert len(digests) == 1
