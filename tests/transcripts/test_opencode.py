"""OpenCode sessions: messages as OpenCode sends them, with compactions and cleared results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.transcripts.conftest import Read, Write
from tests.transcripts.opencode_records import SESSION, Session, compacted, step, text_part, tokens, tool

from holdfast.errors import InvalidInput
from holdfast.tokens import Usage
from holdfast.transcripts import EmptyTranscript, Transcript, live_context, read_transcript

QUESTION = {"role": "user", "content": "What did we do so far?"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "ls", "input": {"path": "."}}


def result(id: str, content: Any = "done", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


@pytest.fixture
def opened(read: Read) -> Any:
    def opened(session: Session) -> Transcript:
        return read(session.exported, name="export.json")

    return opened


def test_opencode_calls_and_results_become_anthropic_blocks(opened: Any) -> None:
    session = Session()
    asked = session.user("go", text_part("not sent", ignored=True))
    replied = session.reply(step(), "sure", tool("c1", "one"), tool("c2", "no such berth", "error"), step("finish"))
    session.reply("done")
    transcript = opened(session)
    assert (transcript.kind, transcript.format, transcript.id) == ("opencode", "anthropic", SESSION)
    assert transcript.model == "claude-x"
    assert transcript.messages == [
        {"role": "user", "content": [text("go")]},
        {"role": "assistant", "content": [text("sure"), use("c1"), use("c2")]},
        {"role": "user", "content": [result("c1", "one"), result("c2", "no such berth", is_error=True)]},
        {"role": "assistant", "content": [text("done")]},
    ]
    assert [entry.id for entry in transcript.entries] == [asked, replied, f"{replied}-results", "msg_003"]
    assert transcript.entries[0].time == "2026-01-01T00:00:01.000Z"
    assert transcript.warnings == ("1 text part marked as ignored left out",)


def test_opencode_each_step_is_one_reply(opened: Any) -> None:
    """P3: each with its reported usage; a total includes hidden reasoning tokens."""
    session = Session()
    session.user("go")
    session.reply(
        step(),
        tool("c1"),
        step("finish", reason="tool-calls", cost=0, tokens=tokens(10, 2, 30, 4)),
        step(),
        "there",
        step("finish", reason="stop", cost=0, tokens=tokens(20, 3, 40, total=90)),
    )
    transcript = opened(session)
    assert [message["content"] for message in transcript.messages[1:]] == [
        [use("c1")],
        [result("c1")],
        [text("there")],
    ]
    assert [entry.usage for entry in transcript.entries] == [None, Usage(10, 2, 30, 4), None, Usage(20, 30, 40, 0)]


def test_opencode_foreign_call_ids_are_rewritten(opened: Any) -> None:
    session = Session()
    session.user("go")
    session.reply(tool("call|fc", "a long list", cleared=4))
    transcript = opened(session)
    assert transcript.messages[1:] == [
        {"role": "assistant", "content": [use("call_fc")]},
        {"role": "user", "content": [result("call_fc", "a long list")]},
    ]
    assert live_context(transcript).messages[-1]["content"] == [result("call_fc", "[Old tool result content cleared]")]
    assert transcript.warnings == ("1 tool call with its id rewritten for Anthropic",)


def test_opencode_interrupted_call_has_an_error_result(opened: Any) -> None:
    session = Session()
    session.user("go")
    session.reply(tool("c1", status="running"), tool("c2", "x", "error", metadata={"interrupted": True, "output": "p"}))
    assert opened(session).messages[-1]["content"] == [
        result("c1", "[Tool execution was interrupted]", is_error=True),
        result("c2", "p"),
    ]


def test_opencode_failed_replies_are_left_out_aborted_ones_kept(opened: Any) -> None:
    session = Session()
    session.user("go")
    session.reply("half", error={"name": "APIError"}, tokens=tokens(5, 5))
    session.reply("as far as", error={"name": "MessageAbortedError"}, tokens=tokens(5, 5))
    session.reply(step(), {"type": "reasoning", "text": "hm"}, error={"name": "MessageAbortedError"})
    transcript = opened(session)
    assert [message["content"] for message in transcript.messages] == [[text("go")], [text("as far as")]]
    assert [entry.usage for entry in transcript.entries] == [None, None]
    assert transcript.warnings == (
        "2 assistant messages that failed left out",
        "1 assistant message broken off, usage not counted",
    )


def test_opencode_thinking_images_and_files(opened: Any) -> None:
    picture = "data:image/png;base64,aGk="
    signed = {"type": "reasoning", "text": "hm", "metadata": {"anthropic": {"signature": "c2ln"}}}
    hidden = {"type": "reasoning", "text": "", "metadata": {"anthropic": {"redactedData": "cmVk"}}}
    session = Session()
    session.user(
        {"type": "file", "mime": "image/png", "url": picture},
        {"type": "file", "mime": "text/plain", "url": "file:///harbor/a.txt"},
        {"type": "file", "mime": "audio/wav", "url": "data:audio/wav;base64,aGk=", "filename": "horn.wav"},
        {"type": "subtask", "prompt": "p", "description": "d", "agent": "explore"},
        {"type": "dance"},
    )
    session.reply(signed, hidden, {"type": "reasoning", "text": "unsigned"}, tool("c1", "seen", attachments=[]))
    attached = {"type": "file", "mime": "image/png", "url": picture}
    session.reply(tool("c2", "here", attachments=[attached, {"mime": "image/png", "url": "file:///x.png"}]))
    transcript = opened(session)
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    assert transcript.messages == [
        {
            "role": "user",
            "content": [
                image,
                text("[Attached audio/wav: horn.wav]"),
                text("The following tool was executed by the user"),
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "cmVk"},
                use("c1"),
            ],
        },
        {"role": "user", "content": [result("c1", "seen")]},
        {"role": "assistant", "content": [use("c2")]},
        {"role": "user", "content": [result("c2", [text("here"), image])]},
    ]
    assert transcript.warnings == (
        "1 file part already included as text left out",
        "1 content part of an unknown shape left out",
        "1 thinking block without a signature left out",
        "1 attachment without its data left out",
    )


def test_opencode_compaction_has_question_summary_and_tail(opened: Any) -> None:
    """P22: the summary is an assistant message; messages since the start of the tail stay."""
    transcript = opened(compacted())
    (past,) = transcript.compactions
    assert (past.after, past.kept, past.summary, past.trigger) == (7, 3, "Berth 4 is by the crane.", "auto")
    assert past.tokens_before == 270
    view = live_context(transcript)
    assert view.head == [QUESTION, {"role": "assistant", "content": [text("Berth 4 is by the crane.")]}]
    assert view.live[0] == {"role": "user", "content": [text("And berth 5?")]}
    assert view.live[-1] == {"role": "assistant", "content": [text("I have none.")]}
    assert len(view.live) == 5


def test_opencode_latest_compaction_is_effective(opened: Any) -> None:
    session = compacted()
    session.compact("Both are free.", auto=False)
    transcript = opened(session)
    assert [past.trigger for past in transcript.compactions] == ["auto", "manual"]
    assert live_context(transcript).messages == [QUESTION, {"role": "assistant", "content": [text("Both are free.")]}]


def test_opencode_failed_compaction_is_only_a_question(opened: Any) -> None:
    session = Session()
    session.user("go")
    session.reply("there")
    asked = session.user({"type": "compaction", "auto": True})
    session.reply("Once up", parentID=asked, summary=True, error={"name": "ContextOverflowError"})
    transcript = opened(session)
    assert transcript.compactions == ()
    assert transcript.messages[-1] == {"role": "user", "content": [text("What did we do so far?")]}


def test_opencode_older_version_shows_summary_only(opened: Any) -> None:
    session = Session()
    session.user("go")
    session.reply("there")
    session.reply("They went.", summary=True, parentID="msg_001")
    session.user("on")
    assert live_context(opened(session)).messages == [
        {"role": "assistant", "content": [text("They went.")]},
        {"role": "user", "content": [text("on")]},
    ]


def test_opencode_cleared_results_are_kept_and_shown_cleared(opened: Any) -> None:
    """P22: clearing is a compaction that keeps the same messages; the file still has every result."""
    session = Session()
    session.user("go")
    session.reply(tool("c1", "a long list", cleared=4), tool("c2", "a short one"))
    session.reply("there")
    session.user("on")
    session.reply("and on")
    transcript = opened(session)
    assert transcript.messages[2]["content"] == [result("c1", "a long list"), result("c2", "a short one")]
    (past,) = transcript.compactions
    assert (past.after, past.kept, past.trigger, past.cleared) == (5, 5, "prune", ((2, "c1"),))
    shown = live_context(transcript).messages
    assert shown[2]["content"] == [result("c1", "[Old tool result content cleared]"), result("c2", "a short one")]
    assert [*shown[:2], *shown[3:]] == [*transcript.messages[:2], *transcript.messages[3:]]


def test_opencode_cleared_result_stays_cleared_in_tail(opened: Any) -> None:
    session = Session()
    tail = session.user("go")
    session.reply(tool("c1", "a long list", cleared=3))
    session.reply("there")
    session.compact("They went.", tail_start_id=tail)
    transcript = opened(session)
    assert [past.trigger for past in transcript.compactions] == ["prune", "auto"]
    assert live_context(transcript).live[2]["content"] == [result("c1", "[Old tool result content cleared]")]


def test_opencode_reverted_messages_are_left_out(opened: Any) -> None:
    session = Session(revert={"messageID": "msg_003", "partID": "prt_003_1"})
    session.user("go")
    session.reply("there")
    session.user("keep this", "not this")
    session.reply("gone")
    transcript = opened(session)
    assert transcript.messages[-1] == {"role": "user", "content": [text("keep this")]}
    assert transcript.warnings == ("1 message reverted left out",)


def test_opencode_storage_folder_reads_the_same(write: Write, tmp_path: Path) -> None:
    session = compacted()
    exported = read_transcript(write(session.exported, name="export.json"))
    assert read_transcript(session.store(tmp_path / "storage")) == exported


def test_opencode_storage_session_without_messages(tmp_path: Path) -> None:
    with pytest.raises(EmptyTranscript, match="holds no messages"):
        read_transcript(Session().store(tmp_path / "storage"))


@pytest.mark.parametrize("id", ["../../elsewhere", "/elsewhere", "..", "a/b"])
def test_opencode_storage_ids_lead_nowhere_else(tmp_path: Path, id: str) -> None:
    """A message's id names the folder of its parts."""
    file = compacted().store(tmp_path / "storage")
    info = tmp_path / "storage" / "message" / SESSION / "msg_002.json"
    info.write_text(json.dumps({**json.loads(info.read_text()), "id": id}))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "prt_1.json").write_text(json.dumps({"type": "text", "text": "a secret of elsewhere"}))
    transcript = read_transcript(file)
    assert "a secret" not in str(transcript.messages)
    assert any("no name of a folder left out" in warning for warning in transcript.warnings)


