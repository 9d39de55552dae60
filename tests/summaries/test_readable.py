"""Halves of characters do not get into a request, and nothing else is touched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.summaries import readable

ANY = st.text(st.characters(exclude_categories=()))


@given(ANY)
def test_whatever_comes_out_can_be_sent(text: str) -> None:
    assert len(readable(text).encode().decode()) == len(text), "one sign for each half"


@given(ANY)
def test_only_halves_are_replaced(text: str) -> None:
    for before, after in zip(text, readable(text), strict=True):
        assert after == ("?" if "\ud800" <= before <= "\udfff" else before)


@pytest.mark.parametrize("text", ["", "plain", "港口 👩‍👩‍👧‍👦 é", "\x00\ufffe"])
def test_a_text_that_can_be_sent_is_the_same_text(text: str) -> None:
    assert readable(text) is text
