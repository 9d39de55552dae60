"""A history written out for a summariser: numbered, with roles, and every cut marked (L8, W4, W6, P12)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.messages import Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult, user
from holdfast.summaries import Style, Transcript, transcript_of
from holdfast.summaries.transcript import Entry, cut

PATH = Media("image", "image/png", url="/harbor/quay.png")
ATTACHED = Media("image", "image/png", data="iVBORw0KGgo=")


def told(*messages: Message, style: Style | None = None) -> Transcript:
    return transcript_of(messages, range(1, len(messages) + 1), style or Style())


def said(*parts: Part, role: Role = "assistant") -> Message:
    return Message(role, parts)


def called(id: str, name: str, **arguments: object) -> Message:
    return said(ToolCall(id, name, arguments))


def answered(id: str, *content: Text | Media | Opaque, error: bool = False, name: str | None = None) -> Message:
    return said(ToolResult(id, content, error, name), role="tool")


def test_messages_are_numbered_and_bear_their_role() -> None:
    """L8"""
    transcript = transcript_of(
        [user("Mend the pier."), said(Text("It is mended.")), Message("system", (Text("Be brief."),))],
        [3, 1_204, 1_205],
        Style(),
    )
    assert transcript.text == (
        "[3] USER:\nMend the pier.\n\n[1,204] ASSISTANT:\nIt is mended.\n\n[1,205] SYSTEM:\nBe brief."
    )


def test_calls_and_results_stand_under_the_names_of_their_tools() -> None:
    """L8: a result is told under the tool that was called, an error as one."""
    transcript = told(
        called("c1", "read", path="/srv/tides.py"),
        answered("c1", Text("low at 6:40")),
        called("c2", "make"),
        answered("c2", Text("no rule"), error=True),
        answered("c9", Text("from nowhere")),
        answered("c9", Text("by its own name"), name="find"),
    )
    assert transcript.text == (
        '[1] ASSISTANT:\n[call] read({"path":"/srv/tides.py"})\n\n'
        "[2] TOOL:\n[result of read] low at 6:40\n\n"
        "[3] ASSISTANT:\n[call] make({})\n\n"
        "[4] TOOL:\n[error of make] no rule\n\n"
        "[5] TOOL:\n[result of a tool] from nowhere\n\n"
        "[6] TOOL:\n[result of find] by its own name"
    )


def test_an_id_that_is_used_again_is_the_later_tools_only_from_there_on() -> None:
    """W4: else the allow-list would let through what it keeps out."""
    messages = [called("0", "secret"), answered("0", Text("key")), called("0", "open"), answered("0", Text("door"))]
    assert [entry.text for entry in told(*messages).entries][1::2] == [
        "[result of secret] key",
        "[result of open] door",
    ]
    allowed = told(*messages, style=Style(tools=lambda tool: tool == "open"))
    assert "key" not in allowed.text
    assert "door" in allowed.text


@pytest.mark.parametrize(("size", "rest"), [(500, ""), (501, " [… 1 more characters]"), (9_500, " [… 9,000 more")])
def test_l8_a_result_is_cut_at_500_characters_and_the_cut_is_marked(size: int, rest: str) -> None:
    (entry,) = told(answered("c", Text("x" * size))).entries
    assert entry.text.startswith("[result of a tool] " + "x" * 500 + rest)
    assert entry.text.count("x") == 500


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
@pytest.mark.parametrize(("size", "marked"), [(2_000, False), (2_001, True)])
def test_l8_a_text_is_cut_at_2000_characters_and_the_cut_is_marked(role: Role, size: int, marked: bool) -> None:
    (entry,) = told(said(Text("x" * size), role=role)).entries
    assert entry.text == "x" * 2_000 + (" [… 1 more characters]" if marked else "")


def test_l8_the_arguments_of_a_call_are_cut_as_a_text_is() -> None:
    (entry,) = told(called("c", "write", text="x" * 3_000)).entries
    assert entry.text.startswith('[call] write({"text":"xxx')
    assert entry.text.endswith("more characters])")
    assert len(entry.text) < 2_100


@given(st.text(), st.integers(0, 40))
def test_a_cut_text_is_its_beginning_and_says_how_much_is_gone(text: str, limit: int) -> None:
    short = cut(text, limit)
    if len(text) <= limit:
        assert short == text
    else:
        head, _, mark = short.rpartition(" [… ")
        assert text.startswith(head)
        assert mark == f"{len(text) - limit:,} more characters]"


def test_w4_tools_are_told_by_an_allow_list() -> None:
    style = Style(tools=lambda tool: tool == "userQuestions" or tool.startswith("linear"))
    transcript = told(
        said(Text("I ask."), ToolCall("a", "userQuestions", {}), ToolCall("b", "bash", {})),
        answered("a", Text("the quay")),
        answered("b", Text("lost")),
        called("c", "linearCreate"),
        answered("c", Text("made")),
        answered("d", Text("of nobody")),
        style=style,
    )
    assert [entry.place for entry in transcript.entries] == [1, 2, 4, 5], "what says nothing is not told"
    assert "bash" not in transcript.text
    assert "lost" not in transcript.text


def test_w4_thoughts_are_left_out() -> None:
    transcript = told(said(Reasoning("hm, let me see"), Text("It is the pier.")), said(Reasoning("only a thought")))
    assert transcript.text == "[1] ASSISTANT:\nIt is the pier."


def test_p12_media_are_told_in_words() -> None:
    """One that came by path by its path; an attached one by its type; a sound and a film as what they are."""
    transcript = told(
        said(Text("look"), PATH, ATTACHED, Media("audio"), Media("file", name="plan.pdf"), role="user"),
        answered("c", Text("x" * 600), PATH),
    )
    assert transcript.text.startswith(
        "[1] USER:\nlook\nimage: /harbor/quay.png\nimage: image/png\naudio\nfile: plan.pdf\n\n"
    )
    assert transcript.text.endswith("[… 100 more characters]\nimage: /harbor/quay.png"), "a long text does not hide it"
    assert "iVBOR" not in transcript.text


def test_what_only_one_format_has_is_told_where_it_can_be_read() -> None:
    """Another tool's summary, a document, a result of a search inside a result; what is encrypted says nothing."""
    found = Opaque("search_result", {"content": [{"type": "text", "text": "high at 12:55"}]}, "anthropic")
    document = Opaque("document", {"source": {"type": "text", "data": "the rules of the quay"}}, "anthropic")
    transcript = told(
        said(Opaque("compaction", {"content": "what went before"}, "anthropic")),
        said(document, role="user"),
        answered("c", found),
        said(Opaque("item", {"encrypted_content": "gAAAA"}, "openai-responses")),
    )
    assert [entry.text for entry in transcript.entries] == [
        "what went before",
        "the rules of the quay",
        "[result of a tool] high at 12:55",
    ]


