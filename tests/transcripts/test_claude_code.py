"""Claude Code sessions: blocks back into messages, and what the model really saw."""

from __future__ import annotations

from holdfast.transcripts import Entry, Usage

from .claude_records import call, line, reply, result, said, tokens, user
from .conftest import Read


def test_blocks_of_one_reply_become_one_message_with_one_usage(read: Read) -> None:
    """P3: the same reply is not counted twice; the last record knows its whole output."""
    transcript = read(
        user("u", "hello"),
        reply("a1", "m1", said("one"), m_usage=tokens(3, 1, 100, 20)),
        reply("a2", "m1", said("two"), m_usage=tokens(3, 9, 100, 20)),
    )
    assert transcript.kind == "claude-code"
    assert transcript.format == "anthropic"
    assert transcript.model == "claude-x"
    assert transcript.id == "s-1"
    assert transcript.messages == [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": [said("one"), said("two")]},
    ]
    assert transcript.entries[1].usage == Usage(3, 9, 100, 20)
    assert transcript.entries[1].usage.total == 132
    assert transcript.entries[1].id == "a1"
    assert transcript.entries[0] == Entry({"role": "user", "content": "hello"}, "u", "2026-01-01T00:00:01Z")
    assert transcript.notes == ()


def test_parallel_calls_are_gathered_however_they_were_logged(read: Read) -> None:
    transcript = read(
        user("u", "go"),
        reply("a1", "m1", call("c1")),
        reply("a2", "m1", call("c2")),
        user("r2", [result("c2")]),
        reply("a3", "m1", call("c3")),
        user("r3", [result("c3")]),
        user("r1", [result("c1"), said("and hurry")]),
        reply("a4", "m2", said("thanks")),
    )
    assert transcript.messages[1:3] == [
        {"role": "assistant", "content": [call("c1"), call("c2"), call("c3")]},
        {"role": "user", "content": [result("c1"), result("c2"), result("c3"), said("and hurry")]},
    ]
    assert len(transcript.entries) == 4
    assert transcript.notes == ()


def test_a_result_goes_before_what_was_logged_between(read: Read) -> None:
    transcript = read(user("u", "go"), reply("a", "m1", call("c1")), user("v", "wait"), user("r", [result("c1")]))
    assert transcript.messages[2:] == [
        {"role": "user", "content": [result("c1")]},
        {"role": "user", "content": "wait"},
    ]
    assert transcript.notes == ("1 message logged between a call and its result",)


def test_a_second_result_for_a_call_is_left_out(read: Read) -> None:
    transcript = read(
        user("u", "go"),
        reply("a", "m", call("c")),
        user("r", [result("c", "a")]),
        user("q", [result("c", "b")]),
    )
    assert transcript.messages[2:] == [{"role": "user", "content": [result("c", "a")]}]
    assert transcript.notes == ("1 tool result for a call that already has one left out",)


def test_calls_and_results_without_their_other_half_stay_and_are_told(read: Read) -> None:
    transcript = read(user("r", [result("lost")]), reply("a", "m1", call("c1")))
    assert [message["role"] for message in transcript.messages] == ["user", "assistant"]
    assert transcript.notes == (
        "1 tool result without its call right before it",
        "1 tool call without a result",
    )


def test_compaction_is_reported_and_its_summary_stays_an_entry(read: Read) -> None:
    """P6, P20: the whole history before is replaced by the summary."""
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
        reply("b", "m1", said("on")),
    )
    (compaction,) = transcript.compactions
    assert (compaction.after, compaction.kept) == (2, 0)
    assert compaction.summary == "what happened so far"
    assert (compaction.trigger, compaction.tokens_before, compaction.tokens_after) == ("auto", 155_000, None)
    assert transcript.messages[compaction.after] == {"role": "user", "content": "what happened so far"}
    assert len(transcript.entries) == 4


def test_a_summary_without_a_boundary_is_a_compaction_too(read: Read) -> None:
    transcript = read(user("u", "go"), user("s", [said("so far")], isCompactSummary=True))
    assert [(c.after, c.summary, c.trigger) for c in transcript.compactions] == [(1, "so far", None)]


def test_what_is_meta_was_sent_and_stays(read: Read) -> None:
    transcript = read(user("u", "a caveat", isMeta=True), reply("a", "m1", said("fine")))
    assert transcript.messages[0] == {"role": "user", "content": "a caveat"}


