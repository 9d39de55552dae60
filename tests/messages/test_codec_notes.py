"""Media stored once by digest and put back exactly; frames that only we can write by accident."""

from __future__ import annotations

from typing import Any

import pytest
from codec_kinds import CHAT, RESPONSES
from codec_kinds_blocks import ANTHROPIC, GEMINI
from hypothesis import given, settings
from hypothesis import strategies as st

import histories
from holdfast.messages import (
    CONTINUE,
    FORMATS,
    OPENING,
    Message,
    Text,
    decode_all,
    encode_all,
    frame,
    framed,
    is_framed,
    lift_media,
    lower_media,
)

BIG = "iVBORw0KGgo" * 200


def picture(format: str, data: str = BIG) -> dict[str, Any]:
    url = f"data:image/png;base64,{data}"
    match format:
        case "openai-chat":
            return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
        case "openai-responses":
            return {"role": "user", "content": [{"type": "input_image", "image_url": url}]}
        case "anthropic":
            source = {"type": "base64", "media_type": "image/png", "data": data}
            return {"role": "user", "content": [{"type": "image", "source": source}]}
    return {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": data}}]}


def file(format: str) -> dict[str, Any]:
    url = f"data:application/pdf;base64,{BIG}"
    if format == "openai-chat":
        return {"role": "user", "content": [{"type": "file", "file": {"file_data": url, "filename": "a.pdf"}}]}
    return {"role": "user", "content": [{"type": "input_file", "file_data": url, "filename": "a.pdf"}]}


BOTH = [picture(format) for format in FORMATS] + [file("openai-chat"), file("openai-responses")]


@pytest.mark.parametrize("payload", BOTH, ids=[*FORMATS, "chat-file", "responses-file"])
def test_media_is_lifted_out_and_put_back(payload: dict[str, Any]) -> None:
    lifted, media = lift_media(payload)
    assert len(media) == 1
    assert BIG not in str(lifted)
    assert lower_media(lifted, media) == payload


def test_the_same_media_is_stored_once() -> None:
    twice = {"role": "user", "content": picture("anthropic")["content"] * 2}
    first, second = lift_media(twice), lift_media(picture("anthropic"))
    assert first[1] == second[1]
    assert len(first[1]) == 1


def test_small_media_and_links_stay_where_they_are() -> None:
    for payload in (picture("gemini", "AAAA"), *CHAT["image-link"], *ANTHROPIC["image-link"], *GEMINI["file-link"]):
        assert lift_media(payload) == (payload, {})


def test_long_text_is_no_media() -> None:
    payload = {"role": "user", "content": [{"type": "text", "text": "data:" + BIG}]}
    assert lift_media(payload) == (payload, {})


def test_what_only_looks_like_our_mark_comes_back_as_it_was() -> None:
    lifted, media = lift_media(picture("anthropic"))
    mark = lifted["content"][0]["source"]["data"]
    tricky: dict[str, Any] = {"text": mark, "url": mark, "data": [mark], "image_url": {"url": mark}}
    again, stored = lift_media(tricky)
    assert lower_media(again, media | stored) == tricky


def test_media_that_is_gone_leaves_its_mark() -> None:
    lifted, _ = lift_media(picture("gemini"))
    assert lower_media(lifted, {}) == lifted


def test_two_texts_that_differ_in_a_lone_surrogate_are_two() -> None:
    first, second = (lift_media({"data": BIG + tail})[1] for tail in ("\ud800", "\ud801"))
    assert first.keys() != second.keys()
    assert framed("\ud800") != framed("\ud801")


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data())
@settings(max_examples=30)
def test_any_history_is_lifted_and_put_back(format: str, data: Any) -> None:
    for payload in data.draw(histories.wire(format, broken=True)):
        lifted, media = lift_media(payload)
        assert lower_media(lifted, media) == payload


# -- frames --------------------------------------------------------------------------------------------


@given(st.text())
def test_our_own_note_is_known_by_its_frame(text: str) -> None:
    assert is_framed(framed(text))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("note", [OPENING, CONTINUE, framed("a summary")], ids=["opening", "continue", "summary"])
def test_a_note_is_known_again_in_every_format(format: str, note: Message) -> None:
    assert is_framed(decode_all(encode_all([note], format), format)[0][0])


NOTE = frame("a summary")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "]",
        "a summary",
        NOTE + " ",
        " " + NOTE,
        NOTE.replace("summary", "Summary"),
        NOTE[:-2] + ("0" if NOTE[-2] != "0" else "1") + "]",
        "a summary\n[holdfast:00000000]",
        "a summary\n[holdfast:]",
        NOTE + NOTE,
    ],
)
def test_a_look_alike_is_not_trusted(text: str) -> None:
    assert not is_framed(Message("user", (Text(text),)))


def test_a_note_with_more_beside_it_is_not_ours() -> None:
    assert not is_framed(Message("user", (Text(NOTE), Text("and this"))))
    assert not is_framed(Message("user", ()))


def test_what_a_person_quotes_is_not_ours() -> None:
    for payloads in (CHAT["text"], RESPONSES["text"], ANTHROPIC["text"], GEMINI["text"]):
        assert not any(is_framed(message) for message in decode_all(payloads)[0])
