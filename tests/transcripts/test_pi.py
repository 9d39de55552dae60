"""pi sessions: messages in Anthropic's format, and both kinds of compaction records."""

from __future__ import annotations

from typing import Any

import pytest
from tests.transcripts.conftest import Read

from holdfast.tokens import Usage
from holdfast.transcripts import Transcript

Record = dict[str, Any]

HEADER = {"type": "session", "id": "s-1", "cwd": "/x", "provider": "anthropic", "modelId": "claude-x"}


def line(role: str, content: Any, **more: Any) -> Record:
    place: Record = {key: more.pop(key) for key in ("id", "parentId") if key in more}
    message = {"role": role, "content": content, **more}
    return {"type": "message", "timestamp": "2026-01-01T00:00:00Z", "message": message, **place}


def user(text: str, **more: Any) -> Record:
    return line("user", [text_part(text)], **more)


def reply(*parts: Record, stop: str = "stop", **more: Any) -> Record:
    return line("assistant", list(parts), api="anthropic-messages", stopReason=stop, **more)


def result(id: str, text: str = "done", **more: Any) -> Record:
    return line("toolResult", [text_part(text)], toolCallId=id, toolName="ls", **{"isError": False, **more})


def text_part(text: str) -> Record:
    return {"type": "text", "text": text}


def call(id: str) -> Record:
    return {"type": "toolCall", "id": id, "name": "ls", "arguments": {"path": "."}, "partialJson": "{"}


def use(id: str) -> Record:
    return {"type": "tool_use", "id": id, "name": "ls", "input": {"path": "."}}


def answer(id: str, text: str = "done") -> Record:
    return {"type": "tool_result", "tool_use_id": id, "content": [text_part(text)]}


def test_pi_calls_and_results_become_anthropic_blocks(read: Read) -> None:
    transcript = read(
        HEADER,
        user("go"),
        reply(text_part("sure"), call("c1"), call("c2"), stop="toolUse"),
        result("c2", "two"),
        result("c1", "one", isError=True),
        reply(text_part("done")),
    )
    assert (transcript.kind, transcript.format, transcript.id) == ("pi", "anthropic", "s-1")
    assert transcript.model == "claude-x"
    assert transcript.messages[1:3] == [
        {"role": "assistant", "content": [text_part("sure"), use("c1"), use("c2")]},
        {"role": "user", "content": [{**answer("c1", "one"), "is_error": True}, answer("c2", "two")]},
    ]
    assert len(transcript.entries) == 4


def test_pi_usage_of_failed_replies_is_ignored(read: Read) -> None:
    """P3: only a complete reply reports the context size."""
    usage = {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4, "cost": {"total": 0.1}}
    transcript = read(
        user("go"),
        reply(text_part("one"), usage=usage),
        reply(text_part("tw"), usage=usage, stop="aborted"),
        reply(text_part("thr"), usage=usage, stop="error"),
        reply(usage=usage, stop="aborted"),
    )
    assert [entry.usage for entry in transcript.entries] == [None, Usage(1, 2, 3, 4), None, None]
    assert transcript.warnings == (
        "3 assistant messages aborted or failed, usage not counted",
        "1 message without content left out",
    )


def test_pi_thinking_keeps_anthropic_signature(read: Read) -> None:
    thought = {"type": "thinking", "thinking": "hm", "thinkingSignature": "c2ln"}
    transcript = read(
        user("go"),
        reply(thought, text_part("one")),
        reply({**thought, "redacted": True}, text_part("two")),
        line("assistant", [thought, text_part("three")], api="openai-responses"),
    )
    assert [message["content"][0] for message in transcript.messages[1:]] == [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "c2ln"},
        text_part("three"),
    ]
    assert transcript.warnings == ("1 thinking block without a signature left out",)


