"""Claude Code sessions: blocks are merged into the messages that the model saw."""

from __future__ import annotations

from tests.transcripts.claude_records import call, line, reply, result, text_block, tokens, user
from tests.transcripts.conftest import Read

from holdfast.tokens import Usage
from holdfast.transcripts import TranscriptEntry


def test_claude_code_blocks_of_one_reply_become_one_message(read: Read) -> None:
    """P3: a reply's usage counts once; the last record has the whole output."""
    transcript = read(
        user("u", "hello"),
        reply("a1", "m1", text_block("one"), m_usage=tokens(3, 1, 100, 20)),
        reply("a2", "m1", text_block("two"), m_usage=tokens(3, 9, 100, 20)),
    )
    assert transcript.kind == "claude-code"
    assert transcript.format == "anthropic"
    assert transcript.model == "claude-x"
    assert transcript.id == "s-1"
    assert transcript.messages == [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": [text_block("one"), text_block("two")]},
    ]
    assert transcript.entries[1].usage == Usage(3, 9, 100, 20)
    assert transcript.entries[1].usage.total == 132
    assert transcript.entries[1].id == "a1"
    assert transcript.entries[0] == TranscriptEntry({"role": "user", "content": "hello"}, "u", "2026-01-01T00:00:01Z")
    assert transcript.warnings == ()


def test_claude_code_parallel_calls_are_merged(read: Read) -> None:
    transcript = read(
        user("u", "go"),
        reply("a1", "m1", call("c1")),
        reply("a2", "m1", call("c2")),
        user("r2", [result("c2")]),
        reply("a3", "m1", call("c3")),
        user("r3", [result("c3")]),
        user("r1", [result("c1"), text_block("and hurry")]),
        reply("a4", "m2", text_block("thanks")),
    )
    assert transcript.messages[1:3] == [
        {"role": "assistant", "content": [call("c1"), call("c2"), call("c3")]},
        {"role": "user", "content": [result("c1"), result("c2"), result("c3"), text_block("and hurry")]},
    ]
    assert len(transcript.entries) == 4
    assert transcript.warnings == ()


def test_claude_code_result_moves_before_interleaved_message(read: Read) -> None:
    transcript = read(user("u", "go"), reply("a", "m1", call("c1")), user("v", "wait"), user("r", [result("c1")]))
    assert transcript.messages[2:] == [
        {"role": "user", "content": [result("c1")]},
        {"role": "user", "content": "wait"},
    ]
    assert transcript.warnings == ("1 message logged between a call and its result",)


def test_claude_code_duplicate_result_is_left_out(read: Read) -> None:
    transcript = read(
        user("u", "go"),
        reply("a", "m", call("c")),
        user("r", [result("c", "a")]),
        user("q", [result("c", "b")]),
    )
    assert transcript.messages[2:] == [{"role": "user", "content": [result("c", "a")]}]
    assert transcript.warnings == ("1 tool result for a call that already has one left out",)


def test_claude_code_orphan_calls_and_results_are_counted(read: Read) -> None:
    transcript = read(user("r", [result("lost")]), reply("a", "m1", call("c1")))
    assert [message["role"] for message in transcript.messages] == ["user", "assistant"]
    assert transcript.warnings == (
        "1 tool result without its call right before it",
        "1 tool call without a result",
    )


def test_claude_code_compaction_summary_stays_an_entry(read: Read) -> None:
    """P6, P20: the summary replaces the whole history before it."""
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "b",
        "compactMetadata": {"trigger": "auto", "preTokens": 155_000},
    }
    transcript = read(
        user("u", "go"),
        reply("a", "m1", call("c1")),
        boundary,
        user("s", "what happened so far", isCompactSummary=True, isVisibleInTranscriptOnly=True),
        reply("b", "m1", text_block("on")),
    )
    (compaction,) = transcript.compactions
    assert (compaction.after, compaction.kept) == (2, 0)
    assert compaction.summary == "what happened so far"
    assert (compaction.trigger, compaction.tokens_before, compaction.tokens_after) == ("auto", 155_000, None)
    assert transcript.messages[compaction.after] == {"role": "user", "content": "what happened so far"}
    assert len(transcript.entries) == 4


def test_claude_code_summary_without_boundary_is_a_compaction(read: Read) -> None:
    transcript = read(user("u", "go"), user("s", [text_block("so far")], isCompactSummary=True))
    assert [(c.after, c.summary, c.trigger) for c in transcript.compactions] == [(1, "so far", None)]


