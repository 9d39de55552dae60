"""H1: short references. `#123` in a session; the beginning of a digest without one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import InvalidInput, Recall, SessionService, reference
from holdfast.errors import AmbiguousReference, UnknownEvent
from holdfast.events import Event
from holdfast.references import Span, citation, seq_of, seqs_in, span_of

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("#12", Span("12")),
        (" 12 ", Span("12")),
        ("#12-#20", Span("12", "20")),
        ("12-20", Span("12", "20")),
        ("#12..#20", Span("12", "20")),
        ("#12 – #20", Span("12", "20")),
        ("#12@400", Span("12", None, 400)),
        ("#12@400-#20", Span("12", "20", 400)),
        ("[12]", Span("12")),
        ("[1,204]", Span("1204")),
        ("#1,204", Span("1204")),
        ("1,204", Span("1204")),
        ("[#12]", Span("12")),
        ("[12]-[14]", Span("12", "14")),
        ("[12–14]", Span("12", "14")),
        ("[12 - 14]", Span("12", "14")),
        ("[1,204] – [1,310]", Span("1204", "1310")),
        ("#1,204..#1,310", Span("1204", "1310")),
        ("[12]@4,000-[14]", Span("12", "14", 4000)),
        ("#3fa9c1d2", Span("3fa9c1d2")),
        ("3fa9c1d2", Span("3fa9c1d2")),
        ("#3fa9c1d2@10-#77aa", Span("3fa9c1d2", "77aa", 10)),
    ],
)
def test_references_as_people_write_them(text: str, span: Span) -> None:
    assert span_of(text) == span


@pytest.mark.parametrize(
    "text", ["", "#", "  ", "two words", "#1 #2", "12, 13", "#1@", "#1@-5", "#1@" + "9" * 5_000, None, 12], ids=repr
)
def test_what_is_no_reference_says_how_to_write_one(text: Any) -> None:
    with pytest.raises(InvalidInput, match=r"write #123 or \[123\] for an event"):
        span_of(text)


@given(st.integers(1, 10**12))
def test_an_events_reference_is_read_back(seq: int) -> None:
    assert seq_of(span_of(reference(seq)).first) == seq
    assert reference(Event("x", "message", "", {}, seq=seq)) == reference(seq)


@given(st.integers(1, 10**12))
def test_a_citation_in_notes_is_read_back(seq: int) -> None:
    assert seq_of(span_of(citation(seq)).first) == seq


@given(st.lists(st.integers(1, 10**12), min_size=2, max_size=2), st.sampled_from(["-", "–", " – ", ".."]))
def test_a_span_of_citations_is_read_back(seqs: list[int], between: str) -> None:
    span = span_of(between.join(map(citation, seqs)))
    assert [seq_of(span.first), seq_of(span.last or "")] == seqs
    assert list(seqs_in(between.join(map(citation, seqs)))) == seqs


@pytest.fixture
async def named(service: SessionService) -> Recall:
    await service.create(id="s")
    for id in ("a1b2c3", "a1b2d4", "msg-1", "42", "7"):
        await service.append("s", {"role": "user", "content": f"this is {id}"}, id=id)
    return Recall(service, "s")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("#1", "a1b2c3"),
        ("1", "a1b2c3"),
        ("a1b2c3", "a1b2c3"),
        ("#a1b2c3", "a1b2c3"),
        ("#a1b2d", "a1b2d4"),
        ("a1b2d", "a1b2d4"),
        ("msg-1", "msg-1"),
        ("#msg-1", "msg-1"),
        ("#msg", "msg-1"),
        ("42", "42"),
        ("#4", "42"),
        ("7", "7"),
        ("#3", "msg-1"),
    ],
)
async def test_an_event_by_number_by_id_or_by_the_beginning_of_its_id(named: Recall, written: str, said: str) -> None:
    passage = await named.read(written)
    assert passage.text.endswith(f"this is {said}") and passage.next is None


@pytest.mark.parametrize("written", ["#1-#3", "[1]-[3]", "[1–3]", "[1] – [3]", "1..3"])
async def test_a_span_as_notes_cite_it(named: Recall, written: str) -> None:
    assert [event.seq for event in (await named.read(written)).events] == [1, 2, 3]


async def test_an_ambiguous_or_unknown_reference_says_so(named: Recall) -> None:
    with pytest.raises(
        AmbiguousReference, match=r"several events begin with 'a1b2': use the number of one, as in #1, #2"
    ):
        await named.read("#a1b2")
    with pytest.raises(UnknownEvent, match="'#9': it has #1 to #5"):
        await named.read("#9")
    with pytest.raises(UnknownEvent, match="'#0'"):
        await named.read("#0")
    with pytest.raises(UnknownEvent, match="'zz': no id begins so"):
        await named.read("#zz")
    with pytest.raises(UnknownEvent):
        await named.read("#1-#99")
    with pytest.raises(InvalidInput, match="ends before it begins: write #1-#3"):
        await named.read("#3-#1")
    with pytest.raises(InvalidInput, match="Name the session"):
        await Recall(named.sessions).read("#1")


async def test_a_reference_means_the_same_in_a_fork(named: Recall) -> None:
    service = named.sessions
    fork = await service.fork("s", at="msg-1")
    await service.append(fork.id, {"role": "user", "content": "another fourth"})
    assert (await named.read("#2", session_id=fork.id)).text == (await named.read("#2")).text
    assert "another fourth" in (await named.read("#4", session_id=fork.id)).text
    with pytest.raises(UnknownEvent):
        await named.read("42", session_id=fork.id)
