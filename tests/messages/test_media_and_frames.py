"""Media extraction by digest and exact restoration; frames that mark notes."""

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
    add_frame,
    decode_all,
    encode_all,
    extract_media,
    framed_message,
    is_framed,
    restore_media,
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
        case "ai-sdk":
            return {"role": "user", "content": [{"type": "image", "image": data, "mediaType": "image/png"}]}
    return {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": data}}]}


def file(format: str) -> dict[str, Any]:
    url = f"data:application/pdf;base64,{BIG}"
    if format == "openai-chat":
        return {"role": "user", "content": [{"type": "file", "file": {"file_data": url, "filename": "a.pdf"}}]}
    return {"role": "user", "content": [{"type": "input_file", "file_data": url, "filename": "a.pdf"}]}


BOTH = [picture(format) for format in FORMATS] + [file("openai-chat"), file("openai-responses")]


@pytest.mark.parametrize("payload", BOTH, ids=[*FORMATS, "chat-file", "responses-file"])
def test_media_extracted_and_restored_is_equal(payload: dict[str, Any]) -> None:
    lifted, media = extract_media(payload)
    assert len(media) == 1
    assert BIG not in str(lifted)
    assert restore_media(lifted, media) == payload


def test_extract_media_same_data_is_stored_once() -> None:
    twice = {"role": "user", "content": picture("anthropic")["content"] * 2}
    first, second = extract_media(twice), extract_media(picture("anthropic"))
    assert first[1] == second[1]
    assert len(first[1]) == 1


def test_extract_media_leaves_small_media_and_links() -> None:
    for payload in (picture("gemini", "AAAA"), *CHAT["image-link"], *ANTHROPIC["image-link"], *GEMINI["file-link"]):
        assert extract_media(payload) == (payload, {})


def test_extract_media_leaves_long_text() -> None:
    payload = {"role": "user", "content": [{"type": "text", "text": "data:" + BIG}]}
    assert extract_media(payload) == (payload, {})


def test_extract_media_text_with_media_prefix_round_trips() -> None:
    lifted, media = extract_media(picture("anthropic"))
    mark = lifted["content"][0]["source"]["data"]
    tricky: dict[str, Any] = {"text": mark, "url": mark, "data": [mark], "image_url": {"url": mark}}
    again, stored = extract_media(tricky)
    assert restore_media(again, media | stored) == tricky


def test_restore_media_missing_leaves_digest() -> None:
    lifted, _ = extract_media(picture("gemini"))
    assert restore_media(lifted, {}) == lifted


def test_extract_media_lone_surrogates_give_different_digests() -> None:
    first, second = (extract_media({"data": BIG + tail})[1] for tail in ("\ud800", "\ud801"))
    assert first.keys() != second.keys()
    assert framed_message("\ud800") != framed_message("\ud801")


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data())
@settings(max_examples=30)
def test_extract_media_random_history_round_trips(format: str, data: Any) -> None:
    for payload in data.draw(histories.wire(format, broken=True)):
        lifted, media = extract_media(payload)
        assert restore_media(lifted, media) == payload


# -- frames --------------------------------------------------------------------------------------------


@given(st.text())
def test_is_framed_recognises_own_note(text: str) -> None:
    assert is_framed(framed_message(text))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "note", [OPENING, CONTINUE, framed_message("a summary")], ids=["opening", "continue", "summary"]
)
def test_is_framed_after_round_trip_in_every_format(format: str, note: Message) -> None:
    assert is_framed(decode_all(encode_all([note], format), format)[0][0])


NOTE = add_frame("a summary")


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
def test_is_framed_rejects_look_alike(text: str) -> None:
    assert not is_framed(Message("user", (Text(text),)))


def test_is_framed_rejects_note_with_more_parts() -> None:
    assert not is_framed(Message("user", (Text(NOTE), Text("and this"))))
    assert not is_framed(Message("user", ()))


def test_is_framed_rejects_quoted_note() -> None:
    for payloads in (CHAT["text"], RESPONSES["text"], ANTHROPIC["text"], GEMINI["text"]):
        assert not any(is_framed(message) for message in decode_all(payloads)[0])
