"""Transcripts for a summarizer (L8, W4, W6, P12)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.messages import Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult, user
from holdfast.summaries import Style, SummaryTranscript, build_transcript
from holdfast.summaries.transcript import SummaryTranscriptEntry, truncate

PATH = Media("image", "image/png", url="/harbor/quay.png")
ATTACHED = Media("image", "image/png", data="iVBORw0KGgo=")


def transcript_of(*messages: Message, style: Style | None = None) -> SummaryTranscript:
    return build_transcript(messages, range(1, len(messages) + 1), style or Style())


def message_of(*parts: Part, role: Role = "assistant") -> Message:
    return Message(role, parts)


def call(id: str, name: str, **arguments: object) -> Message:
    return message_of(ToolCall(id, name, arguments))


def result(id: str, *content: Text | Media | Opaque, error: bool = False, name: str | None = None) -> Message:
    return message_of(ToolResult(id, content, error, name), role="tool")


def test_l8_messages_have_numbers_and_roles() -> None:
    """L8"""
    transcript = build_transcript(
        [user("Mend the pier."), message_of(Text("It is mended.")), Message("system", (Text("Be brief."),))],
        [3, 1_204, 1_205],
        Style(),
    )
    assert transcript.text == (
        "[3] USER:\nMend the pier.\n\n[1,204] ASSISTANT:\nIt is mended.\n\n[1,205] SYSTEM:\nBe brief."
    )


def test_l8_calls_and_results_have_tool_names() -> None:
    """L8: a result has the name of the called tool, and errors are marked."""
    transcript = transcript_of(
        call("c1", "read", path="/srv/tides.py"),
        result("c1", Text("low at 6:40")),
        call("c2", "make"),
        result("c2", Text("no rule"), error=True),
        result("c9", Text("from nowhere")),
        result("c9", Text("by its own name"), name="find"),
    )
    assert transcript.text == (
        '[1] ASSISTANT:\n[call] read({"path":"/srv/tides.py"})\n\n'
        "[2] TOOL:\n[result of read] low at 6:40\n\n"
        "[3] ASSISTANT:\n[call] make({})\n\n"
        "[4] TOOL:\n[error of make] no rule\n\n"
        "[5] TOOL:\n[result of a tool] from nowhere\n\n"
        "[6] TOOL:\n[result of find] by its own name"
    )


def test_w4_reused_call_id_belongs_to_the_latest_tool() -> None:
    """W4: otherwise the allow-list would let through a result of another tool."""
    messages = [call("0", "secret"), result("0", Text("key")), call("0", "open"), result("0", Text("door"))]
    assert [entry.text for entry in transcript_of(*messages).entries][1::2] == [
        "[result of secret] key",
        "[result of open] door",
    ]
    allowed = transcript_of(*messages, style=Style(tools=lambda tool: tool == "open"))
    assert "key" not in allowed.text
    assert "door" in allowed.text


@pytest.mark.parametrize(("size", "rest"), [(500, ""), (501, " [… 1 more characters]"), (9_500, " [… 9,000 more")])
def test_l8_result_is_truncated_at_500_characters(size: int, rest: str) -> None:
    (entry,) = transcript_of(result("c", Text("x" * size))).entries
    assert entry.text.startswith("[result of a tool] " + "x" * 500 + rest)
    assert entry.text.count("x") == 500


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
@pytest.mark.parametrize(("size", "marked"), [(2_000, False), (2_001, True)])
def test_l8_text_is_truncated_at_2000_characters(role: Role, size: int, marked: bool) -> None:
    (entry,) = transcript_of(message_of(Text("x" * size), role=role)).entries
    assert entry.text == "x" * 2_000 + (" [… 1 more characters]" if marked else "")


def test_l8_call_arguments_are_truncated_like_text() -> None:
    (entry,) = transcript_of(call("c", "write", text="x" * 3_000)).entries
    assert entry.text.startswith('[call] write({"text":"xxx')
    assert entry.text.endswith("more characters])")
    assert len(entry.text) < 2_100


@given(st.text(), st.integers(0, 40))
def test_truncate_keeps_the_beginning_and_marks_the_cut(text: str, limit: int) -> None:
    short = truncate(text, limit)
    if len(text) <= limit:
        assert short == text
    else:
        head, _, mark = short.rpartition(" [… ")
        assert text.startswith(head)
        assert mark == f"{len(text) - limit:,} more characters]"


def test_w4_tools_are_filtered_by_an_allow_list() -> None:
    style = Style(tools=lambda tool: tool == "userQuestions" or tool.startswith("linear"))
    transcript = transcript_of(
        message_of(Text("I ask."), ToolCall("a", "userQuestions", {}), ToolCall("b", "bash", {})),
        result("a", Text("the quay")),
        result("b", Text("lost")),
        call("c", "linearCreate"),
        result("c", Text("made")),
        result("d", Text("of nobody")),
        style=style,
    )
    assert [entry.number for entry in transcript.entries] == [1, 2, 4, 5], "empty messages are omitted"
    assert "bash" not in transcript.text
    assert "lost" not in transcript.text


def test_w4_reasoning_is_omitted() -> None:
    transcript = transcript_of(
        message_of(Reasoning("hm, let me see"), Text("It is the pier.")), message_of(Reasoning("only a thought"))
    )
    assert transcript.text == "[1] ASSISTANT:\nIt is the pier."


def test_p12_media_are_described() -> None:
    """By path, by type if attached, or by kind."""
    transcript = transcript_of(
        message_of(Text("look"), PATH, ATTACHED, Media("audio"), Media("file", name="plan.pdf"), role="user"),
        result("c", Text("x" * 600), PATH),
    )
    assert transcript.text.startswith(
        "[1] USER:\nlook\nimage: /harbor/quay.png\nimage: image/png\naudio\nfile: plan.pdf\n\n"
    )
    assert transcript.text.endswith("[… 100 more characters]\nimage: /harbor/quay.png"), "a long text does not hide it"
    assert "iVBOR" not in transcript.text


def test_opaque_parts_are_included_if_readable() -> None:
    """A compaction, a document, a search result inside a tool result; encrypted content is omitted."""
    found = Opaque("search_result", {"content": [{"type": "text", "text": "high at 12:55"}]}, "anthropic")
    document = Opaque("document", {"source": {"type": "text", "data": "the rules of the quay"}}, "anthropic")
    transcript = transcript_of(
        message_of(Opaque("compaction", {"content": "what went before"}, "anthropic")),
        message_of(document, role="user"),
        result("c", found),
        message_of(Opaque("item", {"encrypted_content": "gAAAA"}, "openai-responses")),
    )
    assert [entry.text for entry in transcript.entries] == [
        "what went before",
        "the rules of the quay",
        "[result of a tool] high at 12:55",
    ]


def picture(number: int) -> Media:
    return Media("image", "image/png", url=f"https://a.example/{number}.png")


@pytest.mark.parametrize(("limit", "seen"), [(0, []), (2, [4, 5]), (4, [2, 3, 4, 5]), (9, [1, 2, 3, 4, 5])])
def test_p12_newest_images_are_attached_in_order(limit: int, seen: list[int]) -> None:
    """P12: in messages, in results, and several in one."""
    messages = [
        message_of(picture(1), role="user"),
        message_of(picture(2), Media("audio", data="x"), picture(3), role="user"),
        result("c", Text("two"), picture(4), picture(5)),
        message_of(Media("image", file_id="only a name"), role="user"),
    ]
    assert transcript_of(*messages, style=Style(images=limit)).media == tuple(map(picture, seen))


def test_surrogates_are_replaced() -> None:
    """Lone surrogates cannot be encoded in a request."""
    half = "\ud83d"
    transcript = transcript_of(
        user(f"a {half} b"),
        call("c", "read", path=half),
        result("c", Text(half * 200)),
        user("x" * 1_999 + "\ud83d\ude00"),
    )
    transcript.text.encode()
    for less in transcript.reductions():
        less.text.encode()
    assert "a ? b" in transcript.text


# -- chunks and reductions -------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=120)


@st.composite
def transcripts(draw: st.DrawFn) -> SummaryTranscript:
    """Transcripts of any number of messages, some with a shorter brief form."""
    messages = []
    for number in range(draw(st.integers(0, 12))):
        text = draw(TEXTS) * draw(st.integers(1, 12))
        messages += [result(f"c{number}", Text(text))] if draw(st.booleans()) else [user(text)]
    style = Style(draw(st.integers(0, 500)), draw(st.integers(1, 400)))
    pictures = tuple(map(picture, range(draw(st.integers(0, 2)))))
    transcript = build_transcript(messages, range(1, len(messages) + 1), style)
    return SummaryTranscript(transcript.entries, pictures)


@given(transcripts(), st.integers(1, 600))
def test_w6_chunks_hold_every_message_once_within_the_limit(whole: SummaryTranscript, limit: int) -> None:
    """Only a single message may exceed the limit, in a chunk of its own."""
    chunks = list(whole.chunks(limit))
    assert [entry for chunk in chunks for entry in chunk.entries] == list(whole.entries)
    assert all(len(chunk.text) <= limit or len(chunk.entries) == 1 for chunk in chunks)
    assert "\n\n".join(chunk.text for chunk in chunks) == whole.text


@given(transcripts(), st.integers(1, 600))
def test_w6_only_the_last_chunk_has_images(whole: SummaryTranscript, limit: int) -> None:
    chunks = list(whole.chunks(limit))
    assert all(not chunk.media for chunk in chunks[:-1])
    assert all(chunk.media == whole.media for chunk in chunks[-1:])


def test_w6_chunks_are_as_few_as_possible() -> None:
    entries = tuple(SummaryTranscriptEntry(number, "user", "x" * 90, "x" * 90) for number in range(1, 10))
    assert [len(chunk.entries) for chunk in SummaryTranscript(entries).chunks(310)] == [3, 3, 3]


@given(transcripts())
def test_reductions_are_strictly_smaller_and_finite(whole: SummaryTranscript) -> None:
    """Never the same input twice."""
    versions = [whole, *whole.reductions()]
    assert len(versions) <= 6
    for more, less in pairwise(versions):
        assert len(less.text) <= len(more.text)
        assert (less.left_out, less.brief, -len(less.media)) > (more.left_out, more.brief, -len(more.media))


@given(transcripts())
def test_reductions_keep_the_newest_message(whole: SummaryTranscript) -> None:
    for less in whole.reductions():
        assert less.entries[-1:] == whole.entries[-1:]
        assert less.left_out + len(less.entries) == len(whole.entries)


@given(transcripts())
def test_repeated_reductions_end_with_one_message(whole: SummaryTranscript) -> None:
    for _ in range(60):
        less = next(whole.reductions(), None)
        if less is None:
            break
        whole = less
    assert (whole.media, len(whole.entries) <= 1) == ((), True)


def test_reductions_drop_images_then_results_then_the_oldest() -> None:
    """(behaviour 8)"""
    messages = [
        message for number in range(20) for message in (user(f"u{number}x " * 40), result("c", Text("y" * 400)))
    ]
    whole = SummaryTranscript(transcript_of(*messages).entries, (picture(1),))
    steps = [(len(less.media), less.brief, less.left_out > 0) for less in whole.reductions()]
    assert steps == [(0, False, False), (0, True, False), *[(0, True, True)] * 3]
    assert "400 characters, not shown here" in list(whole.reductions())[1].text
    assert "y" * 100 not in list(whole.reductions())[1].text


def test_single_message_has_no_reductions() -> None:
    assert list(transcript_of(user("x" * 3_000)).reductions()) == []
    assert list(SummaryTranscript().reductions()) == []


def test_short_result_stays_in_brief_form() -> None:
    (entry,) = transcript_of(result("c", Text("exit 1"), error=True)).entries
    assert entry.brief == entry.text == "[error of a tool] exit 1"


@given(transcripts(), st.integers(0, 2_000))
def test_newest_is_the_longest_suffix_that_fits(whole: SummaryTranscript, room: int) -> None:
    less = whole.newest(room)
    assert less.entries == whole.entries[len(whole.entries) - len(less.entries) :]
    assert len(less.text) <= room or len(less.entries) == 1
    if less.left_out:
        one_more = SummaryTranscript(whole.entries[less.left_out - 1 :])
        assert len(one_more.text) + 2 > room