def picture(number: int) -> Media:
    return Media("image", "image/png", url=f"https://a.example/{number}.png")


@pytest.mark.parametrize(("most", "seen"), [(0, []), (2, [4, 5]), (4, [2, 3, 4, 5]), (9, [1, 2, 3, 4, 5])])
def test_the_newest_images_go_along_in_their_order_and_no_more_than_so_many(most: int, seen: list[int]) -> None:
    """P12: in messages, in results, and several in one."""
    messages = [
        said(picture(1), role="user"),
        said(picture(2), Media("audio", data="x"), picture(3), role="user"),
        answered("c", Text("two"), picture(4), picture(5)),
        said(Media("image", file_id="only a name"), role="user"),
    ]
    assert told(*messages, style=Style(images=most)).media == tuple(map(picture, seen))


def test_no_half_of_a_character_is_told() -> None:
    """No request could carry it."""
    half = "\ud83d"
    transcript = told(
        user(f"a {half} b"),
        called("c", "read", path=half),
        answered("c", Text(half * 200)),
        user("x" * 1_999 + "\ud83d\ude00"),
    )
    transcript.text.encode()
    for less in transcript.smaller():
        less.text.encode()
    assert "a ? b" in transcript.text


# -- pieces, and less and less of it ---------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=120)


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    """What is told of any number of messages, with results that can be told in brief."""
    messages = []
    for number in range(draw(st.integers(0, 12))):
        text = draw(TEXTS) * draw(st.integers(1, 12))
        messages += [answered(f"c{number}", Text(text))] if draw(st.booleans()) else [user(text)]
    style = Style(draw(st.integers(0, 500)), draw(st.integers(1, 400)))
    pictures = tuple(map(picture, range(draw(st.integers(0, 2)))))
    transcript = transcript_of(messages, range(1, len(messages) + 1), style)
    return Transcript(transcript.entries, pictures)


