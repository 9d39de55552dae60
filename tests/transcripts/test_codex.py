"""Codex rollouts: items of the Responses API as they were sent, and their usage."""

from __future__ import annotations

from typing import Any

from tests.transcripts.conftest import Read

from holdfast.tokens import Usage

Record = dict[str, Any]


def line(kind: str, **payload: Any) -> Record:
    return {"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload}


def item(type: str, **fields: Any) -> Record:
    return line("response_item", type=type, **fields)


def message_item(role: str, text: str, **fields: Any) -> Record:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}], **fields)


def count_record(total: int, sent: int = 0, cached: int = 0, output: int = 0, context: int | None = None) -> Record:
    last = {
        "input_tokens": sent,
        "cached_input_tokens": cached,
        "output_tokens": output,
        "total_tokens": sent + output if context is None else context,
    }
    info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": last}
    return line("event_msg", type="token_count", info=info)


META = line("session_meta", id="s-1", cwd="/x", base_instructions={"text": "be brief"})
TURN = line("turn_context", model="gpt-x")
CALL = {"type": "function_call", "name": "ls", "arguments": "{}", "call_id": "c1"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "a b"}


def test_codex_items_are_unchanged(read: Read) -> None:
    transcript = read(
        META,
        TURN,
        message_item("user", "hello"),
        item("reasoning", id="rs_1", summary=[], encrypted_content="x"),
        line("response_item", **CALL, id="fc_1", internal_chat_message_metadata_passthrough={"turn_id": "t"}),
        line("response_item", **OUTPUT),
        message_item("assistant", "done", phase="final_answer"),
    )
    assert (transcript.kind, transcript.format) == ("codex", "openai-responses")
    assert (transcript.id, transcript.model, transcript.system) == ("s-1", "gpt-x", "be brief")
    assert transcript.messages[1:4] == [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {**CALL, "id": "fc_1"},
        OUTPUT,
    ]
    assert transcript.messages[4]["phase"] == "final_answer"
    assert transcript.entries[2].id == "fc_1"
    assert transcript.entries[0].time == "2026-01-01T00:00:00Z"
    assert transcript.warnings == ()


def test_codex_usage_is_assigned_to_the_newest_model_item(read: Read) -> None:
    """P3: results come before the count of the reply that called for them; a repeated count adds nothing."""
    transcript = read(
        message_item("user", "hello"),
        message_item("assistant", "looking"),
        line("response_item", **CALL),
        line("response_item", **OUTPUT),
        count_record(110, sent=100, cached=80, output=10),
        count_record(110, sent=100, cached=80, output=10),
        line("event_msg", type="token_count", info=None),
        message_item("assistant", "done"),
        count_record(240, sent=120, output=10),
        count_record(300, sent=50, output=10),
    )
    assert [entry.usage for entry in transcript.entries] == [
        None,
        None,
        Usage(input=20, output=10, cache_read=80),
        None,
        Usage(input=120, output=10),
    ]
    assert transcript.warnings == ("1 usage report without a reply",)


def test_codex_compaction_has_replacement_history(read: Read) -> None:
    """P21: recent user messages, then the summary, which the server keeps encrypted."""
    kept = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
    transcript = read(
        message_item("user", "hello"),
        message_item("assistant", "done"),
        count_record(210, sent=200, output=10),
        line(
            "compacted",
            message="",
            replacement_history=[
                {**kept, "internal_chat_message_metadata_passthrough": {}},
                {"type": "compaction", "id": "cmp"},
            ],
        ),
        count_record(210, context=30),
        line("event_msg", type="context_compacted"),
        message_item("user", "next"),
    )
    (compaction,) = transcript.compactions
    assert compaction.after == 2
    assert compaction.summary is None
    assert (compaction.tokens_before, compaction.tokens_after) == (210, 30)
    assert compaction.head == (kept,)
    assert len(transcript.entries) == 3
    assert transcript.warnings == (
        "1 compaction item without its encrypted summary left out",
        "1 record of type 'event_msg/context_compacted' left out",
    )


def test_codex_older_compaction_has_plain_summary(read: Read) -> None:
    transcript = read(message_item("user", "hello"), line("compacted", message="they greeted"))
    (compaction,) = transcript.compactions
    assert (compaction.summary, compaction.head, compaction.tokens_before) == ("they greeted", (), None)


def test_codex_fork_keeps_its_own_header(read: Read) -> None:
    transcript = read(META, line("session_meta", id="parent", instructions="old"), message_item("user", "hello"))
    assert (transcript.id, transcript.system) == ("s-1", "be brief")


def test_codex_empty_items_are_counted(read: Read) -> None:
    transcript = read(
        message_item("user", "hello"),
        item("reasoning", summary=[]),
        item("message", role="assistant", content=[]),
        item("ghost_snapshot", ghost_commit={}),
        line("event_msg", type="agent_message", message="echo"),
        line("event_msg", type="thread_rolled_back", num_turns=1),
        {"type": "response_item", "payload": None},
        line("response_item", **OUTPUT),
        line("response_item", **{**CALL, "call_id": "c2"}),
    )
    assert len(transcript.entries) == 3
    assert transcript.warnings == (
        "1 reasoning item without content left out",
        "1 message without content left out",
        "1 record of type 'response_item/ghost_snapshot' left out",
        "1 record of type 'event_msg/agent_message' left out",
        "1 rollback not applied: the turns it undid are still here",
        "1 record without a payload left out",
        "1 tool call without a result",
        "1 tool result without its call",
    )