def test_pi_images_foreign_ids_and_unknown_records(read: Read) -> None:
    picture = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    transcript = read(
        line("user", [picture]),
        reply(call("call|fc"), {"type": "dance"}),
        line("toolResult", [text_part("")], toolCallId="call|fc"),
        {"type": "custom_message", "content": "note", "customType": "x"},
        line("bashExecution", None),
        {"type": "model_change", "modelId": "claude-y"},
    )
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    assert transcript.messages == [
        {"role": "user", "content": [{"type": "image", "source": source}]},
        {"role": "assistant", "content": [use("call_fc")]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_fc", "content": ""}]},
        {"role": "user", "content": "note"},
    ]
    assert transcript.model == "claude-y"
    assert transcript.warnings == (
        "1 tool call with its id rewritten for Anthropic",
        "1 content part of an unknown shape left out",
        "1 message of role 'bashExecution' left out",
        "1 record of type 'model_change' left out",
    )


def history(turns: str) -> list[Record]:
    """A session in the notation of the documents: ``u1 a1 t1``, and ``[3]`` for a compaction that keeps 3."""
    records: list[Record] = [HEADER]
    names = turns.split()
    calls = 0
    for name, following in zip(names, [*names[1:], ""], strict=True):
        if name.startswith("["):
            kept = int(name.strip("[]"))
            records.append({"type": "compaction", "summary": "so far", "keepLastMessages": kept, "tokensBefore": 9_000})
        elif name.startswith("u"):
            records.append(user(name))
        elif name.startswith("t"):
            records.append(result(f"c{calls}", name))
        else:
            calls += 1
            parts = [text_part(name), call(f"c{calls}")] if following.startswith("t") else [text_part(name)]
            records.append(reply(*parts))
    return records


def names(transcript: Transcript) -> list[str]:
    """The names of the live context's messages."""
    newest = transcript.compactions[-1]
    return [_name(message) for message in transcript.messages[newest.after - newest.kept :]]


def _name(message: Record) -> str:
    block = message["content"][0]
    return str(block["content"][0]["text"] if block["type"] == "tool_result" else block["text"])


ONE = "u1 a1 t1 a1 u2 a2 u3 a3 t3 a3 t3 a3 u4 a4 t4 a4 [4]"


@pytest.mark.parametrize(
    ("turns", "view"),
    [
        pytest.param(ONE, "u4 a4 t4 a4", id="single"),
        pytest.param(f"{ONE} u5 a5", "u4 a4 t4 a4 u5 a5", id="appended since"),
        pytest.param(f"{ONE} u5 a5 u6 a6 t6 a6 u7 a7 [3]", "u7 a7", id="second, snapped forward to a user"),
        pytest.param(f"{ONE} u5 a5 [9]", "u5 a5", id="second, not across the first"),
        pytest.param("u1 a1 u2 a2 [2] u3", "u2 a2 u3", id="branched after"),
        pytest.param("u1 a1 [0] u2", "u2", id="nothing kept"),
        pytest.param("u1 a1 [1] u2", "u2", id="no user message in the count"),
    ],
)
def test_pi_kept_messages_by_count(read: Read, turns: str, view: str) -> None:
    """P6, P7: examples of pi's loader."""
    transcript = read(*history(turns))
    assert names(transcript) == view.split()
    assert transcript.compactions[0].summary == "so far"
    assert transcript.compactions[0].tokens_before == 9_000


def compaction(first: str, **more: Any) -> Record:
    return {"type": "compaction", "summary": "so far", "firstKeptEntryId": first, "tokensBefore": 50, **more}


def test_pi_kept_messages_by_id_in_a_tree(read: Read) -> None:
    """P6, P10: the thread ends in the newest record; the abandoned branch is not part of it."""
    transcript = read(
        {**HEADER, "version": 3},
        user("u1", id="1", parentId=None),
        reply(text_part("a1"), id="2", parentId="1"),
        user("x2", id="3", parentId="2"),
        user("u2", id="4", parentId="2"),
        {"type": "model_change", "modelId": "claude-y", "id": "5", "parentId": "4"},
        reply(text_part("a2"), id="6", parentId="5"),
        compaction("4", id="7", parentId="6"),
        user("u3", id="8", parentId="7"),
    )
    assert [entry.id for entry in transcript.entries] == ["1", "2", "4", "6", "8"]
    assert names(transcript) == ["u2", "a2", "u3"]
    assert transcript.compactions[0].tokens_before == 50
    assert transcript.warnings == (
        "1 record on abandoned branches left out",
        "1 record of type 'model_change' left out",
    )


def test_pi_kept_from_a_record_that_is_no_message(read: Read) -> None:
    transcript = read(
        user("u1", id="1", parentId=None),
        {"type": "label", "id": "2", "parentId": "1"},
        user("u2", id="3", parentId="2"),
        compaction("2", id="4", parentId="3"),
    )
    assert transcript.compactions[0].kept == 1


def test_pi_kept_by_line_and_by_missing_id(read: Read) -> None:
    by_line = {"type": "compaction", "summary": "s", "firstKeptEntryIndex": 2, "tokensBefore": 5}
    transcript = read(HEADER, user("u1"), user("u2"), reply(text_part("a2")), by_line, user("u3"), compaction("gone"))
    assert [c.kept for c in transcript.compactions] == [2, 0]
    assert transcript.warnings == ("1 compaction that does not say what it kept",)