def test_sub_agents_errors_and_bookkeeping_are_left_out_and_counted(read: Read) -> None:
    transcript = read(
        {"type": "summary", "summary": "a title", "leafUuid": "x"},
        user("u", "go"),
        user("x", "sub task", isSidechain=True),
        reply("y", "m9", said("sub answer"), isSidechain=True),
        reply("a", "m1", said("Overloaded"), isApiErrorMessage=True, m_model="<synthetic>"),
        {"type": "system", "subtype": "turn_duration", "uuid": "t"},
        {
            "type": "system",
            "subtype": "microcompact_boundary",
            "uuid": "m",
            "microcompactMetadata": {"compactedToolIds": ["c1", "c2"]},
        },
        reply("b", "m2", said("hi")),
        line("user", "w", None),
    )
    assert [entry.id for entry in transcript.entries] == ["u", "b"]
    assert transcript.notes == (
        "2 sub-agent records (isSidechain) left out",
        "1 record of type 'summary' left out",
        "1 API error shown as a reply left out",
        "1 record of type 'system/turn_duration' left out",
        "2 tool results cleared by microcompaction, shown here in full",
        "1 record of type 'system/microcompact_boundary' left out",
        "1 record without a readable message left out",
    )


def test_a_reply_that_no_model_gave_stays_without_usage(read: Read) -> None:
    transcript = read(
        user("u", "/exit"),
        reply("a", "x", said("No response requested."), m_model="<synthetic>", m_usage=tokens(0, 0)),
    )
    assert transcript.entries[1].usage is None
    assert transcript.model is None


def test_a_sub_agents_own_file_is_its_thread(read: Read) -> None:
    """It names the session that it works for, and has an id of its own."""
    about = {"isSidechain": True, "agentId": "a7"}
    transcript = read(user("u", "task", **about), reply("a", "m", said("ok"), **about))
    assert len(transcript.entries) == 2
    assert transcript.id == "s-1.a7"


def test_what_the_provider_would_refuse_is_left_out_and_counted(read: Read) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
    transcript = read(
        user("u", [picture, said(" ")]),
        reply("a", "m1", {"type": "thinking", "thinking": "hm"}),
        reply("b", "m1", said("\n\n")),
        reply("c", "m1", said("hello")),
        user("e", ""),
    )
    assert transcript.messages == [
        {"role": "user", "content": [said("[image: its data is not in the session file]")]},
        {"role": "assistant", "content": [said("hello")]},
    ]
    assert transcript.notes == (
        "1 image without data replaced by a placeholder",
        "2 text blocks without text left out",
        "1 thinking block without a signature left out",
        "1 message without content left out",
    )


def test_signed_thinking_stays_with_what_it_led_to(read: Read) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    transcript = read(
        user("u", "go"),
        reply("a", "m1", thought),
        reply("b", "m1", said("yes")),
        user("v", "more"),
        reply("c", "m2", thought),
        user("w", "stop"),
    )
    assert transcript.messages[1] == {"role": "assistant", "content": [thought, said("yes")]}
    assert [message["role"] for message in transcript.messages] == ["user", "assistant", "user", "user"]
    assert transcript.notes == ("1 thinking block that led to nothing said left out",)


def test_a_branch_that_was_left_is_not_part_of_the_thread(read: Read) -> None:
    """Editing an earlier message gives its parent a second child; only the one that went on was sent."""
    transcript = read(
        user("u", "go"),
        reply("a", "m1", said("one"), parentUuid="u"),
        user("x", "wrong", parentUuid="a"),
        reply("y", "m2", said("wrong too"), parentUuid="x"),
        user("v", "right", parentUuid="a"),
        reply("b", "m3", said("two"), parentUuid="v"),
    )
    assert [entry.id for entry in transcript.entries] == ["u", "a", "v", "b"]
    assert transcript.notes == ("2 records on abandoned branches left out",)


def test_parallel_calls_are_no_abandoned_branch(read: Read) -> None:
    transcript = read(
        user("u", "go"),
        reply("a", "m1", call("c1"), parentUuid="u"),
        user("r", [result("c1")], parentUuid="a"),
        reply("b", "m1", call("c2"), parentUuid="a"),
        user("q", [result("c2")], parentUuid="b"),
        reply("c", "m2", said("two"), parentUuid="q"),
    )
    assert len(transcript.entries) == 4
    assert transcript.notes == ()
