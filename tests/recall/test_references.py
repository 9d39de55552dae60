"""H1: short references: `#123` in a session, a digest prefix without one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Recall, SessionService
from holdfast.context.events import Event
from holdfast.context.references import Span, citation, cited_seqs, parse_reference, parse_seq
from holdfast.errors import AmbiguousReference, InvalidInput, UnknownEvent
from holdfast.recall import reference

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
def test_parse_reference_notations(text: str, span: Span) -> None:
    assert parse_reference(text) == span


@pytest.mark.parametrize(
    "text", ["", "#", "  ", "two words", "#1 #2", "12, 13", "#1@", "#1@-5", "#1@" + "9" * 5_000, None, 12], ids=repr
)
def test_parse_reference_invalid_text_names_the_notations(text: Any) -> None:
    with pytest.raises(InvalidInput, match=r"write #123 or \[123\] for an event"):
        parse_reference(text)


@given(st.integers(1, 10**12))
def test_reference_of_event_round_trips(seq: int) -> None:
    assert parse_seq(parse_reference(reference(seq)).first) == seq
    assert reference(Event("x", "message", "", {}, seq=seq)) == reference(seq)


@given(st.integers(1, 10**12))
def test_reference_citation_round_trips(seq: int) -> None:
    assert parse_seq(parse_reference(citation(seq)).first) == seq


@given(st.lists(st.integers(1, 10**12), min_size=2, max_size=2), st.sampled_from(["-", "–", " – ", ".."]))
def test_reference_span_of_citations_round_trips(seqs: list[int], between: str) -> None:
    span = parse_reference(between.join(map(citation, seqs)))
    assert [parse_seq(span.first), parse_seq(span.last or "")] == seqs
    assert list(cited_seqs(between.join(map(citation, seqs)))) == seqs


@pytest.fixture
async def named(service: SessionService) -> Recall:
    await service.create(id="s")
    for id in ("a1b2c3", "a1b2d4", "msg-1", "42", "7"):
        await service.append("s", {"role": "user", "content": f"this is {id}"}, id=id)
    return Recall(service, "s")


@pytest.mark.parametrize(
    ("written", "expected"),
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
async def test_resolve_reference_by_number_id_or_prefix(named: Recall, written: str, expected: str) -> None:
    passage = await named.read(written)
    assert passage.text.endswith(f"this is {expected}") and passage.next is None


@pytest.mark.parametrize("written", ["#1-#3", "[1]-[3]", "[1–3]", "[1] – [3]", "1..3"])
async def test_resolve_reference_span_of_citations(named: Recall, written: str) -> None:
    assert [event.seq for event in (await named.read(written)).events] == [1, 2, 3]


async def test_resolve_reference_ambiguous_or_unknown_is_refused(named: Recall) -> None:
    with pytest.raises(
        AmbiguousReference, match=r"several events begin with 'a1b2': use the number of one, as in #1, #2"
    ):
        await named.read("#a1b2")
    with pytest.raises(UnknownEvent, match="'#9': it has #1 to #5"):
        await named.read("#9")
    with pytest.raises(UnknownEvent, match="'#0'"):
        await named.read("#0")
    with pytest.raises(UnknownEvent, match="'zz': no event id starts with it"):
        await named.read("#zz")
    with pytest.raises(UnknownEvent):
        await named.read("#1-#99")
    with pytest.raises(InvalidInput, match="ends before it begins: write #1-#3"):
        await named.read("#3-#1")
    with pytest.raises(InvalidInput, match="The reference needs a session"):
        await Recall(named.sessions).read("#1")


async def test_reference_is_the_same_in_a_fork(named: Recall) -> None:
    service = named.sessions
    fork = await service.fork("s", at="msg-1")
    await service.append(fork.id, {"role": "user", "content": "another fourth"})
    assert (await named.read("#2", session_id=fork.id)).text == (await named.read("#2")).text
    assert "another fourth" in (await named.read("#4", session_id=fork.id)).text
    with pytest.raises(UnknownEvent):
        await named.read("42", session_id=fork.id)