@given(transcripts(), st.integers(1, 600))
def test_w6_pieces_hold_every_message_once_and_in_order_and_stay_under_the_limit(whole: Transcript, limit: int) -> None:
    """Only a message that is longer by itself goes over it, alone."""
    pieces = list(whole.chunks(limit))
    assert [entry for piece in pieces for entry in piece.entries] == list(whole.entries)
    assert all(len(piece.text) <= limit or len(piece.entries) == 1 for piece in pieces)
    assert "\n\n".join(piece.text for piece in pieces) == whole.text


@given(transcripts(), st.integers(1, 600))
def test_w6_images_go_with_the_newest_piece_alone(whole: Transcript, limit: int) -> None:
    pieces = list(whole.chunks(limit))
    assert all(not piece.media for piece in pieces[:-1])
    assert all(piece.media == whole.media for piece in pieces[-1:])


def test_w6_no_more_pieces_than_it_takes() -> None:
    entries = tuple(Entry(number, "user", "x" * 90, "x" * 90) for number in range(1, 10))
    assert [len(piece.entries) for piece in Transcript(entries).chunks(310)] == [3, 3, 3]


@given(transcripts())
def test_each_smaller_telling_is_less_than_the_one_before_and_they_end(whole: Transcript) -> None:
    """Never longer, never the same again: what was too much is not sent twice."""
    tellings = [whole, *whole.smaller()]
    assert len(tellings) <= 6
    for more, less in pairwise(tellings):
        assert len(less.text) <= len(more.text)
        assert (less.left_out, less.brief, -len(less.media)) > (more.left_out, more.brief, -len(more.media))


@given(transcripts())
def test_the_newest_message_is_told_to_the_last(whole: Transcript) -> None:
    for less in whole.smaller():
        assert less.entries[-1:] == whole.entries[-1:]
        assert less.left_out + len(less.entries) == len(whole.entries)


@given(transcripts())
def test_what_was_told_with_less_can_be_told_with_less_again_until_it_cannot(whole: Transcript) -> None:
    for _ in range(60):
        less = next(whole.smaller(), None)
        if less is None:
            break
        whole = less
    assert (whole.media, len(whole.entries) <= 1) == ((), True)


def test_images_go_first_then_results_then_the_oldest() -> None:
    """(behaviour 8)"""
    messages = [message for at in range(20) for message in (user(f"u{at}x " * 40), answered("c", Text("y" * 400)))]
    whole = Transcript(told(*messages).entries, (picture(1),))
    steps = [(len(less.media), less.brief, less.left_out > 0) for less in whole.smaller()]
    assert steps == [(0, False, False), (0, True, False), *[(0, True, True)] * 3]
    assert "400 characters, not shown here" in list(whole.smaller())[1].text
    assert "y" * 100 not in list(whole.smaller())[1].text


def test_one_message_is_not_told_again_and_again() -> None:
    assert list(told(user("x" * 3_000)).smaller()) == []
    assert list(Transcript().smaller()) == []


def test_a_short_result_is_told_in_brief_too() -> None:
    (entry,) = told(answered("c", Text("exit 1"), error=True)).entries
    assert entry.brief == entry.text == "[error of a tool] exit 1"


@given(transcripts(), st.integers(0, 2_000))
def test_the_newest_that_fit_are_the_longest_suffix_that_does(whole: Transcript, room: int) -> None:
    less = whole.newest(room)
    assert less.entries == whole.entries[len(whole.entries) - len(less.entries) :]
    assert len(less.text) <= room or len(less.entries) == 1
    if less.left_out:
        one_more = Transcript(whole.entries[less.left_out - 1 :])
        assert len(one_more.text) + 2 > room