def test_claude_code_meta_messages_are_kept(read: Read) -> None:
    transcript = read(user("u", "a caveat", isMeta=True), reply("a", "m1", text_block("fine")))
    assert transcript.messages[0] == {"role": "user", "content": "a caveat"}


def test_claude_code_sub_agents_and_bookkeeping_are_counted(read: Read) -> None:
    transcript = read(
        {"type": "summary", "summary": "a title", "leafUuid": "x"},
        user("u", "go"),
        user("x", "sub task", isSidechain=True),
        reply("y", "m9", text_block("sub answer"), isSidechain=True),
        reply("a", "m1", text_block("Overloaded"), isApiErrorMessage=True, m_model="<synthetic>"),
        {"type": "system", "subtype": "turn_duration", "uuid": "t"},
        {
            "type": "system",
            "subtype": "microcompact_boundary",
            "uuid": "m",
            "microcompactMetadata": {"compactedToolIds": ["c1", "c2"]},
        },
        reply("b", "m2", text_block("hi")),
        line("user", "w", None),
    )
    assert [entry.id for entry in transcript.entries] == ["u", "b"]
    assert transcript.warnings == (
        "2 sub-agent records (isSidechain) left out",
        "1 record of type 'summary' left out",
        "1 API error shown as a reply left out",
        "1 record of type 'system/turn_duration' left out",
        "2 tool results cleared by microcompaction, shown here in full",
        "1 record of type 'system/microcompact_boundary' left out",
        "1 record without a readable message left out",
    )


def test_claude_code_synthetic_reply_has_no_usage(read: Read) -> None:
    transcript = read(
        user("u", "/exit"),
        reply("a", "x", text_block("No response requested."), m_model="<synthetic>", m_usage=tokens(0, 0)),
    )
    assert transcript.entries[1].usage is None
    assert transcript.model is None


def test_claude_code_sub_agent_file_is_a_thread(read: Read) -> None:
    """Its records have the parent's session id, and an agent id."""
    about = {"isSidechain": True, "agentId": "a7"}
    transcript = read(user("u", "task", **about), reply("a", "m", text_block("ok"), **about))
    assert len(transcript.entries) == 2
    assert transcript.id == "s-1.a7"


def test_claude_code_unsendable_blocks_are_counted(read: Read) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
    transcript = read(
        user("u", [picture, text_block(" ")]),
        reply("a", "m1", {"type": "thinking", "thinking": "hm"}),
        reply("b", "m1", text_block("\n\n")),
        reply("c", "m1", text_block("hello")),
        user("e", ""),
    )
    assert transcript.messages == [
        {"role": "user", "content": [text_block("[image: its data is not in the session file]")]},
        {"role": "assistant", "content": [text_block("hello")]},
    ]
    assert transcript.warnings == (
        "1 image without data replaced by a placeholder",
        "2 text blocks without text left out",
        "1 thinking block without a signature left out",
        "1 message without content left out",
    )


def test_claude_code_signed_thinking_is_kept(read: Read) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    transcript = read(
        user("u", "go"),
        reply("a", "m1", thought),
        reply("b", "m1", text_block("yes")),
        user("v", "more"),
        reply("c", "m2", thought),
        user("w", "stop"),
    )
    assert transcript.messages[1] == {"role": "assistant", "content": [thought, text_block("yes")]}
    assert [message["role"] for message in transcript.messages] == ["user", "assistant", "user", "user"]
    assert transcript.warnings == ("1 thinking block at the end of a reply left out",)


def test_claude_code_abandoned_branch_is_left_out(read: Read) -> None:
    """Editing an earlier message gives its parent a second child; only the continued branch was sent."""
    transcript = read(
        user("u", "go"),
        reply("a", "m1", text_block("one"), parentUuid="u"),
        user("x", "wrong", parentUuid="a"),
        reply("y", "m2", text_block("wrong too"), parentUuid="x"),
        user("v", "right", parentUuid="a"),
        reply("b", "m3", text_block("two"), parentUuid="v"),
    )
    assert [entry.id for entry in transcript.entries] == ["u", "a", "v", "b"]
    assert transcript.warnings == ("2 records on abandoned branches left out",)


def test_claude_code_parallel_calls_are_no_abandoned_branch(read: Read) -> None:
    transcript = read(
        user("u", "go"),
        reply("a", "m1", call("c1"), parentUuid="u"),
        user("r", [result("c1")], parentUuid="a"),
        reply("b", "m1", call("c2"), parentUuid="a"),
        user("q", [result("c2")], parentUuid="b"),
        reply("c", "m2", text_block("two"), parentUuid="q"),
    )
    assert len(transcript.entries) == 4
    assert transcript.warnings == ()