def test_opencode_storage_broken_file_is_named(tmp_path: Path) -> None:
    file = compacted().store(tmp_path / "storage")
    broken = tmp_path / "storage" / "message" / SESSION / "msg_002.json"
    broken.write_text('{"id": "msg_0')
    with pytest.raises(InvalidInput, match=r"msg_002\.json is not complete JSON"):
        read_transcript(file)


@pytest.mark.parametrize(
    "message",
    [
        {"info": {}},
        {"info": {"role": "user"}, "parts": "x"},
        {"info": {"role": "user", "time": 3}, "parts": [3, {"type": "text"}, {"type": ["text"]}]},
        {
            "info": {"role": "assistant", "parentID": ["x"], "summary": True, "finish": "stop"},
            "parts": [text_part("s")],
        },
        {"info": {"role": "assistant", "tokens": 3, "error": "x"}, "parts": [{"type": "tool", "state": 3}]},
        {
            "info": {"role": "assistant", "time": {"created": 10**30}},
            "parts": [{"type": "tool", "callID": "c", "tool": "t", "state": {"status": "completed", "attachments": 3}}],
        },
        {"info": {"role": "dancer"}, "parts": [text_part("hop")]},
    ],
)
def test_opencode_malformed_records_are_skipped(message: dict[str, Any], opened: Any) -> None:
    session = Session(revert="x")
    session.user("go")
    session.messages.append(message)
    assert opened(session).messages[0] == {"role": "user", "content": [text("go")]}
